"""Static checks of a program: mistakes that hold for all possible times, not for one run only.

The checks use the happens-before order of the instructions. It follows from the order in each
queue, from flags, from barriers, and from the program queue (an instruction is issued only when all
earlier ones on the scalar unit have ended). Two accesses to the same byte are a race if at least
one of them is a write and the order does not relate them.

Every finding is one line that quotes the instructions with file and line. A mistake that repeats at
the same lines is reported once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from vitruvian.sim.davinci.checks.compiled import Accesses, Memory, Ordering, clocks, sweep
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

#: Names of the checks, the values of ``Finding.check``.
CHECKS = ("bounds", "alignment", "deadlock", "flag", "race", "uninitialised")

#: The largest number of findings of one kind in one memory; the search then stops.
_LIMIT = 10_000

#: The largest number of (segment, queue) pairs whose latest accesses are kept at a time: 64 MB.
_ENTRIES = 4_000_000

#: Operations that write only a few elements, so that dst is aligned to elements, not to blocks.
_NARROW = frozenset(op.name for op in VECTOR_OPS.values() if op.short_dst)


def check(program: Program) -> list[Finding]:
    """Return the findings of all checks, without running the program."""
    lowered, streams = lower(program)
    return check_lowered(program, lowered, streams)


def check_lowered(program: Program, lowered: Lowered, streams: list[Stream]) -> list[Finding]:
    """Return the findings of all checks for a program that has been lowered.

    Parameters
    ----------
    program : Program
    lowered : Lowered
    streams : list of Stream
        Both as ``lower`` returns them for the program.
    """
    numbers = _Numbers(lowered, streams)
    findings = list(_operands(program, streams, numbers))
    if not len(lowered):
        return findings
    across = bool(lowered.lag.any()) or any(
        instr.op == "cross_wait" for stream in streams for instr in stream.instructions
    )
    clock, place, order = fitting(clocks, len(lowered))(
        lowered.first, lowered.unit, lowered.kind, lowered.need_first, lowered.need, across
    )
    # In a deadlock the instructions after it have no order, so the checks end here.
    if len(order) < len(lowered):
        ended = np.full(len(lowered), -1, np.int64)
        ended[order] = 0
        issued = _issued(lowered, ended)
        findings.append(Finding("deadlock", explain(lowered, ended, ended, issued, streams)))
        return findings
    core_of = np.repeat(np.arange(len(streams)), np.diff(lowered.first))
    ordering = Ordering(core_of * 8 + lowered.unit, clock, place, across)
    findings += _flags(lowered, numbers, ordering)
    findings += _memory(program, streams, numbers, ordering, order)
    return findings


@dataclass
class _Numbers:
    """The instructions of all cores by their index in the lowered arrays."""

    lowered: Lowered
    streams: list[Stream]
    flat: list[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        self.flat = [instr for stream in self.streams for instr in stream.instructions]

    def core(self, number: int) -> int:
        return int(np.searchsorted(self.lowered.first, number, side="right")) - 1

    def text(self, number: int) -> str:
        instr = self.flat[number]
        on = f" of {self.streams[self.core(number)]}" if len(self.streams) > 1 else ""
        return f"{instr} at {instr.position} on {instr.unit.name}{on}"


def _issued(lowered: Lowered, ended: np.ndarray) -> np.ndarray:
    """Return 0 for each instruction that the program queue issues, and −1 for the others.

    The queue stops at the first instruction of unit S whose ``ended`` is −1: it never ends.
    """
    issued = np.full(len(lowered), -1, np.int64)
    for c in range(len(lowered.begin)):
        for i in range(lowered.first[c], lowered.first[c + 1]):
            issued[i] = 0
            if lowered.unit[i] == Unit.S and ended[i] < 0:
                break
    return issued


# Bounds and alignment: each operand by itself.


def _operands(program: Program, streams: list[Stream], numbers: _Numbers) -> Iterator[Finding]:
    """Check the bounds and alignment of operands; report each source line and memory once."""
    tensors = sorted(program.tensors.values(), key=lambda view: view.offset)
    starts = [view.offset for view in tensors]
    seen: set[tuple] = set()
    known: set[tuple] = set()
    number = -1
    for stream in streams:
        kind = program.chip.kind(stream.kind)
        for instr in stream.instructions:
            number += 1
            key = (stream.kind, instr.op, instr.reads, instr.writes)
            if key in known:
                continue
            known.add(key)
            for name, span in instr.spans():
                if not span.nbytes:
                    continue
                lower_bound, upper_bound, region = _room(span, kind.buffers, tensors, starts)
                if span.first < lower_bound or span.end > upper_bound:
                    at = ("bounds", instr.position, span.buffer, name)
                    if at not in seen:
                        seen.add(at)
                        mistake = f"{name}s {span}, which must be within {region}"
                        text = f"bounds: {numbers.text(number)} {mistake}"
                        yield Finding("bounds", text, (number,))
            for name, view in _aligned(instr):
                if view.buffer not in kind.buffers:
                    continue
                align = kind.buffers[view.buffer].align
                if instr.op in _NARROW and name == "dst":
                    align = DTYPES[view.dtype].itemsize
                at = ("alignment", instr.position, name)
                if view.offset % align and at not in seen:
                    seen.add(at)
                    mistake = f"has {name} at byte {view.offset} of {view.buffer}"
                    text = f"alignment: {numbers.text(number)} {mistake}, which must be a multiple"
                    yield Finding("alignment", f"{text} of {align}", (number,))


def _aligned(instr: Instruction) -> Iterable[tuple[str, View]]:
    """Return the operands that must be aligned: all but the single elements of scalar work."""
    if instr.unit == Unit.S:
        return ()
    return instr.operands.items()


def _room(span: Span, buffers, tensors: list[View], starts: list[int]) -> tuple[int, int, str]:
    """Return the first byte that a span may touch, one past the last, and a name for the region."""
    if span.buffer == GM:
        at = int(np.searchsorted(starts, span.start, side="right")) - 1
        if at < 0:
            return 0, 0, "a tensor"
        view = tensors[at]
        end = view.offset + view.nbytes
        return view.offset, end, f"tensor {view.name}, GM[{view.offset}:{end}]"
    if span.buffer not in buffers:
        return 0, 0, f"a buffer of the core: {', '.join(buffers)}"
    return (
        0,
        buffers[span.buffer].nbytes,
        f"the {buffers[span.buffer].nbytes} bytes of {span.buffer}",
    )


# Flags.


def _flags(lowered: Lowered, numbers: _Numbers, ordering: Ordering) -> Iterator[Finding]:
    """Find flags that can be set again before the previous set has been waited for."""
    sets: dict[tuple, list[int]] = defaultdict(list)
    waits: dict[tuple, list[int]] = defaultdict(list)
    for i in np.flatnonzero((lowered.kind == Kind.SET) | (lowered.kind == Kind.WAIT)).tolist():
        instr = numbers.flat[i]
        if instr.op in ("set_flag", "wait_flag"):
            f = instr.fields
            key = (numbers.core(i), f["source"], f["target"], f["register"])
            (sets if instr.kind == Kind.SET else waits)[key].append(i)
    seen: set[tuple] = set()
    instant = _Instant(lowered, ordering)
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
    """The order of sets and waits that the vector clocks do not give, because they take no time.

    A wait ends at the same time as the last instruction that it waits for.
    """

    def __init__(self, lowered: Lowered, ordering: Ordering) -> None:
        self.lowered, self.ordering = lowered, ordering
        self.chains: tuple[np.ndarray, np.ndarray] | None = None

    def by(self, early: int, late: int) -> bool:
        """Return True if ``early``, a set or wait, always has ended when ``late`` ends.

        This holds if ``early`` and everything that it waits for come before ``late`` in the
        program, since the program queue issues instructions in order.
        """
        if self.chains is None:
            self.chains = predecessors(self.lowered)
        lowered, (before, handed) = self.lowered, self.chains
        open_, known = [early], {early}
        while open_:
            i = open_.pop()
            if self.ordering.before(i, late):
                continue
            if lowered.kind[i] not in (Kind.SET, Kind.WAIT) or i > late:
                return False
            needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]].tolist()
            for j in (int(before[i]), int(handed[i]), *needs):
                if j >= 0 and j not in known:
                    known.add(j)
                    open_.append(j)
        return True


# Memory.


@dataclass
class _Space:
    """A memory and the accesses to it: instruction, index of the span, and True for a write."""

    spans: dict[Span, int] = field(default_factory=dict)
    number: list[int] = field(default_factory=list)
    span: list[int] = field(default_factory=list)
    write: list[bool] = field(default_factory=list)


def _memory(
    program: Program,
    streams: list[Stream],
    numbers: _Numbers,
    ordering: Ordering,
    order: np.ndarray,
) -> Iterator[Finding]:
    """Find races and reads of uninitialised bytes, memory by memory.

    Parameters
    ----------
    program : Program
    streams : list of Stream
    numbers : _Numbers
    ordering : Ordering
    order : (n,) ndarray of int64
        The instructions in an order that agrees with ``ordering``.
    """
    core_of = (ordering.queue // 8).tolist()
    spaces: dict[tuple[str, int], _Space] = defaultdict(_Space)
    for i in order.tolist():
        instr = numbers.flat[i]
        for spans, write in ((instr.reads, False), (instr.writes, True)):
            for span in spans:
                space = spaces[span.buffer, -1 if span.buffer == GM else core_of[i]]
                space.number.append(i)
                space.span.append(space.spans.setdefault(span, len(space.spans)))
                space.write.append(write)
    findings: list[Finding] = []
    partial: list[Finding] = []  # reads of which a part is defined
    for (buffer, _), space in spaces.items():
        edges, first, low, high = _segments(list(space.spans))
        accesses = Accesses(*(np.array(x) for x in (space.number, space.span, space.write)))
        slot = _slots(len(edges), first, low, high, accesses.span[accesses.write])
        memory = Memory(first, low, high, slot, _initialised(program, buffer, edges))
        touched = np.unique(ordering.queue[accesses.number])
        column = np.full(ordering.queue.max() + 1, -1)
        column[touched] = np.arange(len(touched))
        seen: set = set()
        # The sweep keeps an entry for each slot and queue; large memories are swept in parts.
        step = max(_ENTRIES // len(touched), 1)
        slots = int(slot.max(initial=0)) + 1
        for begin in range(0, slots, step):
            races, unknown = fitting(sweep, len(numbers.flat))(
                accesses,
                memory,
                ordering,
                column,
                begin,
                min(begin + step, slots),
                _LIMIT,
            )
            findings += _races(races, space, numbers, seen)
            for finding, whole in _unknown(unknown, space, numbers, edges, seen):
                (findings if whole else partial).append(finding)
    if partial:
        findings += _shown(partial, program, numbers, order)
    yield from sorted(findings, key=lambda f: f.instructions[::-1])


def _slots(
    segments: int, first: np.ndarray, low: np.ndarray, high: np.ndarray, spans: np.ndarray
) -> np.ndarray:
    """Return a number for each segment that some span covers, and −1 for the others."""
    change = np.zeros(segments + 1, np.int64)
    chosen = np.zeros(len(first) - 1, bool)
    chosen[spans] = True
    ranges = np.repeat(chosen, np.diff(first))
    np.add.at(change, low[ranges], 1)
    np.add.at(change, high[ranges], -1)
    there = np.cumsum(change)[:-1] > 0
    return np.where(there, np.cumsum(there) - 1, -1)


def _segments(spans: list[Span]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut a memory into segments at the bounds of all spans.

    Returns
    -------
    edges : ndarray of int64
        The first byte of each segment, ascending.
    first, low, high : ndarray of int64
        Span s covers the segments low[k] … high[k] − 1 for first[s] ≤ k < first[s + 1].
    """
    intervals = [span.intervals() for span in spans]
    counts = np.array([0] + [len(x) for x in intervals])
    flat = np.concatenate(intervals) if intervals else np.zeros((0, 2), np.int64)
    edges = np.unique(flat)
    low, high = np.searchsorted(edges, flat[:, 0]), np.searchsorted(edges, flat[:, 1])
    return edges, np.cumsum(counts), low, high


