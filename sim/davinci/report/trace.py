"""Views of a run: a trace for Perfetto, a text timeline, and a Gantt chart."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.report import Report

#: The colour of each unit's bars, from a set that readers with colour blindness can tell apart.
_COLOURS = {
    "S": "#555555",
    "V": "#56b4e9",
    "M": "#d55e00",
    "MTE1": "#f0e442",
    "MTE2": "#0072b2",
    "MTE3": "#cc79a7",
    "FIX": "#e69f00",
}

#: Traces of this many instructions or more omit the text of each instruction.
_LONG = 100_000

#: Attoseconds in a nanosecond.
_NANO = ATTO // 10**9

_MARKS = " ▁▂▃▄▅▆▇█"


def trace_events(report: Report, *, flows: bool = True) -> Iterator[dict[str, Any]]:
    """Yield events in the JSON format of Chrome's trace viewer, which Perfetto reads.

    A core is shown as a process and a unit as a thread. Each bar has its source position; in short
    traces it also has the instruction and its exact times in picoseconds.

    Times are in microseconds but truncated to whole nanoseconds, the resolution of Perfetto: it
    truncates ``ts`` and ``dur`` separately and drops a bar that then overlaps the next one.
    Truncating both ends of a bar beforehand keeps all bars in order.

    Parameters
    ----------
    flows : bool
        If True, add an arrow from each set_flag to its wait.
    """
    lowered, times = report.lowered, report.times
    core_of = np.repeat(np.arange(len(report.streams)), np.diff(lowered.first)).tolist()
    for c, stream in enumerate(report.streams):
        part = lowered.unit[int(lowered.first[c]) : int(lowered.first[c + 1])]
        yield {"ph": "M", "name": "process_name", **_place(c), "args": {"name": str(stream)}}
        for u in np.unique(part).tolist():
            name = {"name": Unit(u).name}
            yield {"ph": "M", "name": "thread_name", **_place(c, u), "args": name}
    arrows, arrows_first = _arrows(report) if flows else (np.zeros(0, int), None)
    for i, _, instr in report.instructions():
        if times.end[i] < 0:
            continue
        begin, end = int(times.start[i]) // _NANO, int(times.end[i]) // _NANO
        event = {
            "ph": "X",
            "name": instr.op,
            "cat": instr.kind.name.lower(),
            **_place(core_of[i], instr.unit),
            "ts": _microseconds(begin),
            "dur": _microseconds(end - begin),
            "args": {"source": str(instr.position), "number": i},
        }
        if len(lowered) < _LONG:
            event["args"]["instruction"] = str(instr)
            event["args"]["begin_ps"] = round(int(times.start[i]) / 10**6)
            event["args"]["end_ps"] = round(int(times.end[i]) / 10**6)
        yield event
        if arrows_first is None:
            continue
        # The ends of an arrow follow their bars, since events of equal time count in file order.
        place = _place(core_of[i], instr.unit)
        arrow = {"cat": "flag", "name": "flag", **place, "ts": _microseconds(end)}
        for k in arrows[arrows_first[i] : arrows_first[i + 1]].tolist():
            yield {"ph": "s", "id": k, **arrow}
        if instr.kind == Kind.WAIT:
            for k in range(int(lowered.need_first[i]), int(lowered.need_first[i + 1])):
                yield {"ph": "f", "bp": "e", "id": k, **arrow}


def _place(core: int, unit: int | None = None) -> dict[str, int]:
    """Return unique process and thread numbers; none is 0, which means "idle" to Perfetto."""
    pid = 1000 * (core + 1)
    return {"pid": pid} if unit is None else {"pid": pid, "tid": pid + 1 + unit}


def _arrows(report: Report) -> tuple[np.ndarray, np.ndarray]:
    """Group the entries of ``need`` by their set, if both the set and the wait have ended.

    Returns
    -------
    entries : ndarray of int64
        Indices into ``need``, ordered by the set.
    first : (n + 1,) ndarray of int64
        The entries of instruction i are entries[first[i] : first[i + 1]].
    """
    lowered, times = report.lowered, report.times
    waits = np.repeat(np.arange(len(lowered)), np.diff(lowered.need_first))
    places = np.flatnonzero((lowered.need >= 0) & (times.end[waits] >= 0))
    sets = lowered.need[places]
    order = np.argsort(sets, kind="stable")
    return places[order], np.searchsorted(sets[order], np.arange(len(lowered) + 1))


def _microseconds(nano: int) -> float:
    """Convert to microseconds such that Perfetto's truncation of 1000 · µs returns ``nano``."""
    micro = nano / 1000
    return micro if int(micro * 1000) == nano else math.nextafter(micro, math.inf)


