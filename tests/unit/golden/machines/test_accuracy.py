"""The errors of machines on random operands agree with exact arithmetic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from vitruvian.golden.fp import DotSpec
from vitruvian.golden.fp.codec import to_float
from vitruvian.golden.machines import accuracy, compute, find

ROWS = 6


def exactly(row, distribution):
    """Return the mean and worst ulps and relative errors, computed with fractions."""
    rng = np.random.default_rng([1, list(accuracy.DISTRIBUTIONS).index(distribution)])
    numbers = accuracy.DISTRIBUTIONS[distribution](rng, (ROWS, accuracy.TERMS))
    rule = row.rule
    a, b = (accuracy._quantised(x, rule.input, rule) for x in numbers)
    c = np.zeros(ROWS, np.uint64)
    d = to_float(compute(rule, a.codes, b.codes, c, a.scales, b.scales), rule.output)
    ulps, relative = [], []
    for x, y, result in zip(a.values, b.values, d, strict=True):
        products = [Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)]
        wrong = abs(sum(products) - Fraction(result))
        exponent = 0
        while Fraction(2) ** (exponent + 1) <= abs(sum(products)):
            exponent += 1
        while Fraction(2) ** exponent > abs(sum(products)):
            exponent -= 1
        ulps.append(float(wrong / Fraction(2) ** (exponent - rule.output.fraction_bits)))
        relative.append(float(wrong / sum(map(abs, products))))
    return np.mean(ulps), max(ulps), np.mean(relative), max(relative)


@pytest.mark.parametrize(
    ("stem", "distribution"),
    [
        ("h100_mma_fp16_fp32", "uniform"),
        ("h100_mma_tf32_fp32", "cancelling"),
        ("cdna2_mfma_fp64_fp64", "wide"),
        ("gaudi3_fp32_fp32", "normal"),
        ("b200_nvf4_ue4m3_fp32", "wide"),
        ("b200_mxf8_e4m3_fp32", "cancelling"),
        ("ada_mma_e4m3_fp16", "normal"),
    ],
)
def test_errors_agree_with_fractions(stem, distribution):
    found = accuracy.errors(find(stem), distribution, rows=ROWS)
    got = (found.mean_ulp, found.worst_ulp, found.mean_relative, found.worst_relative)
    np.testing.assert_allclose(got, exactly(find(stem), distribution), rtol=1e-12, atol=0)


def test_a_wider_window_has_smaller_errors():
    row = find("h100_mma_fp16_fp32")
    assert isinstance(row.rule, DotSpec)
    errors = [
        accuracy.errors(replace(row, rule=row.rule.replace(window=window)), "normal", rows=50)
        for window in (13, 20, 25)
    ]
    means = [each.mean_relative for each in errors]
    assert means[0] > 20 * means[1] > 20 * means[2] > 0


def test_the_rounding_to_nearest_loses_less_than_truncation():
    towards_zero = accuracy.errors(find("a100_mma_bf16_fp32"), "uniform", rows=50)
    nearest = accuracy.errors(find("cdna3_mfma_bf16_fp32"), "uniform", rows=50)
    assert towards_zero.mean_ulp > 4 * nearest.mean_ulp


def test_every_rule_with_floating_point_is_listed_once():
    entries = accuracy.listed()
    stems = [stem for entry in entries for stem in entry.stems]
    assert len(entries) > 90 and len(stems) == len(set(stems))
    (h100,) = (entry for entry in entries if "h100_mma_fp16_fp32" in entry.stems)
    assert h100.machines == ("h100", "h200", "b200", "rtx50")
    assert not any("int8" in stem or "bfp" in stem for stem in stems)
    with pytest.raises(ValueError, match="amx_tdpbssd must have a rule for floating point"):
        accuracy.errors(find("amx_tdpbssd"), "normal")
