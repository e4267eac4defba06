"""The 910B: transposed patches, products of a row, unit flags, padding and selection."""

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.cce import CceError, build, read

RNG = np.random.default_rng(21)
CHIP = load_chip("ascend910b")

#: C = A·B, where L1 has A (k × m) and B (k × n) as columns of blocks of 32 bytes.
PRODUCT = """
__global__ __aicore__ void k(__gm__ T *a, __gm__ T *b, __gm__ C *c) {
    __cbuf__ T *at = (__cbuf__ T *)get_imm(0), *bt = (__cbuf__ T *)get_imm(0x8000);
    copy_gm_to_cbuf(at, a, 0, 1, K * M * sizeof(T) / 32, 0, 0);
    copy_gm_to_cbuf(bt, b, 0, 1, K * N * sizeof(T) / 32, 0, 0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    set_fmatrix(K | 1 << 16);
    img2colv2_cbuf_to_ca((__ca__ T *)get_imm(0), at, M, K, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, M);
    img2colv2_cbuf_to_cb((__cb__ T *)get_imm(0), bt, N, K, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, N);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad((__cc__ C *)get_imm(0), (__ca__ T *)get_imm(0), (__cb__ T *)get_imm(0), M, DEEP, N, FLAG,
        ALIGN, 0, 1);
    copy_matrix_cc_to_gm(c, (__cc__ C *)get_imm(0), 0, N, M, N, M, FLAG, NoQuant, 0, 0, 1);
}
"""


def blocks_of(matrix):
    """Return a matrix as columns of blocks of 32 bytes."""
    c0 = 32 // matrix.itemsize
    return matrix.reshape(len(matrix), -1, c0).transpose(1, 0, 2).ravel()


def product(dtype, m, k, n, *, flag=3, deep=None):
    """Return the findings, and the errors of the product of two random matrices."""
    a, b = (RNG.integers(-4, 5, (k, x)).astype(dtype) for x in (m, n))
    out = np.int32 if np.dtype(dtype).kind == "i" else np.float32
    types = {"float16": "half", "float32": "float", "int8": "int8_t"}
    names = {"T": types[np.dtype(dtype).name], "C": "int32_t" if out is np.int32 else "float"}
    names |= {
        "M": m,
        "K": k,
        "N": n,
        "DEEP": deep or k,
        "FLAG": flag,
        "ALIGN": int(deep is not None),
    }
    kernel = read(PRODUCT, defines={name: str(value) for name, value in names.items()})
    arrays = {"a": blocks_of(a), "b": blocks_of(b), "c": np.zeros((m, n), out)}
    program, _ = build(kernel, CHIP, arrays, kind="cube")
    report = simulate(program, cube="golden")
    exact = a[: deep or k].T.astype(out) @ b[: deep or k].astype(out)
    return [f.check for f in report.findings], report.outputs["c"].reshape(m, n) - exact


@pytest.mark.parametrize(
    ("dtype", "m", "k", "n"),
    [
        (np.float16, 32, 48, 16),
        (np.float32, 48, 32, 16),
        (np.int8, 64, 32, 96),
        (np.float16, 16, 16, 64),
    ],
)
def test_transposed_patches_are_the_operands_of_a_product(dtype, m, k, n):
    """The whole of A is transposed, and each fractal of B; the unit flags order M and FIX."""
    findings, errors = product(dtype, m, k, n)
    assert not findings and not errors.any()


def test_an_odd_number_of_fractals_of_fp32():
    """With k_direction_align, a row of A has an even number of fractals, the last one unused."""
    findings, errors = product(np.float32, 16, 32, 16, deep=24)
    assert not findings and not errors.any()


def test_without_unit_flags_nothing_orders_the_units():
    """A flag of 0 is a race."""
    findings, _ = product(np.float16, 16, 16, 16, flag=0)
    assert "race" in findings


GEMV = """
__global__ __aicore__ void k(__gm__ half *a, __gm__ half *b, __gm__ float *c) {
    __cbuf__ half *at = (__cbuf__ half *)get_imm(0), *bt = (__cbuf__ half *)get_imm(0x8000);
    copy_gm_to_cbuf(at, a, 0, 1, 32, 0, 0);
    copy_gm_to_cbuf(bt, b, 0, 1, 512, 0, 0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    load_cbuf_to_ca((__ca__ half *)get_imm(0), at, 0, 2, 1, 0, 0, INC);
    load_cbuf_to_cb((__cb__ half *)get_imm(0), bt, 0, 32, 1, 0, 0, INC);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad((__cc__ float *)get_imm(0), (__ca__ half *)get_imm(0), (__cb__ half *)get_imm(0), 1, 512,
        16, 3, 0, 0, 1);
    copy_matrix_cc_to_gm(c, (__cc__ float *)get_imm(0), 0, 16, 1, 16, 16, 3, NoQuant, 0, 0, 1);
}
"""


def test_a_single_row_is_a_vector():
    """The 910B reads the k elements of a row one behind another."""
    a = RNG.integers(-4, 5, 512).astype(np.float16)
    b = RNG.integers(-4, 5, (512, 16)).astype(np.float16)
    fractals = b.reshape(32, 16, 16).transpose(0, 2, 1).ravel()
    arrays = {"a": a, "b": fractals, "c": np.zeros(16, np.float32)}
    program, _ = build(read(GEMV.replace(", INC", ", 0")), CHIP, arrays, kind="cube")
    report = simulate(program, cube="golden")
    assert not report.findings
    assert np.array_equal(report.outputs["c"], a.astype(np.float32) @ b.astype(np.float32))


