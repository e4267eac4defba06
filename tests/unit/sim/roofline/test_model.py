"""Equations 1 to 9, the classes, and the thresholds that the published verdicts allow."""

import re
from dataclasses import replace

import pytest

from vitruvian.sim.papers.zhou25.published import PUBLISHED
from vitruvian.sim.roofline import (
    Bound,
    Count,
    CounterError,
    Counters,
    Thresholds,
    analyse,
)
from vitruvian.sim.roofline.components import Component, ComponentKind
from vitruvian.sim.roofline.strategies import STRATEGIES, advice

NAN = float("nan")

COMPUTE, TRANSFER, BUS = ComponentKind.COMPUTE, ComponentKind.TRANSFER, ComponentKind.BUS

CUBE = Component("M", COMPUTE, {"fp16": 100.0, "int8": 200.0})
VECTOR = Component("V", COMPUTE, {"fp16": 10.0, "L0C->UB": 20.0})
LOAD = Component("MTE2", TRANSFER, {"GM->L0A": 4.0, "GM->UB": 2.0})
STORE = Component("MTE3", TRANSFER, {"UB->GM": 2.0})


def counters(total, *counts):
    return Counters("op", "chip", "one core", total, [Count(*c) for c in counts])


def test_equations_one_to_seven_by_hand():
    """300 FP16 and 200 INT8 operations need 3 s and 1 s; the Cube works for 5 s of 8 s."""
    (row,) = analyse(counters(8.0, (CUBE, {"fp16": 300.0, "int8": 200.0}, 5.0))).rows
    assert row.actual == 500 / 8  # eq. 1
    assert row.ideal_s == 4.0  # eq. 3
    assert row.ideal == 125.0  # eq. 2 and 4
    assert row.utilisation == 0.5 == row.actual / row.ideal  # eq. 5
    assert row.efficiency == 0.8 and row.time_ratio == 0.625  # eq. 6 and 7


def test_equations_eight_and_nine():
    """The efficiency is the mean of those of the precisions, weighted by their times."""
    work, times = {"fp16": 300.0, "int8": 200.0}, {"fp16": 3.5, "int8": 1.5}
    each = {p: work[p] / (times[p] * CUBE.ceilings[p]) for p in work}
    mean = sum(each[p] * times[p] for p in work) / sum(times.values())
    (row,) = analyse(counters(8.0, (CUBE, work, 5.0))).rows
    assert row.efficiency == pytest.approx(mean, rel=1e-12)


def test_the_ideal_is_neither_the_largest_nor_the_mean_of_the_peaks():
    """§4.2 on Fig. 3b: 2/3 of the INT8 peak, where the largest is 1 and the mean 3/4."""
    (row,) = analyse(counters(1.5, (CUBE, {"fp16": 100.0, "int8": 100.0}, 1.5))).rows
    assert row.ideal / 200 == pytest.approx(2 / 3) and row.actual / 200 == pytest.approx(2 / 3)
    assert row.utilisation == 1.0
    # Against the other two candidates of §4.1, a unit that is always busy seems idle.
    assert row.actual / 200 < 1 and row.actual / 150 < 1
    # With INT8 alone it would even exceed the mean.
    (fast,) = analyse(counters(1.0, (CUBE, {"int8": 200.0}, 1.0))).rows
    assert fast.actual / 150 > 1 and fast.utilisation == 1.0


def test_transfers_of_one_engine_have_their_own_bandwidths():
    (row,) = analyse(counters(10.0, (LOAD, {"GM->L0A": 8.0, "GM->UB": 8.0}, 6.0))).rows
    assert row.ideal_s == 6.0 and row.efficiency == 1.0 and row.ideal == 16 / 6
    assert row.largest_item == "GM->UB"


def test_moves_of_a_vector_unit_count_as_lanes():
    (row,) = analyse(counters(4.0, (VECTOR, {"fp16": 10.0, "L0C->UB": 20.0}, 2.0))).rows
    assert row.total == 20.0 and row.ideal_s == 2.0 and row.efficiency == 1.0


