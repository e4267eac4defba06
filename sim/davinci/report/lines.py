"""Hot spots: the times and bytes of a run by line of the kernel's source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import printable
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.davinci.isa.instruction import Kind, Position, Unit
from vitruvian.sim.davinci.report.busy import busy_times
from vitruvian.sim.davinci.report.source import ProgramSources
from vitruvian.sim.davinci.report.work import moved_bytes
from vitruvian.sim.davinci.timing.engine import EngineTimes
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered

#: Characters of a source line that ``lines_text`` shows.
_SHOWN = 48


@dataclass(frozen=True)
class SourceLine:
    """The instructions of one line of the source, on all cores.

    Attributes
    ----------
    file : str
        The file as instructions name it: a path for Python, a file name for CCE C.
    line : int
        The number of the line, from 1.
    function : str
        The function that contains the line, or "" if it is not known.
    text : str
        The line itself, or "" if the file cannot be read.
    units : tuple of str
        The units that the instructions ran on.
    count : int
        The number of instructions, with flags and barriers.
    busy_s : float
        Seconds in which these instructions ran, added over units and cores; of two that overlap on
        one unit, the later one counts only from the end of the earlier one.
    waiting_s : float
        Seconds at waits and barriers of this line, added over units and cores.
    critical_s : float
        Seconds of the critical path on this line; the launch belongs to no line.
    nbytes : int
        Bytes that the moves of this line transferred.
    """

    file: str
    line: int
    function: str
    text: str
    units: tuple[str, ...]
    count: int
    busy_s: float
    waiting_s: float
    critical_s: float
    nbytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return the line in types that JSON can hold."""
        return {**self.__dict__, "units": list(self.units)}


def source_lines(
    lowered: Lowered,
    streams: Sequence[CoreStream],
    times: EngineTimes,
    critical: np.ndarray,
    texts: Mapping[str, str] | None = None,
) -> list[SourceLine]:
    """Return the lines of the source, those with the most time on the critical path first.

    Lines with equal times on the critical path are ordered by busy time, then by waiting time. The
    busy and the waiting times of all lines add up to those of ``Report.units``, the bytes to those
    of ``Report.path_bytes``, and the times on the critical path to the total without the launch.

    Parameters
    ----------
    critical : (n,) ndarray of int64
        Attoseconds of the critical path on each instruction.
    texts : mapping of str to str, optional
        Source texts by the names of files; see ``ProgramSources``.
    """
    places: dict[Position, int] = {}
    place = np.empty(len(lowered), np.int64)
    moved = np.zeros(len(lowered), np.int64)
    instructions = (instr for stream in streams for instr in stream.instructions)
    for i, instr in enumerate(instructions):
        place[i] = places.setdefault(instr.position, len(places))
        moved[i] = moved_bytes(instr)
    ran = times.end >= 0
    waited = ran & (lowered.kind != Kind.NORMAL)

    def total(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        # Attoseconds are added as integers: ``np.bincount`` would round them to float64.
        sums = np.zeros(len(places), np.int64)
        np.add.at(sums, place[mask], values[mask])
        return sums

    count = np.bincount(place, minlength=len(places))
    busy, waiting = total(busy_times(lowered, times), ran), total(times.end - times.start, waited)
    nbytes, latest = total(moved, ran), total(critical, ran)
    on = np.zeros(len(places), np.int64)
    # A bit for each unit that some instruction of the line ran on.
    np.bitwise_or.at(on, place, np.left_shift(1, lowered.unit.astype(np.int64)))
    sources = ProgramSources(texts)
    rows = []
    for position, k in places.items():
        file, line = position.file, position.line
        row = SourceLine(
            file=file,
            line=line,
            function=sources.function(file, line),
            text=sources.line(file, line),
            units=tuple(u.name for u in Unit if on[k] >> u & 1),
            count=int(count[k]),
            busy_s=int(busy[k]) / ATTO,
            waiting_s=int(waiting[k]) / ATTO,
            critical_s=int(latest[k]) / ATTO,
            nbytes=int(nbytes[k]),
        )
        rows.append(row)
    return sorted(rows, key=lambda r: (-r.critical_s, -r.busy_s, -r.waiting_s, r.file, r.line))


def lines_text(rows: list[SourceLine], limit: int, total_s: float, cores: int) -> list[str]:
    """Return a table of the first ``limit`` lines, as text for a terminal.

    All times are shares of the total time. Busy and waiting times are means over the cores; if
    several units of a core run the same line at once, they can exceed 100 %.

    Parameters
    ----------
    rows : list of SourceLine
        As ``source_lines`` returns them.
    """
    names = [f"{_name(r.file)}:{r.line}" for r in rows[:limit]]
    wide = max([len(name) for name in names], default=0)
    wide = max(wide, len("source line")) + 2
    head = f"{'source line':<{wide}}{'count':>9}{'critical':>10}{'busy':>9}{'waiting':>9}"
    lines = [f"{head}{'bytes':>15}  units, function: text"]
    for name, r in zip(names, rows, strict=False):
        shares = f"{r.critical_s / total_s:>10.1%}{r.busy_s / cores / total_s:>9.1%}"
        shares += f"{r.waiting_s / cores / total_s:>9.1%}"
        about = ", ".join(filter(None, ("/".join(r.units), _plain(r.function))))
        text = _plain(r.text)
        text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        about += f": {text}" if text else ""
        lines.append(f"{name:<{wide}}{r.count:>9,}{shares}{r.nbytes:>15,}  {about}")
    if len(rows) > limit:
        left = sum(r.critical_s for r in rows[limit:]) / total_s
        lines.append(f"… and {len(rows) - limit:,} more lines with {left:.1%} of the critical path")
    return lines


def _name(file: str) -> str:
    """Return the last two parts of a path, which tell apart most files of a project."""
    return _plain("/".join(file.replace("\\", "/").split("/")[-2:]))


def _plain(text: str) -> str:
    """Return a text with control characters escaped: a kernel's text may be hostile."""
    return printable(text.expandtabs(4))
