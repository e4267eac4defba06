"""Checks against an oracle for happens-before, brute force for races, and many runs for flags."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.davinci_programs import random_accesses, random_lowered
from vitruvian.common import compiling
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.checks import compiled as checks_compiled
from vitruvian.sim.davinci.checks import memory
from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower

CHIP = load_chip("ascend310")
S, V, M, MTE1, MTE2, MTE3 = list(Unit)[:6]

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True, params=["compiled", "plain"])
def form(request):
    """Small programs are checked by the same loops as plain Python; test both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "SMALL", 0 if request.param == "compiled" else 10**9)
        yield


def ordering_of(lowered):
    across = bool(lowered.lag.any())
    clocks = compiling.fitting(checks_compiled.clocks, len(lowered))
    clock, place, order, _ = clocks(
        lowered.first, lowered.unit, lowered.kind, lowered.need_first, lowered.need, across
    )
    core = np.repeat(np.arange(len(lowered.begin)), np.diff(lowered.first))

    def before(b: int, a: int) -> bool:
        if not across and core[a] != core[b]:
            return False
        return clock[a, (core[b] * 8 if across else 0) + lowered.unit[b]] >= place[b]

    return before, order


@settings(max_examples=30)
@given(seeds, st.booleans())
def test_what_must_come_before_is_what_a_slow_instruction_holds_up(seed, lags):
    """If one instruction is very long, exactly those that it precedes start after its end."""
    lowered = random_lowered(seed, size=16, lags=lags)
    lowered = dataclasses.replace(lowered, bus=np.full_like(lowered.bus, -1))
    before, order = ordering_of(lowered)
    assert len(order) == len(lowered)
    normal = np.flatnonzero(lowered.kind == Kind.NORMAL).tolist()
    for b in normal:
        init = lowered.init.copy()
        init[b] = 10**12
        times = engine.run(dataclasses.replace(lowered, init=init))
        for a in normal:
            if a != b:
                held = times.start[a] >= times.end[b]
                assert held == before(b, a), (a, b)


@settings(max_examples=100)
@given(seeds)
def test_an_order_of_all_that_can_end(seed):
    lowered = random_lowered(seed, deadlock=True, lags=False)
    _, order = ordering_of(lowered)
    times = engine.run(lowered, check=False)
    assert sorted(order.tolist()) == np.flatnonzero(times.end >= 0).tolist()


@settings(max_examples=60)
@given(seeds, st.sampled_from([1, 7, 4_000_000]))
def test_races_are_those_of_brute_force(seed, entries):
    """Compare random accesses with all pairs, byte by byte, for each size of a sweep's part."""
    rng = np.random.default_rng(seed)
    lowered = random_lowered(seed, size=20, lags=False)
    before, _ = ordering_of(lowered)
    streams = random_accesses(lowered, rng)
    flat = [instr for stream in streams for instr in stream.instructions]
    core = np.repeat(np.arange(len(streams)), np.diff(lowered.first)).tolist()

    def touch(spans, i):
        return {
            (s.buffer, -1 if s.buffer == "GM" else core[i], byte)
            for s in spans
            for lo, hi in s.intervals().tolist()
            for byte in range(lo, hi)
        }

    reads = [touch(instr.reads, i) for i, instr in enumerate(flat)]
    writes = [touch(instr.writes, i) for i, instr in enumerate(flat)]
    expected, racy = set(), set()
    for i in range(len(flat)):
        for j in range(i):
            common = writes[i] & (reads[j] | writes[j]) | reads[i] & writes[j]
            if common and not before(i, j) and not before(j, i):
                expected.add((j, i))
                racy |= common
    program = Program(CHIP)
    program.tensor("x", (1000,), "int8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_ENTRIES", entries)
        findings = [f for f in check_lowered(program, lowered, streams) if f.check == "race"]
    pairs = {f.instructions for f in findings}
    assert pairs <= expected, "no false alarm"
    assert bool(pairs) == bool(expected)
    for place in racy:  # every byte with a race is in a reported race
        near = {
            (j, i) for j, i in expected if place in (reads[i] | writes[i]) & (reads[j] | writes[j])
        }
        assert near & pairs, place


@settings(max_examples=100)
@given(seeds)
def test_no_run_sets_twice_what_is_not_found(seed):
    """If the check finds no flag, no choice of times lets a set precede the previous wait."""
    rng = np.random.default_rng(seed)
    core = Program(CHIP).core()
    core.view("UB", 0, (128,), "fp16")
    u = core.view("UB", 0, (128,), "fp16")
    for _ in range(int(rng.integers(4, 20))):
        a, b = ((V, MTE3), (MTE3, V), (V, M), (M, MTE3))[int(rng.integers(4))]
        match int(rng.integers(4)):
            case 0:
                core.vadds(u, u, 1.0)
            case 1:
                core.copy(core.program.tensors.get("x") or core.program.tensor("x", 128, "fp16"), u)
            case _:
                core.set_flag(a, b, 0)
                core.wait_flag(a, b, 0)
    lowered, streams = lower(core.program)
    if any(f.check == "flag" for f in check_lowered(core.program, lowered, streams)):
        return
    for _ in range(20):
        init = np.where(lowered.kind == Kind.NORMAL, 10 ** rng.integers(0, 6, len(lowered)), 0)
        times = engine.run(dataclasses.replace(lowered, init=init, data=init * (lowered.bus >= 0)))
        flags: dict[tuple, list[int]] = {}
        for i, instr in enumerate(core.instructions):
            if instr.kind in (Kind.SET, Kind.WAIT):
                key = (instr.fields["source"], instr.fields["target"])
                flags.setdefault(key, []).append(i)
        for mine in flags.values():
            sets, waits = mine[::2], mine[1::2]  # in turn, in the program
            assert all(times.end[w] <= times.end[s] for w, s in zip(waits, sets[1:], strict=False))
