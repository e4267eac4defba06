"""The busy times of a unit's instructions add up to the time in which any of them runs."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.davinci_programs import random_lowered
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.busy import busy_times
from vitruvian.sim.davinci.timing import engine

LOWERED = random_lowered(0)


def run_of(parts, units, kinds):
    """Return the arrays of instructions on one core, all at 0 but these, and their times."""
    count = len(parts)
    values = {f.name: getattr(LOWERED, f.name) for f in fields(LOWERED)}
    cut = {
        name: np.zeros_like(value[:count])
        for name, value in values.items()
        if isinstance(value, np.ndarray) and len(value) == len(LOWERED)
    }
    cut |= {"first": np.array([0, count]), "unit": np.array(units, np.int8)}
    lowered = replace(LOWERED, **cut | {"kind": np.array(kinds, np.int8)})
    begin = np.array([b for b, _ in parts])
    end = begin + np.array([n for _, n in parts])
    return lowered, engine.Times(begin, end, begin, end)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=9))
@example([(0, 5), (5, 3), (9, 1)])
@example([(0, 9), (2, 3), (4, 7)])
def test_overlapping_instructions_share_no_instant(parts):
    parts = sorted(parts)
    lowered, times = run_of(parts, [Unit.V] * len(parts), [Kind.NORMAL] * len(parts))
    covered = {t for b, n in parts for t in range(b, b + n)}
    added = busy_times(lowered, times)
    assert added.sum() == len(covered) and added[0] == parts[0][1]
    if all(b + n <= c for (b, n), (c, _) in pairwise(parts)):
        assert added.tolist() == [n for _, n in parts]


def test_units_and_waits_are_apart():
    parts = [(0, 9), (2, 9), (3, 4), (12, 2)]
    units, kinds = [Unit.V, Unit.M, Unit.V, Unit.V], [Kind.NORMAL] * 4
    assert busy_times(*run_of(parts, units, kinds)).tolist() == [9, 9, 0, 2]
    kinds[0] = Kind.WAIT
    assert busy_times(*run_of(parts, units, kinds)).tolist() == [0, 9, 4, 2]
    lowered, times = run_of(parts, units, [Kind.NORMAL] * 4)
    times.end[2:] = -1  # never ran
    assert busy_times(lowered, times).tolist() == [9, 9, 0, 0]
