"""What a run of a program says: times, units, paths, operations, and the critical path."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from vitruvian.sim.davinci.chip.model import ATTO, Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.timing.engine import Times
from vitruvian.sim.davinci.timing.lowering import Lowered, Stream, predecessors

__all__ = ["Finding", "Report", "Step", "UnitTime"]


@dataclass(frozen=True)
class Finding:
    """Something that a check found; see `sim.davinci.checks.check`.

    Attributes
    ----------
    check : str
        Name of the check.
    message : str
        One line that quotes the instructions with file and line.
    instructions : tuple of int
        Their numbers in the arrays.
    """

    check: str
    message: str
    instructions: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class UnitTime:
    """What one unit of one core did, in seconds.

    Attributes
    ----------
    core : str
    unit : Unit
    count : int
        Instructions, flags and barriers not counted.
    busy : float
        Running an instruction.
    waiting : float
        Standing at a wait or barrier.
    active : float
        Something in its queue or running; in the paper's words, its component's time.
    """

    core: str
    unit: Unit
    count: int
    busy: float
    waiting: float
    active: float


@dataclass(frozen=True)
class Step:
    """A piece of the critical path.

    Attributes
    ----------
    number : int
        Of the instruction in the arrays.
    begin, end : int
        Attoseconds; the end of one step is the begin of the next.
    why : {"launch", "queue", "flag", "dispatch", "barrier"}
        What it had to wait for: the launch, the instruction before it on its unit, a flag, the
        program queue, or the end of everything before a barrier.
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
    low : Lowered
    streams : list of Stream
    times : Times
    findings : list of Finding
        What the checks found.
    outputs : dict of str to ndarray
        What the tensors in global memory hold at the end, if data have been computed.
    """

    name: str
    chip: Chip
    low: Lowered
    streams: list[Stream]
    times: Times
    findings: list[Finding] = field(default_factory=list)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """Seconds from the launch to the end of the last instruction."""
        return self.times.total / ATTO

    @property
    def total_ps(self) -> int:
        """The same in whole picoseconds, rounded to nearest."""
        return (self.times.total + 500_000) // 1_000_000

    def instructions(self) -> Iterator[tuple[int, Stream, Instruction]]:
        """Number, core and instruction, in the order of the arrays."""
        number = 0
        for stream in self.streams:
            for one in stream.instructions:
                yield number, stream, one
                number += 1

    def instruction(self, number: int) -> tuple[Stream, Instruction]:
        """Core and instruction of a number."""
        c = int(np.searchsorted(self.low.first, number, side="right")) - 1
        return self.streams[c], self.streams[c].instructions[number - self.low.first[c]]

    def units(self) -> list[UnitTime]:
        """Every unit of every core that has instructions."""
        low, times, found = self.low, self.times, []
        for c, stream in enumerate(self.streams):
            part = slice(int(low.first[c]), int(low.first[c + 1]))
            unit, kind = low.unit[part], low.kind[part]
            start, end, issued = (x[part] for x in (times.start, times.end, times.issued))
            for u in Unit:
                mine = (unit == u) & (end >= 0)
                if not mine.any():
                    continue
                work = mine & (kind == Kind.NORMAL)
                wait = mine & (kind != Kind.NORMAL)
                found.append(
                    UnitTime(
                        core=str(stream),
                        unit=u,
                        count=int(work.sum()),
                        busy=int((end - start)[work].sum()) / ATTO,
                        waiting=int((end - start)[wait].sum()) / ATTO,
                        active=_union(issued[mine], end[mine]) / ATTO,
                    )
                )
        return found

    def path_bytes(self) -> dict[str, int]:
        """Bytes moved over each path, by name."""
        found: Counter[str] = Counter()
        for _, _, one in self.instructions():
            if one.path and one.op != "fill":
                found[one.path] += one.work.nbytes
        return dict(sorted(found.items()))

    def operations(self) -> dict[tuple[str, str], int]:
        """Arithmetic operations by unit and precision: ("M", "fp16")."""
        found: Counter[tuple[str, str]] = Counter()
        for _, _, one in self.instructions():
            if one.work.operations:
                found[one.unit.name, one.work.precision] += one.work.operations
        return dict(sorted(found.items()))

    def critical_path(self) -> list[Step]:
        """What the total is made of: steps that follow each other without a gap, last one last."""
        return _critical(self.low, self.times)

    def critical_units(self) -> dict[str, float]:
        """Seconds of the critical path on each unit, "launch" and waits for the queue included."""
        found: Counter[str] = Counter()
        path = self.critical_path()
        if path:
            found["launch"] = path[0].begin
        for step in path:
            found[Unit(int(self.low.unit[step.number])).name] += step.end - step.begin
        return {name: time / ATTO for name, time in found.items() if time}

    def as_dict(self) -> dict[str, Any]:
        """Everything but data and instructions, for JSON."""
        return {
            "name": self.name,
            "chip": self.chip.name,
            "total_ps": self.total_ps,
            "instructions": len(self.low),
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
            "findings": [{"check": f.check, "message": f.message} for f in self.findings],
        }

    def text(self) -> str:
        """A few lines for a terminal; cores that did the same share theirs."""
        total = self.total_s or 1.0
        lines = [
            f"{self.name} on {self.chip.name}: {self.total_s * 1e6:,.3f} µs, "
            f"{len(self.low):,} instructions on {len(self.streams)} cores",
            f"{'core':<15}{'unit':<6}{'count':>9}{'busy':>9}{'active':>9}{'waiting':>9}",
        ]
        rows: dict[str, list[str]] = {stream: [] for stream in map(str, self.streams)}
        for u in self.units():
            shares = "".join(f"{x / total:>9.1%}" for x in (u.busy, u.active, u.waiting))
            rows[u.core].append(f"{u.unit.name:<6}{u.count:>9,}{shares}")
        counted = enumerate(self.streams)
        for _, group in groupby(counted, lambda x: (x[1].kind, x[1].index - x[0], rows[str(x[1])])):
            same = [stream for _, stream in group]
            name = str(same[0]) if len(same) == 1 else f"{same[0]} to {same[-1].index}"
            lines += [f"{name:<15}{row}" for row in rows[str(same[0])]]
        for path, nbytes in self.path_bytes().items():
            lines.append(f"{path:<12}{nbytes:>15,} bytes {nbytes / total / 1e9:>9.2f} GB/s")
        for (unit, precision), n in self.operations().items():
            lines.append(
                f"{unit + ' ' + precision:<12}{n:>15,} operations {n / total / 1e9:>9.1f} G/s"
            )
        parts = sorted(self.critical_units().items(), key=lambda x: -x[1])
        shown = ", ".join(f"{name} {time / total:.1%}" for name, time in parts)
        lines.append(f"critical path: {shown}")
        lines += [str(finding) for finding in self.findings]
        return "\n".join(lines)


def _union(begin: np.ndarray, end: np.ndarray) -> int:
    """Length of a union of intervals."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    gaps = np.maximum(begin[1:] - end[:-1], 0).sum()
    return int(end[-1] - begin[0] - gaps)


