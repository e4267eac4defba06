"""Dot products with fewer glitches: the same results as golden, balanced ranks, mutants."""

from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.flows.units import variants
from vitruvian.golden.fp import dot_spec, fused_dot
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.table import find
from vitruvian.hdl.balance import BalancePath, paths
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.fp.core import nearest
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.parts import multiply
from vitruvian.hdl.fp.parts.carrysave import CarrySaveRow
from vitruvian.hdl.fp.parts.multiply import QUIET
from vitruvian.hdl.fp.parts.pipeline import QUIET_PIPELINES
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.batch import run_dot
from vitruvian.sim.bench.fp.stimuli import dot_vectors

SEED = 20261129


class Product(wiring.Component):
    """A product of two unsigned words in the form with fewer glitches."""

    a: Signal
    b: Signal
    p: Signal

    def __init__(self, *, a_bits: int, b_bits: int):
        self.a_bits, self.b_bits = a_bits, b_bits
        super().__init__({"a": In(a_bits), "b": In(b_bits), "p": Out(a_bits + b_bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = multiply.multiply(m, self.a, self.b, name="x", multiplier=QUIET)
        m.d.comb += self.p.eq(word)
        return m


def every_pair(a_bits: int, b_bits: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(list(product(range(1 << a_bits), range(1 << b_bits))), np.uint16)
    return pairs[:, 0], pairs[:, 1]


@pytest.mark.parametrize(("a_bits", "b_bits"), [(5, 6), (6, 5), (1, 4), (4, 1), (3, 7)])
def test_every_product_of_short_words(a_bits: int, b_bits: int):
    a, b = every_pair(a_bits, b_bits)
    assert len(a) == 1 << (a_bits + b_bits)
    got = rtl.compile(Product(a_bits=a_bits, b_bits=b_bits)).run(a=a, b=b)
    np.testing.assert_array_equal(got, a * b)


def test_a_row_of_minus_zero_that_is_not_zero_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Without the rule for the digit -0, a row of ones lacks the 1 that completes it."""
    original = multiply.booth_rows

    def mutant(m: Module, a: Signal, b: Signal, **options) -> list[CarrySaveRow]:
        rows = original(m, a, b, **options)
        # The lowest bit of the last row is the correction of the row before it.
        last = rows[2]
        word = Signal(len(last.value), name="mutant")
        m.d.comb += word.eq(last.value | b[1:4].all())
        return [*rows[:2], CarrySaveRow(value=word, lsb=last.lsb)]

    monkeypatch.setattr(multiply, "booth_rows", mutant)
    a, b = every_pair(4, 4)
    got = rtl.compile(Product(a_bits=4, b_bits=4)).run(a=a, b=b)
    assert (got != a * b).any()


SPECS = [
    *((PRESETS[name].spec("fp16", k=k)) for name, k in product(("a100", "ieee"), (1, 3, 10))),
    PRESETS["h100"].spec("fp8e5m2", k=4),
    dot_spec(input="fp16", output="fp32", k=3, window=20, rounding="RZ", result_bits=12,
             emax_floor=3),
    dot_spec(input="bf16", output="fp32", k=4, window=30, truncate="magnitude", rounding="RZ",
             emax_floor=-132),
]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.input.name}-{spec.k}")
def test_results_are_those_of_golden(spec: DotSpec):
    result = run_dot("quiet", spec, 10_000, SEED, pipeline=spec.k % 5, low_power=True)
    assert result.vectors >= 10_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("pipeline", sorted(QUIET_PIPELINES))
def test_every_depth_is_balanced(pipeline: int):
    unit = DotProduct(spec=PRESETS["a100"].spec("fp16", k=3), pipeline=pipeline, low_power=True)
    assert paths(unit) == {"d": BalancePath(pipeline, pipeline)}


@pytest.mark.parametrize("mutant", ["order", "addend"])
def test_a_wrong_largest_exponent_is_noticed(monkeypatch: pytest.MonkeyPatch, mutant: str):
    spec = PRESETS["a100"].spec("fp16", k=3)
    a, b, c = dot_vectors(spec, 10_000, seed=SEED)
    expected = fused_dot(a, b, c, spec)
    if mutant == "order":
        original = nearest._largest
        monkeypatch.setattr(
            nearest, "_largest", lambda m, values, name: original(m, values[:2], name)
        )
    else:
        # C never counts as the largest term.
        monkeypatch.setattr(nearest, "clip", lambda value, bits: Const(0, bits))
    got = rtl.compile(DotProduct(spec=spec, low_power=True)).run(a=a, b=b, c=c)
    assert (got != expected).any()


def test_the_option_is_part_of_the_name_of_a_variant():
    (variant,) = variants("dot", {"low_power": [True]})
    assert isinstance(variant, Variant) and "--low-power" in variant.arguments
    assert variant.label != variants("dot", {})[0].label


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"preset": ["exact"], "input": ["fp8e4m3"]}, "low_power must be False with an exact sum"),
        ({"pipeline": [9]}, "pipeline must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, not 9"),
    ],
)
def test_units_without_the_option_are_refused(given: dict, words: str):
    with pytest.raises(ValueError, match=words):
        variants("dot", {**given, "low_power": [True]})[0].check()


def test_a_sum_without_c_is_refused():
    row = find("rvbna_bf16_n8_fp32").rule
    assert isinstance(row, DotSpec)
    with pytest.raises(ValueError, match="low_power must be False where C is not a term"):
        DotProduct(spec=row, low_power=True)
