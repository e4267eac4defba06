"""The steps of RDNA: sums that a user measured, exact sums, and the use in matrix products."""

from typing import Any

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.machines import RdnaSpec, compute, find, multiply, run, summary
from vitruvian.hdl.machines import NoUnit, realise

#: Products of a sum on a gfx1151 and its result, in a public file of a user's measurements
GFX1151 = (
    ((9, -9), -(2.0**-22)),
    ((1, -1), -(2.0**-24)),
    ((1024, -1024), -(2.0**-14)),
    ((4, -1), 3 - 2.0**-22),
    ((8, -1), 7 - 2.0**-21),
    ((9, -9, 9, -9), 0),
    ((-1, -1), -2),
    ((1024, 2.0**-13), 1024 + 2.0**-13),
    ((1024, *[2.0**-16] * 8), 1024),
    ((1024, *[2.0**-14] * 14), 1024 + 6 * 2.0**-13),
    ((1024, *[2.0**-12] * 15), 1024 + 15 * 2.0**-12),
    ((-1024, *[2.0**-16] * 8), -1024 + 2 * 2.0**-13),
    ((1, *[2.0**-24] * 14), 1 + 6 * 2.0**-23),
)


@pytest.mark.parametrize(("products", "result"), GFX1151)
def test_a_sum_is_that_of_a_gfx1151(products, result: float):
    a, b = np.zeros((1, 16)), np.ones((1, 16))
    a[0, : len(products)] = products
    small, nine = np.abs(a) < 2.0**-12, np.abs(a) == 9
    a[small], b[small] = a[small] * 2.0**12, 2.0**-12
    a[nine], b[nine] = a[nine] / 3, 3
    d = run("gfx1151_wmma_fp16_fp32", from_float(a, "fp16"), from_float(b, "fp16"), [0])
    assert to_float(d, "fp32")[0] == result


def test_rdna_4_adds_small_integers_exactly_and_rdna_3_does_not():
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 10, (2, 500, 16)).astype(float)
    x, y, zeros = from_float(a, "bf16"), from_float(b, "bf16"), np.zeros(500, np.uint32)
    exact = (a * b).sum(axis=1)
    sums = {
        name: to_float(run(f"{name}_wmma_bf16_fp32", x, y, zeros), "fp32")
        for name in ("rdna3", "rdna4")
    }
    assert (sums["rdna4"] == exact).all()
    wrong = sums["rdna3"] != exact
    assert 100 < wrong.sum() < 500 and np.abs(sums["rdna3"] - exact).max() < 2.0**-14


def test_results_of_16_bits_are_rounded_in_every_step():
    rng = np.random.default_rng(4)
    a, b = (from_float(rng.standard_normal((300, 8)), "fp16") for _ in range(2))
    c = from_float(rng.standard_normal(300), "fp16")
    for name, k in (("rdna3", 2), ("rdna4", 4)):
        row = find(f"{name}_wmma_fp16_fp16")
        d = c
        for start in range(0, 8, k):
            d = compute(row.rule, a[:, start : start + k], b[:, start : start + k], d)
        assert (compute(row.rule, a, b, c) == d).all()
        wide = run(f"{name}_wmma_fp16_fp32", a, b, from_float(to_float(c, "fp16"), "fp32"))
        assert (from_float(to_float(wide, "fp32"), "fp16") != d).any()


def test_a_matrix_product_is_computed_row_by_row():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((5, 18)), rng.standard_normal((18, 3))
    d = multiply(a, b, machine="gfx1201", input="fp16")
    x, y = from_float(a, "fp16"), from_float(b, "fp16").T
    x, y = (np.pad(m, ((0, 0), (0, 2))) for m in (x, y))
    rows = run("rdna4_wmma_fp16_fp32", x[:, None], y[None], np.zeros((5, 3), np.uint32))
    assert (d.view(np.uint32) == rows).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 4}, "k must be one of 2, not '4'"),
        ({"input": "fp32"}, "input must be one of fp16, bf16, not 'fp32'"),
        ({"input_b": "bf16"}, "input_b must be one of fp16, not 'bf16'"),
        ({"output": "bf16"}, "output must be one of fp32, fp16, not 'bf16'"),
        ({"input": "fp8e4m3", "input_b": "fp8e5m2", "rdna4": True, "output": "fp16"}, "output"),
    ],
)
def test_other_formats_are_refused(change, message):
    spec: dict[str, Any] = {"input": "fp16", "input_b": "fp16", "output": "fp32", "k": 2}
    with pytest.raises(UserError, match=message):
        RdnaSpec(**{"rdna4": False} | spec | change)


def test_a_rule_has_a_summary_and_no_unit():
    rule = find("rdna3_dot2_fp16_fp32").rule
    assert summary(rule) == "K 2, inverted terms, RNE"
    with pytest.raises(NoUnit, match="of the kind RdnaSpec"):
        realise(rule)
    with pytest.raises(ValueError, match="K must be a multiple of 2, not 3"):
        compute(rule, [0] * 3, [0] * 3, 0)