def write_trace(report: Report, file: TextIO, *, flows: bool = True) -> int:
    """Write a trace with one event per line; return the number of events."""
    count = 0
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    for event in trace_events(report, flows=flows):
        file.write((",\n" if count else "") + json.dumps(event, ensure_ascii=False))
        count += 1
    file.write("\n]}\n")
    return count


def timeline(report: Report, width: int = 72) -> str:
    """Draw a line of text for each unit: how busy it is in each of ``width`` parts of the time.

    Raises
    ------
    ValueError
        If the width is below 1.
    """
    if width < 1:
        raise ValueError(f"width must be 1 or more, not {width!r}")
    lowered, times = report.lowered, report.times
    total = max(times.total, 1)
    edges = np.linspace(0, total, width + 1)
    lines = []
    for c, stream in enumerate(report.streams):
        part = np.arange(lowered.first[c], lowered.first[c + 1])
        for u in Unit:
            mine = part[(lowered.unit[part] == u) & (times.end[part] >= 0)]
            if not len(mine):
                continue
            work = mine[lowered.kind[mine] == Kind.NORMAL]
            begin, end = times.start[work].astype(float), times.end[work].astype(float)
            # The busy time up to a point is piecewise linear, so its differences are the shares.
            done = np.concatenate([[0.0], np.cumsum(end - begin)])
            grid = np.concatenate([[0.0], np.column_stack([begin, end]).ravel(), [float(total)]])
            value = np.concatenate([[0.0], np.repeat(done, 2)[1:-1], [done[-1]]])
            share = np.diff(np.interp(edges, grid, value)) / (total / width)
            marks = np.ceil(np.clip(share, 0, 1) * (len(_MARKS) - 1) - 1e-9).astype(int)
            bar = "".join(_MARKS[m] for m in marks)
            lines.append(f"{stream!s:<10} {u.name:<5}|{bar}|")
    scale = f"{'':<16}|0{total / ATTO * 1e6:>{width - 4}.3f} µs|"
    return "\n".join([*lines, scale])


def gantt(report: Report, path: str | Path, *, title: str | None = None) -> None:
    """Draw a Gantt chart to a PNG or SVG file, or its data to a JSON file.

    The axis begins when the first core does, after the launch of the kernel. The same run gives the
    same bytes.

    Parameters
    ----------
    path : str or Path
        The file, whose suffix selects the format.
    title : str, optional
        By default the names of the program and the chip.
    """
    lowered, times = report.lowered, report.times
    rows = []
    for c, stream in enumerate(report.streams):
        part = np.arange(lowered.first[c], lowered.first[c + 1])
        for u in Unit:
            mine = part[(lowered.unit[part] == u) & (times.end[part] >= 0)]
            if len(mine):
                name = u.name if len(report.streams) == 1 else f"{stream} {u.name}"
                rows.append((name, u, mine))

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        for at, (_, u, mine) in enumerate(rows):
            for kind, alpha, height in ((Kind.NORMAL, 1.0, 0.8), (Kind.WAIT, 0.25, 0.3)):
                some = mine[(lowered.kind[mine] == kind) & (times.end[mine] > times.start[mine])]
                bars = _joined(times.start[some], times.end[some], times.total // 5000)
                axes.broken_barh(
                    (bars / 10**12).tolist(),
                    (at - height / 2, height),
                    facecolors=_COLOURS[u.name],
                    alpha=alpha,
                    edgecolor="none",
                )
        axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        axes.invert_yaxis()
        axes.set_xlabel("time [µs]; thin and pale: waiting for a flag")
        launched = int(lowered.begin.min(initial=times.total))  # nothing is drawn before it
        axes.set_xlim(launched / 10**12, times.total / 10**12 or 1)
        axes.set_title(title or f"{report.name} on {report.chip.name}")

    write_figure(path, fill, 10, 0.9 + 0.4 * len(rows))


def _joined(begin: np.ndarray, end: np.ndarray, gap: int) -> np.ndarray:
    """Return (begin, length) of bars; bars whose gap is at most ``gap`` are joined into one."""
    if not len(begin):
        return np.zeros((0, 2))
    heads = np.append(True, begin[1:] - end[:-1] > gap)
    tails = np.append(heads[1:], True)
    return np.column_stack([begin[heads], end[tails] - begin[heads]])
