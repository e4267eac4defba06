"""The checks of golden notice mistakes: each mutation of golden makes them fail."""

import numpy as np
import pytest

from tests.support.golden_cases import check_against_reference, check_against_silicon
from tests.unit.golden.fp.test_softfloat import check_fma
from vitruvian.golden.fp import dot_compiled, fused_dot, reference
from vitruvian.golden.fp import plain as golden_plain
from vitruvian.golden.fp import round as golden_round
from vitruvian.golden.machines.presets import PRESETS, parse_preset_name

round_shift, cut, operand = (
    golden_round.round_shift,
    golden_plain._cut,
    golden_plain.operand,
)


def wrong_tie(magnitude, shift, sign, rounding):
    return round_shift(magnitude, shift, sign, "RNA" if rounding == "RNE" else rounding)


def dropped_sticky(*args):
    kept, _ = cut(*args)
    return kept, np.zeros_like(kept, bool)


def one_place_off(significand, gap, *args):
    return cut(significand, gap - 1, *args)


def magnitude_for_floor(significand, gap, fraction_bits, spec):
    kept, _ = cut(np.abs(significand), gap, fraction_bits, spec)
    return np.where(significand < 0, -kept, kept), np.False_


def zero_products_count(codes, format):
    significand, exponent = operand(codes, format)
    return significand, np.where(exponent == golden_plain._ZERO, np.int32(format.emin), exponent)


MUTATIONS = {
    "ties away from even": (golden_round, "round_shift", wrong_tie),
    "sticky bit dropped": (golden_plain, "_cut", dropped_sticky),
    "shift off by one": (golden_plain, "_cut", one_place_off),
    "magnitude instead of floor": (golden_plain, "_cut", magnitude_for_floor),
    "E_max of zero products": (golden_plain, "operand", zero_products_count),
}
SPECS = {
    "ieee": PRESETS["ieee"].spec("fp16", k=4),
    "a100": PRESETS["a100"].spec("fp16"),
    "a100 to fp16": PRESETS["a100"].spec("fp16", "fp16"),
}
NOTICED_BY = {  # keys of SPECS whose results a mutation changes
    "ties away from even": ["ieee", "a100 to fp16"],
    "sticky bit dropped": ["ieee"],
    "shift off by one": ["ieee", "a100", "a100 to fp16"],
    "magnitude instead of floor": ["ieee"],
    "E_max of zero products": ["ieee", "a100", "a100 to fp16"],
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_comparison_with_the_reference_notices(monkeypatch, mutation):
    for label in NOTICED_BY[mutation]:
        check_against_reference(fused_dot, SPECS[label], 300, 4, seed=1)
    monkeypatch.setattr(*MUTATIONS[mutation])
    for label in NOTICED_BY[mutation]:
        with pytest.raises(AssertionError, match="differ"):
            check_against_reference(fused_dot, SPECS[label], 300, 4, seed=1)


@pytest.mark.parametrize("format", ["fp16", "fp32"])
@pytest.mark.parametrize("mutation", ["ties away from even", "sticky bit dropped"])
def test_comparison_with_softfloat_notices(monkeypatch, mutation, format):
    check_fma(fused_dot, format, 5000, seed=1)
    monkeypatch.setattr(*MUTATIONS[mutation])
    with pytest.raises(AssertionError, match="differ"):
        check_fma(fused_dot, format, 5000, seed=1)


def test_a_lost_sticky_bit_of_the_compiled_form_is_noticed(monkeypatch):
    compiled = dot_compiled.compiled_sum

    def mutant(*args):
        sign, magnitude, exponent = compiled(*args)
        return sign, magnitude & ~np.int64(1), exponent

    check_fma(fused_dot, "fp64", 5000, seed=1)
    monkeypatch.setattr(dot_compiled, "compiled_sum", mutant)
    with pytest.raises(AssertionError, match="differ"):
        check_fma(fused_dot, "fp64", 5000, seed=1)


def test_measured_outputs_notice(monkeypatch, silicon):
    preset, inputs, input_b = parse_preset_name("a100_fp16")
    with np.load(silicon / "a100_fp16.npz") as npz:
        data = dict(npz)
    monkeypatch.setattr(*MUTATIONS["shift off by one"])
    with pytest.raises(AssertionError, match="differ"):
        check_against_silicon(fused_dot, preset, inputs, input_b, data)


def test_a_mutated_reference_is_noticed_too(monkeypatch):
    floor = reference.floor_log2
    monkeypatch.setattr(reference, "floor_log2", lambda x: floor(x) + 1)
    with pytest.raises(AssertionError, match="differ"):
        check_against_reference(fused_dot, SPECS["a100"], 100, 4, seed=1)
