"""Checks of memory: races, hazards, atomic sums without an order, and uninitialised reads."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.sim.davinci.checks.compiled import (
    ATOMIC,
    HAZARD,
    NONDETERMINISTIC,
    RACE,
    READ,
    WRITE,
    Accesses,
    Ordering,
    SegmentedMemory,
    sweep,
)
from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.checks.undefined import shows_undefined
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import Span, is_integer
from vitruvian.sim.davinci.isa.segments import segments
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.lowering import CoreStream

#: The largest number of findings of one kind in one memory; the search then stops.
_LIMIT = 10_000

#: The largest number of latest accesses that are kept at a time: 64 MB.
_ENTRIES = 8_000_000

#: Names of the conflicts of ``sweep``, and verbs of the kinds of accesses.
_NAMES = {RACE: "race", HAZARD: "hazard", NONDETERMINISTIC: "nondeterministic"}
_VERBS = {READ: "reads", WRITE: "writes", ATOMIC: "updates"}


@dataclass
class _Space:
    """A memory and the accesses to it: instruction, index of the span, and kind of access."""

    spans: dict[Span, int] = field(default_factory=dict)
    number: list[int] = field(default_factory=list)
    span: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    #: Numbers of the atomic dtypes and operations, from ``ATOMIC``.
    atomics: dict[tuple[str, str], int] = field(default_factory=dict)

    def written(self, instr: Instruction) -> int:
        """Return the kind of access of an instruction's writes to this memory."""
        atomic = instr.fields.get("atomic")
        if not atomic:
            return WRITE
        key = atomic, instr.fields["atomic_operation"]
        return self.atomics.setdefault(key, ATOMIC + len(self.atomics))

    def ordered(self) -> np.ndarray:
        """Return True for the kinds of accesses whose result depends on their order.

        A sum of floating-point numbers is rounded at every step. Sums of integers wrap, and the
        largest or smallest of some numbers is the same in every order.
        """
        sums = [operation == "add" and not is_integer(dtype) for dtype, operation in self.atomics]
        return np.array([True, True, *sums])


