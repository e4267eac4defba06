"""The busy times of a unit's instructions add up to the time in which any of them runs."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.davinci_programs import random_lowered
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.busy import busy_times
from vitruvian.sim.davinci.timing import engine


def test_instructions_in_a_row_are_busy_for_their_own_time():
    for seed in range(20):
        lowered = random_lowered(seed)
        times = engine.run(lowered)
        work = lowered.kind == Kind.NORMAL
        assert (busy_times(lowered, times) == np.where(work, times.end - times.start, 0)).all()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=9))
def test_overlapping_instructions_share_no_instant(parts):
    parts = sorted(parts)
    lowered = random_lowered(0)
    count = len(parts)
    one = {"unit": np.full(count, Unit.V, np.int8), "kind": np.zeros(count, np.int8)}
    lowered = replace(lowered, first=np.array([0, count]), **one)
    begin = np.array([b for b, _ in parts])
    times = engine.Times(begin, begin + np.array([n for _, n in parts]), begin)
    covered = {t for b, n in parts for t in range(b, b + n)}
    assert busy_times(lowered, times).sum() == len(covered)
