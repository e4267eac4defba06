"""The pairing of waits with sets, compiled for programs that are given as indices.

Numba's cache notices changes of this file alone, so the loops must not depend on other modules.
"""

import numpy as np

# Kinds of instructions, as in ``sim.davinci.isa.instruction``.
_SET, _WAIT = 1, 2


def match(kind, flag, flags):
    """Match the n-th wait for each flag with its n-th set (Tang 2024, eq. 2.3).

    Parameters
    ----------
    kind : (n,) ndarray of int8
        Values of ``Kind``.
    flag : (n,) ndarray of int64
        The number of the flag that an instruction sets or waits for; ignored for other
        instructions.
    flags : int
        The number of flags.

    Returns
    -------
    need_first, need : ndarray of int64
        As in ``Lowered``.
    """
    n = len(kind)
    count = np.zeros(flags + 1, np.int64)
    waits = 0
    for i in range(n):
        if kind[i] == _SET:
            count[flag[i] + 1] += 1
        elif kind[i] == _WAIT:
            waits += 1
    first = np.cumsum(count)
    sets = np.empty(first[flags], np.int64)
    filled = first[:-1].copy()
    for i in range(n):
        if kind[i] == _SET:
            sets[filled[flag[i]]] = i
            filled[flag[i]] += 1
    taken = first[:-1].copy()
    need_first = np.empty(n + 1, np.int64)
    need = np.empty(waits, np.int64)
    at = 0
    for i in range(n):
        need_first[i] = at
        if kind[i] == _WAIT:
            f = flag[i]
            need[at] = sets[taken[f]] if taken[f] < first[f + 1] else -1
            taken[f] += 1
            at += 1
    need_first[n] = at
    return need_first, need
