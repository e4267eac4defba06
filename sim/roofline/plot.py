"""The roofline plot: performance points of components below their ceilings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitruvian.sim.roofline.components import ComponentKind
from vitruvian.sim.roofline.model import Analysis, Bound, RooflineRow
from vitruvian.sim.roofline.naive import naive_points

_COLOURS = {
    "S": "#7f7f7f",
    "V": "#2ca02c",
    "M": "#d62728",
    "MTE1": "#1f77b4",
    "MTE2": "#9467bd",
    "MTE3": "#17becf",
    "FIX": "#ff7f0e",
}

_MARKERS = {"S": "^", "V": "s", "M": "o"}

#: Lines and points of these engines often coincide, so they differ in dashes and in size.
_DASHES = {"MTE1": "-", "MTE2": "-", "MTE3": (0, (4, 4)), "FIX": "-."}
_SIZES = {"MTE1": 11, "MTE2": 8, "MTE3": 5, "FIX": 5}


def draw(axes: Any, analysis: Analysis, title: str | None = None) -> None:
    """Draw the component-based roofline of an operator (Zhou et al. 2025, Fig. 6).

    A horizontal line is the operator-aware ideal performance of a compute unit, a diagonal line the
    operator-aware ideal bandwidth of a transfer engine. A point is a compute unit against an
    engine; its distance from a line shows how far the component is from its ceiling.

    Parameters
    ----------
    title : str, optional
        By default the operator, the chip and the class.
    """
    points = analysis.points
    rows = [r for r in analysis.rows if r.total and r.component.kind != ComponentKind.BUS]
    transfers = [r for r in rows if r.component.kind == ComponentKind.TRANSFER]
    compute = [r for r in rows if r.component.kind == ComponentKind.COMPUTE]
    # The axes include the points and the corners where their roofs meet.
    ridges = [c.ideal / t.ideal for c in compute for t in transfers] or [1.0]
    xs = [p.intensity for p in points] + ridges
    low, high = min(xs) / 4, max(xs) * 4
    x = np.array([low, high])
    for row in transfers:
        colour = _COLOURS.get(row.component.name, "black")
        dashes = _DASHES.get(row.component.name, "-")
        axes.loglog(x, x * row.ideal, color=colour, ls=dashes, label=_bandwidth(row))
    for row in compute:
        colour = _COLOURS.get(row.component.name, "black")
        axes.loglog(x, [row.ideal] * 2, color=colour, ls="--", label=_rate(row))
    for p in points:
        unit, engine = p.compute.component.name, p.transfer.component.name
        axes.loglog(
            p.intensity,
            p.performance,
            marker=_MARKERS.get(unit, "o"),
            color=_COLOURS.get(engine, "black"),
            ls="none",
            ms=_SIZES.get(engine, 7),
            label=f"{unit} against {engine}: {p.utilisation * 100:.1f} %",
        )
    ys = [p.performance for p in points] + [r.ideal for r in compute]
    if ys:
        axes.set_ylim(min(ys) / 8, max(ys) * 4)
    axes.set_xlim(low, high)
    axes.set_xlabel("arithmetic intensity [operations per byte]")
    axes.set_ylabel("performance [operations per second]")
    name = f"{analysis.counters.name} on {analysis.counters.chip}"
    axes.set_title(title or f"{name}\n{analysis.bound.value}: {analysis.cause.component.title}")
    _finish(axes)


def draw_naive(axes: Any, analysis: Analysis, title: str | None = None) -> None:
    """Draw the naive roofline: every precision against every path (Zhou et al. 2025, Fig. 3).

    Parameters
    ----------
    title : str, optional
    """
    points = naive_points(analysis.counters)
    xs = [p.intensity for p in points] + [p.ceiling / p.bandwidth for p in points]
    x = np.array([min(xs) / 4, max(xs) * 4])
    for path in dict.fromkeys(p.path for p in points):
        bandwidth = next(p.bandwidth for p in points if p.path == path)
        axes.loglog(x, x * bandwidth, label=f"{path}: {bandwidth / 1e9:.4g} GB/s", lw=1)
    for precision in dict.fromkeys(p.precision for p in points):
        ceiling = next(p.ceiling for p in points if p.precision == precision)
        axes.loglog(x, [ceiling] * 2, "--", label=f"{precision}: {ceiling / 1e9:.4g} G/s", lw=1)
    for p in points:
        label = f"{p.precision} against {p.path}: {p.utilisation * 100:.1f} %"
        axes.loglog(p.intensity, p.performance, "o", label=label)
    axes.set_xlim(*x)
    axes.set_xlabel("arithmetic intensity [operations per byte]")
    axes.set_ylabel("performance [operations per second]")
    axes.set_title(title or f"{analysis.counters.name}: naive roofline")
    _finish(axes)


def draw_distribution(axes: Any, shares: Mapping[str, Mapping[Bound, float]], title: str) -> None:
    """Draw the shares of the classes as stacked bars (Zhou et al. 2025, Fig. 13 and 14).

    Parameters
    ----------
    shares : mapping of str to mapping of Bound to float
        For each bar, its label and the share of each class.
    """
    labels = list(shares)
    left = np.zeros(len(labels))
    for bound in Bound:
        widths = np.array([shares[label].get(bound, 0.0) * 100 for label in labels])
        if not widths.any():
            continue
        bars = axes.barh(labels, widths, left=left, color=_CLASS_COLOURS[bound], label=bound.value)
        texts = [f"{w:.1f}" if w >= 4 else "" for w in widths]
        axes.bar_label(bars, texts, label_type="center", fontsize=7)
        left += widths
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share [%]")
    axes.set_title(title)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


_CLASS_COLOURS = {
    Bound.COMPUTE: "#e15759",
    Bound.MTE: "#4e79a7",
    Bound.PARALLELISM: "#f28e2b",
    Bound.INEFFICIENT_MTE: "#76b7b2",
    Bound.INEFFICIENT_COMPUTE: "#edc948",
}


def _finish(axes: Any) -> None:
    """Add a grid, plain tick labels, and a legend beside the axes, where it hides no point."""
    for axis in (axes.xaxis, axes.yaxis):
        # matplotlib writes powers of ten as formulas, which are switched off here.
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter("")
    axes.grid(which="major", alpha=0.3)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def _bandwidth(row: RooflineRow) -> str:
    return f"{row.component.title}: {row.ideal / 1e9:.4g} GB/s"


def _rate(row: RooflineRow) -> str:
    return f"{row.component.title}: {row.ideal / 1e9:.4g} G operations/s"
