"""The busy time of a unit, and the part of it that each instruction adds.

A unit is busy from the start of an instruction until the results are there, which includes the
drain of its pipeline. Reports, files of counters and the roofline all use this definition.
"""

from collections.abc import Iterable

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.timing.engine import EngineTimes
from vitruvian.sim.davinci.timing.lowering import Lowered


def union_time(begin: np.ndarray, end: np.ndarray) -> int:
    """Return the length of the union of some intervals.

    Parameters
    ----------
    begin, end : (n,) ndarray of int64
        Attoseconds; no interval ends before it begins.
    """
    if not len(begin):
        return 0
    # With the intervals ordered by their begin, a gap is where one begins after all earlier ends.
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    gaps = np.maximum(begin[1:] - end[:-1], 0).sum()
    return int(end[-1] - begin[0] - gaps)


def active_time(
    lowered: Lowered, times: EngineTimes, unit: Unit, cores: Iterable[int], *, queue: bool = False
) -> int:
    """Return the attoseconds during which the unit of at least one core is active.

    Parameters
    ----------
    cores : iterable of int
        Indices of the cores.
    queue : bool
        If False, the unit is active while it executes an instruction, waits and barriers left out:
        its busy time. If True, it is active while its queue holds any, which includes these.
    """
    begin, end = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for core in cores:
        part = slice(int(lowered.first[core]), int(lowered.first[core + 1]))
        mine = (lowered.unit[part] == unit) & (times.end[part] >= 0)
        if not queue:
            mine &= lowered.kind[part] == Kind.NORMAL
        begin.append((times.issued if queue else times.start)[part][mine])
        end.append(times.drained[part][mine])
    return union_time(np.concatenate(begin), np.concatenate(end))


def busy_times(lowered: Lowered, times: EngineTimes) -> np.ndarray:
    """Return the time by which each instruction makes its unit's busy time longer.

    The instructions of a unit start in order. An instruction that overlaps an earlier one adds only
    the time after that one's end, so that the times of a unit's instructions add up to the time
    during which any of them runs. Flags, barriers and what never ran add nothing.

    Returns
    -------
    (n,) ndarray of int64
        Attoseconds.
    """
    complete = times.drained
    added = np.zeros(len(lowered), np.int64)
    for first, last in zip(lowered.first[:-1].tolist(), lowered.first[1:].tolist(), strict=True):
        part = np.arange(first, last)
        runs = part[(lowered.kind[part] == Kind.NORMAL) & (times.end[part] >= 0)]
        for unit in np.unique(lowered.unit[runs]):
            mine = runs[lowered.unit[runs] == unit]
            latest = np.maximum.accumulate(complete[mine])
            # Before an instruction, the unit has been busy up to the latest end so far.
            covered = np.concatenate([[np.iinfo(np.int64).min], latest[:-1]])
            begin = np.maximum(times.start[mine], covered)
            added[mine] = np.maximum(complete[mine] - begin, 0)
    return added
