"""Rules that are equal for all operands: proofs against golden, on formats with few codes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.hidden_rules import results_of
from tests.support.tiny_rules import at_an_edge, operands, results, tiny_rule
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.machines import compute, find
from vitruvian.golden.machines.probe import bounds, canonical, equal_rules
from vitruvian.golden.machines.probe.score import Scorer
from vitruvian.golden.machines.spec import ChainSpec, fma_step
from vitruvian.golden.machines.table import machines


def differences(seeds, rows):
    """Return how many random rules were changed, and those whose results changed with them."""
    changed, wrong = 0, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rule = tiny_rule(rng)
        if seed % 4:
            rule = at_an_edge(rng, rule)
        if rule is None:
            continue
        terms = rule.k * (1 + seed % 2)
        other = canonical(rule, terms)
        if other == rule.replace(nan=rule.nan_code):
            continue
        assert isinstance(other, DotSpec)
        codes = operands(rng, rule, rows, terms)
        changed += 1
        if (results(rule, *codes) != results(other, *codes)).any():
            wrong.append((seed, rule, other))
    return changed, wrong


def test_a_canonical_rule_gives_the_same_results():
    changed, wrong = differences(range(80), 3000)
    assert changed > 40 and not wrong


@pytest.mark.long
def test_many_canonical_rules_give_the_same_results():
    changed, wrong = differences(range(100, 3100), 8000)
    assert changed > 1500 and not wrong


def test_a_bound_that_is_wrong_is_seen(monkeypatch):
    """A claim that no term has low bits, and one that no product is small, both fail."""
    true = bounds.product

    def coarse(rule):
        p = true(rule)
        return replace(p, last=p.last + 2, hollow=0)

    monkeypatch.setattr("vitruvian.golden.machines.probe.equality.product", coarse)
    assert differences(range(80), 3000)[1]


def test_canonical_rules_are_their_own():
    for seed in range(60):
        once = canonical(tiny_rule(np.random.default_rng(seed)))
        assert canonical(once) == once
    for machine in machines().values():
        once = canonical(machine.rule)
        assert canonical(once) == once


def test_chains_that_are_windowed_sums():
    step = fma_step("fp16", "fp32")
    alone = dot_spec(input="fp16", output="fp32", k=1, window=None)
    assert equal_rules(ChainSpec(step=step, k=8), alone)
    late = alone.replace(accumulate="late")
    rounded = ChainSpec(step=step, k=1, products="rounded")
    assert equal_rules(rounded, late)
    assert not equal_rules(replace(rounded, k=2), late)
    assert not equal_rules(ChainSpec(step=step, k=8, descending=True), alone)
    for rule in (ChainSpec(step=step, k=8), rounded):
        data = results_of(rule, terms=8, step=7)
        exact = canonical(rule)
        uncut = isinstance(exact, DotSpec) and exact.sum.window is None
        assert not Scorer(data).count(exact) or uncut
    x = np.random.default_rng(1).integers(0, 0x7C00, (400, 8)).astype(np.uint16)
    c = np.zeros(400, np.uint32)
    for rule in (ChainSpec(step=step, k=8), rounded):
        exact = canonical(rule)
        assert isinstance(exact, DotSpec)
        wide = exact.replace(window=61)
        assert (compute(rule, x, x, c) == compute(wide, x, x, c)).all()


def test_sums_of_scaled_blocks_that_fit_into_the_result():
    """Sums of 32 large products have 23 fraction bits, because one block of a long sum is small."""
    rule = dot_spec(
        input="fp4e2m1",
        output="fp32",
        k=32,
        window=17,
        truncate="odd",
        rounding="RTO",
        zero="exact",
        flush=True,
        product_exponent="leading",
        accumulate="late",
        scale="ue4m3",
        block=16,
    )
    after = rule.replace(accumulate="after")
    assert equal_rules(rule, after)
    assert not equal_rules(rule.replace(window=18), after.replace(window=18))
    rng = np.random.default_rng(3)
    n = 20000
    a, b = (rng.choice(np.array([2, 3, 5, 5, 5, 7], np.uint8), (n, 32)) for _ in range(2))
    scales = rng.integers(4, 8, (2, n, 2)) << 3 | rng.choice([7, 7, 5], (2, n, 2))
    first = compute(rule, a, b, np.zeros(n, np.uint32), *scales.astype(np.uint8))
    c = first ^ np.uint32(1 << 31) ^ rng.integers(0, 4, n, np.uint32)
    both = [compute(r, a, b, c, *scales.astype(np.uint8)) for r in (rule, after)]
    np.testing.assert_array_equal(both[0], both[1])


def test_integers_that_wrap_do_not_depend_on_the_block():
    assert equal_rules(IntDotSpec(k=4), IntDotSpec(k=64))
    assert not equal_rules(IntDotSpec(k=4, saturate=True), IntDotSpec(k=64, saturate=True))
    assert not equal_rules(IntDotSpec(k=4), IntDotSpec(k=4, signed_a=False))


def test_machines_with_the_same_rule():
    def equal(x, y):
        return equal_rules(find(x).rule, find(y).rule)

    assert equal("a100_mma_fp16_fp32", "a2_mma_fp16_fp32")
    assert equal("h100_mma_fp16_fp32", "b200_tcgen05_fp16_fp32")
    assert not equal("v100_mma_fp16_fp32", "a100_mma_fp16_fp32")
    assert not equal("a100_mma_bf16_fp32", "h100_mma_bf16_fp32")


def test_equal_rules_have_equal_results():
    """Rules are equal for a reason that ``equal`` states; each changes a parameter."""
    plain = dot_spec(input="fp8e4m3", output="fp32", k=4, window=20, truncate="magnitude")
    short = plain.replace(window=10, rounding="RZ")
    pairs = [
        (plain, plain.replace(emax_floor=-180)),
        (plain.replace(accumulate="after", window=34), plain.replace(window=None)),
        (plain.replace(zero="positive"), plain.replace(zero="exact")),
        (short, short.replace(rounding="RNE")),
        (short.replace(flush_result="before"), short.replace(flush_result="after")),
        (plain, plain.replace(product_overflow=True)),
    ]
    for x, y in pairs:
        assert x != y and equal_rules(x, y)
        assert not Scorer(results_of(x, terms=16)).count(y)


@pytest.mark.parametrize(
    "change",
    [
        {"window": 24},
        {"rounding": "RZ"},
        {"emax_floor": -100},
        {"zero": "ieee"},
        {"truncate": "floor"},
        {"k": 8},
        {"flush_result": "after"},
        {"convert": FORMATS["fp16"]},
    ],
)
def test_other_rules_are_not_equal_and_are_told_apart(change):
    rule = dot_spec(
        input="fp8e4m3", output="fp32", k=4, window=25, truncate="magnitude", zero="positive"
    )
    other = rule.replace(**change)
    assert not equal_rules(rule, other)
    assert Scorer(results_of(rule, terms=16)).count(other) > 0
