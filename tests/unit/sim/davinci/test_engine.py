"""The compiled engine against the reference, bit for bit; conservation laws; deadlocks."""

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.davinci_programs import random_lowered
from vitruvian.common import compiling
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.davinci.timing import engine, matching_compiled, reference
from vitruvian.sim.davinci.timing.deadlock import Deadlock, cycle
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.davinci.timing.reference import as_arrays, run_reference, shares

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True)
def compile_small_programs_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "SMALL", 0)
        yield


def differences(lowered, *, block: int) -> list[int]:
    """Return the instructions whose times differ between the two engines."""
    times = engine.run(lowered, check=False, block_bytes=block)
    start, end, issued = as_arrays(run_reference(lowered, block_bytes=block))
    same = (start == times.start) & (end == times.end) & (issued == times.issued)
    return np.flatnonzero(~same).tolist()


@settings(max_examples=600)
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.integers(1, 3), st.booleans())
def test_compiled_is_reference(seed, deadlock, large, blocks, cores, interlocks):
    lowered = random_lowered(
        seed,
        deadlock=deadlock,
        large=large,
        cores=cores,
        interlocks=interlocks,
        posted=seed % 2 == 0,
    )
    block = (5 * 10**12 if large else 5) if blocks else 0
    assert not differences(lowered, block=block), (seed, deadlock, large, blocks, cores)


@settings(max_examples=250)
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.integers(2, 9), st.integers(1, 4))
def test_compiled_is_reference_in_rounds(seed, deadlock, large, blocks, cores, places):
    """More blocks than places, with flags between blocks that may never run at once."""
    lowered = random_lowered(
        seed,
        deadlock=deadlock,
        large=large,
        cores=cores,
        places=places,
        size=12,
        lags=seed % 2 == 0,
        interlocks=seed % 5 == 0,
        posted=seed % 7 < 4,
    )
    if seed % 3 == 0:  # gangs of two
        lowered = dataclasses.replace(lowered, gang=np.arange(cores) // 2)
    block = (5 * 10**12 if large else 5) if blocks else 0
    assert not differences(lowered, block=block), (seed, deadlock, large, blocks, cores, places)


@settings(max_examples=100)
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([1, 2, 40]))
def test_not_compiled_is_the_same(seed, deadlock, large, blocks, cores):
    """Small programs run as plain Python with NumPy scalars; the times are bit-exact."""
    size = 4 if cores > 2 else 24
    lowered = random_lowered(
        seed,
        deadlock=deadlock,
        large=large,
        cores=cores,
        size=size,
        interlocks=seed % 2 == 0,
        posted=seed % 3 == 0,
    )
    block = (5 * 10**12 if large else 5) if blocks else 0
    times = engine.run(lowered, check=False, block_bytes=block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "SMALL", 10**9)
        plain = engine.run(lowered, check=False, block_bytes=block)
    for name in ("start", "end", "issued"):
        assert np.array_equal(getattr(times, name), getattr(plain, name))


@pytest.mark.slow
def test_compiled_is_reference_on_three_thousand_programs():
    dead = 0
    for seed in range(3_000):
        lowered = random_lowered(
            seed, deadlock=seed % 3 == 0, large=seed % 2 == 0, cores=1 + seed % 3
        )
        assert not differences(lowered, block=5 if seed % 4 == 3 else 0), seed
        dead += not engine.run(lowered, check=False).complete
    assert dead > 150


@pytest.mark.parametrize(
    "what",
    ["lag", "dispatch", "rate", "totals", "begin", "init", "need", "drain", "handover", "places"],
)
def test_a_difference_is_noticed(what):
    """Every input matters: with another value, the reference disagrees on some programs."""
    noticed = 0
    for seed in range(60):
        lowered = random_lowered(seed, large=True, cores=3, places=2)
        value = getattr(lowered, what)
        if what == "need":
            changed = value.copy()
            changed[:-1], changed[-1:] = value[1:], value[:1]
        else:
            changed = value + (1 if what in ("rate", "totals", "places") else 10**12)
        other = dataclasses.replace(lowered, **{what: changed})
        actual = engine.run(lowered, check=False)
        times = as_arrays(run_reference(other))
        noticed += not all(
            (a == b).all()
            for a, b in zip(times, (actual.start, actual.end, actual.issued), strict=True)
        )
    assert noticed > 20


