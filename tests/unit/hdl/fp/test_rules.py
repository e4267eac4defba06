"""The rules of machines in RTL: every stem that the dot product realises, against golden."""

from dataclasses import replace

import numpy as np
import pytest

import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.dot
from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.machines.table import find
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.dot import DotProduct
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
    ],
)
def test_a_rule_of_a_machine_equals_golden(stem, k, pipeline):
    result = run_dot(stem, replace(rule(stem), k=k), 20_000, SEED, pipeline=pipeline)
    assert result.vectors >= 20_000 and not result.mismatches, result.examples


FREE = {
    "odd, in the tree": {"truncate": "odd", "rounding": "RTO", "window": 12},
    "odd with a floor": {"truncate": "odd", "emax_floor": -6, "window": 14, "rounding": "RZ"},
    "late, narrow": {"accumulate": "late", "output": "fp16", "window": 9, "rounding": "RTO"},
    "late with a floor": {"accumulate": "late", "truncate": "floor", "emax_floor": -7},
    "exact zero": {"zero": "exact", "output": "fp16", "truncate": "magnitude"},
}


@pytest.mark.parametrize("name", FREE)
def test_a_step_by_itself_equals_golden(name):
    given = {"input": "fp8e5m2", "output": "fp32", "k": 3, "window": 20} | FREE[name]
    result = run_dot(name, DotSpec(**given), 20_000, SEED, pipeline=0)
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


# ------------------------------------------------------------------ errors


def test_errors_say_what_is_allowed():
    spec = rule("rvbna_e4m3_n2_fp32")
    with pytest.raises(ValueError, match=r"pipeline must be one of 0, 1, .*, 7, 8, not 9"):
        DotProduct(spec=spec, pipeline=9)
    with pytest.raises(ValueError, match="rounding must be one of RNE, RZ, RTO, not 'RU'"):
        Adder(format="fp32", rounding="RU")
    with pytest.raises(ValueError, match="accumulate must be 'tree' or 'late' in hardware"):
        DotProduct(spec=rule("cdna3_mfma_bf16_fp32"))
