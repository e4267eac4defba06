"""Dot product RTL against golden: free parameters, several formats in one unit, mutants."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.core.terms
import vitruvian.hdl.fp.multidot
from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot, int_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.elaborate import to_rtlil
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.multidot import MultiDot
from vitruvian.hdl.fp.parts.pipeline import DEEP_PIPELINES, followed
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.batch import run_dot
from vitruvian.sim.bench.fp.stimuli import dot_vectors

SEED = 20261121


def _spec(**changes) -> DotSpec:
    parameters = {"input": "fp16", "output": "fp32", "k": 3, "window": 24}
    return dot_spec(**(parameters | changes))


@pytest.mark.parametrize(
    "spec",
    [
        _spec(window=9),
        _spec(window=12, truncate="magnitude", rounding="RNE"),
        _spec(window=20, rounding="RZ", result_bits=12, emax_floor=3),
        _spec(input="bf16", window=10),
        _spec(input="bf16", window=30, truncate="magnitude", rounding="RZ", emax_floor=-132),
        _spec(input="tf32", window=25, truncate="magnitude", rounding="RZ", nan=0x7FFFFFFF),
        _spec(input="fp8e4m3", input_b="fp8e5m2", k=7, window=13, result_bits=13),
        _spec(input="fp8e5m2", output="fp16", k=2, window=16, nan=0xFE00),
        _spec(input="fp16", output="fp64", k=2, window=74),
        _spec(output="tf32", k=2, window=35, nan=0x7FFFE000),
        _spec(input="fp8e4m3", output="fp8e4m3", k=2, window=11, nan=0xFF),
    ],
    ids=lambda spec: f"{spec.input.name}-{spec.output.name}-{spec.sum.window}-{spec.sum.truncate}",
)
def test_free_parameters(spec):
    result = run_dot("free", spec, 20_000, SEED, pipeline=0)
    assert result.vectors >= 20_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("pipeline", sorted(DEEP_PIPELINES))
@pytest.mark.parametrize("preset", ["a100", "ieee"])
def test_pipeline_depths(preset, pipeline):
    spec = PRESETS[preset].spec("fp16", k=4)
    assert DotProduct(spec=spec, pipeline=pipeline).latency == pipeline
    result = run_dot(preset, spec, 20_000, SEED, pipeline=pipeline)
    assert result.vectors >= 20_000 and not result.mismatches, result.examples


def _shared(preset, k, precisions, **changes):
    """Return specs for one unit: K follows from the operand width, and one window may be short."""
    specs = {}
    for name in precisions:
        spec = PRESETS[preset].spec(name)
        specs[name] = replace_spec(spec, k=k * 16 // spec.input.storage_bits, **changes)
    return specs


def replace_spec(spec: DotSpec, **changes) -> DotSpec:
    return spec.replace(**changes)


MULTI = {
    "a100": _shared("a100", 4, ("fp16", "bf16", "tf32")),
    "ada": _shared("ada", 2, ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2")),
    "ieee": _shared("ieee", 2, ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2"), window=45),
    "ieee-fp8": _shared("ieee", 2, ("fp8e4m3", "fp8e5m2"), window=31),
    "one": _shared("a100", 4, ("fp16",)),
}


@pytest.mark.parametrize(
    ("name", "pipeline", "isolated", "gated"),
    [
        *((name, n, False, False) for name in MULTI for n in (0, 3)),
        ("ada", 11, False, False),
        ("a100", 3, True, False),
        ("ieee-fp8", 5, True, False),
        ("one", 6, True, False),
        ("one", 1, False, True),
        ("a100", 3, True, True),
        ("ieee-fp8", 11, True, True),
    ],
)
def test_several_precisions_in_one_unit(name, pipeline, isolated, gated):
    """The precision changes at random from one vector to the next; unused bus bits are noise.

    In a gated unit, the result stays the same behind operands that are not valid.
    """
    specs, vectors = MULTI[name], 6_000
    bits = max(spec.k * spec.input.storage_bits for spec in specs.values())
    int8_k = 8 if name == "ieee-fp8" else bits // 8  # wider than the other operands, or as wide
    unit = MultiDot(specs=specs, int8_k=int8_k, pipeline=pipeline, isolated=isolated, gated=gated)
    rng = np.random.default_rng(SEED)
    choice = rng.integers(0, len(unit.precisions), vectors)
    bus_bytes = unit.bus_bits // 8
    a, b = (rng.integers(0, 256, (vectors, bus_bytes), dtype=np.uint8) for _ in range(2))
    c = rng.integers(0, 1 << 32, vectors, dtype=np.uint32)
    expected = np.empty(vectors, np.uint32)
    for index, precision in enumerate(unit.precisions):
        rows = np.flatnonzero(choice == index)
        if precision == "int8":
            x, y = (side[rows, :int8_k].view(np.int8) for side in (a, b))
            exact = int_dot(x, y, c[rows].view(np.int32))
            expected[rows] = np.asarray(exact).astype(np.int32).view(np.uint32)
            continue
        spec = specs[precision]
        x, y, z = (side[: len(rows)] for side in dot_vectors(spec, len(rows) + 64, seed=SEED))
        used = spec.k * spec.input.storage_bits // 8
        width = np.dtype(f"<u{spec.input.storage_bits // 8}")
        a[rows, :used] = np.ascontiguousarray(x, dtype=width).view(np.uint8).reshape(len(rows), -1)
        b[rows, :used] = np.ascontiguousarray(y, dtype=width).view(np.uint8).reshape(len(rows), -1)
        c[rows] = z
        expected[rows] = fused_dot(x, y, z, spec)
    model = rtl.compile(unit)
    given = {"a": _words(a), "b": _words(b), "c": c, "precision": choice.astype(np.uint8)}
    if gated:
        given["valid"] = rng.integers(0, 2, vectors).astype(np.uint8)
        given["valid"][0] = 1
        expected = expected[np.maximum.accumulate(np.arange(vectors) * given["valid"])]
    got = model.run(**given)
    wrong = np.flatnonzero(np.asarray(got) != expected)
    shown = [(unit.precisions[choice[i]], hex(got[i]), hex(expected[i])) for i in wrong[:3]]
    assert not len(wrong), shown


def _words(octets: np.ndarray) -> np.ndarray:
    """Convert bytes of a bus to the integers that the model takes for a wide port."""
    if octets.shape[1] <= 8:
        padded = np.zeros((len(octets), 8), np.uint8)
        padded[:, : octets.shape[1]] = octets
        return padded.view("<u8")[:, 0]
    return np.array([int.from_bytes(row.tobytes(), "little") for row in octets], dtype=object)


# ------------------------------------------------------------------ mutants


def _shift_off_by_one(m, word, distance, **rest):
    return shift_right(m, word, (distance + 1)[: len(distance) + 1], **rest)


def _sticky_dropped(m, word, distance, **rest):
    return shift_right(m, word, distance, **rest)[0], vitruvian.hdl.fp.core.terms.Const(0, 1)


def _ties_up(m, number, **rest):
    return round_and_pack(m, replace(number, word=number.word | 1), **rest)


def _zero_products_count(m, values, **rest):
    return maximum(m, [value | 1 for value in values], **rest)


shift_right, round_and_pack = (
    vitruvian.hdl.fp.core.terms.shift_right,
    vitruvian.hdl.fp.core.dotcore.round_and_pack,
)
maximum = vitruvian.hdl.fp.core.dotcore.maximum


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (vitruvian.hdl.fp.core.terms, "shift_right", _shift_off_by_one),
        (vitruvian.hdl.fp.core.terms, "shift_right", _sticky_dropped),
        (vitruvian.hdl.fp.core.dotcore, "round_and_pack", _ties_up),
        (vitruvian.hdl.fp.core.dotcore, "maximum", _zero_products_count),
    ],
    ids=["shift off by one", "sticky dropped", "ties up", "maximum off"],
)
def test_mutants_are_caught(monkeypatch, owner, name, mutant):
    spec = _spec(k=2, window=20)
    a, b, c = dot_vectors(spec, 20_000, seed=SEED)
    expected = fused_dot(a, b, c, spec)
    assert np.array_equal(rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c), expected)
    monkeypatch.setattr(owner, name, mutant)
    wrong = rtl.compile(DotProduct(spec=spec)).run(a=a, b=b, c=c)
    assert (wrong != expected).any()


def test_an_isolation_that_holds_the_wrong_operands_is_noticed(monkeypatch):
    original = MultiDot._isolated
    monkeypatch.setattr(
        MultiDot,
        "_isolated",
        lambda self, m, name, value, used: original(self, m, name, value, ~used),
    )
    for pipeline, gated in ((0, False), (3, True)):
        with pytest.raises(AssertionError):
            test_several_precisions_in_one_unit("a100", pipeline, True, gated)


@pytest.mark.parametrize("late", [1, 2])
def test_a_rank_that_is_enabled_too_late_is_noticed(monkeypatch, late):
    def shifted(m, names, bit, prefix):
        bits = followed(m, names, bit, prefix)
        if prefix == "valid":
            bits = dict(zip(bits, [*list(bits.values())[late:], *[bit] * late], strict=True))
        return bits

    monkeypatch.setattr(vitruvian.hdl.fp.multidot, "followed", shifted)
    with pytest.raises(AssertionError):
        test_several_precisions_in_one_unit("a100", 3, False, True)


def test_only_an_isolated_and_gated_unit_keeps_its_isolation_apart():
    for isolated, gated in ((True, False), (False, True), (True, True)):
        unit = MultiDot(specs=MULTI["one"], int8_k=8, pipeline=1, isolated=isolated, gated=gated)
        assert ("isolation_" in to_rtlil(unit)) == (isolated and gated)


# ------------------------------------------------------------------ errors


def test_errors_say_what_is_allowed():
    spec = PRESETS["a100"].spec("fp16")
    with pytest.raises(ValueError, match=r"pipeline must be one of 0, 1, .*, 10, 11, not 12"):
        DotProduct(spec=spec, pipeline=12)
    with pytest.raises(ValueError, match="spec must have a window"):
        DotProduct(spec=PRESETS["exact"].spec("fp16"))
    small = dot_spec(input="fp16", output="fp6e3m2", k=2, window=30)
    with pytest.raises(ValueError, match="output must be a format with NaN, not 'fp6e3m2'"):
        DotProduct(spec=small)
    with pytest.raises(ValueError, match="output of fp16 must have NaN, not be 'fp6e3m2'"):
        MultiDot(specs={"fp16": small})
    for given in ({}, {"int8_k": 8, "specs": {}}, {"int8_k": 8, "addend_cycles": 1}):
        options: dict[str, Any] = {"specs": {"fp16": spec}, "pipeline": 6, "isolated": True}
        options |= given
        with pytest.raises(ValueError, match="isolated must be False without int8 beside"):
            MultiDot(**options)
    for given in ({"pipeline": 0}, {"addend_cycles": 1}):
        options = {"specs": {"fp16": spec}, "pipeline": 6, "gated": True} | given
        with pytest.raises(ValueError, match="gated must be False without registers, or with"):
            MultiDot(**options)
    with pytest.raises(ValueError, match="specs must name at least one precision"):
        MultiDot(specs={})
    with pytest.raises(ValueError, match="rounding of bf16 must be that of fp16"):
        other = _spec(input="bf16", k=8, truncate="magnitude", nan=0x7FFFFFFF)
        MultiDot(specs={"fp16": spec, "bf16": other})