def memory_findings(
    program: Program,
    streams: list[CoreStream],
    numbers: Numbers,
    ordering: Ordering,
    order: np.ndarray,
) -> Iterator[Finding]:
    """Find races and reads of uninitialised bytes, memory by memory.

    Parameters
    ----------
    order : (n,) ndarray of int64
        The instructions in an order that agrees with ``ordering``.
    """
    core_of = (ordering.queue // 8).tolist()
    spaces: dict[tuple[str, int], _Space] = defaultdict(_Space)
    for i in order.tolist():
        instr = numbers.flat[i]
        for spans, write in ((instr.reads, False), (instr.writes, True)):
            for span in spans:
                # Cores share global memory alone; each has its own of all other buffers.
                space = spaces[span.buffer, -1 if span.buffer == GM else core_of[i]]
                space.number.append(i)
                space.span.append(space.spans.setdefault(span, len(space.spans)))
                if not write:
                    space.kind.append(READ)
                else:  # only global memory has atomic updates
                    space.kind.append(space.written(instr) if span.buffer == GM else WRITE)
    findings: list[Finding] = []
    partial: list[Finding] = []  # reads of which a part is defined
    for (buffer, _), space in spaces.items():
        swept = _swept(program, buffer, space, numbers, ordering)
        # Repetitions that write the same bytes are no hazards. Their numbers take effect in a
        # second sweep.
        if _repeated(swept, space, numbers, ordering):
            swept = _swept(program, buffer, space, numbers, ordering)
        seen: set = set()
        for what, conflicts in swept.conflicts:
            findings += _conflicts(conflicts, what, space, numbers, seen)
        for unknown in swept.unknown:
            for finding, whole in _unknown(unknown, space, numbers, swept.edges, seen):
                (findings if whole else partial).append(finding)
    if partial:
        findings += _shown(partial, program, numbers, order)
    yield from sorted(findings, key=lambda f: f.instructions[::-1])


@dataclass
class _Swept:
    """The results of ``sweep`` for the parts of a memory, and the memory's segments."""

    edges: np.ndarray
    conflicts: list[tuple[int, np.ndarray]] = field(default_factory=list)
    unknown: list[np.ndarray] = field(default_factory=list)


def _swept(
    program: Program, buffer: str, space: _Space, numbers: Numbers, ordering: Ordering
) -> _Swept:
    """Compare all accesses to a memory."""
    edges, first, low, high = segments(list(space.spans))
    accesses = Accesses(*(np.array(x) for x in (space.number, space.span, space.kind)))
    slot = _slots(len(edges), first, low, high, accesses.span[accesses.kind != READ])
    ordered = space.ordered()
    memory = SegmentedMemory(first, low, high, slot, _initialised(program, buffer, edges))
    touched = np.unique(ordering.queue[accesses.number])
    # A program of many blocks has many memories, so that the array is made once for all of them.
    numbers.column[touched] = np.arange(len(touched))
    # The sweep keeps an entry for each slot, queue and kind; large memories are swept in parts.
    step = max(_ENTRIES // (len(touched) * len(ordered)), 1)
    slots = int(slot.max(initial=0)) + 1
    result = _Swept(edges)
    for begin in range(0, slots, step):
        end = min(begin + step, slots)
        conflicts, found, unknown = fitting(sweep, len(numbers.flat))(
            accesses, memory, ordering, numbers.column, len(touched), ordered, begin, end, _LIMIT
        )
        for what, count in enumerate(found.tolist()):
            result.conflicts.append((what, conflicts[what, :count]))
        result.unknown.append(unknown)
    return result


def _repeated(swept: _Swept, space: _Space, numbers: Numbers, ordering: Ordering) -> bool:
    """Give repetitions of an instruction a number in ``ordering.chain``, if any is a hazard.

    An instruction that is executed again writes the same bytes again, in whatever order, if it does
    not read what it writes. Only programs with such hazards pay for the search.

    Returns
    -------
    bool
        True if there are any, so that the memory must be swept again.
    """
    flat = numbers.flat
    alike: set[str] = set()
    for what, conflicts in swept.conflicts:
        if what == HAZARD:
            for a, b in conflicts[:, :2].tolist():
                late, early = flat[space.number[a]], flat[space.number[b]]
                if (
                    late.op not in alike
                    and (late.op, late.reads, late.writes) == (early.op, early.reads, early.writes)
                    and space.kind[a] == space.kind[b] == WRITE
                    and _content(late) == _content(early)
                ):
                    alike.add(late.op)
    if not alike:
        return False
    known: dict[tuple, int] = {}
    first = int(ordering.chain.max()) + 1
    for i, instr in enumerate(flat):
        if instr.op in alike and not ordering.chain[i] and not _reads_own(instr):
            ordering.chain[i] = known.setdefault(_content(instr), first + len(known))
    return bool(known)


def _content(instr: Instruction) -> tuple:
    """Return everything that an instruction's effect depends on."""
    operands = tuple(instr.operands.items())
    return instr.op, instr.reads, instr.writes, operands, repr(instr.fields)


def _reads_own(instr: Instruction) -> bool:
    """Return True if an instruction reads bytes that it writes."""
    return any(read.overlap(write) for read in instr.reads for write in instr.writes)


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
    # +1 where a span begins and −1 behind its end: the sum counts the spans that cover a segment.
    there = np.cumsum(change)[:-1] > 0
    return np.where(there, np.cumsum(there) - 1, -1)


def _initialised(program: Program, buffer: str, edges: np.ndarray) -> np.ndarray:
    """Return the segments that are initialised at the start.

    These are the tensors with data; if no tensor has data, all of global memory counts.
    """
    ready = np.zeros(len(edges), bool)
    if buffer == GM:
        ready[:] = not program.data
        for name in program.data:
            view = program.tensors[name]
            # Segments are cut at the edges of spans and not of tensors: the first byte of each
            # decides.
            ready |= (edges >= view.offset) & (edges < view.offset + view.nbytes)
    return ready


def _conflicts(
    conflicts: np.ndarray, what: int, space: _Space, numbers: Numbers, seen: set
) -> Iterator[Finding]:
    """Turn the conflicts of ``sweep`` into findings; ``seen`` holds those already reported."""
    spans = list(space.spans)
    for a, b, _ in conflicts.tolist():
        i, j = space.number[a], space.number[b]
        late, early = numbers.flat[i], numbers.flat[j]
        # A finding names the earlier instruction of the program first.
        if i < j:
            i, j, late, early, a, b = j, i, early, late, b, a
        # One barrier removes all hazards between two instructions.
        kinds = () if what == HAZARD else (space.kind[b], space.kind[a])
        at = (what, early.position, late.position, *kinds)
        if at in seen:
            continue
        seen.add(at)
        common = spans[space.span[a]].overlap(spans[space.span[b]])
        assert common is not None
        where = f"{spans[space.span[a]].buffer}[{common[0]}:{common[1]}]"
        verbs = [_VERBS[min(space.kind[k], ATOMIC)] for k in (b, a)]
        if what == NONDETERMINISTIC:
            dtype, _ = next(k for k, v in space.atomics.items() if v == space.kind[a])
            lacking = f"nothing orders them, and sums of {dtype} depend on their order"
        elif what == HAZARD:
            lacking = f"pipe_barrier({late.unit.name}) between them is missing"
        elif numbers.core(i) != numbers.core(j):
            lacking = "nothing orders the two cores"
        else:
            flag = f"({early.unit.name}, {late.unit.name})"
            lacking = f"set_flag and wait_flag{flag} between them are missing"
        name = _NAMES[what]
        text = f"{name}: {numbers.text(j)} {verbs[0]} and {numbers.text(i)} {verbs[1]} {where}; "
        yield Finding(name, text + lacking, (j, i))


def _unknown(
    unknown: np.ndarray, space: _Space, numbers: Numbers, edges: np.ndarray, seen: set
) -> Iterator[tuple[Finding, bool]]:
    """Turn the uninitialised reads of ``sweep`` into findings.

    Yield each with True if no byte that the instruction reads is initialised.
    """
    spans = list(space.spans)
    for a, segment, whole in unknown.tolist():
        i = space.number[a]
        instr = numbers.flat[i]
        if instr.position in seen or _clears(instr):
            continue
        seen.add(instr.position)
        where = f"{spans[space.span[a]].buffer}[{edges[segment]}:{edges[segment + 1]}]"
        text = f"uninitialised: {numbers.text(i)} reads {where}, which nothing has written"
        yield Finding("uninitialised", text, (i,)), bool(whole)


def _clears(instr: Instruction) -> bool:
    """Return True for a product of integers by 0, which does not depend on what it reads."""
    f = instr.fields
    return instr.op == "vmuls" and f["scalar"] == 0 and is_integer(instr.operands["src"].dtype)


def _shown(
    partial: list[Finding], program: Program, numbers: Numbers, order: np.ndarray
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
