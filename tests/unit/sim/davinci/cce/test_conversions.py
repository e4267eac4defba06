"""Results that leave L0C through a conversion: which modes are modelled, and what they compute."""

import numpy as np
import pytest

from tests.unit.sim.davinci.cce.test_unseen import run
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.cce import CceError
from vitruvian.sim.davinci.cce.language.keywords import ENUMERATIONS
from vitruvian.sim.davinci.semantics.memory import FunctionalError

C910, C910B = load_chip("ascend910"), load_chip("ascend910b")
RNG = np.random.default_rng(31)
A = RNG.integers(-9, 10, (16, 32)).astype(np.int8)
B = RNG.integers(-9, 10, (16, 32)).astype(np.int8)  # columns of B
SUMS = A.astype(np.int32) @ B.T.astype(np.int32)

PRODUCT = """copy_gm_to_cbuf((__cbuf__ int8_t *)get_imm(0), a, 0, 1, 16, 0, 0, PAD_NONE);
    copy_gm_to_cbuf((__cbuf__ int8_t *)get_imm(512), b, 0, 1, 16, 0, 0, PAD_NONE);
    GO(PIPE_MTE2, PIPE_MTE1);
    load_cbuf_to_ca((__ca__ int8_t *)get_imm(0), L1(int8_t, 0), 0, 1, 1, 0, {tail});
    load_cbuf_to_cb((__cb__ int8_t *)get_imm(0), L1(int8_t, 512), 0, 1, 1, 0, {tail});
    GO(PIPE_MTE1, PIPE_M);
    __cc__ int32_t *c = (__cc__ int32_t *)get_imm(0);
    mad(c, (__ca__ int8_t *)get_imm(0), (__cb__ int8_t *)get_imm(0), 16, 32, 16, {init});
"""


def to_ub(mode: int, dtype: str, kind, factor: float = 0.25) -> np.ndarray:
    """The product through UB; `factor` is what the scale register holds."""
    blocks = 256 * np.dtype(kind).itemsize // 32
    body = f"""{PRODUCT.format(tail="false", init="1")}
    GO(PIPE_M, PIPE_V);
    set_deqscale({factor}f);
    copy_matrix_cc_to_ubuf(UB({dtype}, 0), c, 0, 1, 1, 0, 0, (ConvRelu_t){mode});
    GO(PIPE_V, PIPE_MTE3);
    copy_ubuf_to_gm(out, UB({dtype}, 0), 0, 1, {blocks}, 0, 0);"""
    parameters = f"__gm__ int8_t *a, __gm__ int8_t *b, __gm__ {dtype} *out"
    arguments = {"a": A, "b": B, "out": np.zeros((16, 16), kind)}
    return run(parameters, body, arguments, C910, None)


@pytest.mark.parametrize(("mode", "dtype", "kind"), [(7, "half", np.float16), (9, "int8_t", "i1")])
def test_a_mode_with_one_factor_multiplies_by_it(mode, dtype, kind):
    scaled = SUMS.astype(np.float32) * np.float32(0.25)
    exact = np.clip(np.rint(scaled), -128, 127) if kind == "i1" else scaled
    assert np.array_equal(to_ub(mode, dtype, kind), exact.astype(kind))


def test_modes_to_ub_are_those_that_the_reader_names():
    """11 is read as 7 and 9 are; with a factor for each column, or cut to 16 bits, none is."""
    assert np.array_equal(to_ub(11, "half", np.float16), to_ub(7, "half", np.float16))
    for mode in sorted({*ENUMERATIONS["ConvRelu_t"]} - {0, 1, 2, 3, 4, 5, 7, 9, 11}):
        with pytest.raises(CceError, match=f"mode must be 0 to 5, 7, 9 or 11; {mode} is not"):
            to_ub(mode, "half", np.float16)


def out_of_l0c(quant: int, dtype: str, kind, factor: int = 0, last: str = "0, 1") -> np.ndarray:
    """The product straight to GM; ``last`` has the splitting of channels and the order of rows."""
    body = f"""{PRODUCT.format(tail="0, 0, inc", init="0, 0, 0, 1")}
    GO(PIPE_M, PIPE_FIX);
    set_nd_para(1);
    set_quant_pre((uint64_t){factor});
    copy_matrix_cc_to_gm(out, c, 0, 16, 16, 16, 16, 0, (QuantMode_t){quant}, 0, {last});"""
    parameters = f"__gm__ int8_t *a, __gm__ int8_t *b, __gm__ {dtype} *out"
    arguments = {"a": A, "b": B, "out": np.zeros((16, 16), kind)}
    return run(parameters, body, arguments, C910B, "cube")


