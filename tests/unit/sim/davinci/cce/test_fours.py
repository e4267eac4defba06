"""Products and conversions of integers of 4 bits, and sparse products, on the 910B."""

import numpy as np
import pytest

from vitruvian.golden.cube.structured import compress, pack_places
from vitruvian.golden.vector import pack_fours, to_fours
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.cce import CceError, build, read

RNG = np.random.default_rng(44)
CHIP = load_chip("ascend910b")

#: C = A·B + C0, where L1 has A and B as bytes; LOAD_A and LOAD_B bring them to L0A and L0B.
PRODUCT = """
#define GO(a, b) set_flag(a, b, EVENT_ID0); wait_flag(a, b, EVENT_ID0)
__global__ __aicore__ void k(__gm__ int8_t *a, __gm__ int8_t *b, __gm__ int8_t *places,
                             __gm__ int32_t *c) {
    __cbuf__ void *a1 = (__cbuf__ void *)get_imm(0), *b1 = (__cbuf__ void *)get_imm(0x10000);
    __cbuf__ int8_t *p1 = (__cbuf__ int8_t *)get_imm(0x20000);
    __cbuf__ int8_t *pair = (__cbuf__ int8_t *)get_imm(0x10000 + (0x20000LL << 32));
    __ca__ void *a0 = (__ca__ void *)get_imm(0);
    __cb__ void *b0 = (__cb__ void *)get_imm(0x400);
    __ca__ int8_t *a8 = (__ca__ int8_t *)get_imm(0);
    __cb__ int8_t *b8 = (__cb__ int8_t *)get_imm(0x400);
    __cc__ int32_t *c0 = (__cc__ int32_t *)get_imm(0);
    copy_gm_to_cbuf(a1, a, 0, 1, A_BLOCKS, 0, 0);
    copy_gm_to_cbuf(b1, b, 0, 1, B_BLOCKS, 0, 0);
    copy_gm_to_cbuf(p1, places, 0, 1, P_BLOCKS, 0, 0);
    GO(PIPE_MTE2, PIPE_MTE1);
    LOADS;
    FLAGS;
    MAD;
    GO(PIPE_M, PIPE_FIX);
    set_nd_para(1);
    copy_matrix_cc_to_gm(c, c0, 0, N, M, N, (M + 15) / 16 * 16, 0, NoQuant, 0, 0, 1);
}
"""
GO = "GO(PIPE_MTE1, PIPE_M)"
PLAIN = "load_cbuf_to_ca_s4(a0, a1, 0, A_BLOCKS / 16, 1, 0, 0, 0, inc)"
PLAIN_B = "load_cbuf_to_cb_s4(b0, b1, 0, B_BLOCKS / 16, 1, 0, 0, 0, inc)"
#: A as columns of blocks of 32 bytes, which are the channels of an image of one row.
IMAGE = (
    "set_fmatrix(M | 1 << 16); "
    "img2colv2_cbuf_to_ca_s4(a0, a1, K, M, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, K)"
)
#: B as squares of 64 × 64 numbers, not transposed; a row of squares is 64 rows of B.
SQUARES = (
    "for (int i = 0; i < K / 64; i++) load_cbuf_to_cb_transpose_s4((__cb__ void *)get_imm(0x400 "
    "+ i * N / 16 * 512), b1, i * (N / 64), N / 64, 1, 3, inc, 0)"
)
MAD = "mad_s4(c0, a0, b0, M, K, N, 0, 0, 0, 1)"


