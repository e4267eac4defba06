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

__all__ = ["run_reference", "shares"]


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
    lowered : Lowered
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
    number: Any = Fraction if exact else float
    up: Any = (lambda x: x) if exact else math.ceil
    totals = [[number(x) for x in row] for row in lowered.totals.tolist()]
    rates = [number(x) for x in lowered.rate.tolist()]
    unit, kind, bus = lowered.unit.tolist(), lowered.kind.tolist(), lowered.bus.tolist()
    init, data, lag = lowered.init.tolist(), lowered.data.tolist(), lowered.lag.tolist()
    n, cores = len(lowered), len(lowered.begin)
    start: list[Any] = [None] * n
    end: list[Any] = [None] * n
    issued: list[Any] = [None] * n
    program = [deque(range(lowered.first[c], lowered.first[c + 1])) for c in range(cores)]
    free = [int(t) for t in lowered.begin]  # the time at which each program queue continues
    queues: dict[tuple[int, int], deque] = {(c, u): deque() for c in range(cores) for u in Unit}
    idle_since = {q: int(lowered.begin[q[0]]) for q in queues}
    running: dict[tuple[int, int], int] = {}  # the instruction that keeps a unit busy, without bus
    # (time of arrival at the bus, instruction) of transfers that are initialising
    waiting: dict[tuple[int, int], tuple[Any, int]] = {}
    moving: dict[tuple[int, int], _Transfer] = {}
    now = min(free, default=0)

    def released(i: int) -> bool:
        return 0 <= arrives(i) <= now

    def arrives(i: int) -> Any:
        """Return the time at which a wait sees its last flag, or −1 if that is not known yet."""
        needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]].tolist()
        known = [end[j] for j in needs if j >= 0 and end[j] is not None]
        return max(known) + lag[i] if needs and len(known) == len(needs) else -1

    def hand_out(c: int) -> bool:
        if not program[c] or free[c] > now:
            return False
        i = program[c][0]
        if issued[i] is None:
            issued[i] = free[c]
        if kind[i] == Kind.BARRIER_ALL or unit[i] == Unit.S:
            if start[i] is None:
                start[i] = free[c]
            mine = [(c, u) for u in Unit]
            busy = any(q in running or q in waiting or q in moving or queues[q] for q in mine)
            if (kind[i] == Kind.BARRIER_ALL and busy) or (kind[i] == Kind.WAIT and not released(i)):
                return False
            free[c] = now + init[i]
            end[i] = free[c]
        else:
            queues[c, unit[i]].append(i)
            free[c] += lowered.dispatch
        program[c].popleft()
        return True

    def begin(q: tuple[int, int]) -> bool:
        if q in running or q in waiting or q in moving or not queues[q]:
            return False
        i = queues[q][0]
        if start[i] is None:
            start[i] = max(idle_since[q], issued[i])
        if kind[i] == Kind.WAIT and not released(i):
            return False
        queues[q].popleft()
        if bus[i] < 0:
            end[i] = now + init[i]
            running[q] = i
        else:
            waiting[q] = (now + init[i], i)
        return True

    while True:
        # 1. Everything that can happen now; one event may enable another at the same time.
        dirty: set[int] = set()  # buses whose shares change
        changed = True
        while changed:
            changed = False
            for q in [q for q, i in running.items() if end[i] == now]:
                del running[q]
                idle_since[q] = now
                changed = True
            for q in [q for q, t in moving.items() if t.end == now]:
                t = moving[q]
                changed = True
                if t.block is not None and t.left > t.block:
                    t.left, t.end, t.block = t.left - t.block, None, None
                else:
                    del moving[q]
                    end[t.number] = idle_since[q] = now
                dirty.add(t.bus)
            for q in [q for q, (when, _) in waiting.items() if when == now]:
                _, i = waiting.pop(q)
                moving[q] = _Transfer(i, now, number(data[i]), rates[i], bus[i])
                dirty.add(bus[i])
                changed = True
            for c in range(cores):
                while hand_out(c):
                    changed = True
            for q in sorted(queues):
                changed |= begin(q)
        # 2. The shares of all buses on which a transfer (or block) has started or ended.
        for b in dirty:
            active = [moving[q] for q in sorted(moving) if moving[q].bus == b]
            for t in active:
                if not block_bytes:
                    t.left = max(t.left - (now - t.at) * t.speed, number(0))
                    t.at = now
            for t, share in zip(active, shares([t.rate for t in active], totals[b]), strict=True):
                if not block_bytes:
                    t.speed = share / t.rate
                    t.end = now + up(t.left / t.speed)
                elif t.end is None:
                    t.speed = share / t.rate
                    t.block = min(t.left, number(up(block_bytes / t.rate)))
                    t.end = now + up(t.block / t.speed)
        # 3. The next event.
        times = [end[i] for i in running.values()] + [t.end for t in moving.values()]
        times += [when for when, _ in waiting.values()]
        times += [free[c] for c in range(cores) if program[c] and free[c] > now]
        heads = [queue[0] for queue in (*queues.values(), *program) if queue]
        times += [t for i in heads if (t := arrives(i)) > now]
        if not times:
            return start, end, issued
        now = min(times)


def as_arrays(times: tuple[list, list, list]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rounded times as arrays of int64, with −1 for None."""
    start, end, issued = (np.array([-1 if t is None else t for t in x], np.int64) for x in times)
    return start, end, issued