@pytest.mark.parametrize(
    ("compute", "load", "bound", "cause"),
    [
        ((CUBE, {"fp16": 85.0}, 0.9), ("GM->L0A", 3.0, 0.9), Bound.COMPUTE, "M"),
        ((CUBE, {"fp16": 50.0}, 0.9), ("GM->L0A", 3.6, 0.95), Bound.MTE, "MTE2"),
        ((VECTOR, {"fp16": 3.0}, 0.4), ("GM->UB", 0.8, 0.6), Bound.PARALLELISM, "MTE2"),
        ((VECTOR, {"fp16": 1.0}, 0.9), ("GM->UB", 0.8, 0.6), Bound.INEFFICIENT_COMPUTE, "V"),
        ((VECTOR, {"fp16": 1.0}, 0.5), ("GM->UB", 0.8, 0.9), Bound.INEFFICIENT_MTE, "MTE2"),
    ],
)
def test_classes(compute, load, bound, cause):
    path, nbytes, active = load
    found = analyse(counters(1.0, compute, (LOAD, {path: nbytes}, active)))
    assert (found.bound, found.cause.component.name) == (bound, cause)
    assert found.bound.value in found.verdict() and found.verdict().endswith(".")
    assert all(bound in s.bounds for s in advice(found)) and advice(found)


def test_a_bus_may_bound_but_its_time_ratio_does_not_count():
    bus = Component("bus b", BUS, {"GM->UB": 3.0, "UB->GM": 3.0})
    turns = [(LOAD, {"GM->UB": 0.5}, 0.5), (STORE, {"UB->GM": 0.5}, 0.5)]
    both = {"GM->UB": 0.5, "UB->GM": 0.5}
    # The engines take turns, so the bus is always active, but parallelism is what lacks.
    found = analyse(counters(1.0, *turns, (bus, both, 1.0)))
    assert found.bound == Bound.PARALLELISM and found.cause.component.name != "bus b"
    full = {"GM->UB": 1.2, "UB->GM": 1.2}
    found = analyse(counters(1.0, *turns, (bus, full, 1.0)))
    assert found.bound == Bound.MTE and found.cause.component.name == "bus b"
    assert not any(p.transfer.component.name == "bus b" for p in found.points)


def test_a_component_may_have_a_time_but_no_work():
    """Profilers have no counter for scalar operations."""
    scalar = Component("S", COMPUTE, {"scalar": 1.0})
    found = analyse(counters(1.0, (scalar, {}, 0.9), (LOAD, {"GM->UB": 0.1}, 0.1)))
    assert found.bound == Bound.INEFFICIENT_COMPUTE and found.cause.component is scalar
    assert found.verdict().endswith(
        "the counters have no work of it, so that it may be the bound instead."
    )
    assert found.cause.largest_item == ""


def test_thresholds_are_inclusive_and_depend_on_the_cube():
    vector = counters(1.0, (STORE, {"UB->GM": 1.3}, 0.7))  # utilisation 0.65
    assert analyse(vector).bound == Bound.MTE
    cube = replace(vector, counts=[*vector.counts, Count(CUBE, {"fp16": 1.0}, 0.1)])
    assert analyse(cube).bound == Bound.PARALLELISM
    assert analyse(cube, Thresholds(cube_utilisation=0.65)).bound == Bound.MTE
    ratio = counters(1.0, (STORE, {"UB->GM": 0.2}, 0.8))
    assert analyse(ratio).bound == Bound.INEFFICIENT_MTE
    assert analyse(ratio, Thresholds(time_ratio=0.81)).bound == Bound.PARALLELISM
    with pytest.raises(ValueError, match="time_ratio must be more than 0 and at most 1"):
        Thresholds(time_ratio=1.5)


def published(step):
    """Return counters with the highest utilisation and time ratio of a published step."""
    used, ratio = step.utilisation, step.time_ratio or step.utilisation
    counts = [(STORE, {"UB->GM": 2.0 * used}, max(used, min(ratio, used + 0.01)))]
    counts += [(LOAD, {"GM->UB": 2.0 * used / 2}, max(ratio, used / 2))]
    if step.cube:
        counts.append((CUBE, {"fp16": 1.0}, 0.1))
    return counters(1.0, *counts)


STEPS = [
    (f"{case} {name}", step)
    for case, steps in PUBLISHED.items()
    for name, step in steps.items()
    if step.bound is not None
]


def expected(step):
    """Return the published class, of a transfer engine: ``published`` has no vector unit."""
    inefficient = step.bound == Bound.INEFFICIENT_COMPUTE
    return Bound.INEFFICIENT_MTE if inefficient else step.bound


