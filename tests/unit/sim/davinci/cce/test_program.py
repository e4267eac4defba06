"""Programs built from kernels in CCE C: their results and their instructions."""

from pathlib import Path

import numpy as np
import pytest

from vitruvian.golden import vector
from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.davinci import Kind, Unit, load_chip, simulate
from vitruvian.sim.davinci.cce import CceError, build, build_mixed, read, read_file

KERNELS = Path(__file__).parent / "kernels"
RNG = np.random.default_rng(3)
C310, C910, C910B = (load_chip(name) for name in ("ascend310", "ascend910", "ascend910b"))


def result(functional, name):
    assert functional is not None
    return functional.read(name)


def normal(*shape, scale=1.0):
    return RNG.normal(0, scale, shape).astype(np.float16)


def test_a_generated_kernel_adds():
    kernel = read_file(KERNELS / "vec_add.cce")
    a, b = normal(6144, scale=100), normal(6144, scale=100)
    arguments = {"data_a": a, "data_b": b, "res": np.zeros_like(a)}
    program, functional = build(kernel, C910, arguments, blocks=2)
    expected = vector.mul(vector.add(a, b), np.float16(0.5))
    assert np.array_equal(result(functional, "res"), expected)
    cores = list(program)
    assert len(cores) == 2 and len(cores[0].instructions) == len(cores[1].instructions)
    instr = next(i for i in cores[1].instructions if i.op == "vadd")
    assert str(instr.position) == "vec_add.cce:24" and instr.unit == Unit.V
    assert instr.fields["repeat"] == 8 and instr.fields["mask"] == (1 << 128) - 1
    waits = [i for i in cores[0].instructions if i.kind == Kind.WAIT]
    sets = [i for i in cores[0].instructions if i.kind == Kind.SET]
    assert len(waits) == len(sets) == 10


@pytest.mark.parametrize(("m", "k", "n"), [(20, 100, 32), (64, 64, 48), (16, 130, 16)])
def test_a_hand_written_matmul_multiplies(m, k, n):
    kernel = read_file(KERNELS / "matmul_910b.cce", defines={"__DAV_C220_CUBE__": "1"})
    a, b = normal(m, k), normal(k, n)
    tiling = np.array([m, k, n, 64], np.int64)
    arguments = {"gm_a": a, "gm_b": b, "gm_c": np.zeros((m, n), np.float32), "tiling_gm": tiling}
    _, functional = build(kernel, C910B, arguments, kind="cube")
    spec = PRESETS["ieee"].spec("fp16", k=16)
    pad = [(0, 0), (0, -k % 16)]
    codes = np.pad(a, pad).view(np.uint16), np.pad(b, pad[::-1]).view(np.uint16)
    expected = mmad(*codes, spec=spec).view(np.float32)
    assert np.array_equal(result(functional, "gm_c"), expected)
    _, fast = build(kernel, C910B, arguments, kind="cube", cube="fast")
    bound = (k + 1) * 2.0**-24 * (np.abs(a).astype(float) @ np.abs(b).astype(float))
    assert (np.abs(result(fast, "gm_c") - expected.astype(float)) <= bound).all()


@pytest.mark.parametrize("n", [16, 64, 100, 128])
def test_a_softmax_looks_at_its_data(n):
    kernel = read_file(KERNELS / "softmax.cce")
    rows = 5
    x = np.zeros(rows * n + 128, np.float16)
    x[: rows * n] = normal(rows * n, scale=3)
    arguments = {"x": x, "y": np.zeros_like(x), "rows": rows, "n": n}
    program, functional = build(kernel, C910, arguments, blocks=2)
    actual = result(functional, "y")[: rows * n].reshape(rows, n).astype(np.float64)
    shifted = x[: rows * n].reshape(rows, n).astype(np.float64)
    exact = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    # The bound: the sums are a tree of seven levels; the shift, exp, the reciprocal and the
    # product are rounded once each, all to 2^-11. An error of the shift, up to 2^-11 of 16, is
    # in the exponent.
    if n % 16 == 0:
        assert np.abs(actual / exact - 1)[exact > 1e-4].max() < (7 + 4 + 16) * 2.0**-11
    loads = [i for i in program.core(1).instructions if i.op == "scalar_load"]
    assert len(loads) == 2 * 2 and str(loads[0].position) == "softmax.cce:21"


