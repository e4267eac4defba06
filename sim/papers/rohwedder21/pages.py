"""The experiments of ``study`` as tables in Markdown and as plots.

References
----------
Rohwedder 2021, Fig. 5.2 and Fig. 5.3.
"""

from collections.abc import Callable, Sequence
from typing import Any

from vitruvian.common.charts import rendered
from vitruvian.sim.kernels.pooling.plan import METHODS
from vitruvian.sim.papers.rohwedder21.study import FIGURES, PUBLISHED, SHOWN, PoolingRun

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]

_COLOURS = {
    "direct": "#c9c9c9",
    "im2col": "#31688e",
    "expansion": "#35b779",
    "xy": "#e0a030",
    "strided": "#7b3294",
}
_NAMES = {
    "direct": "direct",
    "im2col": "Im2Col",
    "expansion": "expansion",
    "xy": "X-Y split",
    "strided": "strided",
}


def speedup(runs: Sequence[PoolingRun], figure: str, side: int) -> float:
    """Return how many times as fast as the direct kernel the Im2Col kernel is."""
    cycles = {run.method: run.cycles for run in runs if (run.figure, run.side) == (figure, side)}
    return cycles["direct"] / cycles["im2col"]


def inception_table(runs: Sequence[PoolingRun]) -> Table:
    """Return the cycles of Fig. 5.2 and the speedups beside the published ones.

    Parameters
    ----------
    runs : sequence of PoolingRun
        Those of ``study.inception``.

    Returns
    -------
    header : tuple of str
    rows : list of tuple of str
    """
    header = (
        "kernel",
        "input",
        *METHODS,
        "direct / im2col",
        "published",
        "error",
    )
    rows = []
    for figure in FIGURES:
        sides = sorted({run.side for run in runs if run.figure == figure})
        for side in sides:
            here = [run for run in runs if (run.figure, run.side) == (figure, side)]
            cycles = {run.method: run.cycles for run in here}
            ratio = speedup(runs, figure, side)
            # The paper's text has the speedups of the largest input only.
            stated = PUBLISHED[figure] if side == sides[-1] else None
            rows.append(
                (
                    figure,
                    f"{side}×{side}×{16 * here[0].groups}",
                    *(f"{cycles[method]:,}" for method in METHODS),
                    f"{ratio:.2f}",
                    "" if stated is None else f"{stated:.1f}",
                    "" if stated is None else f"{100 * (ratio / stated - 1):+.0f} %",
                )
            )
    return header, rows


def stride_table(runs: Sequence[PoolingRun]) -> Table:
    """Return the cycles of Fig. 5.3 at the largest side that all methods hold in one tile.

    Parameters
    ----------
    runs : sequence of PoolingRun
        Those of ``study.strides``.
    """
    header = ("stride", "side", *METHODS, "fastest in the figure", "published", "fastest of all")
    rows = []
    for stride in (1, 2, 3):
        # A larger side would leave a method without a value.
        side = min(
            max(r.side for r in runs if (r.stride, r.method) == (stride, method))
            for method in METHODS
        )
        cycles = {r.method: r.cycles for r in runs if (r.stride, r.side) == (stride, side)}
        rows.append(
            (
                f"({stride}, {stride})",
                str(side),
                *(f"{cycles[method]:,}" for method in METHODS),
                min(SHOWN[stride], key=cycles.__getitem__),
                "direct" if stride == 1 else "im2col",
                min(cycles, key=cycles.__getitem__),
            )
        )
    return header, rows


def counts_table(runs: Sequence[PoolingRun]) -> Table:
    """Return what the busiest core does at the largest input of Fig. 5.2.

    Parameters
    ----------
    runs : sequence of PoolingRun
        Those of ``study.inception``.
    """
    header = (
        "kernel",
        "method",
        "tiles",
        "vector instructions",
        "repeats",
        "barriers",
        "Im2Col loads",
        "Im2Col KiB",
        "GM KiB",
        "busy cycles V",
        "MTE1",
        "MTE2",
        "MTE3",
    )
    side = max(run.side for run in runs)
    rows = [
        (
            run.figure,
            run.method,
            str(run.tiles),
            f"{run.vector:,}",
            f"{run.repeats:,}",
            f"{run.barriers:,}",
            f"{run.scu}",
            f"{run.im2col_bytes / 1024:.0f}",
            f"{run.gm_bytes / 1024:.0f}",
            *(f"{run.busy.get(unit, 0):,}" for unit in ("V", "MTE1", "MTE2", "MTE3")),
        )
        for run in runs
        if run.side == side
    ]
    return header, rows


def markdown(table: Table) -> str:
    """Return a table in Markdown; cells of numbers are aligned to the right."""
    header, rows = table
    lines = [header, tuple("---:" for _ in header), *rows]
    # The first row tells columns of numbers from those of text.
    lines[1] = tuple("---" if not rows[0][i][:1].isdigit() else "---:" for i in range(len(header)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def inception_plot(runs: Sequence[PoolingRun]) -> str:
    """Return the chart of bars like those of Fig. 5.2, one part for each form of the kernel."""

    def draw(figure: Any) -> None:
        for axes, name in zip(figure.subplots(1, 3), FIGURES, strict=True):
            sides = sorted({run.side for run in runs})
            for number, method in enumerate(METHODS):
                some = {r.side: r.cycles for r in runs if (r.figure, r.method) == (name, method)}
                width = 0.8 / len(METHODS)
                middle = (len(METHODS) - 1) / 2
                # Bars of a group stand around its tick.
                places = [at + width * (number - middle) for at in range(len(sides))]
                values = [some[side] for side in sides]
                axes.bar(places, values, 0.95 * width, color=_COLOURS[method], label=_NAMES[method])
            axes.set_xticks(range(len(sides)), [f"{side}×{side}" for side in sides])
            axes.set_title(name)
            axes.set_ylabel("cycles")
        axes.legend()

    return _chart(draw, (10.4, 3.4))


def stride_plot(runs: Sequence[PoolingRun]) -> str:
    """Return the chart of curves like those of Fig. 5.3, one part for each stride."""

    def draw(figure: Any) -> None:
        for axes, stride in zip(figure.subplots(1, 3), (1, 2, 3), strict=True):
            for method in METHODS:
                some = [
                    (r.side, r.cycles) for r in runs if (r.stride, r.method) == (stride, method)
                ]
                axes.plot(
                    *zip(*some, strict=True),
                    color=_COLOURS[method],
                    label=_NAMES[method],
                    marker=".",
                )
            axes.set_title(f"stride ({stride}, {stride})")
            axes.set_xlabel("height and width")
            axes.set_ylabel("cycles")
        axes.legend()

    return _chart(draw, (10.4, 3.6))


def _chart(draw: Callable[[Any], None], size: tuple[float, float]) -> str:
    """Return a chart as JSON text; the same runs give the same bytes."""
    return rendered(draw, *size, form="json").decode()
