"""Both sides of branches on data: the kernel runs again with other values of what it reads.

Native code does not say where it branches. But the simulator answers each scalar access, so that it
can answer another value: the kernel then takes the other side of a branch that depends on it. Only
the synchronisation of such a run is checked, since its results mean nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Position
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.deadlock import Deadlock

#: The checks whose findings count.
_CHECKS = ("race", "hazard", "flag", "deadlock")

#: The largest finite number of a floating-point type, by bytes.
_LARGEST = {2: 0x7BFF, 4: 0x7F7FFFFF, 8: 0x7FEF_FFFF_FFFF_FFFF}

#: A place that reads: the kind of core, and the chain of calls.
Place = tuple[str, bytes]


@dataclass(frozen=True)
class ScalarRead:
    """The first scalar read of a place: its line, its memory, and the value as an integer."""

    position: SourcePosition
    space: str
    address: int
    size: int
    value: int

    def others(self) -> list[int]:
        """Return other values: 0, 1, −1, the negated one, and the largest integer and float."""
        bits = 8 * self.size
        sign, ones = 1 << bits - 1, (1 << bits) - 1
        values = (0, 1, ones, self.value ^ sign, sign - 1, _LARGEST.get(self.size, 0))
        return [v for v in dict.fromkeys(values) if v != self.value]


class ScalarReads:
    """The scalar reads of a run by their places, of which one may be answered otherwise.

    Parameters
    ----------
    place : Place, optional
        The place whose reads are answered otherwise.
    value : int
        The answer.

    Attributes
    ----------
    first : dict of Place to ScalarRead
        The first read of each place.
    polls : set of bytes
        The chains of calls that poll, and whose values therefore are no data.
    """

    def __init__(self, place: Place | None = None, value: int = 0):
        self.first: dict[Place, ScalarRead] = {}
        self.polls: set[bytes] = set()
        self._place, self._value = place, value

    def answer(self, place: Place, read: ScalarRead) -> int:
        """Record a read and return the value that the kernel gets."""
        self.first.setdefault(place, read)
        return self._value if place == self._place else read.value


@dataclass(frozen=True)
class Rerun:
    """A way to run a kernel again, and the scalar reads of its first run.

    Attributes
    ----------
    record : callable
        Runs the kernel with given answers, and returns its program.
    reads : ScalarReads
    """

    record: Callable[[ScalarReads], Program]
    reads: ScalarReads


@dataclass(frozen=True)
class Branches:
    """What the runs with other values have found.

    Attributes
    ----------
    findings : list of Finding
        Findings that the first run does not have; each says which read had which value.
    failed : list of str
        One line for each run that did not end.
    runs : int
        The number of further runs.
    possible : int
        The number of runs that would have been possible.
    """

    findings: list[Finding]
    failed: list[str]
    runs: int
    possible: int


def other_sides(
    rerun: Rerun,
    check: Callable[[Program], list[Finding]],
    program: Program,
    known: list[Finding],
    *,
    runs: int,
) -> Branches:
    """Run a kernel again with other values of its scalar reads of data.

    Parameters
    ----------
    rerun : Rerun
    check : callable
        Returns the findings of a program.
    program : Program
        The program of the first run.
    known : list of Finding
        The findings of the first run.
    runs : int
        The most further runs.
    """
    reads = rerun.reads
    seen, data = set(_keys(program, known)), _data(program)
    findings: list[Finding] = []
    failed: list[str] = []
    changes = [
        (place, read, value)
        for place, read in reads.first.items()
        if place[1] not in reads.polls
        if read.space != GM or any(low <= read.address < high for low, high in data)
        for value in read.others()
    ]
    for place, read, value in changes[:runs]:
        when = f"when the read at {read.position.file}:{read.position.line} returns {value:#x}"
        try:
            other = rerun.record(ScalarReads(place, value))
            found = [f for f in check(other) if f.check in _CHECKS]
        except (CceError, Deadlock, ValueError) as error:
            failed.append(f"{when}, the kernel does not run to its end: {error}")
            continue
        for key, finding in zip(_keys(other, found), found, strict=True):
            if key not in seen:
                seen.add(key)
                text = finding.message.removeprefix(f"{finding.check}: ")
                findings.append(Finding(finding.check, f"{finding.check}: {when}: {text}"))
    return Branches(findings, failed, min(runs, len(changes)), len(changes))


def _keys(program: Program, findings: list[Finding]) -> Iterator[tuple[str, tuple[Position, ...]]]:
    """Yield what makes a finding the same in two runs: the check and the lines."""
    flat = [instr for core in program for instr in core.instructions]
    for finding in findings:
        yield finding.check, tuple(flat[i].position for i in finding.instructions)


def _data(program: Program) -> list[tuple[int, int]]:
    """Return the first byte and the end of each tensor in global memory that instructions move.

    Other tensors have numbers such as sizes, which are no data of the kernel.
    """
    moved = {
        (span.first, span.end)
        for core in program
        for instr in core.instructions
        if not instr.op.startswith("scalar_")
        for _, span in instr.spans()
        if span.buffer == GM
    }
    places = [(v.offset, v.offset + v.nbytes) for v in program.tensors.values()]
    return [(a, b) for a, b in places if any(low < b and a < high for low, high in moved)]
