"""The checks of the M³XU model notice mistakes: each mutation makes one of them fail.

Mutations of the limb functions alone are in ``test_split``.
"""

import numpy as np
import pytest

from tests.unit.golden.m3xu.test_compiled import check_spec
from tests.unit.golden.m3xu.test_gemm import (
    Unit,
    check_against_reference,
    check_fma,
    choose_form,
    dot_by_limbs,
    rounded_sum,
)
from vitruvian.golden.cube import mmad_compiled
from vitruvian.golden.cube.mmad_compiled import compiled_mmad
from vitruvian.golden.fp.reference import decode, power_of_two
from vitruvian.golden.m3xu import gemm, limb_pairs, limbs, split, step_shifts
from vitruvian.golden.machines.presets import PRESETS

FP32, FP32C, FP64 = Unit("fp32"), Unit("fp32c"), Unit("fp64", multiplier_bits=27)
FINITE = ["near one", "far apart"]


def check_against_limbs(unit, expected=dot_by_limbs):
    """Check that ``gemm`` equals the sum that ``expected`` forms from limb products."""

    def of_unit(a, b, c, spec):
        return expected(a, b, c, spec, unit.multiplier_bits)

    return check_against_reference(gemm, unit, 1, kinds=FINITE, expected=of_unit)


# Limbs and steps


def reversed_limbs(significand, **sizes):
    return split(significand, **sizes)[::-1]


def shift_of_16(step, n, bits):
    return [16 if shift == 12 else shift for shift in step_shifts(step, n, bits)]


def cross_products_left_out(step, n):
    return limb_pairs(0, n)