def softmax_arguments():
    x = normal(5 * 128)
    return {"x": x, "y": np.zeros_like(x), "rows": 5, "n": 128}


def test_kernels_without_a_race_compute_the_same_in_time_order():
    m, k, n = 64, 256, 64
    tiling = np.array([m, k, n, 64], np.int64)
    product = {"gm_a": normal(m, k), "gm_b": normal(k, n), "gm_c": np.zeros((m, n), np.float32)}
    matmul = read_file(KERNELS / "matmul_910b.cce", defines={"__DAV_C220_CUBE__": "1"})
    softmax = read_file(KERNELS / "softmax.cce")
    for kernel, chip, arguments, out, blocks, kind in (
        (softmax, C910, softmax_arguments(), "y", 2, None),
        (matmul, C910B, {**product, "tiling_gm": tiling}, "gm_c", 1, "cube"),
    ):
        program, functional = build(kernel, chip, arguments, blocks=blocks, kind=kind)
        report = simulate(program)
        assert not report.findings, report.findings[0]
        assert report.outputs is not None
        assert np.array_equal(report.outputs[out], result(functional, out))


@pytest.mark.parametrize(
    ("missing", "finding"),
    [
        ("pipe_barrier(PIPE_ALL);  // the next", "race"),
        (
            "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);",
            "race",
        ),
        ("wait_flag(PIPE_S, PIPE_V, EVENT_ID2); return;", "flag"),
    ],
)
def test_a_missing_flag_is_found_at_its_line(missing, finding):
    text = (KERNELS / "softmax.cce").read_text()
    assert missing in text
    keep = "return;" if "return" in missing else "// " if "//" in missing else ""
    program, _ = build(read(text.replace(missing, keep), "s.cce"), C910, softmax_arguments())
    findings = simulate(program).findings
    assert any(finding in str(f) and "s.cce:" in str(f) for f in findings)


def test_a_transposition_by_address_registers():
    kernel = read_file(KERNELS / "transpose.cce")
    text = (KERNELS / "transpose.cce").read_text()
    assert kernel.name == "k" and "VA3" in text
    copy = "copy_gm_to_ubuf((__ubuf__ half *)get_imm(0), x, 0, 1, 32, 0, 0);"
    back = "copy_ubuf_to_gm(x, (__ubuf__ half *)get_imm(4096), 0, 1, 32, 0, 0);"
    text = text.replace("k(__gm__ half *x) { ", f"k(__gm__ half *x) {{ {copy} ")
    text = text.replace("32); }", f"32); {back} }}")
    x = normal(32, 16)
    _, functional = build(read(text), C910, {"x": x})
    assert np.array_equal(result(functional, "x").reshape(16, 32), x.T)


def run(body, chip=C910, before="", **arguments):
    """Run a kernel with these statements; return the program and the final arrays."""
    kinds = {np.float16: "half", np.float32: "float", np.int32: "int32_t", np.uint8: "uint8_t"}
    kinds |= {np.int8: "int8_t", np.uint16: "uint16_t"}
    words = [
        f"__gm__ {kinds[v.dtype.type]} *{n}" if isinstance(v, np.ndarray) else f"int {n}"
        for n, v in arguments.items()
    ]
    text = f"""
    #define UB(type, a) ((__ubuf__ type *)get_imm(a))
    #define L1(a) ((__cbuf__ half *)get_imm(a))
    #define FULL set_vector_mask(-1, -1)
    {before}
    __global__ __aicore__ void k({", ".join(words)}) {{
    FULL;
    {body}
    }}"""
    program, functional = build(read(text, "k.cce"), chip, arguments)
    return program, {n: result(functional, n) for n in arguments if n in program.tensors}


def test_gaps_of_moves():
    x = np.arange(1024, dtype=np.float16)
    _, out = run(
        "copy_gm_to_ubuf(UB(half, 0), x, 0, 3, 2, 5, 1);"
        "copy_ubuf_to_gm(y, UB(half, 0), 0, 3, 1, 2, 3);",
        x=x,
        y=np.zeros(1024, np.float16),
    )
    y = np.zeros(1024)
    for burst in range(3):
        y[burst * 64 : burst * 64 + 16] = x[burst * 112 : burst * 112 + 16]
    assert np.array_equal(out["y"], y)
    _, out = run(
        "copy_gm_to_ubuf_align_b16(UB(half, 0), x, 0, 3, 10, 0, 0, 6, 1);"
        "copy_ubuf_to_gm_align_b16(y, UB(half, 0), 0, 3, 8, 0, 0, 1, 2);",
        x=x,
        y=np.zeros(1024, np.float16),
    )
    y[:] = 0
    for burst in range(3):
        y[burst * 5 : burst * 5 + 4] = x[burst * 8 : burst * 8 + 4]
    assert np.array_equal(out["y"], y)


