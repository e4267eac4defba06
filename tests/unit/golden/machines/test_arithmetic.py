"""The products of a training run: operands are scaled and rounded by their roles."""

import ml_dtypes
import numpy as np
import pytest

import vitruvian
from vitruvian.common.errors import UserError
from vitruvian.golden.machines import Arithmetic

RNG = np.random.default_rng(2)
A, B = (RNG.standard_normal(s).astype(np.float32) for s in ((5, 48), (48, 6)))


def test_sixteen_bits_are_rounded_only():
    got = Arithmetic("v100", "fp16").product(A, B)
    expected = vitruvian.gemm(A.astype(np.float16), B.astype(np.float16), machine="v100")
    np.testing.assert_array_equal(got, expected)


def test_eight_bits_are_scaled_by_powers_of_two():
    h100 = Arithmetic("h100", "e4m3", "e5m2", instruction="wgmma")
    got = h100.product(A * 1e-5, B, ("backward", "forward"))
    small, large = np.float32(2.0**-10) * A, B
    scale_a, scale_b = (
        2.0 ** np.floor(np.log2(most / np.abs(v).max()))
        for most, v in ((57344, A * 1e-5), (448, B))
    )
    x = (np.float32(scale_a) * (A * 1e-5)).astype(ml_dtypes.float8_e5m2)
    y = (np.float32(scale_b) * B).astype(ml_dtypes.float8_e4m3fn)
    expected = vitruvian.gemm(x, y, machine="h100", instruction="wgmma")
    np.testing.assert_array_equal(got, expected / np.float32(scale_a) / np.float32(scale_b))
    np.testing.assert_allclose(got, A * 1e-5 @ B, atol=2e-5)
    assert not np.array_equal(got, h100.product(A * 1e-5, B))  # the role of A matters
    unscaled = Arithmetic("h100", "e4m3", "e5m2", instruction="wgmma", scaled=False)
    assert not unscaled.product(small * 0 + 1e-6, large).any()  # below the least number of E4M3


def test_blocks_have_a_factor_for_each_matrix():
    nvfp4 = Arithmetic("b200", "e2m1", instruction="nvf4_ue4m3")
    got = nvfp4.product(A * 1e-6, B)
    row = "b200_nvf4_ue4m3_fp32"
    expected = vitruvian.gemm(A * np.float32(1e-6), B, machine=row, tensor_scale="auto")
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert got.any()


def test_a_rule_for_integers_or_shared_exponents_is_refused():
    with pytest.raises(ValueError, match="a rule with fp32 results"):
        Arithmetic("amx_tdpbssd", "int8")
    with pytest.raises(ValueError, match="a rule without shared exponents"):
        Arithmetic("bh_mvmul_bfp8_fp32_hifi4", "bfp8")


def test_zeros_infinities_and_large_numbers():
    h100 = Arithmetic("h100", "e4m3")
    assert not h100.product(A * 0, B).any()
    huge = A.copy()
    huge[0, 0] = np.inf
    assert not np.isfinite(h100.product(huge, B)[0]).any()
    large = h100.product(A * np.float32(1e30), B)
    np.testing.assert_allclose(large, A * 1e30 @ B, atol=2e30)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("h1000", "fp16"), UserError, "machine must be one of .* did you mean h100?"),
        (("v100", "e4m3"), UserError, "formats must be one of fp16, not 'e4m3'"),
        (("h100", "e4m3", "fp16"), UserError, "formats must be one of"),
        (("cdna3", "fp64"), UserError, "output must be one of fp64, not 'fp32'"),
    ],
)
def test_a_combination_that_does_not_exist_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Arithmetic(*arguments)
