"""Tenstorrent's shared exponents and integers, Arm's FP8, and instructions without a known rule."""

import numpy as np
import pytest

from vitruvian import machines
from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.golden.fp.codec import to_float
from vitruvian.golden.machines import multiply
from vitruvian.golden.machines.phases import widen_shared


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_every_operand_with_a_shared_exponent_keeps_its_value(bits):
    codes = np.tile(np.arange(1 << bits), (1, max(16 >> bits, 1)))[None].reshape(1, -1)
    exponents = np.full((1, codes.shape[1] // 16), 130)
    got = to_float(widen_shared(codes, exponents, bits), "bf16")
    sign = np.where(codes >> (bits - 1), -1.0, 1.0)
    magnitude = codes & ((1 << (bits - 1)) - 1)
    expected = sign * magnitude * 2.0 ** (3 - (bits - 2))  # the top bit is worth 2^(130 − 127)
    expected[(magnitude == 0) & (sign < 0)] = -np.inf
    np.testing.assert_array_equal(got, expected)


def test_an_exponent_field_wraps_around():
    codes = np.array([[0x01, 0x02, 0x40, 0x80] * 4])
    got = widen_shared(codes, np.array([[3]]), 8)
    # 6 and 5 leading zeros: 3 − 6 and 3 − 5 are taken modulo 256.
    assert got[0, :4].tolist() == [253 << 7, 254 << 7, 3 << 7, 0xFF80]


def test_shared_exponents_join_the_products():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 1 << 4, (2, 500, 32), np.uint8)
    a, b = (np.where(x == 8, 0, x) for x in (a, b))  # no −∞
    scales = rng.integers(125, 130, (2, 500, 2), np.uint8)
    d = machines.run("bh_mvmul_bfp4_fp32_lofi", a, b, np.zeros(500, np.uint32), *scales)
    values = [
        np.where(x >> 3, -1.0, 1.0)
        * (x & 7)
        * 2.0 ** (np.repeat(s.astype(float), 16, axis=1) - 129)
        for x, s in zip((a, b), scales, strict=True)
    ]
    exact = (values[0] * values[1]).sum(axis=1)
    np.testing.assert_array_equal(d.view(np.float32), exact)  # few bits: no phase loses any


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        (([0] * 16, [0] * 16, 0), "scale_a must be exponents, one for each 16 values, not None"),
        (([0] * 16, [0] * 16, 0, [1, 2], [1]), r"scale_a must have the shape \(1,\), not \(2,\)"),
        (([0] * 8, [0] * 8, 0, [1], [1]), "K must be a multiple of 16, not 8"),
        (([16] * 16, [0] * 16, 0, [1], [1]), "a must be between 0 and 0xf, not 16"),
        (([0] * 16, [0] * 16, 0, [256], [1]), "scale_a must be between 0 and 0xff, not 256"),
    ],
)
def test_operands_with_a_shared_exponent_that_do_not_fit(operands, message):
    with pytest.raises(ValueError, match=message):
        machines.run("wh_mvmul_bfp4_fp32_hifi4", *operands)