def test_counting_mode_and_masks():
    x = normal(2048)
    load = "copy_gm_to_ubuf(UB(half, 0), x, 0, 1, 128, 0, 0);"
    store = "copy_ubuf_to_gm(x, UB(half, 0), 0, 1, 128, 0, 0);"
    work = "set_mask_count(); set_vector_mask(0, 1000); vadds(UB(half, 0), UB(half, 0), (half)2, 1,"
    program, out = run(f"{load} {work} 1, 1, 8, 8); set_mask_norm(); {store}", x=x)
    expected = x.copy()
    expected[:1000] = vector.add(x[:1000], np.float16(2))
    assert np.array_equal(out["x"], expected)
    adds = [i for i in program.core().instructions if i.op == "vadds"]
    assert [(i.fields["repeat"], i.fields["mask"].bit_count()) for i in adds] == [
        (7, 128),
        (1, 104),
    ]
    body = "set_vector_mask(0, 0xF0F); vmuls(UB(half, 0), UB(half, 0), 3.0f, 2, 1, 1, 8, 8);"
    _, out = run(f"{load} {body} {store}", x=x)
    lanes = np.array([0xF0F >> i & 1 for i in range(128)], bool)
    expected = x.copy().reshape(-1, 128)
    expected[:2, lanes] = vector.mul(expected[:2, lanes], np.float16(3))
    assert np.array_equal(out["x"], expected.ravel())


def test_reductions_conversions_and_selection():
    x = normal(1024, scale=5)
    body = """
    copy_gm_to_ubuf(UB(half, 0), x, 0, 1, 64, 0, 0);
    vcadd(UB(half, 4096), UB(half, 0), 8, 1, 1, 8);
    vcmax(UB(half, 4352), UB(half, 0), 8, 1, 1, 8);
    vcgmax(UB(half, 4608), UB(half, 0), 8, 1, 1, 8);
    vconv_f162f32(UB(float, 8192), UB(half, 0), 16, 1, 1, 8, 4);
    vmuls(UB(float, 8192), UB(float, 8192), 0.5f, 16, 1, 1, 8, 8);
    vconv_f322f16(UB(half, 16384), UB(float, 8192), 16, 1, 1, 4, 8);
    vconv_f162s8(UB(int8_t, 20480), UB(half, 0), 8, 1, 1, 4, 8);
    vector_dup(UB(half, 24576), (half)0, 8, 1, 1, 8, 0);
    vcmp_gt(UB(half, 0), UB(half, 24576), 1, 1, 1, 1, 8, 8, 8);
    vsel(UB(half, 28672), UB(half, 0), UB(half, 24576), 1, 1, 1, 1, 8, 8, 8);
    vcmpv_lt(UB(uint8_t, 30720), UB(half, 0), UB(half, 24576), 8, 1, 1, 1, 8, 8, 8);
    set_cmpmask(UB(uint8_t, 30720));
    vsel(UB(half, 28928), UB(half, 0), UB(half, 24576), 1, 1, 1, 1, 8, 8, 8);
    vrelu(UB(half, 31744), UB(half, 0), 8, 1, 1, 8, 8);
    vnot(UB(uint16_t, 40960), UB(uint16_t, 0), 8, 1, 1, 8, 8);
    copy_ubuf_to_gm(sums, UB(half, 4096), 0, 1, 1, 0, 0);
    copy_ubuf_to_gm(peaks, UB(half, 4352), 0, 1, 1, 0, 0);
    copy_ubuf_to_gm(blocks, UB(half, 4608), 0, 1, 4, 0, 0);
    copy_ubuf_to_gm(halves, UB(half, 16384), 0, 1, 64, 0, 0);
    copy_ubuf_to_gm(bytes, UB(int8_t, 20480), 0, 1, 32, 0, 0);
    copy_ubuf_to_gm(chosen, UB(half, 28672), 0, 1, 16, 0, 0);
    copy_ubuf_to_gm(bits, UB(uint8_t, 30720), 0, 1, 4, 0, 0);
    copy_ubuf_to_gm(inverse, UB(uint16_t, 40960), 0, 1, 64, 0, 0);
    """
    _, out = run(
        body,
        x=x,
        sums=np.zeros(16, np.float16),
        peaks=np.zeros(16, np.float16),
        blocks=np.zeros(64, np.float16),
        halves=np.zeros(1024, np.float16),
        bytes=np.zeros(1024, np.int8),
        chosen=np.zeros(256, np.float16),
        bits=np.zeros(128, np.uint8),
        inverse=np.zeros(1024, np.uint16),
    )
    rows = x.reshape(8, 128)
    assert np.array_equal(out["sums"][:8], vector.sum_tree(rows))
    assert np.array_equal(out["peaks"][::2], rows.max(axis=1))
    assert np.array_equal(out["peaks"][1::2].view(np.uint16), rows.argmax(axis=1))
    assert np.array_equal(out["blocks"], x.reshape(64, 16).max(axis=1))
    assert np.array_equal(out["halves"], vector.mul(x, np.float16(0.5)))
    assert np.array_equal(out["bytes"], np.clip(np.rint(x.astype(float)), -128, 127))
    assert np.array_equal(out["chosen"][:128], np.maximum(rows[0], 0))
    assert np.array_equal(out["chosen"][128:], np.minimum(rows[0], 0))
    assert np.array_equal(np.unpackbits(out["bits"], bitorder="little"), x < 0)
    assert np.array_equal(out["inverse"], ~x.view(np.uint16))


