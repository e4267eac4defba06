"""The instructions that directly precede each instruction in program order."""

from itertools import pairwise

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.timing.lowering import Lowered


def predecessors(lowered: Lowered) -> tuple[np.ndarray, np.ndarray]:
    """Return each instruction's predecessors in program order.

    Returns
    -------
    before, handed : (n,) ndarray of int64
        The previous instruction on the same unit that the instruction waits for, and the previous
        one on unit S (which issues the instructions); −1 for none.
    """
    before, handed = np.full((2, len(lowered)), -1, np.int64)
    units = lowered.unit.tolist()
    posted = lowered.posted.tolist() or [False] * len(units)
    for first, last in pairwise(lowered.first.tolist()):
        latest = dict.fromkeys(range(8), -1)
        for i in range(first, last):
            before[i], handed[i] = latest[units[i]], latest[int(Unit.S)]
            if not posted[i]:
                latest[units[i]] = i
    return before, handed
