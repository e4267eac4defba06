"""Kernels of rules that no machine has: random legal parameters against the plain form."""

from typing import Any

import numpy as np
import pytest

from tests.support.machine_operands import KINDS, operands
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.machines.products import _by_rows
from vitruvian.golden.machines.run import compute as run
from vitruvian.golden.sums import dots, products

FORMATS = ("fp16", "bf16", "tf32", "fp32", "fp8e4m3", "fp8e5m2", "fp6e2m3", "fp6e3m2", "fp4e2m1")
WINDOWS = (None, 12, 16, 21, 24, 25, 27, 28, 30, 34, 40, 46, 48)
ROWS, COLUMNS = 7, 140


def parameters(rng: np.random.Generator) -> dict[str, Any]:
    """Return parameters, some of which exclude one another."""

    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    def sometimes(share: float, **values: Any) -> dict[str, Any]:
        return values if rng.random() < share else {}

    a = pick(*FORMATS)
    k = pick(1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32)
    return {
        "input": a,
        "input_b": pick(a, a, *FORMATS),
        "output": pick("fp32", "fp32", "fp16"),
        "k": k,
        "window": pick(*WINDOWS),
        "truncate": pick("magnitude", "magnitude", "floor", "odd"),
        "rounding": pick("RNE", "RNE", "RZ", "RTO"),
        "zero": pick("ieee", "positive", "exact"),
        "accumulate": pick("tree", "tree", "late", "after", "aligned"),
        "lanes": pick("together", "together", "together", "halves", "parity"),
        **sometimes(0.3, emax_floor=pick(-133, -60, -21, 0, 40)),
        **sometimes(0.2, flush=True),
        **sometimes(0.25, flush_result=pick("after", "before")),
        **sometimes(0.15, product_exponent="leading"),
        **sometimes(0.15, product_overflow=True),
        **sometimes(0.15, result_bits=pick(10, 13, 20, 22)),
        **sometimes(0.1, convert="bf16"),
        **sometimes(0.15, scale=pick("ue8m0", "ue4m3"), block=k),
    }


def random_rule(rng: np.random.Generator) -> DotSpec:
    """Return a legal rule that has a kernel, and that the plain form computes."""
    while True:
        try:
            rule = dot_spec(**parameters(rng))
            if products.text(rule) is not None:
                _by_rows(operands(np.random.default_rng(0), rule, "bits", 2, 3), rule)
                return rule
        except ValueError:
            continue


def check(rule: Any) -> None:
    """Compare a matrix of two steps, and rows of one, with the plain form."""
    for seed, kind in enumerate(KINDS):
        x = operands(np.random.default_rng(seed), rule, kind, ROWS, COLUMNS)
        got, expected = products.compute(x, rule), _by_rows(x, rule)
        np.testing.assert_array_equal(got, expected, err_msg=f"{rule}, {kind}, matrix")
        a, b = np.repeat(x.a[:, : rule.k], COLUMNS, 0), np.tile(x.b[: rule.k].T, (ROWS, 1))
        c, scales = x.c.ravel(), {}
        if x.scale_a is not None and x.scale_b is not None:
            scales["scale_a"] = np.repeat(x.scale_a[:, :1], COLUMNS, 0)
            scales["scale_b"] = np.tile(x.scale_b[:1].T, (ROWS, 1))
        found = dots.kernel(rule, rule.k)
        assert found is not None, rule
        d = np.empty_like(c)
        flat = [np.ascontiguousarray(v).ravel() for v in (a, b, c, *scales.values())]
        found[0](*flat, d, rule.k // found[1])
        expected = run(rule, a, b, c, **scales)
        np.testing.assert_array_equal(d, expected, err_msg=f"{rule}, {kind}, rows")


@pytest.mark.slow
def test_kernels_of_a_few_random_rules_equal_the_plain_form():
    rng = np.random.default_rng(1)
    with dots.plain_forms():
        for _ in range(3):
            check(random_rule(rng))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 30))
def test_kernels_of_random_rules_equal_the_plain_form(seed):
    rng = np.random.default_rng(seed)
    with dots.plain_forms():
        for _ in range(5):
            check(random_rule(rng))
