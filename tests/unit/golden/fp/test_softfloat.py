"""Golden arithmetic against Berkeley SoftFloat, on stratified cases."""

import numpy as np
import pytest

from tests.support.golden_cases import directed_codes, random_codes, require_equal, stratified_fma
from tests.support.golden_softfloat import MODES, softfloat, softfloat_to_int
from vitruvian.golden.fp import FORMATS, add, convert, fma, fused_dot, mul, to_int, unpack
from vitruvian.golden.machines.presets import PRESETS

MILLION = 1_000_000
BINARY = ["fp16", "fp32", "fp64"]


def check_fma(fused_dot, format, n, seed):
    """Check K = 1 of preset ``ieee`` against SoftFloat's FMA; return the number of cases."""
    a, b, c = stratified_fma(np.random.default_rng(seed), n, format)
    spec = PRESETS["ieee"].spec(format, format, k=1)
    got = fused_dot(a[:, None], b[:, None], c, spec)
    expected = softfloat("mul_add", (a, b, c), format)
    require_equal(f"{format} fma", got, expected, {"a": a, "b": b, "c": c}, seed)
    return len(c)


@pytest.mark.parametrize("format", BINARY)
def test_a_million_fused_multiply_adds(format):
    assert check_fma(fused_dot, format, MILLION, seed=1) >= MILLION


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("format", BINARY)
def test_arithmetic_in_every_rounding(format, rounding):
    a, b, c = stratified_fma(np.random.default_rng(2), 20000, format)
    operands = {"a": a, "b": b, "c": c}
    expected = softfloat("mul_add", (a, b, c), format, rounding=rounding)
    require_equal(f"fma {rounding}", fma(a, b, c, format, rounding=rounding), expected, operands, 2)
    expected = softfloat("mul", (a, b), format, rounding=rounding)
    require_equal(f"mul {rounding}", mul(a, b, format, rounding=rounding), expected, operands, 2)
    expected = softfloat("add", (a, c), format, rounding=rounding)
    require_equal(f"add {rounding}", add(a, c, format, rounding=rounding), expected, operands, 2)


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize(
    ("source", "target"),
    [(s, t) for s in BINARY for t in BINARY if s != t] + [("bf16", "fp32"), ("fp32", "bf16")],
)
def test_conversions(source, target, rounding):
    rng = np.random.default_rng(3)
    codes = np.concatenate([random_codes(rng, source, 20000), directed_codes(source)])
    f, t = FORMATS[source], FORMATS[target]
    if t.emax < f.emax:  # the same with exponents around the target's range
        low, high = (max(e + f.bias, 1) for e in (t.emin - t.fraction_bits - 3, t.emax + 2))
        field = rng.integers(low, min(high, f.exponent_ones) + 1, len(codes)).astype(np.uint64)
        rest = codes.astype(np.uint64) & np.uint64(f.sign_mask | f.fraction_mask)
        # Half of them have a significand near a midpoint
        cut = np.uint64(max(f.fraction_bits - t.fraction_bits - 1, 0))
        near = rest >> cut << cut | np.where(rng.random(len(codes)) < 0.3, 1, 0).astype(np.uint64)
        rest = np.where(rng.random(len(codes)) < 0.5, near, rest)
        more = (rest | field << np.uint64(f.fraction_bits)).astype(codes.dtype)
        codes = np.concatenate([codes, more])
    expected = softfloat("to", (codes,), source, target, rounding)
    got = convert(codes, source, target, rounding)
    require_equal(f"{source} to {target} {rounding}", got, expected, {"x": codes}, 3)


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("format", BINARY)
def test_conversion_to_int32(format, rounding):
    f = FORMATS[format]
    rng = np.random.default_rng(4)
    codes = np.concatenate([random_codes(rng, format, 20000), directed_codes(format)])
    field = np.uint64(f.bias) + rng.integers(-3, 33, 20000).astype(np.uint64)
    field = np.minimum(field, np.uint64(f.exponent_ones)) << np.uint64(f.fraction_bits)
    rest = codes[:20000].astype(np.uint64) & np.uint64(f.sign_mask | f.fraction_mask)
    codes = np.concatenate([codes, (rest | field).astype(codes.dtype)])
    codes = codes[~unpack(codes, f).nan]
    expected = softfloat_to_int(codes, format, rounding)
    got = to_int(codes, format, "int32", rounding)
    require_equal(f"{format} to int32 {rounding}", got, expected, {"x": codes}, 4)