def test_a_flag_that_holds_its_queue_up_is_noticed():
    noticed = 0
    for seed in range(200):
        lowered = random_lowered(seed, posted=True)
        assert not differences(lowered, block=0), seed
        held = dataclasses.replace(lowered, posted=np.zeros(len(lowered), np.bool_))
        times = engine.run(held, check=False)
        start, end, _ = as_arrays(run_reference(lowered))
        noticed += not (np.array_equal(start, times.start) and np.array_equal(end, times.end))
    assert noticed > 40


@pytest.mark.parametrize("wrong", ["no give-back", "no limit", "of one"])
def test_other_shares_are_noticed(wrong, monkeypatch):
    """Mutants of the rule by which a bus is shared."""

    def share(rates, totals):
        part = totals[min(len(rates), len(totals)) - 1] / max(len(rates), 1)
        if wrong == "no give-back":
            return [min(part, rate) for rate in rates]
        return [part] * len(rates) if wrong == "no limit" else list(rates)

    monkeypatch.setattr(reference, "shares", share)
    assert sum(bool(differences(random_lowered(s, large=True), block=0)) for s in range(60)) > 10


@settings(max_examples=150)
@given(seeds)
def test_rounding_stays_below_an_attosecond_an_instruction(seed):
    """Compare with rational numbers: each end is rounded up by less than one attosecond."""
    lowered = random_lowered(seed, large=True)
    _, rounded, _ = run_reference(lowered)
    _, exact, _ = run_reference(lowered, exact=True)
    assert [r is None for r in rounded] == [e is None for e in exact]
    pairs = [(r, e) for r, e in zip(rounded, exact, strict=True) if r is not None]
    assert all(abs(r - e) <= len(lowered) for r, e in pairs)


def moved(lowered, times) -> dict[int, Fraction]:
    """Compute the work of each transfer (in time as if alone) from all starts and ends only."""
    work = {}
    for b in set(lowered.bus.tolist()) - {-1}:
        mine = np.flatnonzero(lowered.bus == b).tolist()
        data = {i: (int(times.start[i] + lowered.init[i]), int(times.end[i])) for i in mine}
        edges = sorted({t for pair in data.values() for t in pair})
        work |= dict.fromkeys(mine, Fraction(0))
        for lo, hi in pairwise(edges):
            there = [i for i in mine if data[i][0] <= lo and data[i][1] >= hi]
            if not there:
                continue
            totals = lowered.totals[b]
            total = Fraction(totals[min(len(there), len(totals)) - 1])
            rates = [Fraction(lowered.rate[i]) for i in there]
            # Equal shares with a ceiling: the level at which the shares add up to the total.
            level = max([*rates, total])
            for candidate in sorted({*rates, total}):
                if sum(min(r, candidate) for r in rates) >= total:
                    under = [r for r in rates if r < candidate]
                    level = (total - sum(under)) / (len(rates) - len(under))
                    break
            for i, rate in zip(there, rates, strict=True):
                work[i] += (hi - lo) * min(rate, level) / rate
    return work


@settings(max_examples=200)
@given(seeds)
def test_conservation(seed):
    lowered = random_lowered(seed, large=True)
    times = engine.run(lowered, check=False)
    done = times.end >= 0
    assert done.all()
    queue = np.searchsorted(lowered.first, np.arange(len(lowered)), side="right") * 8 + lowered.unit
    for q in set(queue.tolist()):
        mine = np.flatnonzero(queue == q)
        assert (times.start[mine[1:]] >= times.end[mine[:-1]]).all(), "a unit does one at a time"
    assert (times.start >= times.issued).all() and (times.end >= times.start).all()
    alone = times.start + lowered.init + lowered.data
    plain = (lowered.kind == Kind.NORMAL) & (lowered.bus < 0)
    assert (times.end[plain] == alone[plain]).all(), "no unit is slower or faster than its period"
    assert (times.end[lowered.bus >= 0] >= alone[lowered.bus >= 0]).all()
    for i in np.flatnonzero(lowered.kind == Kind.WAIT).tolist():
        needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]]
        there = max(int(times.start[i]), *(int(times.end[j]) + int(lowered.lag[i]) for j in needs))
        assert times.end[i] == there + lowered.init[i], "a wait ends when its set has, not before"
    for c in range(len(lowered.begin)):
        part = slice(lowered.first[c], lowered.first[c + 1])
        assert (np.diff(times.issued[part]) >= 0).all(), "the program queue keeps the order"
    for i, work in moved(lowered, times).items():
        assert abs(work - int(lowered.data[i])) <= 2 * len(lowered), (
            "the bytes of a transfer are moved"
        )