def test_atomic_sums_of_two_cores():
    text = """
    __global__ __aicore__ void k(__gm__ float *y) {
        __ubuf__ float *u = (__ubuf__ float *)get_imm(0);
        set_vector_mask(0, -1);
        vector_dup(u, (float)(block_idx + 1), 1, 1, 1, 8, 0);
        set_atomic_add(); set_atomic_f32();
        copy_ubuf_to_gm(y, u, 0, 1, 8, 0, 0);
        set_atomic_none();
        copy_ubuf_to_gm(y + 64, u, 0, 1, 8, 0, 0);
    }"""
    y = np.full(128, 10, np.float32)
    _, functional = build(read(text), C910, {"y": y}, blocks=3)
    assert result(functional, "y").tolist() == [16.0] * 64 + [3.0] * 64


def test_the_cube_of_the_910():
    body = """
    copy_gm_to_cbuf(L1(0), a, 0, 1, 64, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(L1(8192), b, 0, 1, 64, 0, 0, PAD_NONE);
    load_cbuf_to_ca((__ca__ half *)get_imm(0), L1(0), 0, 4, 1, 0, false);
    load_cbuf_to_cb((__cb__ half *)get_imm(0), L1(8192), 0, 4, 1, 0, true);
    __cc__ float *product = (__cc__ float *)get_imm(0);
    mad(product, (__ca__ half *)get_imm(0), (__cb__ half *)get_imm(0), 16, 64, 16, 1);
    copy_matrix_cc_to_ubuf(UB(half, 0), product, 0, 1, 1, 0, 0, CRMODE_F32toF16_RELU);
    copy_ubuf_to_gm(c, UB(half, 0), 0, 1, 16, 0, 0);
    """
    a, b = normal(4, 16, 16), normal(4, 16, 16)
    _, out = run(body, a=a, b=b, c=np.zeros((16, 16), np.float16))
    left, right = a.transpose(1, 0, 2).reshape(16, 64), b.reshape(64, 16)
    spec = PRESETS["ieee"].spec("fp16", k=16)
    wide = mmad(left.copy().view(np.uint16), right.view(np.uint16), spec=spec).view(np.float32)
    assert np.array_equal(out["c"], np.maximum(wide.astype(np.float16), 0))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("copy_gm_to_ubuf(UB(half, 1 << 20), x, 0, 1, 1, 0, 0);", "are not all within 262144"),
        ("copy_gm_to_ubuf(UB(half, 0), x + 4096, 0, 1, 1, 0, 0);", "are not all within 2048"),
        ("half a = x[5000];", "k.cce:8:14: a scalar load reaches outside GM"),
        (
            "copy_matrix_cc_to_gm(x, (__cc__ float *)get_imm(0), 0, 9, 9, 9, 9, 0, 1, 0, 0, 0);",
            "path",
        ),
        ("scatter_vnchwconv_b16(VA0, VA2, 1, 0, 0);", "address register VA0 must be set before"),
        ("copy_gm_to_cbuf(L1(0), x, 0, 1, 1, 0, 0, PAD_MODE1);", "padding are not modelled"),
        ("copy_ubuf_to_gm(x, UB(half, 0), 0, 2, 1, 0, 0, BM_ENABLE);", "must be 1 in byte mode"),
        (
            "vxor(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);",
            "k.cce:8:5: vxor: this intrinsic is read, but not modelled",
        ),
    ],
)
def test_impossible_instructions_are_named_with_their_line(body, message):
    with pytest.raises(ValueError) as error:
        run(body, x=normal(1024))
    assert message in str(error.value) and "k.cce:8" in str(error.value)