def _initialised(program: Program, buffer: str, edges: np.ndarray) -> np.ndarray:
    """Return the segments that are initialised at the start.

    These are the tensors with data; if no tensor has data, all of global memory counts.
    """
    ready = np.zeros(len(edges), bool)
    if buffer == GM:
        ready[:] = not program.data
        for name in program.data:
            view = program.tensors[name]
            ready |= (edges >= view.offset) & (edges < view.offset + view.nbytes)
    return ready


def _races(races: np.ndarray, space: _Space, numbers: _Numbers, seen: set) -> Iterator[Finding]:
    """Turn the races of ``sweep`` into findings; ``seen`` holds those already reported."""
    spans = list(space.spans)
    for a, b, _ in races.tolist():
        i, j = space.number[a], space.number[b]
        late, early = numbers.flat[i], numbers.flat[j]
        if i < j:
            i, j, late, early, a, b = j, i, early, late, b, a
        at = (early.position, late.position, space.write[b], space.write[a])
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
            flag = f"({early.unit.name}, {late.unit.name})"
            lacking = f"set_flag and wait_flag{flag} between them are missing"
        text = f"race: {numbers.text(j)} {verbs[0]} and {numbers.text(i)} {verbs[1]} {where}; "
        yield Finding("race", text + lacking, (j, i))


