"""What the command ``sparse`` prints and writes about an application."""

import argparse
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.common.files import write_whole
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import shortened

if TYPE_CHECKING:
    from rich.console import Console

    from vitruvian.sim.sparse.report import SparseReport
    from vitruvian.sparse import Result


def show(options: argparse.Namespace, result: "Result") -> None:
    """Print the outcome and the report, and write the files."""
    report = result.report
    # The files first: a reader such as ``head`` may close the standard output early.
    paths = _write(options, result)
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    lines = _outcome(options, result) if report else [_triangles(options, result)]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if report and report.iterations:
        _print_report(console, report)
    for path in paths:
        console.print(str(path), markup=False, soft_wrap=True)
    if options.json:
        write_json(options.json, _figures(result) if report else _counted(result))


def _counted(result: "Result") -> dict[str, Any]:
    """Return the figures of triangles for JSON; each triangle counts at three vertices."""
    total = int(result.values.sum()) // 3
    return {"application": result.application, "rows": len(result.values), "triangles": total}


def _triangles(options: argparse.Namespace, result: "Result") -> str:
    """Return a line about the triangles."""
    figures, counts = _counted(result), result.values
    rows, total = figures["rows"], figures["triangles"]
    line = f"triangles of {Path(options.matrix).name}: {rows:,} rows, {total:,} triangles"
    if total:
        place = int(counts.argmax())
        vertex = place if result.vertices is None else result.vertices[place]
        line += f"; at most {counts.max():,} at a vertex, {shortened(str(vertex))}"
    return line


def _outcome(options: argparse.Namespace, result: "Result") -> list[str]:
    """Return lines about the values."""
    figures = result.report.figures()
    name = Path(options.matrix).name
    plural = "" if result.iterations == 1 else "s"
    ended = "converged" if result.converged else result.failure or "not converged"
    return [
        f"{result.application} of {name}: {figures['rows']:,} rows, "
        f"{figures['nonzeros']:,} nonzeros",
        f"{ended} after {result.iterations:,} iteration{plural}; {_summary(result)}",
        *(
            []
            if result.residual is None
            else [f"residual ‖b − A·x‖/‖b‖ of these values: {result.residual:.3g}"]
        ),
    ]


def _summary(result: "Result") -> str:
    """Return the range of the values and its places."""
    import numpy as np

    values = result.values
    if values.dtype == bool:
        return f"{int(values.sum()):,} of {values.size:,} vertices are near"
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "no value is finite"
    text = f"values from {finite.min():.6g} to {finite.max():.6g}"
    if values.ndim == 1:
        # Distances of vertices that cannot be reached are infinite.
        largest = int(np.where(np.isfinite(values), values, -np.inf).argmax())
        # The values of k-means are centers, which are no vertices of the list.
        names = None if result.application == "kmeans" else result.vertices
        text += f", the largest at {largest if names is None else shortened(str(names[largest]))}"
    rest = values.size - finite.size
    return text + (f"; {rest:,} of {values.size:,} are not finite" if rest else "")