def test_arguments_must_fit():
    kernel = read_file(KERNELS / "softmax.cce")
    x = normal(64)
    with pytest.raises(ValueError, match="arguments must be x, y, rows, n; 'n' is missing"):
        build(kernel, C310, {"x": x, "y": x, "rows": 1})
    with pytest.raises(ValueError, match="y must be an array with a dtype of the vector unit"):
        build(kernel, C310, {"x": x, "y": 3, "rows": 1, "n": 16})
    with pytest.raises(CceError, match="the data in memory are unknown"):
        build(kernel, C310, {"x": x, "y": x, "rows": 1, "n": 16}, execute=False)
    add = read_file(KERNELS / "vec_add.cce")
    arguments = {name: normal(4096) for name in "data_a data_b res".split()}
    program, functional = build(add, C310, arguments, execute=False)
    assert functional is None and len(program) > 40


def test_a_repeated_call_is_not_reused_when_a_register_has_changed():
    """The same line runs with the same arguments under other masks, modes and registers."""
    body = """
    for (int i = 0; i < 4; ++i) {
        if (i == 1) set_vector_mask(0, 1);
        if (i == 2) { set_mask_count(); set_vector_mask(0, 3); }
        if (i == 3) { set_mask_norm(); FULL; set_atomic_add(); set_atomic_f16(); }
        vadds(UB(half, 0), UB(half, 0), (half)1, 1, 1, 1, 8, 8);
        copy_ubuf_to_gm(x, UB(half, 0), 0, 1, 8, 0, 0);
    }"""
    _, out = run(body, x=np.zeros(128, np.float16))
    lanes = np.arange(128)
    before = 1 + (lanes < 1) + (lanes < 3)
    assert np.array_equal(out["x"], before + before + 1)
    body = """
    vector_dup(UB(half, 0), (half)1, 1, 1, 1, 8, 0);
    vector_dup(UB(half, 256), (half)2, 1, 1, 1, 8, 0);
    vcmpv_lt(UB(uint8_t, 1024), UB(half, 0), UB(half, 256), 1, 1, 1, 1, 8, 8, 8);
    for (int i = 0; i < 3; ++i) {
        if (i == 1) set_cmpmask(UB(uint8_t, 1024));
        if (i == 2) vcmp_gt(UB(half, 0), UB(half, 256), 1, 1, 1, 1, 8, 8, 8);
        vsel(UB(half, 512), UB(half, 0), UB(half, 256), 1, 1, 1, 1, 8, 8, 8);
        copy_ubuf_to_gm(x + 128 * i, UB(half, 512), 0, 1, 8, 0, 0);
    }"""
    _, out = run(body, x=np.zeros(384, np.float16))
    assert out["x"].reshape(3, 128)[:, 0].tolist() == [2, 1, 2]


