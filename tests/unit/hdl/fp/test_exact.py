"""Exact dot product RTL against golden and exact rationals, and its largest formats."""

import numpy as np
import pytest

import vitruvian.hdl.fp.exact
from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot
from vitruvian.golden.fp.reference import fused_dot_reference
from vitruvian.golden.machines import compute, find
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.exact import MAX_SUM_BITS, ExactDotProduct
from vitruvian.hdl.machines import realise
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.batch import checks, run_dot
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.machines.rtl import run_rtl

SEED = 20261121
CHECKS = [check for check in checks() if check.unit == "fp.ExactDotProduct"]
EXACT = PRESETS["exact"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.configuration)
def test_against_golden(check):
    result = check.run(20_000, SEED)
    assert result.vectors == 20_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("pipeline", [0, 1, 2, 3, 4])
def test_depths(pipeline):
    spec = EXACT.spec("fp8e5m2", k=3)
    result = run_dot("exact", spec, 10_000, SEED, pipeline=pipeline, unit=ExactDotProduct)
    assert not result.mismatches, result.examples


def test_all_fp8_pairs_with_every_addend_class():
    """With K = 1 there are 65536 products for each of six addends and four pairs of formats."""
    codes = np.arange(256, dtype=np.uint8)
    a, b = np.repeat(codes, 256)[:, None], np.tile(codes, 256)[:, None]
    checked = 0
    for x in ("fp8e4m3", "fp8e5m2"):
        for y in ("fp8e4m3", "fp8e5m2"):
            spec = EXACT.spec(x, k=1, input_b=y)
            model = rtl.compile_unit(ExactDotProduct, spec=spec)
            for addend in (0, 0x80000000, 0x00000001, 0xBF800001, 0x4F000001, 0xFF800000):
                c = np.full(65536, addend, np.uint32)
                np.testing.assert_array_equal(model.run(a=a, b=b, c=c), fused_dot(a, b, c, spec))
                checked += 65536
    assert checked == 4 * 6 * 65536


def test_against_exact_rationals():
    spec = EXACT.spec("fp16", k=5)
    a, b, c = dot_vectors(spec, 1500, seed=SEED)
    got = rtl.compile_unit(ExactDotProduct, spec=spec).run(a=a, b=b, c=c)
    for i in range(len(c)):
        want = fused_dot_reference([int(v) for v in a[i]], [int(v) for v in b[i]], int(c[i]), spec)
        assert got[i] == want, (i, SEED, hex(got[i]), hex(want))


def test_a_difference_below_any_window():
    """Large products cancel exactly, and the smallest possible product is left."""
    spec = EXACT.spec("fp16", k=3)
    model = rtl.compile_unit(ExactDotProduct, spec=spec)
    a = np.array([[0x7BFF, 0xFBFF, 0x0001]], np.uint16)
    b = np.array([[0x7BFF, 0x7BFF, 0x8001]], np.uint16)
    for c, want in ((0, 0xA7800000), (0x80000001, 0xA7800000), (0x3F800000, 0x3F800000)):
        got = model.run(a=a, b=b, c=np.array([c], np.uint32))
        assert got[0] == want == fused_dot(a, b, np.array([c], np.uint32), spec)[0]


def _sign_inverted(m, rows, *, width, carry_in=None, fast=False):
    return add_rows(m, rows, width=width, carry_in=None if carry_in is None else ~carry_in)


add_rows = vitruvian.hdl.fp.exact.add_rows


def test_a_mutant_is_caught(monkeypatch):
    spec = EXACT.spec("fp8e4m3", k=2)
    a, b, c = dot_vectors(spec, 10_000, seed=SEED)
    expected = fused_dot(a, b, c, spec)
    assert np.array_equal(rtl.compile(ExactDotProduct(spec=spec)).run(a=a, b=b, c=c), expected)
    monkeypatch.setattr(vitruvian.hdl.fp.exact, "add_rows", _sign_inverted)
    assert (rtl.compile(ExactDotProduct(spec=spec)).run(a=a, b=b, c=c) != expected).any()


@pytest.mark.parametrize("input", ["bf16", "tf32", "fp32"])
def test_formats_that_are_too_wide_are_refused(input):
    spec = EXACT.spec(input, k=4)
    with pytest.raises(ValueError, match=f"at most {MAX_SUM_BITS} bits.*not '{input}'"):
        ExactDotProduct(spec=spec)


def test_errors_say_what_is_allowed():
    with pytest.raises(ValueError, match="window must be None, not 45; use DotProduct"):
        ExactDotProduct(spec=PRESETS["ieee"].spec("fp16"))
    with pytest.raises(ValueError, match="rounding must be RNE"):
        ExactDotProduct(spec=dot_spec(input="fp16", output="fp32", k=2, window=None, rounding="RZ"))
    with pytest.raises(ValueError, match="pipeline must be one of 0, 1, 2, 3, 4, not 5"):
        ExactDotProduct(spec=EXACT.spec("fp16"), pipeline=5)


def test_every_format_that_is_narrow_enough_is_checked():
    names = " ".join(check.configuration for check in CHECKS)
    assert all(name in names for name in ("fp8e4m3", "fp8e5m2", "fp16"))


def test_a_wide_sum_of_bf16_products_must_be_asked_for():
    rule = find("cdna1_mfma_bf16_fp32").rule
    assert isinstance(rule, DotSpec)
    a, b, c = dot_vectors(rule, 10_000, seed=SEED)
    unit = realise(rule)
    assert unit.parameters["max_sum_bits"] == 528
    np.testing.assert_array_equal(run_rtl(unit, a, b, c), compute(rule, a, b, c))
