"""The compiled loops of the checks: vector clocks, and the sweep over memory that compares them.

They are compiled for large programs only, see ``vitruvian.common.compiling``. Numba's cache notices
changes of this file alone, so the loops must not depend on other modules.
"""

from typing import NamedTuple

import numpy as np

#: Queues of a core, and kinds of instructions, as in ``sim.davinci.isa.instruction``.
QUEUES = 8
_WAIT, _BARRIER, _BARRIER_ALL = 2, 3, 4

#: Kinds of accesses. From ``ATOMIC`` on, each dtype and operation of atomic accesses has a number.
READ, WRITE, ATOMIC = 0, 1, 2

#: Kinds of conflicts that ``sweep`` finds.
RACE, HAZARD, NONDETERMINISTIC = 0, 1, 2


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
    settled : (n,) ndarray of int32
        The number of instructions of i's own queue that always have ended when i starts, although
        the queue may start an instruction before the previous one has ended. After a wait or
        barrier, the number also counts what it waited for.
    """
    n, cores = len(unit), len(first) - 1
    on = unit.astype(np.int64)  # not compiled, eight bits would not do for the number of a queue
    clock = np.zeros((n, QUEUES * cores if across else QUEUES), np.int32)
    place, head, following, handed = _queues(first, on)
    settled = np.zeros(n, np.int32)
    order = np.empty(n, np.int64)
    made = 0
    done = np.zeros(n, np.bool_)
    previous = np.full(cores * QUEUES, -1, np.int64)  # the last instruction done of each queue
    barrier = first[:-1].copy()  # all instructions of a core before this one are done
    # Advance every queue as far as possible until none moves; what is left is a deadlock.
    moved = True
    while moved:
        moved = False
        for q in range(cores * QUEUES):
            c = q // QUEUES
            base = q - q % QUEUES if across else 0
            while head[q] >= 0:
                i = head[q]
                # An instruction is issued after the last one that the program queue executed
                # itself.
                if handed[i] >= 0 and not done[handed[i]]:
                    break
                if kind[i] == _WAIT:
                    if not _all_set(need_first, need, done, i):
                        break
                elif kind[i] == _BARRIER_ALL:
                    while barrier[c] < i and done[barrier[c]]:
                        barrier[c] += 1
                    if barrier[c] < i:
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
                # The instruction itself, and with it all before it in its queue.
                clock[i, base + on[i]] = place[i]
                settled[i] = _settled(
                    (need_first, need),
                    (clock, settled, place),
                    kind[i],
                    i,
                    previous[q],
                    handed[i],
                    base + on[i],
                )
                previous[q] = i
                done[i] = True
                order[made] = i
                made += 1
                head[q] = following[i]
                moved = True
    return clock, place, order[:made], settled


def _settled(needs, known, kind, i, previous, handed, own):
    """Return how many instructions of its own queue always have ended when i starts.

    A flag is set when all earlier instructions of its queue have ended, so an order through another
    queue proves the end of all of them. Only the order within the queue itself proves nothing.

    Parameters
    ----------
    needs : (ndarray, ndarray)
        ``need_first`` and ``need`` of ``Lowered``.
    known : (ndarray, ndarray, ndarray)
        ``clock``, ``settled`` and ``place`` as far as they are known.
    kind, i : int
        The instruction.
    previous, handed : int
        The previous instruction of the queue, and the last one on S before i; −1 for none.
    own : int
        The column of i's queue in ``clock``.
    """
    need_first, need = needs
    clock, settled, place = known
    # A barrier waits for all earlier instructions of its queue, and counts itself.
    if kind >= _BARRIER:
        return place[i]
    # A zero of the type of ``place``, which Numba needs.
    ended = settled[previous] if previous >= 0 else place[i] - place[i]
    if handed >= 0:
        ended = max(ended, clock[handed, own])
    if kind == _WAIT:
        for k in range(need_first[i], need_first[i + 1]):
            ended = max(ended, clock[need[k], own])
    return ended


def _queues(first, on):
    """Link the instructions of each queue in program order.

    Parameters
    ----------
    first : (cores + 1,) ndarray of int64
        The first instruction of each core.
    on : (n,) ndarray of int64
        The unit of each instruction.

    Returns
    -------
    place : (n,) ndarray of int32
        The position of each instruction in its queue, from 1.
    head : (queues,) ndarray of int64
        The first instruction of each queue; −1 for an empty queue.
    following : (n,) ndarray of int64
        The next instruction of the same queue; −1 for the last one.
    handed : (n,) ndarray of int64
        The last instruction on S before each one, after which it is issued; −1 if there is none.
    """
    n, cores = len(on), len(first) - 1
    place = np.zeros(n, np.int32)
    head = np.full(cores * QUEUES, -1, np.int64)
    following = np.full(n, -1, np.int64)
    handed = np.full(n, -1, np.int64)
    last = np.full(cores * QUEUES, -1, np.int64)
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            q = c * QUEUES + on[i]
            handed[i] = last[c * QUEUES]
            if last[q] < 0:
                head[q] = i
                place[i] = 1
            else:
                following[last[q]] = i
                place[i] = place[last[q]] + 1
            last[q] = i
    return place, head, following, handed


def _all_set(need_first, need, done, i):
    """Return True if all sets that wait i needs are done."""
    for k in range(need_first[i], need_first[i + 1]):
        if need[k] < 0 or not done[need[k]]:
            return False
    return True


class Accesses(NamedTuple):
    """The accesses to a memory, in the order of the instructions that ``clocks`` returns."""

    number: np.ndarray  # the instruction of each access
    span: np.ndarray  # the index of the span that it touches
    kind: np.ndarray  # READ, WRITE, or the number of an atomic dtype and operation


class SegmentedMemory(NamedTuple):
    """A memory, cut into segments at the bounds of all spans."""

    #: Span s covers the segments low[k] … high[k] − 1 for first[s] ≤ k < first[s + 1].
    first: np.ndarray
    low: np.ndarray
    high: np.ndarray
    #: Numbers of the segments that are ever written, −1 for the others.
    slot: np.ndarray
    #: True for segments that are initialised; ``sweep`` updates this array in place.
    ready: np.ndarray


class Ordering(NamedTuple):
    """The happens-before order as vector clocks, and the order within each queue.

    ``clock``, ``place``, ``across`` and ``settled`` are those of ``clocks``.
    """

    queue: np.ndarray  # the queue of each instruction: core times 8 plus unit
    clock: np.ndarray
    place: np.ndarray
    across: bool
    settled: np.ndarray
    #: True for the queues that do not make an instruction wait for earlier ones that it depends on.
    open_: np.ndarray
    #: Instructions with the same number other than 0 need no barrier between them.
    chain: np.ndarray

    def before(self, early: int, late: int) -> bool:
        """Return True if ``early`` always ends before ``late`` ends."""
        ended = _ended(self.queue, self.clock, self.across, late, int(self.queue[early]))
        return bool(ended >= self.place[early])


def sweep(accesses, memory, ordering, column, wide, ordered, begin, end, limit):
    """Compare each access to a memory with the latest accesses of every queue to the same bytes.

    The latest access of each kind and queue is enough: if it happens before the present one, so do
    all earlier accesses of that queue.

    Parameters
    ----------
    column : (queues,) ndarray of int64
        Numbers, from 0, of the queues that touch this memory; other queues have any number.
    wide : int
        How many queues touch this memory.
    ordered : (kinds,) ndarray of bool
        True for the kinds of accesses whose result depends on their order; it matters only for
        atomic ones of the same kind.
    begin, end : int
        Only the slots begin … end − 1 are checked; segments without a slot are checked together
        with slot 0.
    limit : int
        The largest number of findings of each kind.

    Returns
    -------
    conflicts : (3, limit, 3) ndarray of int64
        For each of RACE, HAZARD and NONDETERMINISTIC the later and the earlier access (indices of
        ``accesses``), and the segment.
    found : (3,) ndarray of int64
        The number of conflicts of each kind.
    unknown : (u, 3) ndarray of int64
        An access that reads uninitialised bytes, the segment, and 1 if all bytes that it reads are
        uninitialised, else 0.
    """
    number, span, access = accesses
    first, low, high, slot, ready = memory
    queue, clock, place, across, settled, open_, chain = ordering
    kinds = len(ordered)
    # The latest access of each kind to each slot by each queue.
    latest = np.full((max(end - begin, 1), wide, kinds), -1, np.int32)
    conflicts = np.empty((3, limit, 3), np.int64)
    found = np.zeros(3, np.int64)
    unknown = np.empty((limit, 3), np.int64)
    missing = 0
    for a in range(len(number)):
        i, mine = number[a], access[a]
        before = -1  # the access of the last conflict, told once
        lacking = -1  # the first uninitialised segment
        known_some = 0
        for k in range(first[span[a]], first[span[a] + 1]):
            for g in range(low[k], high[k]):
                s = slot[g]
                if s < 0:
                    # Nothing writes the segment, so that it has no race and keeps its state.
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
                    for kind in range(WRITE if mine == READ else READ, kinds):
                        b = latest[s, c, kind]
                        if b < 0 or b == before:
                            continue
                        j = number[b]
                        if j == i or (kind == mine and mine >= ATOMIC and not ordered[mine]):
                            continue
                        if queue[i] == queue[j]:
                            if not open_[queue[i]] or settled[i] >= place[j]:
                                continue
                            if chain[i] > 0 and chain[i] == chain[j]:
                                continue
                            what = HAZARD
                        elif _ended(queue, clock, across, i, queue[j]) < place[j]:
                            what = RACE
                        else:
                            continue
                        # No atomic update is lost, so only the order remains open.
                        if kind == mine and mine >= ATOMIC:
                            what = NONDETERMINISTIC
                        if found[what] < limit:
                            at = found[what]
                            conflicts[what, at, 0], conflicts[what, at, 1] = a, b
                            conflicts[what, at, 2] = g
                            found[what] += 1
                            before = b
                if mine != READ:
                    ready[g] = True
                elif ready[g]:
                    known_some = 1
                elif lacking < 0:
                    lacking = g
                # After the comparison, so that an instruction does not conflict with itself.
                latest[s, column[queue[i]], mine] = a
        if lacking >= 0 and missing < limit:
            unknown[missing, 0], unknown[missing, 1] = a, lacking
            unknown[missing, 2] = 1 - known_some
            missing += 1
    return conflicts, found, unknown[:missing]


def _ended(queue, clock, across, i, q):
    """Return how many instructions of queue q always have ended when instruction i ends."""
    if across:
        return clock[i, q]
    # The clock covers the queues of one core, and nothing orders instructions of two cores.
    return clock[i, q % QUEUES] if q // QUEUES == queue[i] // QUEUES else np.int32(0)
