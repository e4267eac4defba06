"""Intrinsics and templates in the forms that public kernels use, against NumPy."""

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.cce import CceError, build, read

C910, C910B = load_chip("ascend910"), load_chip("ascend910b")
RNG = np.random.default_rng(20)

HEAD = """
#define UB(T, a) ((__ubuf__ T *)get_imm(a))
#define L1(T, a) ((__cbuf__ T *)get_imm(a))
#define GO(a, b) do { set_flag(a, b, EVENT_ID0); wait_flag(a, b, EVENT_ID0); } while (0)
"""


def run(parameters, body, arguments, chip=C910B, kind: str | None = "vector", before=""):
    """Return what a kernel leaves in ``out``.

    The simulation must have no findings, and must compute the same in the order of time.
    """
    text = f"{HEAD}{before}\n__global__ __aicore__ void k({parameters}) {{\n{body}\n}}"
    program, functional = build(read(text, "k.cce"), chip, arguments, kind=kind)
    report = simulate(program)
    assert not report.findings, report.findings[0]
    assert functional is not None
    out = functional.read("out")
    assert np.array_equal(report.outputs["out"], out)
    return out


@pytest.mark.parametrize("mode", [0, 1])
def test_v4dtrans_goes_from_planes_to_pixels_and_with_1_back(mode):
    pixels, channels = 16, 8
    x = RNG.integers(0, 1 << 16, (pixels, channels) if mode else (channels, pixels))
    body = f"""copy_gm_to_ubuf(UB(uint16_t, 0), x, 0, 1, 8, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    v4dtrans(UB(uint16_t, 512), UB(uint16_t, 0), {pixels}, {channels}, {mode});
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB(uint16_t, 512), 0, 1, 8, 0, 0);"""
    arguments = {"x": x.astype(np.uint16), "out": np.zeros(x.T.shape, np.uint16)}
    parameters = "__gm__ uint16_t *x, __gm__ uint16_t *out"
    assert np.array_equal(run(parameters, body, arguments, C910, None), x.T)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("counted", [False, True])
def test_vgather_takes_elements_at_byte_offsets(dtype, counted):
    width = np.dtype(dtype).itemsize
    lanes = 256 // width
    x = RNG.integers(0, 1 << 8 * width, 512, dtype=dtype)
    index = RNG.integers(0, 512, 2 * lanes)
    enabled = lanes + 5 if counted else 7
    mask = f"set_mask_count(); set_vector_mask(0, {enabled});"
    mask = mask if counted else f"set_vector_mask(0, {(1 << enabled) - 1});"
    body = f"""set_vector_mask(-1, -1);
    copy_gm_to_ubuf(UB({dtype}_t, 4096), x, 0, 1, {16 * width}, 0, 0);
    copy_gm_to_ubuf(UB(uint32_t, 0), at, 0, 1, {lanes // 4}, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    vector_dup(UB({dtype}_t, 8192), 0, 2, 1, 1, 8, 8);
    pipe_barrier(PIPE_V);
    {mask}
    vgather(UB({dtype}_t, 8192), UB(uint32_t, 0), (uint64_t)UB({dtype}_t, 4096), 8, 2);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB({dtype}_t, 8192), 0, 1, 16, 0, 0);"""
    arguments = {
        "x": x,
        "at": (index * width).astype(np.uint32),
        "out": np.zeros(2 * lanes, dtype),
    }
    parameters = f"__gm__ {dtype}_t *x, __gm__ uint32_t *at, __gm__ {dtype}_t *out"
    expected = x[index].reshape(2, lanes)
    if counted:
        expected = expected.ravel()
        expected[enabled:] = 0
    else:
        expected[:, enabled:] = 0
    assert np.array_equal(run(parameters, body, arguments), expected.ravel())


