"""Products by plans: against sums that are written out, and every part of a plan matters."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import vitruvian
from vitruvian.golden.fp import convert
from vitruvian.golden.machines import multiply as by_instruction
from vitruvian.golden.plans import Plan, contiguous, multiply, product, scaled_mm

_RULE = {"fp16": "h100_mma_fp16_fp32", "e4m3": "h100_wgmma_e4m3_fp32"}


def _operands(k: int, dtype: Any = np.float16, seed: int = 1):
    rng = np.random.default_rng(seed)
    a, b = (
        rng.normal(size=shape) * 2.0 ** rng.integers(-6, 6, shape) for shape in ((5, k), (k, 7))
    )
    return a.astype(dtype), b.astype(dtype)


def _written_out(a: Any, b: Any, rule: str, slices: Any, restart: int) -> np.ndarray:
    """Return the sum of the sums of slices, each of which adds its parts in FP32."""
    total: Any = None
    for places in slices:
        own: Any = None
        for first in range(0, len(places), restart or len(places)):
            some = places[first : first + (restart or len(places))]
            part = by_instruction(np.ascontiguousarray(a[:, some]), b[some], machine=rule)
            own = part if own is None else (own + part).astype(np.float32)
        total = own if total is None else (total + own).astype(np.float32)
    return total


@pytest.mark.parametrize("restart", [0, 64, 128])
@pytest.mark.parametrize("slices", [1, 3])
def test_slices_and_restarts_are_sums_in_fp32(restart, slices):
    a, b = _operands(1000)
    plan = Plan(rule=_RULE["fp16"], restart=restart, starts=contiguous(1000, slices))
    found = multiply(a, b, plan=plan)
    expected = _written_out(a, b, plan.rule, plan.slices(1000), restart)
    assert found.dtype == np.float32 and np.array_equal(found, expected)
    assert np.array_equal(vitruvian.gemm(a, b, plan=plan), expected)
    codes = multiply(a.view(np.uint16), b.view(np.uint16), plan=plan, threads=1)
    assert np.array_equal(codes, expected.view(np.uint32))
    changed = replace(plan, restart=32)
    assert not np.array_equal(multiply(a, b, plan=changed), expected)
    changed = replace(plan, starts=contiguous(1000, slices + 1))
    assert not np.array_equal(multiply(a, b, plan=changed), expected)


def test_tiles_in_turn_and_a_remainder_first():
    a, b = _operands(200)
    plan = Plan(rule=_RULE["fp16"], cyclic=(32, 3))
    expected = _written_out(a, b, plan.rule, plan.slices(200), 0)
    assert np.array_equal(multiply(a, b, plan=plan), expected)
    plan = Plan(rule=_RULE["fp16"], remainder_first=64)
    first = by_instruction(a[:, :8], b[:8], machine=plan.rule)
    expected = by_instruction(a[:, 8:], b[8:], first, machine=plan.rule)
    assert np.array_equal(multiply(a, b, plan=plan), expected)
    assert not np.array_equal(multiply(a, b, plan=replace(plan, remainder_first=0)), expected)


def test_a_shorter_step_is_another_sum():
    a, b = _operands(512)
    whole, half = (multiply(a, b, plan=Plan(rule=_RULE["fp16"], step=k)) for k in (16, 8))
    assert not np.array_equal(whole, half)
    term = Plan(rule="fma_fp32")
    single = [x.astype(np.float32) for x in (a, b)]
    total = np.zeros((5, 7), np.float32)
    for k in range(512):  # products of FP16 are exact in FP64, and so is their sum with FP32 here
        exact = np.outer(a[:, k].astype(np.float64), b[k]) + total
        total = exact.astype(np.float32)
    assert np.mean(multiply(*single, plan=term) == total) > 0.95  # but for double rounding


def test_the_epilogue_has_factors_bias_and_a_rounding():
    k = 300
    a, b = _operands(k, ml_dtypes.float8_e4m3fn)
    rng = np.random.default_rng(3)
    plan = replace(scaled_mm(k, scales="row", slices=2), bias=True)
    scale_a, scale_b = rng.random(5, np.float32), rng.random(7, np.float32)
    bias = rng.normal(size=7).astype(ml_dtypes.bfloat16)
    found = multiply(a, b, plan=plan, scale_a=scale_a, scale_b=scale_b, bias=bias)
    sums = multiply(a, b, plan=replace(plan, scales="", bias=False, output="fp32"))
    expected = sums * (scale_a[:, None] * scale_b) + bias.astype(np.float32)
    assert found.dtype == ml_dtypes.bfloat16
    assert np.array_equal(found, expected.astype(ml_dtypes.bfloat16))


def test_factors_of_blocks_are_fused_with_their_sums():
    k = 300
    a, b = _operands(k, ml_dtypes.float8_e4m3fn)
    rng = np.random.default_rng(4)
    scale_a, scale_b = rng.random((5, 3), np.float32), rng.random((3, 1), np.float32)
    plan = scaled_mm(k, scales="block", output="fp32")
    total = np.zeros((5, 7), np.float32)
    for block in range(3):
        places = slice(128 * block, 128 * block + 128)
        part = by_instruction(a[:, places].copy(), b[places].copy(), machine=plan.rule)
        factor = np.broadcast_to(scale_a[:, block, None] * scale_b[block], part.shape)
        sums = [
            np.float32(nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))))
            for x, y, z in zip(part.flat, factor.flat, total.flat, strict=True)
        ]
        total = np.array(sums, np.float32).reshape(total.shape)
    found = multiply(a, b, plan=plan, scale_a=scale_a, scale_b=scale_b)
    assert np.array_equal(found, total)


def nearest(value: Fraction) -> float:
    """Return a number that is rounded to 24 bits, ties to even; no result here is subnormal."""
    if not value:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - 23)
    return float(round(value / unit) * unit)


@pytest.mark.parametrize(("output", "nan"), [("bf16", 0x7FFF), ("fp32", 0x7FFFFFFF)])
def test_nothing_to_add_is_zero_and_a_nan_has_one_code(output, nan):
    plan = Plan(rule=_RULE["fp16"], output=output)
    empty = np.zeros((2, 0), np.float16)
    assert not multiply(empty, empty.T, plan=plan).astype(np.float32).any()
    codes = np.full((1, 16), np.nan, np.float16).view(np.uint16)
    assert multiply(codes, codes.T, plan=plan).tolist() == [[nan]]


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        ({}, {"scale_a": 1.0}, "scale_a and scale_b must not be given"),
        ({"scales": "tensor"}, {"scale_a": 1.0}, "scale_a and scale_b must be given"),
        (
            {"scales": "row"},
            {"scale_a": 1.0, "scale_b": 1.0},
            r"scale_a must have the shape \(5,\)",
        ),
        ({}, {"bias": np.zeros(7, np.float32)}, "bias must not be given with this plan"),
        ({"bias": True}, {}, "bias must be given with this plan"),
        ({"bias": True}, {"bias": np.zeros(5, np.float32)}, r"bias must have the shape \(7,\)"),
        ({}, {"threads": 0}, "threads must be"),
    ],
)
def test_what_does_not_fit_the_plan_is_refused(plan, options, message):
    a, b = _operands(32)
    with pytest.raises(ValueError, match=message):
        multiply(a, b, plan=Plan(rule=_RULE["fp16"], **plan), **options)


def test_a_stack_and_a_machine_beside_a_plan_are_refused():
    a, b = _operands(32)
    plan = Plan(rule=_RULE["fp16"])
    with pytest.raises(ValueError, match="a and b must be matrices"):
        multiply(a[None], b, plan=plan)
    with pytest.raises(ValueError, match="machine and c must be None with a plan"):
        vitruvian.gemm(a, b, machine="h100", plan=plan)
    with pytest.raises(ValueError):
        multiply(a, b[:16], plan=plan)


@pytest.mark.parametrize("output", ["fp16", "bf16", "fp32"])
def test_the_last_rounding_is_that_of_golden(output):
    """NumPy and ml_dtypes round sums as ``convert`` does: ties, subnormals, overflow, zeros."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    short = np.arange(1 << 16, dtype=np.uint32) << 16  # every code of BF16, and its neighbours
    ties = [short | np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001)]
    halves = np.arange(0x33000000, 0x38800000, 0x3FF, dtype=np.uint32)  # subnormals of FP16
    total = np.concatenate([codes, *ties, halves, halves | 0x80000000]).view(np.float32)
    plan = Plan(rule="h200_mma_fp16_fp32", output=output)
    with np.errstate(all="ignore"):
        found = product._rounded(total, plan, values=False)
    expected = np.asarray(convert(total.view(np.uint32), "fp32", output))
    number = ~np.isnan(total)
    assert np.array_equal(found[number], expected[number])
    assert set(found[~number].tolist()) == {(1 << 8 * found.itemsize - 1) - 1}
