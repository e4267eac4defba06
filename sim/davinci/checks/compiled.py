"""Compiled parts of the checks: vector clocks, and the sweep over memory that compares them.

Compiled for large programs, see `compiling`. Numba's cache looks at this file alone.
"""

import numpy as np

__all__ = ["clocks", "sweep"]

#: Queues of a core, and kinds of instructions, as in `sim.davinci.isa.instruction`.
QUEUES = 8
_WAIT, _BARRIER_ALL = 2, 4


def clocks(first, unit, kind, need_first, need, across):
    """What is sure to have ended before each instruction begins, whatever the times.

    Parameters
    ----------
    first, unit, kind, need_first, need : as in `Lowered`
    across : bool
        Whether cores wait for each other; else each core has clocks of its own alone.

    Returns
    -------
    clock : (n, queues) ndarray of int32
        clock[i, q]: as many instructions of queue q have ended before i ends, i included.
    place : (n,) ndarray of int32
        Which of its queue's instructions i is, from 1.
    order : (m,) ndarray of int64
        All instructions that can end, each after those that end before it.
    """
    n, cores = len(unit), len(first) - 1
    on = unit.astype(np.int64)  # not compiled, eight bits would not do for the number of a queue
    width = QUEUES * cores if across else QUEUES
    clock = np.zeros((n, width), np.int32)
    place = np.zeros(n, np.int32)
    order = np.empty(n, np.int64)
    made = 0
    done = np.zeros(n, np.bool_)
    # Each queue as a linked list in program order, and the last on S before each instruction.
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
    barrier = first[:-1].copy()  # all before it are known to be done
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
    """Compare each access to a memory with the latest ones of every queue at the same bytes.

    Parameters
    ----------
    number : (a,) ndarray of int64
        Instruction of each access, in an order of `clocks`.
    span : (a,) ndarray of int64
        Which of the different spans it touches.
    write : (a,) ndarray of bool
    range_first, low, high : ndarray of int64
        Span s is the segments low[k] … high[k] − 1 for range_first[s] ≤ k < range_first[s + 1].
    ready : (segments,) ndarray of bool
        Initialised from the start; changed to what is at the end.
    slot : (segments,) ndarray of int64
        Numbers of those that are ever written, −1 of the others.
    begin, end : int
        Only slots begin … end − 1 are looked at; those without a slot together with slot 0.
    queue : (n,) ndarray of int64
        Core times 8 plus unit of each instruction.
    column : (queues,) ndarray of int64
        Numbers, from 0, of the queues that touch this memory.
    clock, place, across : as of `clocks`
    limit : int
        Of findings of each kind.

    Returns
    -------
    races : (r, 3) ndarray of int64
        Later and earlier access (indices into ``number``), segment.
    unknown : (u, 3) ndarray of int64
        Access that reads what nothing has written, segment, 1 if all that it reads is such.
    """
    wide = column.max() + 1
    latest = np.full((max(end - begin, 1), wide, 2), -1, np.int64)  # of reads and of writes
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
