"""The reference engine: the shortest definition of what ``engine`` computes, in order of time.

At each point of time, every program queue issues all instructions that it can issue, and every unit
starts and ends all instructions that it can, until nothing changes. Time then advances to the next
point at which something ends. Transfers share a bus in equal parts, which are computed again
whenever a transfer starts or ends.

Rounding: times are whole attoseconds. A transfer has a remaining time m (the time that it would
still take alone) and a speed s (its share of the bus over its rate alone), both floating-point
numbers. It ends ⌈m / s⌉ attoseconds after a change of shares, and m falls by s times the time that
passes. With ``exact``, m, s and all times are rational numbers and nothing is rounded. The compiled
engine does the floating-point operations in the same order, so the two are bit-exact.

References
----------
Tang 2024: Fig. 2.1 (queues), eq. 2.3 (the n-th wait matches the n-th set), eq. 2.6 and 2.7 (the
remainder of a transfer continues at its new share), §2.2.3 (equal shares), §2.2.2 and Fig. 2.6
(blocks).
"""

import math
from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.timing.lowering import Lowered
from vitruvian.sim.davinci.timing.words import BLOCK_WORDS


def shares(rates: list, totals: list) -> list:
    """Share a bus among transfers (max-min fairness).

    Each transfer gets an equal part of the total, but not more than its own rate. The rest is
    divided among the others in equal parts.

    Parameters
    ----------
    rates : list of number
        Throughput of each transfer if it is alone.
    totals : list of number
        Throughput of the bus with 1, 2, … transfers; the last holds for any larger number.

    Returns
    -------
    list of number
        Throughput of each transfer.
    """
    got: list[Any] = [None] * len(rates)
    left, open_ = totals[min(len(rates), len(totals)) - 1], len(rates)
    while open_:
        share = left / open_
        content = [i for i, rate in enumerate(rates) if got[i] is None and rate <= share]
        if not content:
            return [share if g is None else g for g in got]
        for i in content:
            got[i] = rates[i]
            left -= rates[i]
            open_ -= 1
    return got


def port_shares(demands: list[list], one: Any) -> list:
    """Share the ports of a memory among transfers of which each needs some of them.

    Each port is shared as a bus is; a transfer needs no more of a port than the other ports let it
    use. Two rounds over the ports are enough for two transfers that meet at one port or two.

    Parameters
    ----------
    demands : list of list of number
        For each transfer, the part of the cycles in which it needs each port at full speed.
    one : number
        The number 1.

    Returns
    -------
    list of number
        The speed of each transfer, as a part of its full speed.
    """
    count = range(len(demands))
    paces = [[one for _ in row] for row in demands]
    for _ in range(2):
        for p in range(len(demands[0]) if demands else 0):
            users = [k for k in count if demands[k][p] > 0]
            needs = [
                min([one, *(x for q, x in enumerate(paces[k]) if q != p)]) * demands[k][p]
                for k in users
            ]
            for k, share in zip(users, shares(needs, [one]) if users else [], strict=True):
                paces[k][p] = min(share / demands[k][p], one)
    return [min(row) for row in paces]


_Queue = tuple[int, int]  # core and unit


class _Transfer:
    """A transfer on a bus: its remaining time (if alone), speed, time of last change and end."""

    def __init__(self, number: int, at: int, data: Any, rate: Any, bus: int) -> None:
        self.number, self.at, self.left, self.rate, self.bus = number, at, data, rate, bus
        self.speed: Any = 1
        self.end: Any = None
        self.block: Any = None  # remaining time (if alone) of the block, if arbitration is by block


def run_reference(
    lowered: Lowered, *, block_bytes: int = 0, exact: bool = False
) -> tuple[list, list, list]:
    """Return the start, end and issue time of every instruction, in attoseconds.

    Parameters
    ----------
    block_bytes : int
        If 0, the shares of a bus change whenever a transfer starts or ends. Otherwise the share of
        a transfer is computed at the start of each of its blocks of this size, and holds for that
        block.
    exact : bool
        If True, compute with rational numbers and without rounding.

    Returns
    -------
    start, end, issued : list
        None if the instruction was never started, ended or issued: see
        ``sim.davinci.timing.deadlock``.
    """
    state = _Simulation(lowered, block_bytes, exact)
    while True:
        for bus in state.settle():
            state.share(bus)
        times = state.events()
        if not times:
            return state.start, state.end, state.issued
        state.now = min(times)


