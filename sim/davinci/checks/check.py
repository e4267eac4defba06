"""Checks of a program: what is wrong with it whatever the times, not by luck of one run.

What must have ended before what follows from the order in each queue, from flags, from barriers and
from the program queue (an instruction is handed out when all earlier ones of the scalar unit have
ended). Two accesses to the same byte, one of them a write, that this does not order are a race.

Every finding is one line that quotes the instructions with file and line. What happens again and
again at the same lines is reported once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from vitruvian.sim.davinci.checks.compiled import clocks, sweep
from vitruvian.sim.davinci.checks.undefined import shows_undefined
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, Span, View
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.compiling import fitting
from vitruvian.sim.davinci.timing.deadlock import explain
from vitruvian.sim.davinci.timing.lowering import Lowered, Stream, lower, predecessors

__all__ = ["CHECKS", "check", "check_lowered"]

#: Names of the checks, as in `Finding.check`.
CHECKS = ("bounds", "alignment", "deadlock", "flag", "race", "uninitialised")

#: Findings of one kind in one memory before the search stops.
_LIMIT = 10_000

#: Latest accesses that are kept at a time, of all segments and queues: 64 MB.
_ENTRIES = 4_000_000

#: Operations whose dst is a few elements, aligned to elements only.
_NARROW = frozenset(op.name for op in VECTOR_OPS.values() if op.short_dst)


def check(program: Program) -> list[Finding]:
    """All findings of all checks, without running the program."""
    low, streams = lower(program)
    return check_lowered(program, low, streams)


def check_lowered(program: Program, low: Lowered, streams: list[Stream]) -> list[Finding]:
    """The same for a program that has been lowered."""
    numbers = _Numbers(low, streams)
    found = list(_places(program, streams, numbers))
    if not len(low):
        return found
    across = bool(low.lag.any()) or any(
        one.op == "cross_wait" for stream in streams for one in stream.instructions
    )
    clock, place, order = fitting(clocks, len(low))(
        low.first, low.unit, low.kind, low.need_first, low.need, across
    )
    if len(order) < len(low):
        ended = np.full(len(low), -1, np.int64)
        ended[order] = 0
        issued = _issued(low, ended)
        found.append(Finding("deadlock", explain(low, ended, ended, issued, streams)))
        return found
    core_of = np.repeat(np.arange(len(streams)), np.diff(low.first))
    ordering = _Ordering(clock, place, core_of * 8 + low.unit, across)
    found += _flags(low, numbers, ordering)
    found += _memory(program, streams, numbers, ordering, order)
    return found


@dataclass
class _Numbers:
    """Instructions by number."""

    low: Lowered
    streams: list[Stream]
    flat: list[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        self.flat = [one for stream in self.streams for one in stream.instructions]

    def core(self, number: int) -> int:
        return int(np.searchsorted(self.low.first, number, side="right")) - 1

    def text(self, number: int) -> str:
        one = self.flat[number]
        on = f" of {self.streams[self.core(number)]}" if len(self.streams) > 1 else ""
        return f"{one} at {one.position} on {one.unit.name}{on}"


@dataclass
class _Ordering:
    clock: np.ndarray
    place: np.ndarray
    queue: np.ndarray
    across: bool

    def before(self, one: int, two: int) -> bool:
        """Whether ``one`` is sure to have ended before ``two`` ends."""
        q = int(self.queue[one])
        if not self.across:
            if q // 8 != self.queue[two] // 8:
                return False
            q %= 8
        return bool(self.clock[two, q] >= self.place[one])


def _issued(low: Lowered, ended: np.ndarray) -> np.ndarray:
    """0 of what the program queues hand out if only what is ``ended`` ends; −1 of the rest."""
    issued = np.full(len(low), -1, np.int64)
    for c in range(len(low.begin)):
        for i in range(low.first[c], low.first[c + 1]):
            issued[i] = 0
            if low.unit[i] == Unit.S and ended[i] < 0:
                break
    return issued


# Places: each operand by itself.


def _places(program: Program, streams: list[Stream], numbers: _Numbers) -> Iterator[Finding]:
    """Bounds and alignment, once for each line and memory."""
    tensors = sorted(program.tensors.values(), key=lambda view: view.offset)
    starts = [view.offset for view in tensors]
    seen: set[tuple] = set()
    known: set[tuple] = set()
    number = -1
    for stream in streams:
        kind = program.chip.kind(stream.kind)
        for one in stream.instructions:
            number += 1
            key = (stream.kind, one.op, one.reads, one.writes)
            if key in known:
                continue
            known.add(key)
            for name, span in one.spans():
                if not span.nbytes:
                    continue
                low, high, what = _room(span, kind.buffers, tensors, starts)
                if span.first < low or span.end > high:
                    at = ("bounds", one.position, span.buffer, name)
                    if at not in seen:
                        seen.add(at)
                        said = f"{name}s {span}, which must be within {what}"
                        text = f"bounds: {numbers.text(number)} {said}"
                        yield Finding("bounds", text, (number,))
            for name, view in _aligned(one):
                if view.buffer not in kind.buffers:
                    continue
                align = kind.buffers[view.buffer].align
                if one.op in _NARROW and name == "dst":
                    align = DTYPES[view.dtype].itemsize
                at = ("alignment", one.position, name)
                if view.offset % align and at not in seen:
                    seen.add(at)
                    said = f"has {name} at byte {view.offset} of {view.buffer}"
                    text = f"alignment: {numbers.text(number)} {said}, which must be a multiple"
                    yield Finding("alignment", f"{text} of {align}", (number,))


def _aligned(one: Instruction) -> Iterable[tuple[str, View]]:
    """Operands that have to be aligned: all but those of scalar work, which are single elements."""
    if one.unit == Unit.S:
        return ()
    return one.operands.items()


def _room(span: Span, buffers, tensors: list[View], starts: list[int]) -> tuple[int, int, str]:
    """First byte and one past the last that a span may touch, and what they are the bounds of."""
    if span.buffer == GM:
        at = int(np.searchsorted(starts, span.start, side="right")) - 1
        if at < 0:
            return 0, 0, "a tensor"
        view = tensors[at]
        high = view.offset + view.nbytes
        return view.offset, high, f"tensor {view.name}, GM[{view.offset}:{high}]"
    if span.buffer not in buffers:
        return 0, 0, f"a buffer of the core: {', '.join(buffers)}"
    return (
        0,
        buffers[span.buffer].nbytes,
        f"the {buffers[span.buffer].nbytes} bytes of {span.buffer}",
    )


# Flags.


def _flags(low: Lowered, numbers: _Numbers, ordering: _Ordering) -> Iterator[Finding]:
    """A flag that can be set again before it has been waited for."""
    sets: dict[tuple, list[int]] = defaultdict(list)
    waits: dict[tuple, list[int]] = defaultdict(list)
    for i in np.flatnonzero((low.kind == Kind.SET) | (low.kind == Kind.WAIT)).tolist():
        one = numbers.flat[i]
        if one.op in ("set_flag", "wait_flag"):
            f = one.fields
            key = (numbers.core(i), f["source"], f["target"], f["register"])
            (sets if one.kind == Kind.SET else waits)[key].append(i)
    seen: set[tuple] = set()
    instant = _Instant(low, ordering)
    for key, mine in sets.items():
        for n in range(1, len(mine)):
            wait = waits[key][n - 1] if n <= len(waits[key]) else None
            if wait is not None and ordering.before(wait, mine[n]):
                continue
            at = tuple(numbers.flat[i].position for i in (mine[n - 1], mine[n]))
            if at in seen or (wait is not None and instant.by(wait, mine[n])):
                continue
            seen.add(at)
            text = f"flag: {numbers.text(mine[n])} can be set again before "
            if wait is None:
                text += f"anything waits for {numbers.text(mine[n - 1])}"
            else:
                text += f"{numbers.text(wait)}, which waits for the set before"
            yield Finding("flag", text, (mine[n - 1], mine[n]))


class _Instant:
    """Flags take no time: a wait ends with the last of what it waits for, whoever is next."""

    def __init__(self, low: Lowered, ordering: _Ordering) -> None:
        self.low, self.ordering = low, ordering
        self.chains: tuple[np.ndarray, np.ndarray] | None = None

    def by(self, one: int, two: int) -> bool:
        """Whether ``one``, a set or wait, has ended when ``two`` ends, whatever the times.

        It and all that it waits for must be before ``two`` in the program, too: the program queue
        hands out one after the other.
        """
        if self.chains is None:
            self.chains = predecessors(self.low)
        low, (before, handed) = self.low, self.chains
        open_, known = [one], {one}
        while open_:
            i = open_.pop()
            if self.ordering.before(i, two):
                continue
            if low.kind[i] not in (Kind.SET, Kind.WAIT) or i > two:
                return False
            needs = low.need[low.need_first[i] : low.need_first[i + 1]].tolist()
            for j in (int(before[i]), int(handed[i]), *needs):
                if j >= 0 and j not in known:
                    known.add(j)
                    open_.append(j)
        return True


# Memory.


@dataclass
class _Space:
    """A memory, and who touches it."""

    spans: dict[Span, int] = field(default_factory=dict)
    number: list[int] = field(default_factory=list)
    span: list[int] = field(default_factory=list)
    write: list[bool] = field(default_factory=list)


def _memory(
    program: Program,
    streams: list[Stream],
    numbers: _Numbers,
    ordering: _Ordering,
    order: np.ndarray,
) -> Iterator[Finding]:
    """Races and reads of what nothing has written, memory by memory."""
    core_of = (ordering.queue // 8).tolist()
    spaces: dict[tuple[str, int], _Space] = defaultdict(_Space)
    for i in order.tolist():
        one = numbers.flat[i]
        for spans, write in ((one.reads, False), (one.writes, True)):
            for span in spans:
                space = spaces[span.buffer, -1 if span.buffer == GM else core_of[i]]
                space.number.append(i)
                space.span.append(space.spans.setdefault(span, len(space.spans)))
                space.write.append(write)
    found: list[Finding] = []
    perhaps: list[Finding] = []  # reads of which a part is defined
    for (buffer, _), space in spaces.items():
        edges, first, low, high = _segments(list(space.spans))
        number, span, write = (np.array(x) for x in (space.number, space.span, space.write))
        slot = _slots(len(edges), first, low, high, span[write])
        touched, column = np.unique(ordering.queue[number]), np.full(ordering.queue.max() + 1, -1)
        column[touched] = np.arange(len(touched))
        ready, seen = _initialised(program, buffer, edges), set()
        step = max(_ENTRIES // len(touched), 1)
        slots = int(slot.max(initial=0)) + 1
        for begin in range(0, slots, step):
            races, unknown = fitting(sweep, len(numbers.flat))(
                number,
                span,
                write,
                first,
                low,
                high,
                ready,
                slot,
                begin,
                min(begin + step, slots),
                ordering.queue,
                column,
                ordering.clock,
                ordering.place,
                ordering.across,
                _LIMIT,
            )
            found += _races(races, space, numbers, seen)
            for finding, whole in _unknown(unknown, space, numbers, edges, seen):
                (found if whole else perhaps).append(finding)
    if perhaps:
        found += _shown(perhaps, program, numbers, order)
    yield from sorted(found, key=lambda f: f.instructions[::-1])


def _slots(
    segments: int, first: np.ndarray, low: np.ndarray, high: np.ndarray, spans: np.ndarray
) -> np.ndarray:
    """Numbers for the segments of some spans; −1 for the others."""
    change = np.zeros(segments + 1, np.int64)
    chosen = np.zeros(len(first) - 1, bool)
    chosen[spans] = True
    ranges = np.repeat(chosen, np.diff(first))
    np.add.at(change, low[ranges], 1)
    np.add.at(change, high[ranges], -1)
    there = np.cumsum(change)[:-1] > 0
    return np.where(there, np.cumsum(there) - 1, -1)


def _segments(spans: list[Span]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut a memory where spans begin and end; each span as ranges of the segments between."""
    intervals = [span.intervals() for span in spans]
    counts = np.array([0] + [len(x) for x in intervals])
    flat = np.concatenate(intervals) if intervals else np.zeros((0, 2), np.int64)
    edges = np.unique(flat)
    low, high = np.searchsorted(edges, flat[:, 0]), np.searchsorted(edges, flat[:, 1])
    return edges, np.cumsum(counts), low, high