def test_cube_and_vector_cores_work_on_one_kernel():
    """The product of the Cube goes through global memory; each of two vector cores takes half."""
    path = KERNELS / "mixed_910b.cce"
    kernels = {
        "cube": read_file(path, defines={"__DAV_C220_CUBE__": "1"}),
        "vector": read_file(path, defines={"__DAV_C220_VEC__": "1"}),
    }
    a, b = normal(2, 16, 64), normal(2, 64, 32)
    out = np.zeros((2, 16, 32), np.float32)
    arguments = {"a": a, "b": b, "between": out.copy(), "c": out}
    program = build_mixed(kernels, C910B, arguments, blocks=2)
    assert [str(core) for core in program] == [
        "cube 0",
        "cube 1",
        *(f"vector {i}" for i in range(4)),
    ]
    report = simulate(program)
    assert not report.findings, report.findings[0]
    spec = PRESETS["ieee"].spec("fp16", k=16)
    wide = mmad(a.view(np.uint16), b.view(np.uint16), spec=spec).view(np.float32)
    assert report.outputs is not None
    assert np.array_equal(report.outputs["c"], vector.relu(vector.add(wide, np.float32(1))))
    late = [i for i in program.core(0, "vector").instructions if i.op == "cross_wait"]
    assert len(late) == 1 and late[0].kind == Kind.WAIT
    with pytest.raises(ValueError, match="kernels must name at least one kind of core"):
        build_mixed({}, C910B, arguments)
    with pytest.raises(ValueError, match="kernels must all have the same parameters"):
        build_mixed({**kernels, "vector": read_file(KERNELS / "vec_add.cce")}, C910B, arguments)


def test_halves_of_a_product_add_up_in_global_memory():
    """Each of two cores computes half of K; FIX adds the two products."""
    text = """
    __global__ __aicore__ void k(__gm__ half *a, __gm__ half *b, __gm__ float *c) {
        auto l1 = (__cbuf__ half *)get_imm(0);
        auto l0a = (__ca__ half *)get_imm(0);
        auto l0b = (__cb__ half *)get_imm(0);
        auto l0c = (__cc__ float *)get_imm(0);
        copy_gm_to_cbuf_multi_nd2nz_b16(l1, a + block_idx * 32, 0, 1, 16, 32, 0, 64, 16, 1, 0);
        copy_gm_to_cbuf_multi_nd2nz_b16(l1 + 512, b + block_idx * 512, 0, 1, 32, 16,
                                        0, 16, 32, 1, 0);
        load_cbuf_to_ca(l0a, l1, 0, 2, 1, 0, 0, false, inc);
        load_cbuf_to_cb(l0b, l1 + 512, 0, 2, 1, 0, 0, true, inc);
        mad(l0c, l0a, l0b, 16, 32, 16, 0, 0, 0, 1);
        set_nd_para(1);
        set_atomic_f32(); set_atomic_add();
        copy_matrix_cc_to_gm(c, l0c, 0, 16, 16, 16, 16, 0, NoQuant, 0, 0, 1);
    }"""
    a, b = (RNG.integers(-8, 9, s).astype(np.float16) for s in ((16, 64), (64, 16)))
    arguments = {"a": a, "b": b, "c": np.full((16, 16), 0.5, np.float32)}
    _, functional = build(read(text), C910B, arguments, blocks=2, kind="cube")
    assert np.array_equal(result(functional, "c"), a.astype("f4") @ b.astype("f4") + 0.5)


BROADCAST = """
__global__ __aicore__ void k(__gm__ uint32_t *x, __gm__ uint32_t *y, int32_t block) {
    __ubuf__ uint32_t *u = (__ubuf__ uint32_t *)get_imm(0);
    __ubuf__ uint32_t *v = (__ubuf__ uint32_t *)get_imm(1024);
    copy_gm_to_ubuf(u, x, 0, 1, 2, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    set_vector_mask(0, 1);
    vbrcb(v, u, block, 8, 2);
    vbrcb(v, u, 1, 8, 0);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y, v, 0, 1, 16, 0, 0);
}
"""


@pytest.mark.parametrize("block", [0, 1])
def test_vbrcb_ignores_the_mask_and_a_block_stride_of_0_means_1(block):
    x = np.arange(1000, 1016, dtype=np.uint32)
    arguments = {"x": x, "y": np.zeros(128, np.uint32), "block": block}
    program, functional = build(read(BROADCAST), C910B, arguments, kind="vector")
    assert np.array_equal(result(functional, "y"), np.repeat(x, 8))
    report = simulate(program)
    assert np.array_equal(report.outputs["y"], np.repeat(x, 8)) and not report.findings
    assert [i.op for core in program for i in core.instructions].count("vbrcb") == 1


@pytest.mark.parametrize("type", ["uint8_t", "int64_t"])
def test_vbrcb_takes_elements_of_16_and_32_bits(type):
    call = f"vbrcb((__ubuf__ {type} *)get_imm(0), (__ubuf__ {type} *)get_imm(64), 1, 8, 1);"
    with pytest.raises(CceError, match="vbrcb"):
        build(read(f"__global__ __aicore__ void k() {{ {call} }}"), C910, {})
