"""The rules of machines in RTL: every stem that the dot product realises, against golden."""

from dataclasses import replace

import numpy as np
import pytest

import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.core.operands
import vitruvian.hdl.fp.core.products
import vitruvian.hdl.fp.core.terms
import vitruvian.hdl.fp.dot
from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot
from vitruvian.golden.machines.table import find
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.batch import run_dot
from vitruvian.sim.bench.fp.stimuli import dot_vectors

SEED = 20261123


def rule(stem: str) -> DotSpec:
    spec = find(stem).rule
    assert isinstance(spec, DotSpec)
    return spec


@pytest.mark.parametrize(
    ("stem", "k", "pipeline"),
    [
        ("rvbna_e5m2xe4m3_n4_fp32", 4, 0),
        ("rvbna_bf16_n2_fp32", 2, 3),
        ("rvbna_e4m3_n1_fp32", 1, 0),
        ("h100_mmasync_e5m2xe4m3_fp16", 6, 3),
        ("b200_mmasync_e4m3_fp32", 4, 8),
        ("gaudi3_e4m3ixe5m2_fp32", 2, 0),
        ("gaudi3_fp16_fp32", 2, 0),
        ("gaudi3_tf32_fp32", 1, 3),
        ("gaudi3_fp32_fp32", 1, 0),
        ("gaudi2_e4m3ixe5m2_fp32", 3, 3),
        ("gaudi2_fp16_fp32", 2, 0),
        ("gaudi2_tf32_fp32", 1, 0),
        ("gaudi2_fp32_fp32", 1, 6),
        ("arm_bfdot_ebf1", 2, 3),
        ("cdna1_mfma_fp16_fp32", 2, 0),
    ],
)
def test_a_rule_of_a_machine_equals_golden(stem, k, pipeline):
    spec = rule(stem).replace(k=k)
    unit = DotProduct if spec.sum.window or spec.addend.how == "late" else ExactDotProduct
    result = run_dot(stem, spec, 20_000, SEED, pipeline=pipeline, unit=unit)
    assert result.vectors >= 20_000 and not result.mismatches, result.examples


FREE = {
    "odd, in the tree": {"truncate": "odd", "rounding": "RTO", "window": 12},
    "odd with a floor": {"truncate": "odd", "emax_floor": -6, "window": 14, "rounding": "RZ"},
    "late, narrow": {"accumulate": "late", "output": "fp16", "window": 9, "rounding": "RTO"},
    "late with a floor": {"accumulate": "late", "truncate": "floor", "emax_floor": -7},
    "exact zero": {"zero": "exact", "output": "fp16", "truncate": "magnitude"},
    "flush": {"input": "bf16", "flush": True, "flush_result": "after", "output": "fp32"},
    "flush, positive zero": {"output": "fp16", "flush_result": "after", "zero": "positive"},
    "after, narrow": {"accumulate": "after", "truncate": "magnitude", "window": 6, "k": 4},
    "leading in the tree": {"product_exponent": "leading", "output": "fp16"},
    "converted, rounded": {"input": "fp32", "input_b": "bf16", "convert": "bf16", "k": 1},
    "odd, without infinity": {"truncate": "odd", "output": "fp8e4m3", "window": 9},
    "late, without infinity": {"accumulate": "late", "output": "fp8e4m3", "nan": 0xFF},
    "sliced": {"slices": ((6, 1), (1, 7), (6, 6)), "truncate": "magnitude", "window": 5},
}


@pytest.mark.parametrize("name", FREE)
def test_a_step_by_itself_equals_golden(name):
    given = {"input": "fp8e5m2", "output": "fp32", "k": 3, "window": 20} | FREE[name]
    result = run_dot(name, dot_spec(**given), 20_000, SEED, pipeline=0)
    assert result.vectors >= 20_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("pipeline", [1, 6, 8])
def test_pipeline_depths_of_a_late_addition(pipeline):
    spec = rule("rvbna_e4m3_n2_fp32")
    assert DotProduct(spec=spec, pipeline=pipeline).latency == pipeline
    result = run_dot("late", spec, 2_000, SEED, pipeline=pipeline)
    assert not result.mismatches, result.examples


# ------------------------------------------------------------------ mutants


def _odd_forgotten(original):
    return lambda m, word, distance, **rest: (original(m, word, distance, **rest)[0], 0)


def _truncated(original):
    return lambda m, number, **rest: original(m, number, **rest | {"rounding": "RZ"})