def test_channels_of_32_bits_are_split():
    """A column of fractals becomes two of eight channels each."""
    split = out_of_l0c(0, "int32_t", np.int32, last="1, 0").reshape(2, 16, 8)
    assert np.array_equal(split, SUMS.reshape(16, 2, 8).swapaxes(0, 1))
    with pytest.raises(CceError, match="channels must be split in fractals of 32 bits"):
        out_of_l0c(24, "int8_t", np.int8, last="1, 0")


def test_quantisations_by_one_factor():
    quarter = int(np.float32(0.25).view(np.uint32))
    scaled = SUMS.astype(np.float32) * np.float32(0.25)
    expected = np.clip(np.rint(scaled), -128, 127).astype(np.int8)
    for quant in (9, 24, 28):
        assert np.array_equal(out_of_l0c(quant, "int8_t", np.int8, quarter), expected), quant
    # FIX reads ten bits of the fraction; the thirteen below them change nothing.
    assert np.array_equal(out_of_l0c(9, "int8_t", np.int8, quarter | 0x1FFF), expected)
    # Bit 46 says that the results have a sign; an offset and a shift are refused.
    assert np.array_equal(out_of_l0c(9, "int8_t", np.int8, quarter | 1 << 46), expected)
    with pytest.raises(CceError, match="an offset of quantised results is not modelled"):
        out_of_l0c(24, "int8_t", np.int8, quarter | 1 << 37)
    with pytest.raises(CceError, match="a shift of the sums before their quantisation"):
        out_of_l0c(9, "int8_t", np.int8, quarter | 1 << 36)
    result = out_of_l0c(11, "half", np.float16, quarter | 0x1FF << 37)
    assert np.array_equal(result, scaled.astype(np.float16))
    assert np.array_equal(out_of_l0c(0, "int32_t", np.int32), SUMS)
    for quant in sorted({*ENUMERATIONS["QuantMode_t"]} - {0, 1, 8, 9, 10, 11, 16, 23, 24, 28}):
        with pytest.raises(CceError, match=f"quant_pre {quant} is not modelled"):
            out_of_l0c(quant, "int8_t", np.int8, quarter)


def by_column(quant: int, dtype: str, kind, words: np.ndarray, burst: str = "1, 1, 0, 0"):
    """The product with a word of 64 bits for each column, which L1 and FB hold."""
    body = f"""copy_gm_to_cbuf((__cbuf__ uint64_t *)get_imm(4096), f, 0, 1, 8, 0, 0, PAD_NONE);
    {PRODUCT.format(tail="0, 0, inc", init="0, 0, 0, 1")}
    GO(PIPE_MTE2, PIPE_FIX);
    copy_cbuf_to_fbuf((__fbuf__ uint64_t *)get_imm(128), L1(uint64_t, 4096), {burst});
    pipe_barrier(PIPE_FIX);
    GO(PIPE_M, PIPE_FIX);
    set_nd_para(1);
    set_fpc((uint64_t)1 << 8);
    copy_matrix_cc_to_gm(out, c, 0, 16, 16, 16, 16, 0, (QuantMode_t){quant}, 0, 0, 1);"""
    parameters = f"__gm__ int8_t *a, __gm__ int8_t *b, __gm__ uint64_t *f, __gm__ {dtype} *out"
    arguments = {"a": A, "b": B, "f": words, "out": np.zeros((16, 16), kind)}
    return run(parameters, body, arguments, C910B, "cube")


def test_quantisations_by_a_factor_for_each_column():
    """Each word's low half is a factor; a shift and an offset are refused."""
    factors = (2.0 ** RNG.integers(-5, 0, 32)).astype(np.float32)
    words = factors.view(np.uint32).astype(np.uint64)
    scaled = SUMS.astype(np.float32) * factors[:16]
    assert np.array_equal(by_column(10, "half", np.float16, words), scaled.astype(np.float16))
    expected = np.clip(np.rint(scaled), -128, 127).astype(np.int8)
    sign = np.uint64(1 << 46)
    assert np.array_equal(by_column(8, "int8_t", np.int8, words | 0x1FFF | sign), expected)
    # Two bursts of 64 bytes' words: the second one comes from 128 bytes further on in L1.
    swapped = scaled * 0 + SUMS.astype(np.float32) * factors[16:]
    burst = "2, 1, 4, 0"  # with a step of 0, the second burst replaces the first
    assert np.array_equal(
        by_column(10, "half", np.float16, words, burst), swapped.astype(np.float16)
    )
    with pytest.raises(FunctionalError, match="a shift before the quantisation is not modelled"):
        by_column(10, "half", np.float16, words | np.uint64(1 << 36))
    with pytest.raises(FunctionalError, match="an offset of the quantisation is not modelled"):
        by_column(8, "int8_t", np.int8, words | np.uint64(3 << 37))