def fractals_of_a(a):
    """Return (M, K) numbers as fractals of 16 rows of 32 bytes, row after row."""
    data = pack_fours(a)
    m, width = data.shape
    return data.reshape(m // 16, 16, width // 32, 32).transpose(0, 2, 1, 3).ravel()


def fractals_of_b(b):
    """Return (K, N) numbers as fractals of 16 columns of 32 bytes, 64 rows after 64 rows."""
    data = pack_fours(np.ascontiguousarray(b.T))
    n, width = data.shape
    return data.reshape(n // 16, 16, width // 32, 32).transpose(2, 0, 1, 3).ravel()


def run(a, b, m, k, n, *, loads, mad=MAD, flags=GO, places=(), chip=CHIP, parts=PRODUCT):
    """Return the checks of the findings, and C (m, n)."""
    places = np.asarray(places if len(places) else np.zeros(32), np.uint8)
    names = {"M": m, "K": k, "N": n, "LOADS": loads, "FLAGS": flags, "MAD": mad}
    names |= {"A_BLOCKS": a.size // 32, "B_BLOCKS": b.size // 32, "P_BLOCKS": places.size // 32}
    kernel = read(parts, defines={name: str(value) for name, value in names.items()})
    arrays = {"a": a.view(np.int8), "b": b.view(np.int8), "places": places.view(np.int8)}
    arrays["c"] = np.zeros((m, n), np.int32)
    program, functional = build(kernel, chip, arrays, kind="cube" if chip is CHIP else None)
    report = simulate(program)
    assert functional is not None
    if not report.findings:  # a race has other results in the order of time
        assert np.array_equal(report.outputs["c"], functional.read("c"))
    return [f.check for f in report.findings], report.outputs["c"].reshape(m, n), program


def numbers(*shape):
    return RNG.integers(-8, 8, shape).astype(np.int8)


@pytest.mark.parametrize("load_a", [PLAIN, IMAGE])
@pytest.mark.parametrize("load_b", [PLAIN_B, SQUARES])
def test_a_product_of_4_bits(load_a, load_b):
    """Fractals, patches and transposed squares bring the same matrices to L0A and L0B."""
    m, k, n = 32, 128, 128
    a, b = numbers(m, k), numbers(k, n)
    left = fractals_of_a(a)
    if load_a == IMAGE:
        left = pack_fours(a).reshape(m, -1, 32).transpose(1, 0, 2).ravel()
    right = fractals_of_b(b)
    if load_b == SQUARES:  # columns of 64 numbers of 64 rows
        right = pack_fours(b).reshape(k // 64, 64, n // 64, 32).transpose(0, 2, 1, 3).ravel()
    findings, c, program = run(left, right, m, k, n, loads=f"{load_a}; {load_b}")
    assert not findings and np.array_equal(c, a.astype(int) @ b.astype(int))
    assert np.abs(c).max() > 127
    # A step is 64 pairs, twice those of INT8.
    (product,) = (i for i in program.cores["cube", 0].instructions if i.op == "mmad")
    assert product.work.repeats == (m // 16) * (n // 16) * (k // 64)
    assert product.work.precision == "int4x2"


def test_edges_and_a_row():
    """Numbers beyond M, K and N do not count; a single row is a vector."""
    a, b = numbers(16, 128), numbers(128, 16)
    _, c, _ = run(fractals_of_a(a), fractals_of_b(b), 11, 102, 16, loads=f"{PLAIN}; {PLAIN_B}")
    assert np.array_equal(c, a[:11, :102].astype(int) @ b[:102].astype(int))
    # 13 columns of a whole row of fractals.
    _, c, _ = run(fractals_of_a(a), fractals_of_b(b), 16, 128, 13, loads=f"{PLAIN}; {PLAIN_B}")
    assert np.array_equal(c, a.astype(int) @ b[:, :13].astype(int))
    row = np.zeros(512, np.uint8)
    row[:64] = pack_fours(a[0])
    _, c, _ = run(row, fractals_of_b(b), 1, 128, 16, loads=f"{PLAIN}; {PLAIN_B}")
    assert np.array_equal(c[0], a[0].astype(int) @ b.astype(int))


def test_a_product_without_its_flag_is_a_race():
    a, b = numbers(16, 64), numbers(64, 16)
    loads = f"{PLAIN}; {PLAIN_B}"
    findings, _, _ = run(fractals_of_a(a), fractals_of_b(b), 16, 64, 16, loads=loads, flags="")
    assert {"race"} <= {*findings} <= {"race", "uninitialised"}


@pytest.mark.parametrize(
    ("loads", "mad", "message"),
    [
        (PLAIN_B, MAD.replace("K", "63"), "mad_s4: k must be a multiple of 2, not 63"),
        (
            "load_cbuf_to_ca_s4(a0, a1, 0, 1, 1, 0, 0, 1, inc)",
            MAD,
            "load_cbuf_to_ca_s4: a fractal of 4-bit numbers is transposed by load_cbuf_to_cb_trans",
        ),
        (
            IMAGE.replace("0, 0, K)", "1, 0, K)"),
            MAD,
            "patches of 4-bit numbers must not be transposed",
        ),
        (f"set_padding(1); {IMAGE}", MAD, "or padded with other than 0"),
        (PLAIN, "mad_sp(c0, a8, b8, M, 62, N, 0, 0, 1)", "k must be a multiple of 4, not 62"),
        (
            PLAIN,
            "mad_sp(c0, a8, b8, M, K, N, 0, 0, 1)",
            r"no load has brought the places of fractal L0B\[1024\]",
        ),
    ],
)
def test_what_no_core_does_is_one_line(loads, mad, message):
    a, b = fractals_of_a(numbers(16, 64)), fractals_of_b(numbers(64, 16))
    with pytest.raises(ValueError, match=message) as caught:
        run(a, b, 16, 64, 16, loads=loads, mad=mad)
    assert "\n" not in str(caught.value)


def test_other_chips_have_no_such_product():
    """The Cube of the 910 does not multiply 4 bits."""
    chip = load_chip("ascend910")
    a, b = fractals_of_a(numbers(16, 64)), fractals_of_b(numbers(64, 16))
    to_ub = "copy_matrix_cc_to_ubuf((__ubuf__ int32_t *)get_imm(0), c0, 0, 1, 1, 0, 0, CRMODE_NONE)"
    parts = PRODUCT.split("    GO(PIPE_M, PIPE_FIX);")[0] + f"    {to_ub};\n}}\n"
    with pytest.raises(ValueError, match=r"mmad dtype must be one of .* not 'int4x2'"):
        run(a, b, 16, 64, 16, loads=f"{PLAIN}; {PLAIN_B}", chip=chip, parts=parts)


SPARSE_LOADS = (
    "load_cbuf_to_ca(a8, (__cbuf__ int8_t *)get_imm(0), 0, A_BLOCKS / 16, 1, 0, 0, 0, inc); "
    "load_cbuf_to_cb_sp(b8, pair, FIRST, COUNT)"
)
SPARSE = "mad_sp(c0, a8, b8, M, K, N, 0, 0, 1)"


def sparse_operands(m, k, n, most=2):
    a = RNG.integers(-128, 128, (m, k)).astype(np.int8)
    b = RNG.integers(-128, 128, (k, n)).astype(np.int8)
    order = RNG.random((k // 4, 4, n)).argsort(axis=1).argsort(axis=1)
    b = np.where(order.reshape(k, n) < most, b, 0).astype(np.int8)
    weights, places = compress(b)
    left = a.reshape(m // 16, 16, k // 32, 32).transpose(0, 2, 1, 3).ravel()
    right = weights.T.reshape(n // 16, 16, k // 64, 32).transpose(2, 0, 1, 3).ravel()
    packed = pack_places(np.ascontiguousarray(places.T))
    packed = packed.reshape(n // 16, 16, k // 64, 8).transpose(2, 0, 1, 3).ravel()
    return a, b, left, right, packed


@pytest.mark.parametrize("most", [1, 2])
def test_a_sparse_product(most):
    """Two of each four numbers of a column are stored; the dense product is the reference."""
    m, k, n = 32, 128, 48
    a, b, left, right, places = sparse_operands(m, k, n, most)
    loads = SPARSE_LOADS.replace("FIRST", "0").replace("COUNT", "B_BLOCKS / 16")
    findings, c, program = run(left, right, m, k, n, loads=loads, mad=SPARSE, places=places)
    assert not findings and np.array_equal(c, a.astype(int) @ b.astype(int))
    (product,) = (i for i in program.cores["cube", 0].instructions if i.op == "mmad")
    assert product.work.repeats == (m // 16) * (n // 16) * (k // 32)
    assert product.work.operations == m * n * k  # half of the pairs


def test_the_first_fractal_counts_for_weights_and_places():
    """A part of B: the second half of its rows, which are the last fractals."""
    a, b, _, right, places = sparse_operands(16, 128, 16)
    half = a[:, 64:].reshape(1, 16, 2, 32).transpose(0, 2, 1, 3).ravel()
    loads = SPARSE_LOADS.replace("FIRST", "1").replace("COUNT", "1")
    _, c, _ = run(half, right, 16, 64, 16, loads=loads, mad=SPARSE, places=places)
    assert np.array_equal(c, a[:, 64:].astype(int) @ b[64:].astype(int))


def test_places_are_read_after_their_load():
    """Without the flag, the load of the places races with the move to L1 that writes them."""
    _, _, left, right, places = sparse_operands(16, 64, 16)
    loads = SPARSE_LOADS.replace("FIRST", "0").replace("COUNT", "1")
    early = PRODUCT.replace("    GO(PIPE_MTE2, PIPE_MTE1);\n", "").replace(
        "    copy_gm_to_cbuf(p1", "    GO(PIPE_MTE2, PIPE_MTE1);\n    copy_gm_to_cbuf(p1"
    )
    options = {"loads": loads, "mad": SPARSE, "places": places}
    findings, _, program = run(left, right, 16, 64, 16, **options, parts=early)
    assert set(findings) == {"race"}
    (load,) = (i for i in program.cores["cube", 0].instructions if "index" in i.fields)
    assert [(s.buffer, s.start, s.nbytes) for s in load.reads] == [
        ("L1", 0x10000, 512),
        ("L1", 0x20000, 128),
    ]


def test_a_place_must_be_0_to_2():
    _, _, left, right, places = sparse_operands(16, 64, 16)
    loads = SPARSE_LOADS.replace("FIRST", "0").replace("COUNT", "1")
    with pytest.raises(ValueError, match="places must be 0 to 2, not 3"):
        run(left, right, 16, 64, 16, loads=loads, mad=SPARSE, places=places | 3)


CAST = """
__global__ __aicore__ void k(__gm__ half *x, __gm__ uint8_t *y, __gm__ half *z) {
    __ubuf__ half *from = (__ubuf__ half *)get_imm(0), *back = (__ubuf__ half *)get_imm(0x18000);
    __ubuf__ void *to = (__ubuf__ void *)get_imm(0x10000);
    copy_gm_to_ubuf(from, x, 0, 1, COUNT / 16, 0, 0);
    copy_gm_to_ubuf(to, y, 0, 1, COUNT / 64, 0, 0);
    copy_gm_to_ubuf(back, z, 0, 1, COUNT / 16, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    MASK;
    vconv_f162s4ROUNDING(to, from, COUNT / 128, 1, 1, 2, 8);
    pipe_barrier(PIPE_V);
    vconv_s42f16(back, to, COUNT / 128, 1, 1, 8, 2);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y, to, 0, 1, COUNT / 64, 0, 0);
    copy_ubuf_to_gm(z, back, 0, 1, COUNT / 16, 0, 0);
}
"""
ALL = "set_vector_mask((uint64_t)-1, (uint64_t)-1)"


def cast(x, rounding="", mask=ALL):
    """Return the findings, the results of both conversions, and the bytes that the first writes."""
    text = CAST.replace("ROUNDING", rounding)
    kernel = read(text, defines={"COUNT": str(x.size), "MASK": mask})
    arrays = {"x": x, "y": np.full(x.size // 2, 0x53, np.uint8), "z": np.full_like(x, 100)}
    program, _ = build(kernel, CHIP, arrays, kind="vector")
    report = simulate(program)
    touched = np.zeros((2, x.size // 2), bool)  # written, and read again
    for instr in program.cores["vector", 0].instructions:
        if instr.op == "vconv":
            number = int(instr.operands["src"].dtype == "int4x2")
            for span in instr.reads if number else instr.writes:
                for low, high in span.intervals() - 0x10000:
                    touched[number, low:high] = True
    assert np.array_equal(touched[0], touched[1])
    return report.findings, report.outputs["y"].ravel(), report.outputs["z"].ravel(), touched[0]


@pytest.mark.parametrize("rounding", ["", "r", "a", "f", "c", "z"])
def test_conversions_round_and_saturate(rounding):
    x = (RNG.standard_normal(16384) * 5).astype(np.float16)
    x[:64] = np.arange(-16, 16, 0.5)  # ties
    x[64:72] = [np.inf, -np.inf, np.nan, 65504, -65504, 7.5, -8.5, -0.0]
    findings, y, z, _ = cast(x, rounding)
    expected = to_fours(x, rounding or "r")
    assert not findings and np.array_equal(y, expected)
    assert np.array_equal(z[::2], ((expected << 4).view(np.int8) >> 4).astype(np.float16))
    assert np.array_equal(z[1::2], (expected.view(np.int8) >> 4).astype(np.float16))


@pytest.mark.parametrize(
    "mask", ["set_vector_mask(0, 0x3c)", "set_mask_count(); set_vector_mask(0, 200)"]
)
def test_masks_of_whole_bytes(mask):
    x = np.full(256, 2.5, np.float16)
    findings, y, z, touched = cast(x, "f", mask)
    lanes = np.arange(256)
    on = (lanes < 200) if "count" in mask else (lanes % 128 >= 2) & (lanes % 128 < 6)
    assert not findings
    assert np.array_equal(y, np.where(on[::2], 0x22, 0x53))
    assert np.array_equal(touched, on[::2])
    assert np.array_equal(z, np.where(on, 2, 100))


@pytest.mark.parametrize(
    "mask", ["set_vector_mask(0, 0x7)", "set_mask_count(); set_vector_mask(0, 201)"]
)
def test_half_a_byte_is_refused(mask):
    with pytest.raises(CceError, match="vconv_f162s4: the mask must enable both numbers of a byte"):
        cast(np.zeros(256, np.float16), "", mask)
