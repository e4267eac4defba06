"""Phases of Tenstorrent's MVMUL against golden, with mutants that the comparison notices."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.machines import PhaseSpec, compute, find
from vitruvian.hdl.fp import phases
from vitruvian.hdl.fp.phases import PIPELINES, MatrixPhase
from vitruvian.hdl.machines import Realisation
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.machines.rtl import run_rtl
from vitruvian.sim.rtl import compile as compile_rtl

SEED = 20261125
COUNT = 20_000


def rule(stem: str, **changes) -> PhaseSpec:
    found = find(stem).rule
    assert isinstance(found, PhaseSpec)
    return replace(found, **changes)


def vectors(spec: PhaseSpec):
    """Return stratified operands; in a third of the rows the products cancel or are few."""
    stand_in = dot_spec(input=spec.input, output=spec.output, k=16, window=24)
    a, b, c = dot_vectors(stand_in, COUNT, seed=SEED)
    rng = np.random.default_rng(SEED)
    few = rng.random(COUNT) < 0.3
    a[few, 3:] = 0
    cancel = rng.random(COUNT) < 0.2  # one group is the negative of the other, Dst is small
    a[cancel, 8:], b[cancel, 8:] = a[cancel, :8] ^ a.dtype.type(spec.input.sign_mask), b[cancel, :8]
    a[cancel, 15] ^= a.dtype.type(1 << spec.input.storage_shift)
    tiny = rng.random(COUNT) < 0.2
    c[tiny] &= c.dtype.type(spec.output.sign_mask)
    return a, b, c


def compared(spec: PhaseSpec, pipeline: int = 0) -> np.ndarray:
    """Return the rows in which RTL and golden differ."""
    unit = Realisation(
        component=MatrixPhase,
        parameters={"spec": spec, "pipeline": pipeline},
        k=16,
        phases=spec.phases,
    )
    a, b, c = vectors(spec)
    expected = np.asarray(compute(spec, a, b, c))
    assert len(np.unique(expected)) > COUNT // 3
    return np.flatnonzero(np.asarray(run_rtl(unit, a, b, c)) != expected)


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("stem", "pipeline"),
    [
        ("wh_mvmul_bf16_fp32_hifi4", 0),
        ("bh_mvmul_e5m2_fp16_lofi", 3),
        pytest.param("bh_mvmul_bf16_bf16_hifi2", 2, marks=LONG),
        pytest.param("bh_mvmul_tf32_fp32_hifi3", 1, marks=LONG),
        pytest.param("wh_mvmul_e4m3_fp32_hifi4", 2, marks=LONG),
        pytest.param("wh_mvmul_fp16_fp16_hifi4", 2, marks=LONG),
        pytest.param("bh_mvmul_fp16_fp32_hifi4", 2, marks=LONG),
    ],
)
def test_all_phases_equal_golden(stem, pipeline):
    assert not len(compared(rule(stem), pipeline))


def test_the_erratum_of_wormhole_is_an_option():
    """A sum of −1 unit in the last place: Dst + product = −2^−23 of the largest exponent."""
    spec = rule("wh_mvmul_bf16_fp32_lofi")
    a, b = np.zeros((1, 16), np.uint16), np.zeros((1, 16), np.uint16)
    a[0, 0], b[0, 0] = 0xBF80, 0x3F80  # −1 · 1, and Dst is the number below 1
    c = np.array([0x3F7FFFFE], np.uint32)  # its distance from 1 is one unit
    results = []
    for blackhole in (False, True):
        chosen = replace(spec, blackhole=blackhole)
        unit = Realisation(component=MatrixPhase, parameters={"spec": chosen}, k=16)
        got = run_rtl(unit, a, b, c)
        assert got == compute(chosen, a, b, c)
        results.append(int(got[0]))
    assert results[0] != results[1]


def _ties_up(guard, rest, negative):
    return guard


def _no_guard(m, word, distance, **rest):
    shifted, lost = shift_right(m, word, distance, **rest)
    return (shifted & ~1, lost) if "align" in rest["name"] else (shifted, lost)


shift_right = phases.shift_right


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        pytest.param("_up", _ties_up, id="ties of negative groups up"),
        pytest.param("shift_right", _no_guard, id="products truncated", marks=LONG),
        pytest.param("_STEPS", (5, 6), id="wrong exponent of a phase", marks=LONG),
    ],
)
def test_mutants_are_caught(monkeypatch, name, mutant):
    spec = rule("wh_mvmul_bf16_fp32_hifi4")
    monkeypatch.setattr(phases, name, mutant)
    a, b, c = vectors(spec)
    model = compile_rtl(MatrixPhase(spec=spec))
    got = c
    for phase in range(4):
        got = model.run(a=a, b=b, c=got, phase=phase)
    assert (got != compute(spec, a, b, c)).any()


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="output must be fp32 or bf16 for bf16, not 'fp16'"):
        MatrixPhase(spec=replace(rule("wh_mvmul_bf16_fp32_lofi"), output=FORMATS["fp16"]))
    spec = rule("wh_mvmul_bf16_fp32_lofi")
    with pytest.raises(ValueError, match="pipeline must be one of 0, 1, 2, 3, not 4"):
        MatrixPhase(spec=spec, pipeline=4)
    assert [MatrixPhase(spec=spec, pipeline=p).latency for p in PIPELINES] == [0, 1, 2, 3]