def magnitudes(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return the values of integers in sign and magnitude."""
    value = codes.astype(np.int64) & ((1 << (bits - 1)) - 1)
    return np.where(codes >> (bits - 1), -value, value)


def test_four_integer_phases_are_exact_products():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 256, (2, 1000, 48), np.uint8)
    c = rng.integers(0, 1 << 32, 1000, np.uint64).astype(np.uint32) & np.uint32(0x80FFFFFF)
    d = machines.run("bh_mvmul_int8_int32_hifi4", a, b, c)
    exact = magnitudes(c, 32) + (magnitudes(a, 8) * magnitudes(b, 8)).sum(axis=1)
    np.testing.assert_array_equal(magnitudes(d, 32), exact)
    assert not (d == 0x80000000).any()


def test_a_phase_takes_its_bits_and_the_sum_saturates():
    a, b = [0x7F] * 16, [0x7F] * 16
    got = [
        int(machines.run(f"wh_mvmul_int8_int32_{name}", a, b, 0))
        for name in ("lofi", "hifi2", "hifi3", "hifi4")
    ]
    # A = 96 + 31, B = 112 + 15
    assert got == [16 * 96 * 112, 16 * 127 * 112, 16 * (127 * 112 + 96 * 15), 16 * 127 * 127]
    full = 0x7FFFFFFF
    assert machines.run("wh_mvmul_int8_int32_lofi", a, b, full - 5) == full
    assert machines.run("wh_mvmul_int8_int32_lofi", [0xFF] * 16, b, 0xFFFFFFFA) == 0xFFFFFFFF
    # The first phase ends at the limit, and the second leaves it again.
    mixed = machines.run("wh_mvmul_int8_int32_hifi2", [0x60] + [0x9F] * 15, [0x70] * 16, full - 5)
    assert mixed == full - 15 * 31 * 112


@pytest.mark.parametrize(
    ("a", "c", "message"),
    [
        ([0] * 15, 0, r"K, a multiple of 16, not \(15,\) and \(15,\)"),
        ([256] * 16, 0, "a must be between 0 and 0xff, not 256"),
        ([0] * 16, 1 << 32, "c must be between 0 and 0xffffffff, not 4294967296"),
    ],
)
def test_integers_that_do_not_fit(a, c, message):
    with pytest.raises(ValueError, match=message):
        machines.run("wh_mvmul_int8_int32_hifi4", a, a, c)


def test_matrix_products_refuse_shared_exponents_and_integers():
    codes = np.zeros((16, 16), np.uint8)
    with pytest.raises(ValueError, match="a rule without shared exponents"):
        multiply(codes, codes, machine="bh_mvmul_bfp8_fp32_hifi4")
    with pytest.raises(ValueError, match="a rule for floating point"):
        multiply(codes, codes, machine="bh_mvmul_int8_int32_hifi4")


def test_fp8_of_arm_is_rounded_once():
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 0x7C, (2, 2000, 4), np.uint8)  # finite in both formats
    b |= rng.integers(0, 2, b.shape, np.uint8) << 7
    c = rng.standard_normal(2000).astype(np.float32)
    d = machines.run("arm_fdot_e4m3xe5m2_fp32", a, b, c.view(np.uint32)).view(np.float32)
    products = to_float(a, "fp8e4m3") * to_float(b, "fp8e5m2")
    wide = products.astype(np.longdouble).sum(axis=1) + c  # 64 bits hold these sums
    np.testing.assert_array_equal(d, wide.astype(np.float32))


def test_an_instruction_without_a_rule_is_listed_and_refused(capsys):
    assert {entry.machine for entry in machines.missing().values()} >= {"amx", "rdna4", "xmx"}
    reason = "AMD measured WMMA with FP16 and BF16 only"
    for stem in ("rdna4_wmma_fp8", "rdna4_wmma_fp8_e4m3_fp32", "gfx1201_wmma_fp8_e5m2_fp32"):
        with pytest.raises(UserError, match=f"machine must be one with a known rule, .*: {reason}"):
            machines.run(stem, [0], [0], 0)
    with pytest.raises(UserError, match="not amx_tdpbf8ps: two orders of the additions"):
        machines.spec("amx", "tdpbf8ps", "e5m2")
    assert main(["machines", "rdna4", "xmx"]) == 0
    text = capsys.readouterr().out
    assert "wmma" in text and "nothing is public" in text
    assert main(["machines", "rdna4_wmma_fp8"]) == 2
    assert "not rdna4_wmma_fp8: AMD measured" in capsys.readouterr().err


def test_an_integer_step_saturates_before_the_next_one():
    a = np.full((1, 64), 127, np.uint8)
    b = np.where(np.arange(64) < 32, 127, 0x80).astype(np.uint8)[None]  # 127 · 127, then 127 · −128
    c = np.array([0x7FFFFFFF], np.uint32)
    first = 32 * 127 * 127
    saturated = machines.run("h200_wgmma_int8_int32_satfinite", a, b, c)
    assert saturated.view(np.int32)[0] == 0x7FFFFFFF - 32 * 127 * 128
    assert machines.run("h200_wgmma_int8_int32", a, b, c)[0] == c[0] + first - 32 * 127 * 128
    with pytest.raises(ValueError, match="with the same K"):
        machines.run("h200_mma_int8_int32_satfinite", a, b[:, :32], c)


def complex_part(a, b, c, part):
    """Return a part of C plus a complex product, each part's sums in FP64 rounded to FP32."""
    x, y = (to_float(v, "fp16")[..., ::2] + 1j * to_float(v, "fp16")[..., 1::2] for v in (a, b))
    return (c.astype(np.float64) + getattr((x * y).sum(axis=-1), part)).astype(np.float32)


@pytest.mark.parametrize(
    ("stem", "part"), [("amx_tcmmrlfp16ps", "real"), ("amx_tcmmimfp16ps", "imag")]
)
def test_a_complex_product_of_small_integers_is_exact(stem, part):
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-20, 21, (64, 32)).astype(np.float16).view(np.uint16) for _ in range(2))
    c = rng.integers(-99, 100, 64).astype(np.float32)
    d = machines.run(stem, a, b, c.view(np.uint32)).view(np.float32)
    np.testing.assert_array_equal(d, complex_part(a, b, c, part))
    product = multiply(a, b.T.copy(), machine=stem, input="fp16").view(np.float32)
    expected = complex_part(a[:, None], b[None], np.zeros((64, 64)), part)
    np.testing.assert_array_equal(product, expected)