MUTATIONS = {
    "reversed limbs": (limbs, "split", reversed_limbs),
    "a shift of 16 instead of 12": (limbs, "step_shifts", shift_of_16),
    "the first step again": (limbs, "limb_pairs", cross_products_left_out),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_limb_products_notice(monkeypatch, mutation):
    assert check_against_limbs(FP32) > 0
    monkeypatch.setattr(*MUTATIONS[mutation])
    with pytest.raises(AssertionError, match="differ"):
        check_against_limbs(FP32)


def rounded_between_steps(a, b, c, spec, multiplier_bits):
    """Round the sum after each step's products instead of once."""
    n = -(-spec.input.significand_bits // multiplier_bits)
    for first in range(0, len(a), spec.k):
        pairs = list(zip(a, b, strict=True))[first : first + spec.k]
        for step in range(n):
            shifts = step_shifts(step, n, multiplier_bits)
            z = decode(c, spec.output)
            terms = [(z.exponent, z.value)]
            for p, q in pairs:
                x, y = decode(p, spec.input), decode(q, spec.input)
                x_limbs, y_limbs = (
                    split(v.significand, limbs=n, bits=multiplier_bits) for v in (x, y)
                )
                product = sum(
                    x_limbs[i] * y_limbs[j] << shift
                    for (i, j), shift in zip(limb_pairs(step, n), shifts, strict=True)
                )
                exponent = x.exponent + y.exponent
                value = product * power_of_two(exponent - 2 * spec.input.fraction_bits)
                terms.append((exponent, -value if x.sign != y.sign else value))
            c = rounded_sum(terms, spec)
    return c


@pytest.mark.parametrize("unit", [FP32, FP64], ids=str)
def test_rounding_between_steps_is_noticed(unit):
    with pytest.raises(AssertionError, match="differ"):
        check_against_limbs(unit, rounded_between_steps)


# Complex


def without_the_flip(a, b, c, **options):
    """Return the real part of a·conj(b), in which a_i·b_i is added instead of subtracted."""
    wrong, right = gemm(a, b.conj(), c, **options), gemm(a, b, c, **options)
    right.view(np.float32)[..., ::2] = wrong.view(np.float32)[..., ::2]
    return right


def parts_swapped(a, b, c, **options):
    d = gemm(a, b, c, **options)
    return np.imag(d) + 1j * np.real(d)


def both_flipped(a, b, c, **options):
    """Return −a_r·b_r − a_i·b_i."""
    wrong, right = gemm(-a.conj(), b, c, **options), gemm(a, b, c, **options)
    right.view(np.float32)[..., ::2] = wrong.view(np.float32)[..., ::2]
    return right


@pytest.mark.parametrize("mutant", [without_the_flip, both_flipped, parts_swapped])
def test_signs_of_complex_products(mutant):
    check_against_reference(gemm, FP32C, 1, kinds=["near one"])
    with pytest.raises(AssertionError, match="differ"):
        check_against_reference(mutant, FP32C, 1, kinds=["near one"])


# Blocks


@pytest.mark.parametrize(
    "unit", [FP32, FP32C, FP64, Unit("fp16", preset="a100"), Unit("tf32")], ids=str
)
@pytest.mark.parametrize("factor", [1, 4])
def test_blocks_of_another_length(unit, factor):
    def mutant(*args, k, **options):
        return gemm(*args, k=k * factor // 2, **options)

    with pytest.raises(AssertionError, match="differ"):
        check_against_reference(mutant, unit, 1, kinds=FINITE)


def test_blocks_in_falling_k():
    def mutant(a, b, *args, **options):
        return gemm(a[..., ::-1], b[..., ::-1, :], *args, **options)

    with pytest.raises(AssertionError, match="differ"):
        check_against_reference(mutant, FP32, 1, kinds=FINITE)


def test_a_window_that_is_not_passed_on():
    def mutant(*args, **options):
        return gemm(*args, **options | {"window": None})

    unit = Unit("fp32", k=16, window=60)
    with pytest.raises(AssertionError, match="differ"):
        check_against_reference(mutant, unit, 1, kinds=["cancelling"], m=6, n=6)


def test_products_rounded_before_the_sum():
    def mutant(a, b, c, **options):
        d = c
        for i in range(a.shape[-1]):
            product = a[..., i, None] * b[..., None, i, :]
            d = (d + product).astype(c.dtype)
        return d

    check_fma(gemm, "fp32", 1000, seed=1)
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="differ"):
        check_fma(mutant, "fp32", 1000, seed=1)


# The compiled form

rule, decoded = mmad_compiled._rule, mmad_compiled._decoded
COMPILED = {
    "magnitude for floor": ("_rule", lambda spec: rule(spec)._replace(floor=False)),
    "chopped": ("_rule", lambda spec: rule(spec)._replace(nearest=False)),
    "a bit of window less": (
        "_rule",
        lambda spec: rule(spec)._replace(window=spec.sum.window - 1),
    ),
    "no subnormals": ("_rule", lambda spec: rule(spec)._replace(emin=spec.output.emin + 1)),
    "blocks of one": ("_rule", lambda spec: rule(spec)._replace(k=1)),
    "signs of zeros lost": (
        "_decoded",
        lambda codes, format: decoded(codes, format)._replace(
            negative=decoded(codes, format).significand < 0
        ),
    ),
    "infinities are zeros": (
        "_decoded",
        lambda codes, format: without_infinities(decoded(codes, format)),
    ),
}


def without_infinities(operand):
    exponent = operand.exponent.copy()
    exponent[exponent == mmad_compiled._INFINITY] = mmad_compiled._ZERO
    return operand._replace(exponent=exponent)


@pytest.mark.parametrize("format", ["fp32", "fp64"])
@pytest.mark.parametrize("mutation", COMPILED)
def test_the_compiled_form_against_the_plain(monkeypatch, mutation, format):
    spec = PRESETS["ieee"].spec(format, format, k=4)
    check_spec(compiled_mmad, spec, seed=1)
    name, mutant = COMPILED[mutation]
    monkeypatch.setattr(mmad_compiled, name, mutant)
    with pytest.raises(AssertionError, match="differ"):
        check_spec(compiled_mmad, spec, seed=1)


@pytest.mark.parametrize("mutation", ["magnitude for floor", "chopped"])
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_the_compiled_form_against_softfloat(monkeypatch, precision, mutation):
    choose_form(monkeypatch, compiled=True)
    options = {"multiplier_bits": 27} if precision == "fp64" else {}
    check_fma(gemm, precision, 5000, 1, **options)
    name, mutant = COMPILED[mutation]
    monkeypatch.setattr(mmad_compiled, name, mutant)
    with pytest.raises(AssertionError, match="differ"):
        check_fma(gemm, precision, 5000, 1, **options)