def _initialised(program: Program, buffer: str, edges: np.ndarray) -> np.ndarray:
    """Segments that hold data from the start: of tensors with data, or all if there are none."""
    ready = np.zeros(len(edges), bool)
    if buffer == GM:
        ready[:] = not program.data
        for name in program.data:
            view = program.tensors[name]
            ready |= (edges >= view.offset) & (edges < view.offset + view.nbytes)
    return ready


def _races(races: np.ndarray, space: _Space, numbers: _Numbers, seen: set) -> Iterator[Finding]:
    spans = list(space.spans)
    for a, b, _ in races.tolist():
        i, j = space.number[a], space.number[b]
        one, two = numbers.flat[i], numbers.flat[j]
        if i < j:
            i, j, one, two, a, b = j, i, two, one, b, a
        at = (two.position, one.position, space.write[b], space.write[a])
        if at in seen:
            continue
        seen.add(at)
        common = spans[space.span[a]].overlap(spans[space.span[b]])
        assert common is not None
        where = f"{spans[space.span[a]].buffer}[{common[0]}:{common[1]}]"
        verbs = [("writes" if space.write[k] else "reads") for k in (b, a)]
        if numbers.core(i) != numbers.core(j):
            lacking = "nothing orders the two cores"
        else:
            flag = f"({two.unit.name}, {one.unit.name})"
            lacking = f"set_flag and wait_flag{flag} between them are missing"
        text = f"race: {numbers.text(j)} {verbs[0]} and {numbers.text(i)} {verbs[1]} {where}; "
        yield Finding("race", text + lacking, (j, i))


