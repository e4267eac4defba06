"""Pictures of a run: a trace for Perfetto, a text timeline, a Gantt chart."""

import json
import math
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from vitruvian.files import write_whole
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.report import Report

__all__ = ["gantt", "timeline", "trace_events", "write_trace"]

#: A bar's colour by unit: a qualitative set that is told apart without red and green.
_COLOURS = {
    "S": "#555555",
    "V": "#56b4e9",
    "M": "#d55e00",
    "MTE1": "#f0e442",
    "MTE2": "#0072b2",
    "MTE3": "#cc79a7",
    "FIX": "#e69f00",
}

#: Instructions of a long trace.
_LONG = 100_000

#: Attoseconds of a nanosecond.
_NANO = ATTO // 10**9

_MARKS = " ▁▂▃▄▅▆▇█"


def trace_events(report: Report, *, flows: bool = True) -> Iterator[dict[str, Any]]:
    """Events in the JSON form of Chrome's trace viewer, which Perfetto reads.

    A core is a process, a unit a thread. Times are in microseconds, and whole nanoseconds, which
    is Perfetto's grain: it cuts both ``ts`` and ``dur`` down to that, and drops a bar that then
    reaches into the next one. So beginnings and ends are cut down here, and stay in order; in short
    traces a bar's arguments have them in picoseconds. With ``flows``, an arrow goes from each
    set_flag to its wait. Bars say their instruction and its place in the source, in long traces the
    place alone.
    """
    low, times = report.low, report.times
    core_of = np.repeat(np.arange(len(report.streams)), np.diff(low.first)).tolist()
    for c, stream in enumerate(report.streams):
        part = low.unit[int(low.first[c]) : int(low.first[c + 1])]
        yield {"ph": "M", "name": "process_name", **_place(c), "args": {"name": str(stream)}}
        for u in np.unique(part).tolist():
            name = {"name": Unit(u).name}
            yield {"ph": "M", "name": "thread_name", **_place(c, u), "args": name}
    arrows, arrows_first = _arrows(report) if flows else (np.zeros(0, int), None)
    for i, _, one in report.instructions():
        if times.end[i] < 0:
            continue
        begin, end = int(times.start[i]) // _NANO, int(times.end[i]) // _NANO
        event = {
            "ph": "X",
            "name": one.op,
            "cat": one.kind.name.lower(),
            **_place(core_of[i], one.unit),
            "ts": _microseconds(begin),
            "dur": _microseconds(end - begin),
            "args": {"source": str(one.position), "number": i},
        }
        if len(low) < _LONG:
            event["args"]["instruction"] = str(one)
            event["args"]["begin_ps"] = round(int(times.start[i]) / 10**6)
            event["args"]["end_ps"] = round(int(times.end[i]) / 10**6)
        yield event
        if arrows_first is None:
            continue
        # An arrow's ends follow their bars: of equal times, the file's order counts.
        place = _place(core_of[i], one.unit)
        arrow = {"cat": "flag", "name": "flag", **place, "ts": _microseconds(end)}
        for k in arrows[arrows_first[i] : arrows_first[i + 1]].tolist():
            yield {"ph": "s", "id": k, **arrow}
        if one.kind == Kind.WAIT:
            for k in range(int(low.need_first[i]), int(low.need_first[i + 1])):
                yield {"ph": "f", "bp": "e", "id": k, **arrow}


def _place(core: int, unit: int | None = None) -> dict[str, int]:
    """Process and thread: no number twice, and none 0, which means "idle" to Perfetto."""
    pid = 1000 * (core + 1)
    return {"pid": pid} if unit is None else {"pid": pid, "tid": pid + 1 + unit}


def _arrows(report: Report) -> tuple[np.ndarray, np.ndarray]:
    """Places in ``need`` whose set and wait have both ended, by set; and where each set's begin."""
    low, times = report.low, report.times
    waits = np.repeat(np.arange(len(low)), np.diff(low.need_first))
    places = np.flatnonzero((low.need >= 0) & (times.end[waits] >= 0))
    sets = low.need[places]
    order = np.argsort(sets, kind="stable")
    return places[order], np.searchsorted(sets[order], np.arange(len(low) + 1))


def _microseconds(nano: int) -> float:
    """Nanoseconds as microseconds that are not less after a multiplication by a thousand."""
    found = nano / 1000
    return found if int(found * 1000) == nano else math.nextafter(found, math.inf)


def write_trace(report: Report, file: TextIO, *, flows: bool = True) -> int:
    """Write a trace, one event a line; return the number of events."""
    count = 0
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    for event in trace_events(report, flows=flows):
        file.write((",\n" if count else "") + json.dumps(event, ensure_ascii=False))
        count += 1
    file.write("\n]}\n")
    return count


def timeline(report: Report, width: int = 72) -> str:
    """A line for each unit: how busy it is in each of ``width`` parts of the time.

    Raises
    ------
    ValueError
        If the width is below 1.
    """
    if width < 1:
        raise ValueError(f"width must be 1 or more, not {width!r}")
    low, times = report.low, report.times
    total = max(times.total, 1)
    edges = np.linspace(0, total, width + 1)
    lines = []
    for c, stream in enumerate(report.streams):
        part = np.arange(low.first[c], low.first[c + 1])
        for u in Unit:
            mine = part[(low.unit[part] == u) & (times.end[part] >= 0)]
            if not len(mine):
                continue
            work = mine[low.kind[mine] == Kind.NORMAL]
            begin, end = times.start[work].astype(float), times.end[work].astype(float)
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
    """Draw a Gantt chart to a file, PNG or SVG by its name; the same run gives the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    low, times = report.low, report.times
    rows = []
    for c, stream in enumerate(report.streams):
        part = np.arange(low.first[c], low.first[c + 1])
        for u in Unit:
            mine = part[(low.unit[part] == u) & (times.end[part] >= 0)]
            if len(mine):
                name = u.name if len(report.streams) == 1 else f"{stream} {u.name}"
                rows.append((name, u, mine))
    settings: Any = {"svg.hashsalt": "vitruvian", "svg.fonttype": "path", "font.size": 9}
    settings["text.parse_math"] = False  # names of chips and cores are not formulas
    with matplotlib.rc_context(settings):
        figure, axes = plt.subplots(figsize=(10, 0.9 + 0.4 * len(rows)), layout="constrained")
        for at, (_, u, mine) in enumerate(rows):
            for kind, alpha, height in ((Kind.NORMAL, 1.0, 0.8), (Kind.WAIT, 0.25, 0.3)):
                some = mine[(low.kind[mine] == kind) & (times.end[mine] > times.start[mine])]
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
        axes.set_xlim(0, times.total / 10**12 or 1)
        axes.set_title(title or f"{report.name} on {report.chip.name}")
        form = Path(path).suffix.lower().removeprefix(".") or "png"
        metadata = {"Date": None} if form == "svg" else {}
        picture = BytesIO()
        figure.savefig(picture, format=form, dpi=120, metadata=metadata)
        plt.close(figure)
    write_whole(path, picture.getvalue())


def _joined(begin: np.ndarray, end: np.ndarray, gap: int) -> np.ndarray:
    """(begin, length) of bars, those joined that are closer than what can be seen."""
    if not len(begin):
        return np.zeros((0, 2))
    heads = np.append(True, begin[1:] - end[:-1] > gap)
    tails = np.append(heads[1:], True)
    return np.column_stack([begin[heads], end[tails] - begin[heads]])