def test_too_fast_a_bus_is_noticed():
    """The check of moved bytes fails if a transfer ends early or late."""
    lowered = random_lowered(5, large=True, size=40)
    times = engine.run(lowered)
    i = int(np.flatnonzero(lowered.bus >= 0)[-1])
    for change in (-(10**10), 10**10):
        wrong = times.end.copy()
        wrong[i] += change
        work = moved(lowered, dataclasses.replace(times, end=wrong))
        assert abs(work[i] - int(lowered.data[i])) > 2 * len(lowered)


@given(
    st.lists(st.integers(1, 20).map(float), min_size=1, max_size=6),
    st.lists(st.integers(1, 60).map(float), min_size=1, max_size=4),
)
def test_shares(rates, totals):
    got = shares([Fraction(r) for r in rates], [Fraction(t) for t in totals])
    total = Fraction(totals[min(len(rates), len(totals)) - 1])
    assert sum(got) == min(total, sum(map(Fraction, rates))), "nothing is lost, nothing made"
    assert all(g <= r for g, r in zip(got, rates, strict=True))
    open_ = {g for g, r in zip(got, rates, strict=True) if g < r}
    assert len(open_) <= 1 and all(g <= max(open_, default=math.inf) for g in got)


def test_flags_match_in_order():
    kind = np.array([1, 2, 1, 1, 2, 2, 2, 0], np.int8)
    flag = np.array([0, 1, 0, 1, 0, 0, 0, -1], np.int64)
    need_first, need = compiling.compiled(matching_compiled.match)(kind, flag, 2)
    assert need.tolist() == [3, 0, 2, -1] and need_first.tolist() == [0, 0, 1, 1, 1, 2, 3, 4, 4]


def kernel(core):
    """Return a tensor in global memory and a buffer in UB."""
    x = core.program.tensor("x", (1024,), "fp16")
    u = core.allocate("UB", (1024,), "fp16")
    return x, u


def test_a_program_by_hand():
    """24 GB/s alone: 2048 bytes in 85.333… ns; launch 2050 ns, initialisation 40 ns each."""
    core = Program(load_chip("ascend310")).core()
    x, u = kernel(core)
    core.copy(u, x)
    core.set_flag(Unit.MTE2, Unit.V, 0)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    core.vrelu(u, u)
    core.set_flag(Unit.V, Unit.MTE3, 0)
    core.wait_flag(Unit.V, Unit.MTE3, 0)
    core.copy(x, u)
    lowered, streams = lower(core.program)
    times = engine.run(lowered, streams)
    move = Fraction(2048, 24) + 40
    relu = Fraction(8 * 256 * 100, 17406) + 40
    expected = [2050 + move, 2050 + move, 2050 + move, 2050 + move + relu]
    expected += [expected[-1], expected[-1], expected[-1] + move]
    assert [abs(t - w * 10**9) <= 2 for t, w in zip(times.end.tolist(), expected, strict=True)]
    assert times.total == times.end[-1] and (times.issued == 2050 * 10**9).all()


def test_scalar_work_holds_the_program_queue_up():
    core = Program(load_chip("ascend310")).core()
    x, u = kernel(core)
    core.scalar(680)  # a microsecond
    core.copy(u, x)
    times = engine.run(*lower(core.program))
    assert times.start[1] == times.issued[1] == 3050 * 10**9


def test_a_barrier_of_all_units_drains_them():
    core = Program(load_chip("ascend310")).core()
    x, u = kernel(core)
    core.copy(u, x)
    core.pipe_barrier()
    core.vrelu(u, u)
    times = engine.run(*lower(core.program))
    assert times.start[2] == times.end[1] == times.end[0]
    core.instructions[1], core.instructions[0] = core.instructions[:2]
    assert engine.run(*lower(core.program)).start[2] == 2050 * 10**9


def test_cores_wait_for_each_other_on_the_910b():
    program = Program(load_chip("ascend910b"))
    cube, *vectors = [program.core(0, "cube"), program.core(0, "vector"), program.core(1, "vector")]
    cube.scalar(1850)
    cube.cross_set(Unit.FIX, 3)
    for v in vectors:
        v.cross_wait(Unit.MTE2, 3)
        v.scalar(1)
        v.cross_set(Unit.MTE3, 4)
    cube.cross_wait(Unit.MTE2, 4)
    other = program.core(2, "vector")  # of another group
    other.cross_wait(Unit.MTE2, 3)
    lowered, streams = lower(program)
    times = engine.run(lowered, streams, check=False)
    launch = round(float(load_chip("ascend910b").launch_s) * 1e18)
    assert times.end[3] == times.end[1] + 10**12 == launch + 10**12 + 10**12
    assert times.end[2] == max(times.end[5], times.end[8]) + 10**12
    with pytest.raises(Deadlock, match=r"cross_wait\(register=3, mode=others\) .* never comes"):
        engine.run(lowered, streams)
    assert differences(lowered, block=0) == []


