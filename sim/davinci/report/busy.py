"""The part of a unit's busy time that each instruction adds."""

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.davinci.timing.engine import Times
from vitruvian.sim.davinci.timing.lowering import Lowered

__all__ = ["busy_times"]


def busy_times(lowered: Lowered, times: Times) -> np.ndarray:
    """Return the time by which each instruction makes its unit's busy time longer.

    The instructions of a unit start in order. An instruction that overlaps an earlier one adds only
    the time after that one's end, so that the times of a unit's instructions add up to the time
    during which any of them runs. Flags, barriers and what never ran add nothing.

    Parameters
    ----------
    lowered : Lowered
    times : Times

    Returns
    -------
    (n,) ndarray of int64
        Attoseconds.
    """
    complete = times.end + lowered.drain
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