def _print_report(console: "Console", report: "SparseReport") -> None:
    """Print times, traffic and energy of SIDA beside the baseline and the oracle."""
    from vitruvian.sim.sparse.report import TRAFFIC

    figures: dict[str, Any] = report.figures()
    mega, clock = 1e6, float(report.architecture.clock_hz)
    energy, other = report.energy, report.baseline_energy
    rows = [
        (
            "time [µs]",
            f"{report.seconds * mega:,.3f}",
            f"{float(report.baseline.cycles) / clock * mega:,.3f}",
            f"{float(report.oracle.cycles) / clock * mega:,.3f}",
        ),
        (
            "traffic [MB]",
            f"{report.memory_bytes / mega:,.3f}",
            f"{report.baseline.memory_bytes / mega:,.3f}",
            f"{report.oracle.memory_bytes / mega:,.3f}",
        ),
        # The oracle bounds time and traffic, and has no energy.
        ("energy [mJ]", f"{energy.joules * 1e3:,.4f}", f"{other.joules * 1e3:,.4f}", "–"),
    ]
    kinds = (("memory", "memory"), ("buffer", "buffer"), ("cores", "compute"))
    for label, key in kinds:
        rows.append(
            (
                f"  {label}",
                f"{getattr(energy, key) * 1e3:,.4f}",
                f"{getattr(other, key) * 1e3:,.4f}",
                "–",
            )
        )
    machine = report.architecture.name
    print_table(
        console, ("run", machine, "baseline", "oracle"), rows, right=(machine, "baseline", "oracle")
    )
    sweeps = ", ".join(
        f"{figures[f'{kind}_sweeps']:,} {text}"
        for kind, text in (
            ("oei", "with two products (OEI)"),
            ("stream", "with a product and its transpose"),
            ("product", "with one product"),
            ("vectors", "of vectors"),
        )
        if figures[f"{kind}_sweeps"]
    )
    traffic = ", ".join(f"{kind} {report.traffic[kind] / mega:,.3f}" for kind in TRAFFIC)
    for line in (
        f"speedup over the baseline {report.speedup:.3f}×, over one of single nodes "
        f"{report.single_speedup:.3f}×, share of the oracle "
        f"{report.oracle_share:.1%}, bandwidth in use {report.bandwidth_share:.1%}, "
        f"{report.useful_bandwidth_share:.1%} without reloads",
        f"buffer: at most {report.peak_buffer_bytes / 2**20:,.3f} of "
        f"{report.architecture.buffer_bytes / 2**20:,.3f} MiB; evicted "
        f"{figures['evicted_bytes'] / mega:,.3f} MB, "
        f"repacked {figures['repacked_bytes'] / mega:,.3f} MB",
        f"traffic by kind [MB]: {traffic}",
        *([] if report.timing is None else [_memory(report)]),
        f"storage of both orders: {report.storage_share:.1%} of CSC and CSR",
        f"sweeps: {sweeps}",
    ):
        console.print(line, markup=False, soft_wrap=True)


def _memory(report: "SparseReport") -> str:
    """Return a line about the memory with timing."""
    timing = report.timing
    assert timing is not None
    memory = timing.memory
    plural = "" if memory.channels == 1 else "s"
    return (
        f"memory: {memory.dram.name}, {memory.channels} channel{plural}; bursts move "
        f"{report.moved_share:.3f} times the bytes that are asked for"
    )


def _write(options: argparse.Namespace, result: "Result") -> list[Path]:
    """Write the values and the plots; return the paths."""
    paths: list[Path] = []
    if options.values:
        paths.append(Path(options.values))
        result.write_csv(paths[0])
    if not options.out:
        return paths
    paths += write_values(options.out, result)
    if result.report is None or not result.report.iterations:
        return paths
    from vitruvian.sim.sparse.plot import write_plots

    return [*paths, *write_plots(result.report, options.out)]


def write_values(folder: str, result: "Result") -> list[Path]:
    """Write the values, and the names of the vertices, into a folder; return the paths."""
    import numpy as np

    buffer = BytesIO()
    np.save(buffer, result.values)
    path = Path(folder) / "values.npy"
    write_whole(path, buffer.getvalue())
    return [path, *write_names(folder, result.vertices)]


def write_names(folder: str, vertices: tuple[Any, ...] | None) -> list[Path]:
    """Write the names of the vertices of a graph into a folder; return the paths."""
    if vertices is None:
        return []
    path = Path(folder) / "vertices.txt"
    write_whole(path, "".join(f"{name}\n" for name in vertices))
    return [path]


def _figures(result: "Result") -> dict[str, Any]:
    """Return the figures for JSON."""
    figures: dict[str, Any] = {
        "application": result.application,
        "iterations": result.iterations,
        "converged": result.converged,
        "failure": result.failure,
        "residual": result.residual,
        "report": result.report.figures(),
    }
    if result.report.iterations:
        cycles, share = result.report.bandwidth()
        ends, csr, csc = result.report.occupancy()
        figures["bandwidth"] = {"cycles": cycles.tolist(), "share": share.tolist()}
        figures["occupancy"] = {
            "cycles": ends.tolist(),
            "csr_bytes": csr.tolist(),
            "csc_bytes": csc.tolist(),
        }
    return figures
