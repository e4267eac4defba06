"""The report of a run: times, units, paths, operations, and the critical path."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.report.busy import active_time
from vitruvian.sim.davinci.report.lines import SourceLine, lines_text, source_lines
from vitruvian.sim.davinci.report.work import operations, path_bytes
from vitruvian.sim.davinci.timing.engine import EngineTimes
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered
from vitruvian.sim.davinci.timing.predecessors import predecessors

if TYPE_CHECKING:
    from vitruvian.sim.rtl.core import CoreRun


@dataclass(frozen=True)
class Finding:
    """A mistake that a check found; see ``sim.davinci.checks.check``.

    Attributes
    ----------
    check : str
        Name of the check.
    message : str
        One line that quotes the instructions with file and line.
    instructions : tuple of int
        Indices of the instructions in the lowered arrays.
    """

    check: str
    message: str
    instructions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class UnitTime:
    """The times of one unit of one core, in seconds.

    Attributes
    ----------
    core : str
    unit : Unit
    count : int
        Number of instructions without flags and barriers.
    busy : float
        Time from the start of an instruction until its results are there, for all instructions;
        the time of two that overlap in the unit's pipeline counts once.
    waiting : float
        Time at waits and barriers.
    active : float
        Time during which an instruction is in the queue or running (the time of the component in
        Tang 2024).
    """

    core: str
    unit: Unit
    count: int
    busy: float
    waiting: float
    active: float


@dataclass(frozen=True)
class CriticalStep:
    """A step of the critical path.

    Attributes
    ----------
    number : int
        Index of the instruction in the lowered arrays.
    begin, end : int
        Attoseconds; a step ends when the next one begins, and the last one with its results.
    why : {"launch", "queue", "flag", "dispatch", "barrier", "round"}
        The reason why the instruction did not start earlier: the launch, the previous instruction
        on its unit, a flag, the program queue, all instructions before a barrier, or the block that
        had the core before.
    """

    number: int
    begin: int
    end: int
    why: str


@dataclass(eq=False)
class Report:
    """A run of a program on a chip.

    Attributes
    ----------
    name : str
    chip : Chip
    lowered : Lowered
    streams : list of CoreStream
    times : EngineTimes
    findings : list of Finding
        The findings of the checks.
    outputs : dict of str to ndarray
        The final contents of the tensors in global memory, if data have been computed.
    sources : mapping of str to str
        The source texts of a kernel by file name; other files are read when they are needed.
    calls : mapping of str to str
        The calls in which a line ran, as of ``Program``; findings print those of their lines.
    core : CoreRun, optional
        What the program did on the RTL, with the counters of its units.
    advice : dict, optional
        What to change and what it gains (``sim.roofline.advice``), in values that JSON has.
    """

    name: str
    chip: Chip
    lowered: Lowered
    streams: list[CoreStream]
    times: EngineTimes
    findings: list[Finding] = field(default_factory=list)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    core: "CoreRun | None" = None
    advice: dict[str, Any] | None = None

    @property
    def total_s(self) -> float:
        """The seconds from the launch until the results of all instructions are there."""
        return self.times.total / ATTO

    @property
    def total_ps(self) -> int:
        """The total time in whole picoseconds, rounded to nearest."""
        # A picosecond has 10⁶ attoseconds.
        return (self.times.total + 500_000) // 1_000_000

    def instructions(self) -> Iterator[tuple[int, CoreStream, Instruction]]:
        """Yield the index, the core and the instruction, for all instructions in array order."""
        number = 0
        for stream in self.streams:
            for instr in stream.instructions:
                yield number, stream, instr
                number += 1

    def instruction(self, number: int) -> tuple[CoreStream, Instruction]:
        """Return the core and the instruction at an index of the arrays."""
        c = int(np.searchsorted(self.lowered.first, number, side="right")) - 1
        return self.streams[c], self.streams[c].instructions[number - self.lowered.first[c]]

    @property
    def rounds(self) -> int:
        """The largest number of blocks that one core, or group of cores, has run."""
        before = _predecessor_gangs(self.lowered, self.times)
        rounds: list[int] = []
        for gang in range(len(before)):
            rounds.append(rounds[before[gang]] + 1 if before[gang] >= 0 else 1)
        return max(rounds, default=0)

    def cores(self) -> list[list[int]]:
        """Return the streams that each core has run, by index: one, or the blocks of its rounds."""
        before = _predecessor_gangs(self.lowered, self.times).tolist()
        # For each gang the first one that ran on its cores, which stands for them in all rounds.
        first: list[int] = []
        for gang, earlier in enumerate(before):
            first.append(first[earlier] if earlier >= 0 else gang)
        found: dict[tuple[int, str, int], list[int]] = {}
        seen: Counter[tuple[int, str]] = Counter()
        for c, stream in enumerate(self.streams):
            gang = int(self.lowered.gang[c])
            number = seen[gang, stream.kind]  # a gang may have several cores of a kind
            seen[gang, stream.kind] += 1
            found.setdefault((first[gang], stream.kind, number), []).append(c)
        return list(found.values())

    def units(self) -> list[UnitTime]:
        """Return the times of every unit of every core that has instructions."""
        lowered, times, rows = self.lowered, self.times, []
        for c, stream in enumerate(self.streams):
            part = slice(int(lowered.first[c]), int(lowered.first[c + 1]))
            unit, kind = lowered.unit[part], lowered.kind[part]
            start, end = times.start[part], times.end[part]
            for u in Unit:
                mine = (unit == u) & (end >= 0)
                if not mine.any():
                    continue
                # Sets and barriers wait for results as waits do for flags; none of them is work.
                wait = mine & (kind != Kind.NORMAL)
                rows.append(
                    UnitTime(
                        core=str(stream),
                        unit=u,
                        count=int((mine & ~wait).sum()),
                        busy=active_time(lowered, times, u, [c]) / ATTO,
                        waiting=int((end - start)[wait].sum()) / ATTO,
                        active=active_time(lowered, times, u, [c], queue=True) / ATTO,
                    )
                )
        return rows

    def path_bytes(self) -> dict[str, int]:
        """Return the bytes moved over each path, keyed by its name."""
        return path_bytes(stream.instructions for stream in self.streams)

    def operations(self) -> dict[tuple[str, str], int]:
        """Return the arithmetic operations, keyed by unit and precision such as ("M", "fp16")."""
        return operations(stream.instructions for stream in self.streams)

    def critical_path(self) -> list[CriticalStep]:
        """Return the steps that make up the total time, in order and without gaps."""
        return _critical(self.lowered, self.times)

    def critical_units(self) -> dict[str, float]:
        """Return the seconds of the critical path on each unit and in the launch.

        The time of a unit includes the waits for its queue.
        """
        atto: Counter[str] = Counter()
        path = self.critical_path()
        if path:
            atto["launch"] = path[0].begin
        for step in path:
            if step.why == "round":  # the launch of a block is no work of its first unit
                atto["launch"] += self.lowered.handover
                atto[Unit(int(self.lowered.unit[step.number])).name] -= self.lowered.handover
            atto[Unit(int(self.lowered.unit[step.number])).name] += step.end - step.begin
        return {name: time / ATTO for name, time in atto.items() if time}

    def lines(self) -> list[SourceLine]:
        """Return the times and bytes of each source line, the hottest line first.

        ``report.lines.source_lines`` describes the order and the sums.
        """
        critical = np.zeros(len(self.lowered), np.int64)
        for step in self.critical_path():
            critical[step.number] += step.end - step.begin
        return source_lines(self.lowered, self.streams, self.times, critical, self.sources)

    def as_dict(self) -> dict[str, Any]:
        """Return the report without data and instructions, in types that JSON can hold."""
        return {
            "name": self.name,
            "chip": self.chip.name,
            "total_ps": self.total_ps,
            "instructions": len(self.lowered),
            "rounds": self.rounds,
            "units": [
                {
                    "core": u.core,
                    "unit": u.unit.name,
                    "count": u.count,
                    "busy_s": u.busy,
                    "waiting_s": u.waiting,
                    "active_s": u.active,
                }
                for u in self.units()
            ],
            "path_bytes": self.path_bytes(),
            "operations": {" ".join(key): n for key, n in self.operations().items()},
            "critical_path_s": self.critical_units(),
            "lines": [line.as_dict() for line in self.lines()],
            "findings": [{"check": f.check, "message": f.message} for f in self.findings],
            **({} if self.advice is None else {"advice": self.advice}),
        }

    def _places(self) -> str:
        """Return the number of cores, or of blocks and rounds if there are more of these."""
        lowered = self.lowered
        if not lowered.places:
            return f"on {len(self.streams)} cores"
        blocks, kinds = int(lowered.gang.max()) + 1, len({stream.kind for stream in self.streams})
        cores = f"{lowered.places} {'groups of cores' if kinds > 1 else 'cores'}"
        return f"of {blocks:,} blocks in {self.rounds:,} rounds on {cores}"

    def text(self, lines: int = 0) -> str:
        """Return a few lines for a terminal; consecutive cores with equal figures share lines.

        Parameters
        ----------
        lines : int
            Number of source lines that are shown with their times, the hottest first.

        Raises
        ------
        ValueError
            If ``lines`` is negative.
        """
        if lines < 0:
            raise ValueError(f"lines must be 0 or more, not {lines!r}")
        total = self.total_s or 1.0
        wide = 22 if self.lowered.places else 15
        rows: dict[str, list[str]] = {stream: [] for stream in map(str, self.streams)}
        for u in self.units():
            shares = "".join(f"{x / total:>9.1%}" for x in (u.busy, u.active, u.waiting))
            rows[u.core].append(f"{u.unit.name:<6}{u.count:>9,}{shares}")
        # Consecutive cores have a constant difference of index and place.
        counted, named = enumerate(self.streams), []
        for _, group in groupby(counted, lambda x: (x[1].kind, x[1].index - x[0], rows[str(x[1])])):
            same = [stream for _, stream in group]
            name = str(same[0]) if len(same) == 1 else f"{same[0]} to {same[-1].index}"
            named += [(name, row) for row in rows[str(same[0])]]
        wide = max([wide, *(len(name) + 1 for name, _ in named)])
        texts = [
            f"{self.name} on {self.chip.name}: {self.total_s * 1e6:,.3f} µs, "
            f"{len(self.lowered):,} instructions {self._places()}",
            f"{'core':<{wide}}{'unit':<6}{'count':>9}{'busy':>9}{'active':>9}{'waiting':>9}",
            *(f"{name:<{wide}}{row}" for name, row in named),
        ]
        for path, nbytes in self.path_bytes().items():
            texts.append(f"{path:<12}{nbytes:>15,} bytes {nbytes / total / 1e9:>9.2f} GB/s")
        for (unit, precision), n in self.operations().items():
            texts.append(
                f"{unit + ' ' + precision:<12}{n:>15,} operations {n / total / 1e9:>9.1f} G/s"
            )
        parts = sorted(self.critical_units().items(), key=lambda x: -x[1])
        shown = ", ".join(f"{name} {time / total:.1%}" for name, time in parts)
        texts.append(f"critical path: {shown}")
        if lines:
            texts += lines_text(self.lines(), lines, total, len(self.streams))
        for finding in self.findings:
            texts += [str(finding), *self._calls_of(finding)]
        return "\n".join(texts)

    def _calls_of(self, finding: Finding) -> list[str]:
        """Return a line for each instruction of a finding whose calls are known."""
        places = dict.fromkeys(str(self.instruction(n)[1].position) for n in finding.instructions)
        return [f"  {place} in {self.calls[place]}" for place in places if place in self.calls]


def _predecessor_gangs(lowered: Lowered, times: EngineTimes) -> np.ndarray:
    """Return for each gang the gang that occupied its core before, or −1.

    Places go to the waiting gangs in ascending order, in the order in which earlier gangs end. Of
    two gangs that end at the same time, the one with the lower number comes first.
    """
    gangs = int(lowered.gang.max(initial=-1)) + 1
    before = np.full(gangs, -1, np.int64)
    if lowered.places:
        core_of = np.repeat(np.arange(len(lowered.gang)), np.diff(lowered.first))
        ends = np.zeros(gangs, np.int64)
        np.maximum.at(ends, lowered.gang[core_of], times.drained)
        waiting = max(gangs - lowered.places, 0)
        before[lowered.places :] = np.argsort(ends, kind="stable")[:waiting]
    return before


def _critical(lowered: Lowered, times: EngineTimes) -> list[CriticalStep]:
    """Return the critical path, found backwards from the instruction whose results come last.

    The cause of an instruction's start is the last of the events that it had to wait for.
    """
    if not times.total:
        return []
    before, handed = predecessors(lowered)
    gangs = _predecessor_gangs(lowered, times)
    end, complete = times.end, times.drained
    path, i, until = [], int(np.argmax(complete)), times.total
    while i >= 0:
        # By default, the instruction waited for the previous one on its unit. The other reasons
        # replace this one if they ended later.
        cause, why = int(before[i]), "queue"
        if lowered.kind[i] == Kind.BARRIER_ALL:
            first = int(lowered.first[np.searchsorted(lowered.first, i, side="right") - 1])
            if i > first and complete[first:i].max() > times.start[i]:
                cause, why = first + int(np.argmax(complete[first:i])), "barrier"
        elif lowered.kind[i] == Kind.WAIT:
            needs = lowered.need[lowered.need_first[i] : lowered.need_first[i + 1]]
            latest = int(needs[np.argmax(end[needs])])
            if end[latest] + lowered.lag[i] > times.start[i]:
                cause, why = latest, "flag"
        if why == "queue" and lowered.unit[i] != Unit.S:
            held = int(handed[i])  # if both reasons end at the same time, name the program queue
            # The queue and the program queue held the instruction back for equally long.
            level = cause >= 0 and end[cause] == times.issued[i] and held >= 0
            if cause < 0 or end[cause] < times.issued[i] or (level and end[held] == end[cause]):
                cause, why = held, "dispatch"
        if cause < 0:
            core = np.searchsorted(lowered.first, i, side="right") - 1
            begin, why = int(lowered.begin[core]), "launch"
            gang = int(gangs[lowered.gang[core]])
            if gang >= 0:
                # A block of a later round begins when the last core of the gang before it has
                # ended.
                parts = [
                    np.arange(lowered.first[c], lowered.first[c + 1])
                    for c in np.flatnonzero(lowered.gang == gang)
                ]
                numbers = np.concatenate(parts)
                cause, why = int(numbers[np.argmax(complete[numbers])]), "round"
                begin = int(end[cause])
        else:
            begin = int(end[cause])
        path.append(CriticalStep(i, begin, until, why))
        i, until = cause, begin
    return path[::-1]
