"""The compiled loops of the checks: vector clocks, and the sweep over memory that compares them.

They are compiled for large programs only, see ``timing.compiling``. Numba's cache notices changes
of this file alone, so the loops must not depend on other modules.
"""

import numpy as np

__all__ = ["clocks", "sweep"]

#: Queues of a core, and kinds of instructions, as in ``sim.davinci.isa.instruction``.
QUEUES = 8
_WAIT, _BARRIER_ALL = 2, 4


def clocks(first, unit, kind, need_first, need, across):
    """Return the happens-before order of the instructions as vector clocks.

    Parameters
    ----------
    first, unit, kind, need_first, need : ndarray
        As in ``Lowered``.
    across : bool
        If True, cores wait for each other, and a clock covers the queues of all cores. If False, it
        covers the 8 queues of the instruction's own core.

    Returns
    -------
    clock : (n, queues) ndarray of int32
        clock[i, q] is the number of instructions of queue q that always have ended when i ends, i
        included.
    place : (n,) ndarray of int32
        The position of each instruction in its queue, from 1.
    order : (m,) ndarray of int64
        All instructions that can end, each after those that happen before it.
    """
    n, cores = len(unit), len(first) - 1
    on = unit.astype(np.int64)  # not compiled, eight bits would not do for the number of a queue
    width = QUEUES * cores if across else QUEUES
    clock = np.zeros((n, width), np.int32)
    place = np.zeros(n, np.int32)
    order = np.empty(n, np.int64)
    made = 0
    done = np.zeros(n, np.bool_)
    # Each queue as a linked list in program order, and the last instruction on S before each one.
    following = np.full(n, -1, np.int64)
    handed = np.full(n, -1, np.int64)
    head = np.full(cores * QUEUES, -1, np.int64)
    last = np.full(cores * QUEUES, -1, np.int64)
    count = np.zeros(cores * QUEUES, np.int64)
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            q = c * QUEUES + on[i]
            handed[i] = last[c * QUEUES]
            if last[q] < 0:
                head[q] = i
            else:
                following[last[q]] = i
            last[q] = i
            count[q] += 1
            place[i] = count[q]
    previous = np.full(cores * QUEUES, -1, np.int64)
    barrier = first[:-1].copy()  # all instructions before this one are known to be done
    # Advance every queue as far as possible until none moves; what is left is a deadlock.
    moved = True
    while moved:
        moved = False
        for q in range(cores * QUEUES):
            c = q // QUEUES
            base = q - q % QUEUES if across else 0
            while head[q] >= 0:
                i = head[q]
                if handed[i] >= 0 and not done[handed[i]]:
                    break
                ready = True
                if kind[i] == _WAIT:
                    for k in range(need_first[i], need_first[i + 1]):
                        if need[k] < 0 or not done[need[k]]:
                            ready = False
                elif kind[i] == _BARRIER_ALL:
                    while barrier[c] < i and done[barrier[c]]:
                        barrier[c] += 1
                    ready = barrier[c] == i
                if not ready:
                    break
                # The clock is the maximum over all direct predecessors.
                if previous[q] >= 0:
                    clock[i] = clock[previous[q]]
                if handed[i] >= 0:
                    clock[i] = np.maximum(clock[i], clock[handed[i]])
                if kind[i] == _WAIT:
                    for k in range(need_first[i], need_first[i + 1]):
                        clock[i] = np.maximum(clock[i], clock[need[k]])
                elif kind[i] == _BARRIER_ALL:
                    for u in range(1, QUEUES):
                        p = previous[c * QUEUES + u]
                        if p >= 0:
                            clock[i] = np.maximum(clock[i], clock[p])
                clock[i, base + on[i]] = place[i]
                previous[q] = i
                done[i] = True
                order[made] = i
                made += 1
                head[q] = following[i]
                moved = True
    return clock, place, order[:made]


def sweep(
    number,
    span,
    write,
    range_first,
    low,
    high,
    ready,
    slot,
    begin,
    end,
    queue,
    column,
    clock,
    place,
    across,
    limit,
):
    """Compare each access to a memory with the latest accesses of every queue to the same bytes.

    The latest access of a queue is enough: if it happens before the present one, so do all earlier
    accesses of that queue.

    Parameters
    ----------
    number : (a,) ndarray of int64
        The instruction of each access, in the order that ``clocks`` returns.
    span : (a,) ndarray of int64
        The index of the span that each access touches.
    write : (a,) ndarray of bool
        True for a write, False for a read.
    range_first, low, high : ndarray of int64
        Span s covers the segments low[k] … high[k] − 1 for range_first[s] ≤ k < range_first[s + 1].
    ready : (segments,) ndarray of bool
        True for segments that are initialised at the start. The function updates the array in
        place to the state at the end.
    slot : (segments,) ndarray of int64
        Numbers of the segments that are ever written, −1 for the others.
    begin, end : int
        Only the slots begin … end − 1 are checked; segments without a slot are checked together
        with slot 0.
    queue : (n,) ndarray of int64
        The queue of each instruction: core times 8 plus unit.
    column : (queues,) ndarray of int64
        Numbers, from 0, of the queues that touch this memory.
    clock, place, across : ndarray, ndarray, bool
        As in ``clocks``.
    limit : int
        The largest number of findings of each kind.

    Returns
    -------
    races : (r, 3) ndarray of int64
        The later and the earlier access (indices into ``number``), and the segment.
    unknown : (u, 3) ndarray of int64
        An access that reads uninitialised bytes, the segment, and 1 if all bytes that it reads are
        uninitialised, else 0.
    """
    wide = column.max() + 1
    latest = np.full(
        (max(end - begin, 1), wide, 2), -1, np.int64
    )  # [..., 0] reads, [..., 1] writes
    races = np.empty((limit, 3), np.int64)
    unknown = np.empty((limit, 3), np.int64)
    found = missing = 0
    for a in range(len(number)):
        i = number[a]
        own = queue[i]
        before = -1
        lacking = -1
        known_some = 0
        for k in range(range_first[span[a]], range_first[span[a] + 1]):
            for g in range(low[k], high[k]):
                s = slot[g]
                if s < 0:
                    if ready[g]:
                        known_some = 1
                    elif begin == 0 and lacking < 0:
                        lacking = g
                    continue
                if s < begin or s >= end:
                    continue
                s -= begin
                for c in range(wide):
                    # A write conflicts with reads and writes, a read with writes only.
                    for kind in range(0 if write[a] else 1, 2):
                        b = latest[s, c, kind]
                        if b < 0 or b == before or found == limit:
                            continue
                        j = number[b]
                        if j == i:
                            continue
                        if across:
                            known = clock[i, queue[j]]
                        elif queue[j] // QUEUES == own // QUEUES:
                            known = clock[i, queue[j] % QUEUES]
                        else:
                            known = 0
                        if known < place[j]:
                            races[found, 0], races[found, 1], races[found, 2] = a, b, g
                            found += 1
                            before = b
                if write[a]:
                    ready[g] = True
                elif ready[g]:
                    known_some = 1
                elif lacking < 0:
                    lacking = g
                latest[s, column[own], 1 if write[a] else 0] = a
        if lacking >= 0 and missing < limit:
            unknown[missing, 0], unknown[missing, 1] = a, lacking
            unknown[missing, 2] = 1 - known_some
            missing += 1
    return races[:found], unknown[:missing]