def contradicted(thresholds=None):
    """Return the published steps whose class is another one under some thresholds."""
    return [
        name for name, step in STEPS if analyse(published(step), thresholds).bound != expected(step)
    ]


def test_the_defaults_give_the_published_classes():
    assert len(STEPS) == 9 and not contradicted()


@pytest.mark.parametrize(
    "changed",
    [
        Thresholds(time_ratio=0.7768),
        Thresholds(time_ratio=0.8399),
        Thresholds(vector_utilisation=0.6625),
        Thresholds(cube_utilisation=0.7155),
        Thresholds(cube_utilisation=0.9355),
    ],
)
def test_thresholds_outside_their_intervals_contradict_a_published_class(changed):
    assert contradicted(changed)


@pytest.mark.parametrize(
    ("total", "item", "work", "active", "message"),
    [
        (0.0, "GM->UB", 1.0, 1.0, "total time of op must be more than 0 s, not 0.0"),
        (NAN, "GM->UB", 1.0, 1.0, "total time of op must be more than 0 s, not nan"),
        (
            1e-6,
            "GM->UB",
            1.0,
            2e-6,
            "MTE2: active time must be at most the total of 1 µs, not 2 µs",
        ),
        (1.0, "GM->UB", 2.1, 1.0, "MTE2: work must be within the ceilings, which need 1.05e+06 µs"),
        (1.0, "GM->L1", 1.0, 1.0, "MTE2: work must be in one of GM->L0A, GM->UB, not 'GM->L1'"),
        (1.0, "GM->UB", -1.0, 1.0, "MTE2: work of GM->UB must be 0 or more, not -1.0"),
        (1.0, "GM->UB", 1.0, 0.0, "MTE2: work must be within the ceilings"),
        (1.0, "GM->UB", 0.0, NAN, "MTE2: active time must be 0 s or more, not nan"),
        (1.0, "GM->UB", 0.0, 1.0, "counters of op must have a component with work"),
    ],
)
def test_counters_that_cannot_be_are_refused_in_one_line(total, item, work, active, message):
    with pytest.raises(CounterError, match=re.escape(message)) as error:
        analyse(counters(total, (LOAD, {item: work}, active)))
    assert "\n" not in str(error.value)


def test_a_counter_may_be_rounded_but_not_more():
    assert analyse(counters(1.0, (LOAD, {"GM->UB": 2.0 * (1 + 5e-7)}, 1.0))).rows[0].efficiency == 1
    with pytest.raises(CounterError):
        analyse(counters(1.0, (LOAD, {"GM->UB": 2.0 * (1 + 2e-6)}, 1.0)))


def test_every_strategy_of_the_paper_is_there():
    assert list(STRATEGIES) == "RSD MRT AIS RUS PP ITG AIP OP TT EA LC CT".split()
    for bound in Bound:
        assert any(bound in s.bounds for s in STRATEGIES.values())
    for s in STRATEGIES.values():
        assert s.symptom.endswith(".") and s.action.endswith(".") and s.section.startswith("5.")


def test_work_of_the_cube_cannot_move_to_a_faster_unit():
    found = analyse(counters(1.0, (CUBE, {"fp16": 95.0}, 1.0)))
    assert [s.key for s in advice(found)] == ["EA", "LC"]
    found = analyse(counters(1.0, (VECTOR, {"fp16": 9.5}, 1.0)))
    assert [s.key for s in advice(found)] == ["EA", "LC", "CT"]


def test_points_pair_compute_units_with_engines():
    """An engine that feeds L0A and L0B alone has a point against the Cube only (§4.3)."""
    feed = Component("MTE1", TRANSFER, {"L1->L0A": 4.0, "L1->L0B": 4.0})
    counts = [(CUBE, {"fp16": 50.0}, 0.9), (VECTOR, {"fp16": 5.0}, 0.9)]
    counts += [(feed, {"L1->L0A": 2.0, "L1->L0B": 1.0}, 0.9), (STORE, {"UB->GM": 1.0}, 0.9)]
    found = analyse(counters(1.0, *counts))
    pairs = [(p.compute.component.name, p.transfer.component.name) for p in found.points]
    assert pairs == [("M", "MTE1"), ("M", "MTE3"), ("V", "MTE3")]
    point = found.points[0]
    assert point.intensity == 50 / 3 and point.performance == 50.0
    assert point.utilisation == pytest.approx(max(0.5, 0.75))