@pytest.mark.parametrize("pattern", range(8))
@pytest.mark.parametrize("counted", [0, 40])
def test_vreducev2_keeps_what_the_pattern_or_bits_name(pattern, counted):
    x = RNG.integers(0, 1 << 32, (3, 64), dtype=np.uint32)
    bits = RNG.integers(0, 256, (3, 8), dtype=np.uint8)
    rows = np.zeros((3, 32), np.uint8)
    rows[:, :8] = bits
    mask = f"set_mask_count(); set_vector_mask(0, {counted});" if counted else ""
    body = f"""copy_gm_to_ubuf(UB(uint32_t, 0), x, 0, 1, 24, 0, 0);
    copy_gm_to_ubuf(UB(uint32_t, 4096), bits, 0, 1, 3, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    vector_dup(UB(uint32_t, 8192), 0, 3, 1, 1, 8, 8);
    {mask}
    pipe_barrier(PIPE_V);
    vreducev2(UB(uint32_t, 8192), UB(uint32_t, 0), UB(uint32_t, 4096), 3, 1, {pattern}, 8, 1);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB(uint32_t, 8192), 0, 1, 24, 0, 0);"""
    arguments = {"x": x, "bits": rows.view(np.uint32), "out": np.zeros(192, np.uint32)}
    actual = run("__gm__ uint32_t *x, __gm__ uint32_t *bits, __gm__ uint32_t *out", body, arguments)
    count = counted or 64
    words = ["01" * 32, "10" * 32, "0001" * 16, "0010" * 16, "0100" * 16, "1000" * 16, "1" * 64]
    if pattern:  # the guide writes the lowest element last
        keep = np.tile([c == "1" for c in words[pattern - 1][::-1]], (3, 1))
    else:
        keep = np.unpackbits(bits, axis=1, bitorder="little").astype(bool)
    expected = x[:, :count][keep[:, :count]]
    assert np.array_equal(actual[: len(expected)], expected) and not actual[len(expected) :].any()