def _critical(low: Lowered, times: Times) -> list[Step]:
    if not times.total:
        return []
    before, handed = predecessors(low)
    end, path, i = times.end, [], int(np.argmax(times.end))
    while i >= 0:
        cause, why = int(before[i]), "queue"
        if low.kind[i] == Kind.BARRIER_ALL:
            first = int(low.first[np.searchsorted(low.first, i, side="right") - 1])
            if i > first and end[first:i].max() > times.start[i]:
                cause, why = first + int(np.argmax(end[first:i])), "barrier"
        elif low.kind[i] == Kind.WAIT:
            needs = low.need[low.need_first[i] : low.need_first[i + 1]]
            latest = int(needs[np.argmax(end[needs])])
            if end[latest] + low.lag[i] > times.start[i]:
                cause, why = latest, "flag"
        if why == "queue" and low.unit[i] != Unit.S:
            held = int(handed[i])  # of two reasons at the same moment, the program queue
            level = cause >= 0 and end[cause] == times.issued[i] and held >= 0
            if cause < 0 or end[cause] < times.issued[i] or (level and end[held] == end[cause]):
                cause, why = held, "dispatch"
        if cause < 0:
            core = np.searchsorted(low.first, i, side="right") - 1
            begin, why = int(low.begin[core]), "launch"
        else:
            begin = int(end[cause])
        path.append(Step(i, begin, int(end[i]), why))
        i = cause
    return path[::-1]
