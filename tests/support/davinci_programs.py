"""Random lowered programs for the tests of the engines.

Their times are small, so that many are equal, or large.
"""

from dataclasses import replace

import numpy as np

from vitruvian.sim.davinci import Instruction, Span, Unit
from vitruvian.sim.davinci.isa.instruction import Kind, Position
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered
from vitruvian.sim.davinci.timing.matching_compiled import match

UNITS = list(Unit)[:6]


def _often(buses: int) -> np.ndarray:
    """Return the probability that a move uses no bus, and that of each bus.

    No bus is rare, and the first bus is the most frequent.
    """
    return np.array([0.1, 0.9 - 0.2 * (buses - 1)] + [0.2] * (buses - 1))


def random_lowered(
    seed: int,
    *,
    size: int = 24,
    cores: int = 2,
    deadlock: bool = False,
    large: bool = False,
    buses: int = 2,
    lags: bool = True,
    drains: bool = True,
    places: int = 0,
    interlocks: bool = False,
    posted: bool = False,
) -> Lowered:
    """Return a random program in which every wait has a set before it.

    If ``deadlock`` is True, some waits are moved before their sets. If ``drains`` is True, results
    are late. If ``interlocks`` is True, half of the instructions need an earlier result of their
    queue. If ``posted`` is True, half of the units
    do not wait for their flags. At most ``places`` cores run at once, or any number of them if it
    is 0.
    """
    rng = np.random.default_rng(seed)
    scale = 10**12 if large else 1
    first, unit, kind, flag, late = [0], [], [], [], []
    triples: dict[tuple, int] = {}
    for c in range(cores):
        waiting: list[tuple] = []  # sets whose wait is still to come
        for _ in range(int(rng.integers(1, size))):
            choice = rng.random()
            if choice < 0.2:
                a, b = rng.choice(6, 2, replace=False)
                key = (c, int(a), int(b), int(rng.integers(2)))
                if key not in waiting:
                    waiting.append(key)
                    unit.append(key[1])
                    kind.append(Kind.SET)
                    flag.append(triples.setdefault(key, len(triples)))
                    late.append(0)
                    continue
            if choice < 0.45 and waiting:
                key = waiting.pop(int(rng.integers(len(waiting))))
                unit.append(key[2])
                kind.append(Kind.WAIT)
                flag.append(triples[key])
                late.append(0)
                continue
            if choice < 0.5:
                whole = rng.random() < 0.5
                unit.append(0 if whole else int(rng.integers(6)))
                kind.append(Kind.BARRIER_ALL if whole else Kind.BARRIER)
            else:
                unit.append(int(rng.choice(6, p=(0.1, 0.1, 0.1, 0.1, 0.3, 0.3))))
                kind.append(Kind.NORMAL)
            flag.append(-1)
            late.append(0)
        if lags and c and len(unit) - first[-1] > 1 and first[-1]:  # a flag from the first core
            key = (0, c)
            triples[key] = len(triples)
            at_set = int(rng.integers(0, first[1] + 1))
            at_wait = int(rng.integers(first[-1], len(unit) + 1))
            for at, what, on in ((at_wait, Kind.WAIT, rng.integers(6)), (at_set, Kind.SET, 4)):
                unit.insert(at, int(on))
                kind.insert(at, what)
                flag.insert(at, triples[key])
                late.insert(at, 3 * scale if what == Kind.WAIT else 0)
            first = [0] + [f + 1 for f in first[1:]]
        first.append(len(unit))
    n = len(unit)
    kinds = np.array(kind, np.int8)
    if deadlock:
        for _ in range(3):
            waits = np.flatnonzero(kinds == Kind.WAIT)
            if not len(waits):
                break
            i = int(rng.choice(waits))
            c = int(np.searchsorted(first, i, side="right")) - 1
            j = int(rng.integers(first[c], i + 1))
            for column in (unit, kind, flag, late):
                column.insert(j, column.pop(i))
            kinds = np.array(kind, np.int8)
    need_first, need = match(kinds, np.array(flag, np.int64), max(len(triples), 1))
    normal = kinds == Kind.NORMAL
    bus = np.where(
        normal & np.isin(unit, (4, 5)), rng.choice(buses + 1, n, p=_often(buses)) - 1, -1
    ).astype(np.int32)
    data = np.where(bus >= 0, rng.integers(1, 30, n) * scale, 0)
    init = np.where(normal, rng.integers(0, 9, n), rng.integers(0, 2, n)) * scale
    if large:
        data = np.where(bus >= 0, data + rng.integers(0, scale, n), 0)
        init = init + rng.integers(0, scale, n)
    growth = [rng.integers(2, 6, buses), *rng.integers(0, 2, (2, buses))]
    totals = np.cumsum(growth, axis=0).T.astype(float)
    rate = np.where(bus >= 0, np.minimum(rng.integers(1, 9, n), totals[bus, 0]), 0.0)
    drain = np.where(normal & (rng.random(n) < 0.5), rng.integers(0, 9, n), 0) * scale
    core_of = np.repeat(np.arange(cores), np.diff(first))
    low = Lowered(
        first=np.array(first, np.int64),
        unit=np.array(unit, np.int8),
        kind=kinds,
        init=init.astype(np.int64),
        data=data.astype(np.int64),
        drain=drain.astype(np.int64) if drains else np.zeros(n, np.int64),
        bus=bus,
        rate=rate,
        need_first=need_first,
        need=need,
        lag=np.array(late, np.int64),
        begin=rng.integers(0, 5, cores) * scale,
        totals=totals,
        dispatch=int(rng.integers(0, 2)) * scale,
        gang=np.arange(cores),
        places=places,
        handover=int(rng.integers(0, 4)) * scale,
    )
    if posted:
        some = rng.random((cores, 8)) < 0.5
        some[:, 0] = False
        low = replace(low, posted=(kinds == Kind.SET) & some[core_of, low.unit])
    if not interlocks:
        return low
    producer = np.full(n, -1, np.int64)
    for i in np.flatnonzero(normal & (low.unit > 0) & (rng.random(n) < 0.5)).tolist():
        mine = normal & (low.unit == low.unit[i]) & (core_of == core_of[i])
        earlier = np.flatnonzero(mine[:i])
        if len(earlier):
            producer[i] = rng.choice(earlier)
    return replace(low, producer=producer)


def random_accesses(low: Lowered, rng: np.random.Generator) -> list[CoreStream]:
    """Return the streams of a lowered program, with random accesses to two memories."""
    streams, number = [], 0
    for c in range(len(low.begin)):
        instructions = []
        for i in range(low.first[c], low.first[c + 1]):
            spans: tuple[list, list] = ([], [])
            if low.kind[i] == Kind.NORMAL:
                for _ in range(int(rng.integers(0, 3))):
                    buffer = "UB" if rng.random() < 0.7 else "GM"
                    start, run = int(rng.integers(0, 40)), int(rng.integers(1, 6))
                    levels = ((int(rng.integers(1, 3)), int(rng.integers(0, 20))),)
                    spans[int(rng.integers(2))].append(Span(buffer, start, run, levels))
            position = Position("k", number)
            fields = {"source": 1, "target": 2, "register": i}
            op = {0: "vabs", 3: "pipe_barrier", 4: "pipe_barrier"}.get(low.kind[i], "set_flag")
            instructions.append(
                Instruction(
                    Unit(int(low.unit[i])),
                    op,
                    Kind(int(low.kind[i])),
                    fields=fields,
                    reads=tuple(spans[0]),
                    writes=tuple(spans[1]),
                    position=position,
                )
            )
            number += 1
        streams.append(CoreStream("aicore", c, instructions))
    return streams