def _nearest_even(original):
    return lambda **rest: original(**rest | {"rounding": "RNE"})


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (vitruvian.hdl.fp.core.terms, "shift_right", _odd_forgotten),
        (vitruvian.hdl.fp.core.dotcore, "round_and_pack", _truncated),
        (vitruvian.hdl.fp.dot, "Adder", _nearest_even),
    ],
    ids=["terms not odd", "sum not rounded to odd", "C added to nearest even"],
)
def test_mutants_of_rvbna_are_caught(monkeypatch, owner, name, mutant):
    spec = rule("rvbna_bf16_n2_fp32")
    a, b, c = dot_vectors(spec, 20_000, seed=SEED)
    expected = np.asarray(fused_dot(a, b, c, spec))
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name)))
    assert (rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c) != expected).any()


def _first_half_again(original):
    return lambda spec: [(rule, original(spec)[0][1]) for rule, _ in original(spec)]


def _not_normalised(original):
    return lambda spec, source: replace(original(spec, source), normalised=False)


def _not_rounded(original):
    def mutant(form, m, code, name):
        step = 1 << (form.source.fraction_bits - form.format.fraction_bits)
        return original(form, m, code & ~(step - 1), name)

    return mutant


def _whole_significands(original):
    return lambda significand, form, mask: (0, significand)


def _low_exponent(original):
    return lambda m, product, name: replace(original(m, product, name), exponent=product.exponent)


def _subnormals_kept(original):
    return lambda packed, side, target, **rest: original(
        packed, side, target, **rest | {"flush": False}
    )


DOT, CORE = vitruvian.hdl.fp.dot, vitruvian.hdl.fp.core


@pytest.mark.parametrize(
    ("stem", "k", "owner", "name", "mutant"),
    [
        ("h100_mmasync_e4m3_fp16", 4, DOT, "sums_of", _first_half_again),
        ("gaudi3_e4m3_fp32", 2, DOT, "form_of", _not_normalised),
        ("gaudi3_tf32_fp32", 1, CORE.operands.OperandForm, "_rounded", _not_rounded),
        ("gaudi3_fp16_fp32", 1, CORE.products, "_slice", _whole_significands),
        ("gaudi2_bf16_fp32", 2, CORE.products, "_normalised", _low_exponent),
        ("gaudi2_bf16_fp32", 2, CORE.dotcore, "code_of", _subnormals_kept),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else None,
)
def test_mutants_of_the_steps_are_caught(monkeypatch, stem, k, owner, name, mutant):
    spec = rule(stem).replace(k=k)
    a, b, c = dot_vectors(spec, 20_000, seed=SEED)
    expected = np.asarray(fused_dot(a, b, c, spec))
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name)))
    assert (rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c) != expected).any()


def _small_sums(spec: DotSpec, count: int):
    """Return products that cancel down to one unit of the window, and a smaller C."""
    rng = np.random.default_rng(SEED)
    low, bias = 5, spec.input.bias
    fields = np.stack([np.full(count, bias + 2), np.full(count, bias + 2), np.full(count, low)], 1)
    signs = np.array([0, 1, 0]) ^ rng.integers(0, 2, (count, 1))
    f = spec.input.fraction_bits
    a = (signs << (f + spec.input.exponent_bits)) | (fields << f)
    b = a & ~spec.input.sign_mask
    exponent = 2 * (low - bias) + spec.output.bias - rng.integers(0, 30, count)
    c = (exponent << 23) | rng.integers(0, 16, count) | (rng.integers(0, 2, count) << 31)
    return a.astype(np.uint8), b.astype(np.uint8), c.astype(np.uint32)


def test_an_exact_addition_needs_all_of_its_window(monkeypatch):
    spec = rule("gaudi2_e5m2_fp32").replace(k=3)
    a, b, c = _small_sums(spec, 5_000)
    expected = np.asarray(fused_dot(a, b, c, spec))
    got = rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c)
    np.testing.assert_array_equal(got, expected)
    exact = vitruvian.hdl.fp.dot.geometry_after
    monkeypatch.setattr(
        vitruvian.hdl.fp.dot,
        "geometry_after",
        lambda products: replace(exact(products), window=exact(products).window - 1),
    )
    assert (rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c) != expected).any()


# ------------------------------------------------------------------ errors


def test_errors_say_what_is_allowed():
    spec = rule("rvbna_e4m3_n2_fp32")
    with pytest.raises(ValueError, match=r"pipeline must be one of 0, 1, .*, 7, 8, not 9"):
        DotProduct(spec=spec, pipeline=9)
    with pytest.raises(ValueError, match="rounding must be one of RNE, RZ, RTO, not 'RU'"):
        Adder(format="fp32", rounding="RU")
    with pytest.raises(ValueError, match=r"addend\.how must be 'tree' or 'late' or 'after' in "):
        DotProduct(spec=rule("cdna3_mfma_bf16_fp32"))