FILL = """
__global__ __aicore__ void k(__gm__ uint32_t *z) {
    create_cbuf_matrix((__cbuf__ uint32_t *)get_imm(0), 3 | 2 << 16 | 1ull << 32, 7);
    create_cbuf_matrix((__cbuf__ uint32_t *)get_imm(1024), 4 | 1 << 16, 9);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_cbuf_to_gm(z, (__cbuf__ uint32_t *)get_imm(0), 0, 3, 2, 1, 0);
    copy_cbuf_to_gm(z + 48, (__cbuf__ uint32_t *)get_imm(1024), 0, 1, 4, 0, 0);
}
"""


def test_a_fill_of_l1_counts_blocks():
    """A repeat is of blocks of 32 bytes, and gaps are not filled."""
    program, _ = build(read(FILL), CHIP, {"z": np.zeros(80, np.uint32)}, kind="cube")
    report = simulate(program)
    assert not report.findings
    assert report.outputs["z"].tolist() == [7] * 48 + [9] * 32


VECTOR = """
__global__ __aicore__ void k(__gm__ float *x, __gm__ float *z) {
    __ubuf__ float *a = (__ubuf__ float *)get_imm(0), *r = (__ubuf__ float *)get_imm(4096);
    BODY
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(z, r, 0, 1, BLOCKS, 0, 0);
}
"""
READ = """copy_gm_to_ubuf(a, x, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"""


def vector(body, x, blocks=8):
    """Return what a body has left in the first blocks of ``r``."""
    kernel = read(VECTOR.replace("BODY", body), defines={"BLOCKS": str(blocks)})
    arrays = {"x": x.astype(np.float32), "z": np.zeros(8 * blocks, np.float32)}
    program, _ = build(kernel, CHIP, arrays, kind="vector")
    report = simulate(program)
    assert not report.findings
    return report.outputs["z"]


def test_a_move_with_padding():
    """Each burst lies between elements of the register, and begins at a block."""
    x = np.arange(64)
    body = """set_mov_pad_val(0x40000000);
    copy_gm_to_ubuf_align_b32(r, x, 0, 4, 20, 1, 2, 4, 0);"""
    found = vector(body, x, 4).reshape(4, 8)
    for row in range(4):
        assert found[row].tolist() == [2, *range(6 * row, 6 * row + 5), 2, 2]


def test_paddings_have_a_limit():
    """More than a block is one line."""
    with pytest.raises(CceError, match="paddings must be at most 32 bytes, not 36 and 0"):
        vector("copy_gm_to_ubuf_align_b32(r, x, 0, 1, 20, 9, 0, 0, 0);", np.zeros(64))


@pytest.mark.parametrize("overwritten", [False, True])
def test_selection_of_a_scalar_by_bits(overwritten):
    """Mode 1 takes the bits from src1, and the scalar from the register of comparisons.

    The scalar is the first element that the register was loaded from, and stays what it was.
    """
    x = RNG.normal(size=64)
    later = "vector_dup(seven, (float)9, 1, 1, 1, 8, 0); pipe_barrier(PIPE_V);"
    body = (
        READ
        + f"""__ubuf__ uint8_t *bits = (__ubuf__ uint8_t *)get_imm(8192);
    __ubuf__ float *seven = (__ubuf__ float *)get_imm(12288);
    vcmpvs_gt(bits, a, (float)0, 1, 1, 1, 8, 8);
    set_vector_mask(0, 1);
    vector_dup(seven, (float)7, 1, 1, 1, 8, 0);
    pipe_barrier(PIPE_V);
    set_cmpmask(seven);
    {later if overwritten else ""}
    set_vector_mask(-1, -1);
    vsel(r, a, bits, 1, 1, 1, 1, 8, 8, 8, 1);"""
    )
    x = x.astype(np.float32)
    assert np.array_equal(vector(body, x), np.where(x > 0, x, np.float32(7)))


@pytest.mark.parametrize(
    ("letter", "function"), [("r", np.rint), ("f", np.floor), ("c", np.ceil), ("z", np.trunc)]
)
def test_whole_numbers_of_fp32(letter, function):
    """A conversion from FP32 to FP32 rounds to whole numbers."""
    x = np.concatenate([np.arange(-8, 8) / 2, RNG.normal(scale=1e6, size=48)]).astype(np.float32)
    found = vector(READ + f"vconv_f322f32{letter}(r, a, 1, 1, 1, 8, 8);", x)
    assert np.array_equal(found, function(x))


@pytest.mark.parametrize("counting", [False, True])
def test_vcopy_has_a_lane_for_each_element(counting):
    """A mask of FP32 elements enables both halves of each; a count is of elements."""
    count = "set_mask_count(); set_vector_mask(0, 40);"
    lanes = "set_vector_mask(0, 0xFFFFFFFFFF);"
    body = (
        READ
        + f"""vector_dup(r, (float)9, 1, 1, 1, 8, 0); pipe_barrier(PIPE_V);
    {count if counting else lanes} vcopy(r, a, 1, 1, 1, 8, 8);"""
    )
    x = RNG.normal(size=64).astype(np.float32)
    assert np.array_equal(vector(body, x), np.where(np.arange(64) < 40, x, np.float32(9)))
