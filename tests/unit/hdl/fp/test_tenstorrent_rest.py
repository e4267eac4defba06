"""MVMUL with shared exponents and with integers: RTL against golden, and mutants."""

from typing import Any

import numpy as np
import pytest

from vitruvian.golden.machines import IntPhaseSpec, PhaseSpec, compute, find
from vitruvian.hdl.fp import int_phases, phases
from vitruvian.hdl.machines import realise
from vitruvian.sim.bench.fp.machines import unit_vectors
from vitruvian.sim.machines.rtl import run_rtl
from vitruvian.sim.rtl import compile as compile_rtl
from vitruvian.sim.rtl import compile_unit

COUNT = 10_000
LONG = pytest.mark.long


def shared_operands(bits: int, seed: int = 5):
    """Return codes and shared exponents; half of the exponents are near the ends of the field."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 1 << bits, (2, COUNT, 32), np.uint8)
    a[::3, rng.integers(0, 32, 12)] = 0
    infinities = rng.random(COUNT) < 0.1  # −0 is −∞, which drowns everything else
    for x in (a, b):
        x[(x == 1 << (bits - 1)) & ~infinities[:, None]] = 0
    scales = rng.integers(110, 145, (2, COUNT, 2), np.uint8)
    scales[:, ::2] = rng.integers(0, 256, (2, (COUNT + 1) // 2, 2))
    c = rng.integers(0, 1 << 32, COUNT, np.uint32)
    c[::2] = (c[::2] & 0x83FFFFFF) | 0x3C000000
    return a, b, c, *scales


@pytest.mark.parametrize(
    "stem",
    [
        "bh_mvmul_bfp8_fp32_hifi2",
        pytest.param("wh_mvmul_bfp4_fp32_hifi4", marks=LONG),
        pytest.param("wh_mvmul_bfp2_bf16_lofi", marks=LONG),
    ],
)
def test_shared_exponents_equal_golden(stem):
    rule = find(stem).rule
    assert isinstance(rule, PhaseSpec) and rule.shared_bits is not None
    a, b, c, *scales = shared_operands(rule.shared_bits)
    c = c if stem.split("_")[3] == "fp32" else (c >> 16).astype(np.uint16)
    expected = np.asarray(compute(rule, a, b, c, *scales))
    assert len(np.unique(expected)) > COUNT // 10
    np.testing.assert_array_equal(run_rtl(realise(rule), a, b, c, *scales), expected)


def int_operands(seed: int = 7):
    """Return operands in sign and magnitude; in a quarter of the rows Dst is near its ends."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 256, (2, COUNT, 32), np.uint8)
    c = rng.integers(0, 1 << 32, COUNT, np.uint32)
    c[::4] |= 0x7FFF8000
    c[1::8] &= 0x8000FFFF
    c[:2] = 0, 0x80000000
    a[:2] = 0
    return a, b, c


@pytest.mark.parametrize(
    ("stem", "pipeline"),
    [
        ("wh_mvmul_int8_int32_hifi4", 2),
        pytest.param("wh_mvmul_int8_int32_hifi2", 1, marks=LONG),
        pytest.param("wh_mvmul_int8_int32_lofi", 0, marks=LONG),
    ],
)
def test_integer_phases_equal_golden(stem, pipeline):
    rule = find(stem).rule
    a, b, c = int_operands()
    expected = np.asarray(compute(rule, a, b, c))
    assert (expected & 0x7FFFFFFF == 0x7FFFFFFF).sum() > 20 and (expected == 0).any()
    unit = realise(rule, pipeline=pipeline)
    np.testing.assert_array_equal(run_rtl(unit, a, b, c), expected)


def test_integers_that_do_not_saturate_are_noticed(monkeypatch):
    rule = find("wh_mvmul_int8_int32_lofi").rule
    assert isinstance(rule, IntPhaseSpec)
    a, b, c = int_operands()
    a, b = a[:, :16], b[:, :16]
    monkeypatch.setattr(int_phases, "_LARGEST", (1 << 32) - 1)
    got = compile_rtl(int_phases.IntMatrixPhase(spec=rule)).run(a=a, b=b, c=c)
    assert (got != compute(rule, a, b, c)).any()


@LONG
def test_a_zero_of_its_own_kind_is_noticed(monkeypatch):
    """The code of −0 is −∞, not zero."""
    rule = find("wh_mvmul_bfp2_fp32_lofi").rule
    assert isinstance(rule, PhaseSpec)
    a, b, c, *scales = (x[:, :16] if x.ndim > 1 else x for x in shared_operands(2))
    scales = [s[:, 0] for s in scales]
    widen = phases._widen_shared

    def plain(m, code, exponent, name):
        return widen(m, code, exponent, name) & code[:-1].any().replicate(16)

    monkeypatch.setattr(phases, "_widen_shared", plain)
    unit = phases.MatrixPhase(spec=rule)
    got = compile_rtl(unit).run(a=a, b=b, c=c, scale_a=scales[0], scale_b=scales[1])
    columns = [s[:, None] for s in scales]
    assert (got != compute(rule, a, b, c, *columns)).any()


@pytest.mark.parametrize("stem", ["bh_mvmul_bfp8_fp32_hifi2", "wh_mvmul_int8_int32_hifi4"])
def test_vectors_of_one_phase_equal_golden(stem):
    unit = realise(find(stem).rule)
    inputs, expected = unit_vectors(unit.parameters["spec"], unit.k, 2000, seed=3)
    model: Any = compile_unit(unit.component, **unit.parameters)
    np.testing.assert_array_equal(model.run(**inputs), expected)


def test_an_integer_unit_of_an_unknown_depth_is_refused():
    with pytest.raises(ValueError, match="pipeline must be one of 0, 1, 2, not 3"):
        realise(find("wh_mvmul_int8_int32_lofi").rule, pipeline=3)
