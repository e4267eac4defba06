"""Pictures of a simulated run: use of the memory's bandwidth, and of the buffer, over time."""

from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.charts import write_figure
from vitruvian.sim.sparse.report import SparseReport


def draw_bandwidth(axes: Any, report: SparseReport, points: int = 200) -> None:
    """Draw the use of the memory's bandwidth over the time of the run's longest section.

    Parameters
    ----------
    report : SparseReport
        A run with at least one iteration.
    points : int
        Number of intervals of time.
    """
    cycles, share = report.bandwidth(points)
    axes.fill_between(_time(report, cycles), share * 100, step="mid", color="#4e79a7", alpha=0.8)
    axes.axhline(report.bandwidth_share * 100, color="black", lw=1, ls="--")
    axes.set_ylim(0, 105)
    axes.set_ylabel("memory bandwidth in use [%]")
    axes.set_title(f"{_name(report)}\ndashed: mean of the run, {report.bandwidth_share:.1%}")
    _finish(axes)


def draw_occupancy(axes: Any, report: SparseReport) -> None:
    """Draw the bytes of the buffer that are reserved over the time of the run's longest section.

    Parameters
    ----------
    report : SparseReport
        A run with at least one iteration.
    """
    cycles, csr, csc = report.occupancy()
    # A step's reservation holds from its begin to its end.
    begins = np.concatenate([[0], cycles])
    bands = [np.append(each, each[-1]) / 2**20 for each in (csr, csc)]
    axes.stackplot(
        _time(report, begins),
        bands,
        step="post",
        labels=("CSR space (rows for the IS core)", "CSC space (columns for the OS core)"),
        colors=("#f28e2b", "#76b7b2"),
    )
    capacity = report.architecture.buffer_bytes / 2**20
    peak = float((bands[0] + bands[1]).max())
    if capacity < 2 * peak:
        axes.axhline(capacity, color="black", lw=1, ls="--", label="capacity")
    axes.set_ylabel("buffer [MiB]")
    axes.set_title(f"{_name(report)}\nat most {peak:,.3g} of {capacity:,.3g} MiB reserved")
    axes.legend(fontsize=7, loc="best")
    _finish(axes)


def write_plots(
    report: SparseReport, folder: str | Path, *, form: str = "svg"
) -> tuple[Path, Path]:
    """Write both pictures into a folder; return their paths.

    Parameters
    ----------
    report : SparseReport
        A run with at least one iteration.
    folder : str or Path
        It is created if it does not exist.
    form : {"svg", "png"}

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    paths = Path(folder) / f"bandwidth.{form}", Path(folder) / f"occupancy.{form}"
    write_figure(paths[0], lambda figure: draw_bandwidth(figure.subplots(), report))
    write_figure(paths[1], lambda figure: draw_occupancy(figure.subplots(), report))
    return paths


def _name(report: SparseReport) -> str:
    """Return the application and the machine."""
    return f"{report.schedule.name} on {report.architecture.name}"


def _time(report: SparseReport, cycles: np.ndarray) -> np.ndarray:
    """Return microseconds."""
    return cycles / float(report.architecture.clock_hz) * 1e6


def _finish(axes: Any) -> None:
    axes.set_xlabel("time [µs]")
    axes.margins(x=0)
    axes.grid(which="major", alpha=0.3)