@pytest.mark.parametrize("dtype", ["half", "float", "int8_t"])
def test_squares_are_transposed_on_the_way_to_l0b(dtype):
    """A·B of row-major matrices; the squares of B are 16 elements wide, or 32 of 8 bits."""
    kind = {"half": np.float16, "float": np.float32, "int8_t": np.int8}[dtype]
    width = np.dtype(kind).itemsize
    c0, side = 32 // width, 32 if width == 1 else 16
    m, k, n = 16, 2 * side, 2 * side
    a, b = (RNG.integers(-8, 8, s).astype(kind) for s in ((m, k), (k, n)))
    name = f"copy_gm_to_cbuf_multi_nd2nz_{ {1: 'b8', 2: 'b16', 4: 'b32s'}[width] }"
    # In L1, B is columns of blocks, k rows high. In L0B, rows of fractals, c0 of k high.
    loads = ""
    for row, column in np.ndindex(2, 2):
        source = (column * side // c0 * k + row * side) * 32
        target = (row * side // c0 * (n // 16) + column * side // 16) * 512
        apart = n // 16 - 1 if width == 4 else 0
        loads += f"""load_cbuf_to_cb_transpose((__cb__ {dtype} *)get_imm({target}),
        L1({dtype}, {16384 + source}), 0, 1, 1, 0, inc, {apart});\n"""
    if width == 4:  # the second fractal of a square is in the next column of blocks
        k = m = n = side
        a, b = a[:m, :k].copy(), b[:k, :n].copy()
        loads = "load_cbuf_to_cb_transpose((__cb__ float *)get_imm(0), L1(float, 16384), 0, 1,"
        loads += " 1, 0, inc, 0);"
    wide, out = (np.int32, "int32_t") if width == 1 else (np.float32, "float")
    body = f"""{name}(L1({dtype}, 0), a, 0, 1, {m}, {k}, 0, {k}, {m}, 1, 0);
    {name}(L1({dtype}, 16384), b, (uint64_t)1 << 4 | {k}ULL << 16 | {n}ULL << 32,
           {n}ULL | {k}ULL << 16 | 1ULL << 32);
    GO(PIPE_MTE2, PIPE_MTE1);
    load_cbuf_to_ca((__ca__ {dtype} *)get_imm(0), L1({dtype}, 0), 0, {k // c0}, 1, 0, 0, 0, inc);
    {loads}
    GO(PIPE_MTE1, PIPE_M);
    mad((__cc__ {out} *)get_imm(0), (__ca__ {dtype} *)get_imm(0), (__cb__ {dtype} *)get_imm(0),
        {m}ULL | {k}ULL << 12 | {n}ULL << 24 | 1ULL << 63);
    GO(PIPE_M, PIPE_FIX);
    set_nd_para(1ULL | 1ULL << 16 | 1ULL << 32);
    copy_matrix_cc_to_gm(out, (__cc__ {out} *)get_imm(0),
                         {n}ULL << 4 | {m}ULL << 16 | {n}ULL << 32, {m}ULL | 1ULL << 43);"""
    parameters = f"__gm__ {dtype} *a, __gm__ {dtype} *b, __gm__ {out} *out"
    actual = run(parameters, body, {"a": a, "b": b, "out": np.zeros((m, n), wide)}, kind="cube")
    assert np.array_equal(actual, a.astype(np.int64) @ b.astype(np.int64))


def test_a_bias_is_added_once():
    """C begins as the bias where c_matrix_source says so, and is added to after that."""
    m, k, n = 16, 32, 16
    a, b = (RNG.integers(-8, 8, s).astype(np.float16) for s in ((m, k), (k, n)))
    bias = RNG.integers(-99, 99, n).astype(np.float32)
    body = """copy_gm_to_cbuf_multi_nd2nz_b16(L1(half, 0), a, 0, 1, 16, 32, 0, 32, 16, 1, 0);
    copy_gm_to_cbuf(L1(half, 4096), b, 0, 1, 32, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(L1(float, 8192), bias, 0, 1, 2, 0, 0, PAD_NONE);
    GO(PIPE_MTE2, PIPE_MTE1);
    uint64_t table = 128;
    copy_cbuf_to_bt(table, L1(float, 8192), 0, 1, 1, 0, 0);
    load_cbuf_to_ca(LA, L1(half, 0), 0, 2, 1, 0, 0, 0, inc);
    load_cbuf_to_cb(LB, L1(half, 4096), 0, 2, 1, 0, 0, 1, inc);
    GO(PIPE_MTE1, PIPE_M);
    for (int i = 0; i < 2; i++) {
        mad(LC, LA + 256 * i, LB + 256 * i, table, 16, 16, 16, 0, 0, i == 0, 0);
        pipe_barrier(PIPE_M);
    }
    GO(PIPE_M, PIPE_FIX);
    copy_matrix_cc_to_gm(out, LC, 0, 16, 16, 16, 16, 0, NoQuant, 0, 0, 1);"""
    before = """
#define LA ((__ca__ half *)get_imm(0))
#define LB ((__cb__ half *)get_imm(0))
#define LC ((__cc__ float *)get_imm(0))"""
    parameters = "__gm__ half *a, __gm__ half *b, __gm__ float *bias, __gm__ float *out"
    arguments = {"a": a, "b": b, "bias": bias, "out": np.zeros((m, n), np.float32)}
    actual = run(parameters, body, arguments, kind="cube", before=before)
    assert np.array_equal(actual, a.astype(np.float32) @ b.astype(np.float32) + bias)


def test_a_move_in_byte_mode_writes_so_many_bytes():
    body = """copy_gm_to_ubuf(UB(half, 0), x, 0, 1, 2, 0, 0);
    GO(PIPE_MTE2, PIPE_MTE3);
    copy_ubuf_to_gm(out + 1, UB(half, 0), 0, 1, 6, 0, 0, BM_ENABLE);"""
    x = RNG.integers(0, 99, 32).astype(np.float16)
    arguments = {"x": x, "out": np.zeros(16, np.float16)}
    actual = run("__gm__ half *x, __gm__ half *out", body, arguments)
    assert np.array_equal(actual, [0, *x[:3], *[0] * 12])


def test_declarations_of_the_kind_of_core_are_ignored():
    body = """KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    __gm__ __bf16 *p = (__gm__ __bf16 *)out;
    p[1] = (__bf16)1.5f;"""
    actual = run("__gm__ uint16_t *out", body, {"out": np.zeros(4, np.uint16)})
    assert actual.tolist() == [0, 0x3FC0, 0, 0]


def pairs_of(scores, indices):
    """Return elements as vbitsort writes them: a score, then an index in the last four bytes."""
    result = np.zeros((*scores.shape, 8), np.uint8)
    result[..., : scores.itemsize] = scores[..., None].view(np.uint8)
    result[..., 4:] = indices.astype(np.uint32)[..., None].view(np.uint8)
    return result


@pytest.mark.parametrize("dtype", ["half", "float"])
def test_groups_of_32_are_sorted_with_their_indices(dtype):
    kind = {"half": np.float16, "float": np.float32}[dtype]
    x = RNG.integers(-9, 9, (3, 32)).astype(kind)  # with many ties
    i = RNG.permutation(96).astype(np.uint32).reshape(3, 32)
    body = f"""copy_gm_to_ubuf(UB({dtype}, 0), x, 0, 1, {x.nbytes // 32}, 0, 0);
    copy_gm_to_ubuf(UB(uint32_t, 4096), i, 0, 1, 12, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    vbitsort(UB({dtype}, 8192), UB({dtype}, 0), UB(uint32_t, 4096), 3);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB(uint8_t, 8192), 0, 1, 24, 0, 0);"""
    types = f"__gm__ {dtype} *x, __gm__ uint32_t *i, __gm__ uint8_t *out"
    actual = run(types, body, {"x": x, "i": i, "out": np.zeros((3, 32, 8), np.uint8)})
    order = np.argsort(-x.astype(float), axis=1, kind="stable")
    expected = pairs_of(np.take_along_axis(x, order, 1), np.take_along_axis(i, order, 1))
    assert np.array_equal(actual, expected)


def merged(lists):
    """Merge by always taking the highest head; of equal heads, that of the first list."""
    lists, result = [list(x) for x in lists], []
    while any(lists):
        heads = [x[0][0] if x else -np.inf for x in lists]
        result.append(lists[int(np.argmax(heads))].pop(0))
    return result


@pytest.mark.parametrize(("valid", "repeat"), [(15, 1), (15, 2), (5, 1), (2, 1)])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_lists_are_merged(valid, repeat, is_sorted):
    scores = RNG.integers(-20, 20, (repeat, 4, 8)).astype(np.float32)
    if is_sorted:
        scores = -np.sort(-scores, axis=2)
    indices = np.arange(scores.size).reshape(scores.shape)
    x = pairs_of(scores, indices)
    blocks = x.nbytes // 32
    body = f"""copy_gm_to_ubuf(UB(uint8_t, 0), x, 0, 1, {blocks}, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    __ubuf__ float *lists[4] = {{UB(float, 0), UB(float, 64), UB(float, 128), UB(float, 192)}};
    uint64_t lengths = 8 | 8 << 16 | 8ull << 32 | 8ull << 48;
    vmrgsort4(UB(float, 4096), lists, lengths, {repeat} | {valid} << 8);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB(uint8_t, 4096), 0, 1, {repeat * valid.bit_count() * 2}, 0, 0);"""
    chosen = [n for n in range(4) if valid >> n & 1]
    out = np.zeros((repeat * len(chosen) * 8, 8), np.uint8)
    actual = run("__gm__ uint8_t *x, __gm__ uint8_t *out", body, {"x": x, "out": out})
    expected = []
    for s, i in zip(scores, indices, strict=True):
        expected += merged([list(zip(s[n], i[n], strict=True)) for n in chosen])
    values, indices = np.array(expected, np.float64).T
    assert np.array_equal(actual, pairs_of(values.astype(np.float32), indices))


@pytest.mark.parametrize(
    ("control", "message"),
    [("2 | 15 << 8 | 1 << 12", "to stop when a list is exhausted"), ("2 | 7 << 8", "must be four")],
)
def test_unsupported_merges_are_named(control, message):
    body = f"""__ubuf__ float *lists[4] = {{UB(float, 0), UB(float, 64), UB(float, 128), 0}};
    vmrgsort4(UB(float, 4096), lists, 8 | 8 << 16 | 8ull << 32 | 8ull << 48, {control});"""
    with pytest.raises(CceError, match=rf"k.cce:8:\d+: vmrgsort4: .*{message}"):
        run("__gm__ uint8_t *out", body, {"out": np.zeros(8, np.uint8)})


def test_a_product_is_added_to_a_matrix_from_ub():
    a, b = RNG.integers(-8, 8, (2, 16, 16)).astype(np.float16)
    bias = RNG.integers(-99, 99, (16, 16)).astype(np.float32)
    body = """copy_gm_to_cbuf(L1(half, 0), a, 0, 1, 16, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(L1(half, 512), b, 0, 1, 16, 0, 0, PAD_NONE);
    copy_gm_to_ubuf(UB(float, 0), bias, 0, 1, 32, 0, 0);
    GO(PIPE_MTE2, PIPE_MTE1);
    GO(PIPE_MTE2, PIPE_V);
    load_cbuf_to_ca((__ca__ half *)0, L1(half, 0), 0, 1, 1, 0, false);
    load_cbuf_to_cb((__cb__ half *)0, L1(half, 512), 0, 1, 1, 0, true);
    copy_matrix_ubuf_to_cc((__cc__ float *)1024, UB(float, 0), 0, 1, 1, 0, 0, CRMODE_NONE);
    GO(PIPE_MTE1, PIPE_M);
    GO(PIPE_V, PIPE_M);
    mad((__cc__ float *)1024, (__ca__ half *)0, (__cb__ half *)0, 16, 16, 16, 0);
    GO(PIPE_M, PIPE_V);
    copy_matrix_cc_to_ubuf(UB(float, 2048), (__cc__ float *)1024, 0, 1, 1, 0, 0, CRMODE_NONE);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB(float, 2048), 0, 1, 32, 0, 0);"""
    arguments = {"a": a, "b": b, "bias": bias, "out": np.zeros((16, 16), np.float32)}
    types = "__gm__ half *a, __gm__ half *b, __gm__ float *bias, __gm__ float *out"
    actual = run(types, body, arguments, chip=C910, kind=None)
    expected = a.astype(float) @ b.astype(float) + bias
    assert np.array_equal(actual, expected)


@pytest.mark.parametrize(("dtype", "kind"), [("half", np.float16), ("int32_t", np.int32)])
def test_rows_of_16_go_to_fractals_and_back(dtype, kind):
    """Two rows go to the beginning of each of three fractals; in UB they are two blocks apart."""
    width = np.dtype(kind).itemsize
    blocks = 2 * 16 * width // 32
    x = RNG.integers(-99, 99, (3, 2, 16)).astype(kind)
    body = f"""copy_gm_to_ubuf(UB({dtype}, 0), x, 0, 1, {3 * blocks}, 0, 0);
    vector_dup(UB({dtype}, 4096), ({dtype})7, 2, 1, 1, 8, 0);
    GO(PIPE_MTE2, PIPE_V);
    copy_vector_ubuf_to_cc((__cc__ {dtype} *)0, UB({dtype}, 0), 0, 3, 2, 0, 1, CRMODE_NONE);
    pipe_barrier(PIPE_V);
    copy_vector_cc_to_ubuf(UB({dtype}, 4096), (__cc__ {dtype} *)0, 0, 3, 2, 1, 1, CRMODE_NONE);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB({dtype}, 4096), 0, 1, {3 * (blocks + 1)}, 0, 0);"""
    out = np.zeros((3, 32 + 32 // width), kind)
    types = f"__gm__ {dtype} *x, __gm__ {dtype} *out"
    actual = run(types, body, {"x": x, "out": out}, chip=C910, kind=None)
    assert np.array_equal(actual[:, :32], x.reshape(3, 32)) and (actual[:, 32:] == 7).all()


def test_conversions_on_the_way_to_l0c_are_refused():
    with pytest.raises(CceError, match="from fp16 to fp32 in mode 4 is not modelled"):
        run(
            "__gm__ float *out",
            "copy_matrix_ubuf_to_cc((__cc__ float *)0, UB(half, 0), 0, 1, 1, 0, 0,"
            " CRMODE_F16toF32_NONE);",
            {"out": np.zeros(8, np.float32)},
            chip=C910,
            kind=None,
        )


@pytest.mark.parametrize("dtype", ["half", "float"])
def test_vsel_takes_bits_from_an_address_in_the_register(dtype):
    kind = {"half": np.float16, "float": np.float32}[dtype]
    lanes = 256 // np.dtype(kind).itemsize
    bits = RNG.integers(0, 2, (2, 3, lanes)).astype(bool)
    arguments = {
        "x": RNG.normal(size=(2, 3, lanes)).astype(kind),
        "bits": np.zeros((2, 64), np.uint8),
        "out": np.zeros((2, 3, lanes), kind),
    }
    arguments["bits"][:, : 3 * lanes // 8] = np.packbits(
        bits.reshape(2, -1), axis=1, bitorder="little"
    )
    body = f"""copy_gm_to_ubuf(UB({dtype}, 0), x, 0, 1, 48, 0, 0);
    copy_gm_to_ubuf(UB(uint8_t, 4096), bits, 0, 1, 4, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    for (int i = 0; i < 2; ++i) {{
        GO(PIPE_V, PIPE_S);
        *UB(uint64_t, 5120) = 4096 + 64 * i;
        GO(PIPE_S, PIPE_V);
        set_cmpmask(UB(uint64_t, 5120));
        vsel(UB({dtype}, 6144 + 768 * i), UB({dtype}, 768), UB({dtype}, 0), 3, 1, 1, 1, 8, 8, 8, 2);
    }}
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB({dtype}, 6144), 0, 1, 48, 0, 0);"""
    types = f"__gm__ {dtype} *x, __gm__ uint8_t *bits, __gm__ {dtype} *out"
    actual = run(types, body, arguments)
    assert np.array_equal(actual, np.where(bits, arguments["x"][1], arguments["x"][0]))


TEMPLATES = """
template <typename T, bool RELU = false>
__aicore__ inline void Scale(__gm__ T *to, __ubuf__ T *ub, float by) {
    if constexpr (std::is_same<T, half>::value) {
        vmuls(ub, ub, (half)by, 1, 1, 1, 8, 8);
    } else if constexpr (std::is_same_v<T, float>) {
        vmuls(ub, ub, by, 2, 1, 1, 8, 8);
    } else {
        not_even_a_function(ub);
    }
    if constexpr (RELU) {
        pipe_barrier(PIPE_V);
        vrelu(ub, ub, 128 * sizeof(T) / 256, 1, 1, 8, 8);
    }
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(to, ub, 0, 1, 128 * sizeof(T) / 32, 0, 0);
}
template <typename T> struct Never { T x; void half_of(); };
template <typename T> __aicore__ void Never2(T x) { broken(; }
"""


@pytest.mark.parametrize(("dtype", "relu"), [("half", True), ("float", False)])
def test_templates_of_functions_have_instances(dtype, relu):
    kind = {"half": np.float16, "float": np.float32}[dtype]
    arguments = {"x": RNG.normal(size=128).astype(kind), "out": np.zeros(128, kind)}
    size = 4 * np.dtype(kind).itemsize
    call = f"Scale<{dtype}, true>" if relu else f"Scale<{dtype}>"
    body = f"""copy_gm_to_ubuf(UB({dtype}, 0), x, 0, 1, {size}, 0, 0);
    GO(PIPE_MTE2, PIPE_V);
    {call}(out, UB({dtype}, 0), 2.0f);"""
    parameters = f"__gm__ {dtype} *x, __gm__ {dtype} *out"
    before = TEMPLATES.replace("Never2(T x) { broken(; }", "Never2(T x) { broken(); }")
    actual = run(parameters, body, arguments, before=before)
    expected = 2 * arguments["x"]
    assert np.array_equal(actual, np.maximum(expected, 0) if relu else expected)


@pytest.mark.parametrize(
    ("before", "call", "message"),
    [
        (
            "template <int N> int f(int x) { return x + N; }",
            "f(1);",
            "N of template f must be writ",
        ),
        (
            "template <typename T> T f(T a, T b) { return a; }",
            "f(1, 2.0f);",
            "not int32_t and float",
        ),
        (
            "template <typename T> T f(T *a) { return *a; }",
            "f(1);",
            "f must be a pointer, not",
        ),
        ("template <int N> int f() { return N; }", "f<1, 2>();", "must have 1 arguments, not 2"),
        (
            "template <int N, int M = 1> int f() { return N; }",
            "f<>();",
            "template f must have 1 to 2 arguments, not 0",
        ),
        ("template <typename... T> int f() { return 1; }", "f<int>();", "a fixed number of"),
        ("template <typename T> union S { T x; };", "S<int> s;", "templates are not part of the"),
        (
            "template <typename T> int f(T x) { return 0;}\ntemplate <> int f(half x) { return 1;}",
            "f<half>(1);",
            "k.cce:6:1: a specialisation must be written as f<...>(...)",
        ),
        ("template <int N> int f() { return f<N + 1>(); }", "f<0>();", "at most 200 instances"),
    ],
)
def test_unsupported_templates_are_named(before, call, message):
    with pytest.raises(CceError) as error:
        run("__gm__ int *out", call, {"out": np.zeros(8, np.int32)}, before=before)
    assert message in str(error.value) and str(error.value).startswith("k.cce:")


@pytest.mark.parametrize("value", [None, 0, np.full(8, 5, np.int32)])
def test_a_pointer_may_be_null(value):
    body = "if (many) out[0] = *many; if (many == nullptr) out[1] = 7; pipe_barrier(PIPE_ALL);"
    arguments = {"many": value, "out": np.zeros(8, np.int32)}
    actual = run("__gm__ int *many, __gm__ int *out", body, arguments)
    assert actual[:2].tolist() == ([5, 0] if isinstance(value, np.ndarray) else [0, 7])


def test_a_load_through_a_null_pointer_is_refused():
    with pytest.raises(CceError, match=r"k.cce:7:"):
        run("__gm__ int *x, __gm__ int *out", "out[0] = *x;", {"x": None, "out": np.zeros(8, "i4")})


DEDUCED = """
#define BLOCKS(n) (((n) + 31) / 32)
struct Pair { int a; int b; };
static const int STEP = 3;
template <typename D, typename S = D>
void fetch(__ubuf__ D *to, __gm__ const S *__restrict__ from, int bytes, int more = 0) {
    copy_gm_to_ubuf(to, from, 0, 1, BLOCKS(bytes) + more, 0, 0);
}
template <typename T> void step(T &x, T by) { x += by * STEP; }
template <typename T> T left(T x) { return x; }
template <typename T> int width(T x) { return sizeof(left(x)); }
template <int N, typename T> T times(T x) { return x * N; }
template <typename A, typename B> void doubled(__ubuf__ A *to, B *from, int repeat) {
    if constexpr (std::is_same<A, float>::value) vmuls(to, from, A(2), repeat, 1, 1, 8, 8);
    else vmuls(to, from, A(4), repeat, 1, 1, 8, 8);
}
"""


@pytest.mark.parametrize("dtype", ["half", "float"])
def test_arguments_of_templates_come_from_a_call(dtype):
    count = 256 // {"half": 2, "float": 4}[dtype]
    arguments = {
        "x": RNG.integers(-99, 99, count).astype({"half": "f2", "float": "f4"}[dtype]),
        "out": np.zeros(count, {"half": "f2", "float": "f4"}[dtype]),
    }
    body = f"""fetch(UB({dtype}, 0), x, 256);
    fetch<uint8_t>(UB(uint8_t, 512), x, 224, 1);
    GO(PIPE_MTE2, PIPE_V);
    doubled(UB({dtype}, 256), UB({dtype}, 0), 1);
    pipe_barrier(PIPE_V);
    int i = 1; float f = 1; Pair p = {{4, 5}};
    step(i, 2); step(f, 0.5f);
    bool right = i == 7 && f == 2.5f && left(p).b == 5 && *left(&i) == 7 && times<3>(i) == 21;
    right = right && width(right) == 1 && width(p) == 8 && width(UB(half, 0)) == 8;
    if (right) vadd(UB({dtype}, 0), UB({dtype}, 256), UB({dtype}, 512), 1, 1, 1, 1, 8, 8, 8);
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB({dtype}, 0), 0, 1, 8, 0, 0);"""
    actual = run(f"__gm__ {dtype} *x, __gm__ {dtype} *out", body, arguments, before=DEDUCED)
    assert np.array_equal(actual, arguments["x"] * {"half": 5, "float": 3}[dtype])


def test_a_template_is_no_kernel():
    text = "template <typename T> __global__ void k(__gm__ T *x) { }"
    with pytest.raises(CceError, match="the kernel must be a function; k is a template"):
        read(text, "k.cce")