def test_a_cycle_of_waits_is_named():
    core = Program(load_chip("ascend310")).core()
    x, u = kernel(core)
    core.copy(u, x)
    ring = [Unit.MTE2, Unit.V, Unit.MTE3]
    for k in range(3):
        core.wait_flag(ring[k - 1], ring[k], 0)
        core.set_flag(ring[k], ring[(k + 1) % 3], 0)
    lowered, streams = lower(core.program)
    with pytest.raises(Deadlock) as error:
        engine.run(lowered, streams)
    text = str(error.value)
    assert "\n" not in text and text.startswith("deadlock: wait_flag(")
    for a, b in (("MTE3", "MTE2"), ("MTE2", "V"), ("V", "MTE3")):
        assert f"wait_flag({a}, {b}, 0) at {__file__}:" in text
    assert text.endswith("which waits for the first")
    times = engine.run(lowered, streams, check=False)
    assert times.end[0] > 0 and not times.complete
    numbers, closed = cycle(lowered, times.end, times.issued)
    assert closed and len(numbers) == 3


def test_a_wait_that_nothing_sets_is_named():
    core = Program(load_chip("ascend310")).core()
    core.wait_flag(Unit.V, Unit.MTE3, 5)
    core.pipe_barrier()
    with pytest.raises(Deadlock, match=r"wait_flag\(V, MTE3, 5\) .* a set_flag that never comes$"):
        engine.run(*lower(core.program))


def test_a_set_behind_a_blocked_program_queue_is_a_deadlock():
    """The barrier waits for the wait, and the set would be issued after the barrier."""
    core = Program(load_chip("ascend310")).core()
    core.wait_flag(Unit.V, Unit.MTE3, 5)
    core.pipe_barrier()
    core.set_flag(Unit.V, Unit.MTE3, 5)
    with pytest.raises(Deadlock) as error:
        engine.run(*lower(core.program))
    assert "pipe_barrier(ALL)" in str(error.value) and "wait_flag(V, MTE3, 5)" in str(error.value)
    assert str(error.value).endswith("which waits for the first")


@settings(max_examples=200)
@given(seeds)
def test_every_deadlock_has_a_reason(seed):
    lowered = random_lowered(seed, deadlock=True, lags=False)
    times = engine.run(lowered, check=False)
    if times.complete:
        return
    numbers, closed = cycle(lowered, times.end, times.issued)
    assert numbers and (times.end[numbers] < 0).all() and (times.issued[numbers] >= 0).all()
    assert closed, "every flag is set somewhere, so there must be a cycle"


def test_wrong_settings_are_refused():
    lowered = random_lowered(0)
    with pytest.raises(ValueError, match="block_bytes must be an integer, 0 or more, not -1"):
        engine.run(lowered, block_bytes=-1)
    with pytest.raises(ValueError, match=r"times must stay below 4\.6 s"):
        engine.run(dataclasses.replace(lowered, init=lowered.init + 10**18))


def test_an_empty_program():
    lowered, streams = lower(Program(load_chip("ascend310")))
    assert len(lowered) == 0 and engine.run(lowered, streams).total == 0
    assert run_reference(lowered) == ([], [], [])


@pytest.mark.parametrize("small", [0, 10**9])
def test_a_set_of_the_scalar_unit_wakes_who_waits_for_it(small, monkeypatch):
    """V waits before S reaches its set, which is delayed by a transfer on a bus."""
    monkeypatch.setattr(compiling, "SMALL", small)
    program = Program(load_chip("ascend310"))
    x = program.tensor("x", (1024,), "fp16")
    core = program.core()
    u = core.allocate("UB", (1024,), "fp16")
    core.wait_flag(Unit.S, Unit.V, 0)
    core.vrelu(u, u)
    core.copy(u, x)
    core.set_flag(Unit.MTE2, Unit.S, 0)
    core.wait_flag(Unit.MTE2, Unit.S, 0)
    core.set_flag(Unit.S, Unit.V, 0)  # last: no later instruction that is issued wakes V
    lowered, streams = lower(program)
    assert engine.run(lowered, streams).complete and not differences(lowered, block=0)