class _Simulation:
    """The state of all queues and buses at one point of time, ``now``.

    A queue is named by its core and its unit.
    """

    def __init__(self, lowered: Lowered, block_bytes: int, exact: bool) -> None:
        self.lowered, self.block_bytes = lowered, block_bytes
        self.number: Any = Fraction if exact else float
        self.up: Any = (lambda x: x) if exact else math.ceil
        self.totals = [[self.number(x) for x in row] for row in lowered.totals.tolist()]
        self.rates = [self.number(x) for x in lowered.rate.tolist()]
        self.unit, self.kind = lowered.unit.tolist(), lowered.kind.tolist()
        self.bus, self.lag = lowered.bus.tolist(), lowered.lag.tolist()
        self.init, self.data = lowered.init.tolist(), lowered.data.tolist()
        self.drain = lowered.drain.tolist()
        self.producer = lowered.producer.tolist() or [-1] * len(lowered)
        self.posted = lowered.posted.tolist() or [False] * len(lowered)
        self.words = lowered.words
        ported = lowered.ports.shape[1] > 0
        self.ports = [[self.number(x) for x in row] for row in lowered.ports.tolist() if ported]
        n, cores = len(lowered), len(lowered.begin)
        self.start: list[Any] = [None] * n
        self.end: list[Any] = [None] * n
        self.issued: list[Any] = [None] * n
        # when the results of an instruction, and of all before it in its queue, are there
        self.drained_at: list[Any] = [None] * n
        self.program = [deque(range(lowered.first[c], lowered.first[c + 1])) for c in range(cores)]
        gangs = lowered.gang.tolist()
        self.cores_of = {g: [c for c in range(cores) if gangs[c] == g] for g in sorted(set(gangs))}
        places = lowered.places or len(self.cores_of)
        self.waiting_gangs = deque(g for g in self.cores_of if g >= places)
        self.present = [g for g in self.cores_of if g < places]
        # when each program queue continues; None if its gang has not begun
        begun = {c for g in self.present for c in self.cores_of[g]}
        self.free: list[Any] = [int(t) if c in begun else None for c, t in enumerate(lowered.begin)]
        self.queues: dict[_Queue, deque] = {(c, u): deque() for c in range(cores) for u in Unit}
        self.idle_since: dict[_Queue, Any] = {q: self.free[q[0]] for q in self.queues}
        # when units took instructions, and the last one of each
        self.taken: list[Any] = [None] * n
        # when each core handed over the last word of each block of its program
        self.spent: list[dict[int, Any]] = [{} for _ in range(cores)]
        self.last_taken: dict[_Queue, Any] = {}
        # when all results of the instructions that have left a unit are there
        self.queue_drained_at: dict[_Queue, Any] = {q: self.free[q[0]] for q in self.queues}
        # the instruction that keeps a unit busy, without bus, and the time at which it leaves it
        self.running: dict[_Queue, tuple[Any, int]] = {}
        # (time of arrival at the bus, instruction) of transfers that are initialising
        self.waiting: dict[_Queue, tuple[Any, int]] = {}
        self.moving: dict[_Queue, _Transfer] = {}
        self.now = min((t for t in self.free if t is not None), default=0)

    def settle(self) -> set[int]:
        """Do everything that can happen now; return the buses whose shares change."""
        dirty: set[int] = set()
        changed = True
        while changed:  # one event may enable another at the same time
            changed = self._finish(dirty)
            for c in range(len(self.program)):
                while self._issue(c):
                    changed = True
            for q in sorted(self.queues):
                changed |= self._begin(q)
            changed |= self._hand_over()
        return dirty

    def _hand_over(self) -> bool:
        """Let gangs that wait take the places of those that have ended; return True if any does."""
        if not self.waiting_gangs:
            return False
        over = [g for g in self.present if all(self._is_over(c) for c in self.cores_of[g])]
        for g in over[: len(self.waiting_gangs)]:
            self.present.remove(g)
            self.present.append(self.waiting_gangs.popleft())
            for c in self.cores_of[self.present[-1]]:
                self.free[c] = self.now + self.lowered.handover
                for u in Unit:
                    self.idle_since[c, u] = self.queue_drained_at[c, u] = self.free[c]
        return bool(over)

    def _is_over(self, c: int) -> bool:
        """Return True if a core has executed all its instructions by now."""
        if self.program[c] or self.free[c] > self.now:
            return False
        return not any(
            self.queues[c, u] or self._busy((c, u)) or self.queue_drained_at[c, u] > self.now
            for u in Unit
        )

    def _finish(self, dirty: set[int]) -> bool:
        """End what ends now, and let transfers arrive at their buses; return True if any does."""
        changed = False
        for q in [q for q, (when, _) in self.running.items() if when == self.now]:
            self._leave(q, self.running.pop(q)[1])
            changed = True
        for q in [q for q, t in self.moving.items() if t.end == self.now]:
            t = self.moving[q]
            changed = True
            if t.block is not None and t.left > t.block:
                t.left, t.end, t.block = t.left - t.block, None, None
            else:
                del self.moving[q]
                self.end[t.number] = self.now
                self._leave(q, t.number)
            dirty.add(t.bus)
        for q in [q for q, (when, _) in self.waiting.items() if when == self.now]:
            _, i = self.waiting.pop(q)
            data = self.number(self.data[i])
            self.moving[q] = _Transfer(i, self.now, data, self.rates[i], self.bus[i])
            dirty.add(self.bus[i])
            changed = True
        return changed

    def _leave(self, q: _Queue, i: int) -> None:
        """Free a unit, whose pipeline still holds the results of instruction i for a while."""
        self.idle_since[q] = self.now
        # The results of an instruction come after those of the ones before it.
        drained_at = max(self.queue_drained_at[q], self.now + self.drain[i])
        self.drained_at[i] = self.queue_drained_at[q] = drained_at

    def _issue(self, c: int) -> bool:
        """Issue or execute the next instruction of a program queue if that is possible now."""
        if not self.program[c] or self.free[c] is None or self.free[c] > self.now:
            return False
        i = self.program[c][0]
        kind = self.kind[i]
        scalar = kind == Kind.BARRIER_ALL or self.unit[i] == Unit.S
        if self.words is not None and not scalar:
            at = self._issued_with_words(c, i)
            if at is None:
                return False
            self.free[c], self.issued[i] = at, at + self.words.arrive
        if self.issued[i] is None:
            self.issued[i] = self.free[c]
            if self.words is not None:
                at = self._handed(c, i, self.free[c])
                # The dispatcher carries a barrier out itself, while its word waits.
                cycle = self.words.cycle
                self.free[c] = at - cycle if kind == Kind.BARRIER_ALL else at + cycle
        if scalar:
            if self.start[i] is None:
                self.start[i] = self.free[c]
            if self.free[c] > self.now:
                return False
            busy = any(
                self._busy((c, u)) or self.queues[c, u] or self.queue_drained_at[c, u] > self.now
                for u in Unit
            )
            if (kind == Kind.BARRIER_ALL and busy) or (kind == Kind.WAIT and not self._released(i)):
                return False
            self.free[c] = self.now + self.init[i]
            self.end[i] = self.free[c]
            if self.words is not None and kind == Kind.BARRIER_ALL:
                self._handed(c, i, self.end[i] - self.words.cycle)
        else:
            self.queues[c, self.unit[i]].append(i)
            self.free[c] += self.lowered.dispatch
        self.program[c].popleft()
        return True

    def _issued_with_words(self, c: int, i: int) -> Any:
        """Return when all words of an instruction are in its queue; None if that is not known."""
        assert self.words is not None
        # Earlier words need room that comes earlier.
        room = int(self.words.room[self.words.base[i] + self.words.count[i] - 1])
        if room >= 0 and self.taken[room] is None:
            return None
        return self._handed(c, i, self.free[c])

    def _handed(self, c: int, i: int, time: Any) -> Any:
        """Hand over the words of an instruction, and return the time of the last one."""
        words, spent = self.words, self.spent[c]
        assert words is not None
        first, base = int(words.at[i]), int(words.base[i])
        for number in range(int(words.count[i])):
            block, place = divmod(first + number, BLOCK_WORDS)
            time += words.cycle
            if place == 0 and block - words.ahead in spent:
                time = max(time, spent[block - words.ahead] + words.turn)
            if (room := int(words.room[base + number])) >= 0:
                time = max(time, self.taken[room] + int(words.room_lag[base + number]))
            if place == BLOCK_WORDS - 1:
                spent[block] = time
        return time

    def _begin(self, q: _Queue) -> bool:
        """Start the next instruction of a unit if that is possible now."""
        if not self.queues[q] or self._busy(q):
            return False
        i = self.queues[q][0]
        if self.start[i] is None:
            # With words, a queue waits for a flag while its unit still works.
            early = self.words is not None and self.kind[i] == Kind.WAIT
            self.start[i] = max(self.issued[i], 0 if early else self.idle_since[q])
            if self.words is not None and q in self.last_taken:
                prepared = self.last_taken[q] + int(self.words.prepare[i])
                self.start[i] = max(self.start[i], prepared)
            if self.kind[i] in (Kind.SET, Kind.BARRIER) and not self.posted[i]:
                self.start[i] = max(self.start[i], self.queue_drained_at[q])
            elif self.producer[i] >= 0:  # the queue interlocks
                self.start[i] = max(self.start[i], self.drained_at[self.producer[i]])
        if self.kind[i] == Kind.WAIT and not self._released(i):
            return False
        if self.start[i] > self.now:
            return False
        self.queues[q].popleft()
        now = self.now
        if self.words is not None and self.kind[i] == Kind.WAIT:
            now = max(self.start[i], self._arrives(i))
        self.taken[i], self.last_taken[q] = max(now, self.idle_since[q]), now
        if self.bus[i] < 0:
            leaves = self.end[i] = now + self.init[i]
            if self.posted[i]:  # the flag is set when the results are there
                self.end[i] = max(leaves, self.queue_drained_at[q])
            self.running[q] = max(leaves, self.now), i
        else:
            self.waiting[q] = (self.now + self.init[i], i)
        return True

    def _busy(self, q: _Queue) -> bool:
        return q in self.running or q in self.waiting or q in self.moving

    def _released(self, i: int) -> bool:
        return 0 <= self._arrives(i) <= self.now

    def _arrives(self, i: int) -> Any:
        """Return the time at which a wait sees its last flag, or −1 if that is not known yet."""
        first, end = self.lowered.need_first[i], self.lowered.need_first[i + 1]
        needs = self.lowered.need[first:end].tolist()
        known = [self.end[j] for j in needs if j >= 0 and self.end[j] is not None]
        return max(known) + self.lag[i] if needs and len(known) == len(needs) else -1

    def share(self, bus: int) -> None:
        """Compute the shares of a bus on which a transfer or block has started or ended."""
        active = [self.moving[q] for q in sorted(self.moving) if self.moving[q].bus == bus]
        for t in active:
            if not self.block_bytes:
                t.left = max(t.left - (self.now - t.at) * t.speed, self.number(0))
                t.at = self.now
        if self.ports:
            speeds = port_shares([self.ports[t.number] for t in active], self.number(1))
            got = [speed * t.rate for speed, t in zip(speeds, active, strict=True)]
        else:
            got = shares([t.rate for t in active], self.totals[bus])
        for t, share in zip(active, got, strict=True):
            if not self.block_bytes:
                t.speed = share / t.rate
                t.end = self.now + self.up(t.left / t.speed)
            elif t.end is None:
                t.speed = share / t.rate
                t.block = min(t.left, self.number(self.up(self.block_bytes / t.rate)))
                t.end = self.now + self.up(t.block / t.speed)

    def events(self) -> list:
        """Return the times of the events that are known to come."""
        times = [when for when, _ in self.running.values()]
        times += [t.end for t in self.moving.values()]
        times += [when for when, _ in self.waiting.values()]
        # The end of scalar work may be the end of a gang.
        programs = zip(self.program, self.free, strict=True)
        later = [free for program, free in programs if program or self.waiting_gangs]
        later += self.queue_drained_at.values()
        times += [t for t in later if t is not None and t > self.now]
        heads = [queue[0] for queue in (*self.queues.values(), *self.program) if queue]
        times += [t for i in heads if (t := self._arrives(i)) > self.now]
        # An instruction of an interlocked queue starts when the results that it needs are there.
        times += [t for i in heads if (t := self.start[i]) is not None and t > self.now]
        return times


def as_arrays(times: tuple[list, list, list]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rounded times as arrays of int64, with −1 for None."""
    start, end, issued = (np.array([-1 if t is None else t for t in x], np.int64) for x in times)
    return start, end, issued