def _unknown(
    unknown: np.ndarray, space: _Space, numbers: _Numbers, edges: np.ndarray, seen: set
) -> Iterator[tuple[Finding, bool]]:
    """Findings, and whether nothing at all of what is read has been written."""
    spans = list(space.spans)
    for a, segment, whole in unknown.tolist():
        i = space.number[a]
        one = numbers.flat[i]
        if one.position in seen:
            continue
        seen.add(one.position)
        where = f"{spans[space.span[a]].buffer}[{edges[segment]}:{edges[segment + 1]}]"
        text = f"uninitialised: {numbers.text(i)} reads {where}, which nothing has written"
        yield Finding("uninitialised", text, (i,)), bool(whole)


def _shown(
    perhaps: list[Finding], program: Program, numbers: _Numbers, order: np.ndarray
) -> list[Finding]:
    """Those findings if what is not defined comes out anywhere; see `undefined`."""
    from vitruvian.sim.davinci.semantics import FunctionalError

    cores = [core for core in program if core.instructions]
    if len(cores) != len(numbers.streams):  # lowered from something else
        return perhaps
    steps = [(cores[numbers.core(i)], numbers.flat[i]) for i in order.tolist()]
    try:
        where = shows_undefined(program, steps)
    except FunctionalError:
        return perhaps
    if where is None:
        return []
    out = f"; it comes out at {where.position}"
    return [Finding(f.check, f.message + out, f.instructions) for f in perhaps]