def _unknown(
    unknown: np.ndarray, space: _Space, numbers: _Numbers, edges: np.ndarray, seen: set
) -> Iterator[tuple[Finding, bool]]:
    """Turn the uninitialised reads of ``sweep`` into findings.

    Yield each with True if no byte that the instruction reads is initialised.
    """
    spans = list(space.spans)
    for a, segment, whole in unknown.tolist():
        i = space.number[a]
        instr = numbers.flat[i]
        if instr.position in seen:
            continue
        seen.add(instr.position)
        where = f"{spans[space.span[a]].buffer}[{edges[segment]}:{edges[segment + 1]}]"
        text = f"uninitialised: {numbers.text(i)} reads {where}, which nothing has written"
        yield Finding("uninitialised", text, (i,)), bool(whole)


def _shown(
    partial: list[Finding], program: Program, numbers: _Numbers, order: np.ndarray
) -> list[Finding]:
    """Return the findings if undefined bytes reach an output, else none; see ``undefined``."""
    from vitruvian.sim.davinci.semantics import FunctionalError

    cores = [core for core in program if core.instructions]
    if len(cores) != len(numbers.streams):  # the arrays were not lowered from this program
        return partial
    steps = [(cores[numbers.core(i)], numbers.flat[i]) for i in order.tolist()]
    try:
        where = shows_undefined(program, steps)
    except FunctionalError:
        return partial
    if where is None:
        return []
    out = f"; it comes out at {where.position}"
    return [Finding(f.check, f.message + out, f.instructions) for f in partial]
