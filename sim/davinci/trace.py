"""Pictures of a run: a trace for Perfetto, a text timeline, a Gantt chart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .chip import ATTO
from .instruction import Kind, Unit
from .report import Report

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

_MARKS = " ▁▂▃▄▅▆▇█"


def trace_events(report: Report, *, flows: bool = True) -> Iterator[dict[str, Any]]:
    """Events in the JSON form of Chrome's trace viewer, which Perfetto reads.

    A core is a process, a unit a thread; times are in microseconds with picoseconds as decimals.
    With ``flows``, an arrow goes from each set_flag to its wait. Bars say their instruction and its
    place in the source, in long traces the place alone.
    """
    low, times = report.low, report.times
    core_of = np.repeat(np.arange(len(report.streams)), np.diff(low.first)).tolist()
    for c, stream in enumerate(report.streams):
        part = low.unit[int(low.first[c]) : int(low.first[c + 1])]
        yield {"ph": "M", "name": "process_name", "pid": c, "args": {"name": str(stream)}}
        for u in np.unique(part).tolist():
            name = {"name": Unit(u).name}
            yield {"ph": "M", "name": "thread_name", "pid": c, "tid": u, "args": name}
    for i, _, one in report.instructions():
        if times.end[i] < 0:
            continue
        begin, end = _microseconds(times.start[i]), _microseconds(times.end[i])
        event = {
            "ph": "X",
            "name": one.op,
            "cat": one.kind.name.lower(),
            "pid": core_of[i],
            "tid": int(one.unit),
            "ts": begin,
            "dur": round(end - begin, 6),
            "args": {"source": str(one.position), "number": i},
        }
        if len(low) < _LONG:
            event["args"]["instruction"] = str(one)
        yield event
        if flows and one.kind == Kind.WAIT:
            for k in range(int(low.need_first[i]), int(low.need_first[i + 1])):
                j = int(low.need[k])
                common = {"cat": "flag", "name": "flag", "id": k}
                place = {"pid": core_of[j], "tid": int(low.unit[j])}
                yield {"ph": "s", "ts": _microseconds(times.end[j]), **place, **common}
                place = {"pid": core_of[i], "tid": int(one.unit)}
                yield {"ph": "f", "bp": "e", "ts": end, **place, **common}


def _microseconds(atto: Any) -> float:
    return round(int(atto) / 10**12, 6)


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
        metadata = {"Date": None} if str(path).endswith(".svg") else {}
        figure.savefig(path, dpi=120, metadata=metadata)
        plt.close(figure)


def _joined(begin: np.ndarray, end: np.ndarray, gap: int) -> np.ndarray:
    """(begin, length) of bars, those joined that are closer than what can be seen."""
    if not len(begin):
        return np.zeros((0, 2))
    heads = np.append(True, begin[1:] - end[:-1] > gap)
    tails = np.append(heads[1:], True)
    return np.column_stack([begin[heads], end[tails] - begin[heads]])
