"""Print the tables of docs/results/sida.md, and draw its pictures.

    python benchmarks/sida_figures.py [FOLDER] [PART …]

writes the pictures to FOLDER (by default docs/results) and prints the tables. The parts are reuse,
figures, preprocessing, cpu and choices; by default all are made, in some minutes. All matrices but
ca-AstroPh are synthetic stand-ins (``benchmarks.papers.zhang24.standins``). ca-AstroPh is read from
the file that the environment variable SIDA_CA names, in Matrix Market form; without it, there is a
stand-in, too.
"""

import dataclasses
import os
import sys
import time
from fractions import Fraction
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse
from scipy.stats import gmean

from benchmarks.papers.zhang24.planning import simulate_pattern
from benchmarks.papers.zhang24.standins import stand_in
from vitruvian.common.charts import write_figure
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.reuse import held_elements
from vitruvian.sim.sparse.architecture import Architecture, load_architecture
from vitruvian.sim.sparse.energy import Energy
from vitruvian.sim.sparse.layout import dual_bytes
from vitruvian.sim.sparse.originals import ORIGINALS
from vitruvian.sim.sparse.pattern import Pattern, blocked, pattern_of
from vitruvian.sim.sparse.reordering import ORDERS, order_of
from vitruvian.sim.sparse.report import SparseReport

#: Factor by which the stand-ins and the machine are scaled down.
SCALES = {"ca": 1, "gy": 1, "g2": 1, "co": 64, "bu": 16, "wi": 128, "ad": 32, "ro": 64, "eu": 128}

#: The applications of Table 4.2. CG and BiCGSTAB have no fused products in the thesis.
APPLICATIONS = (
    "pagerank",
    "kcore",
    "bfs",
    "sssp",
    "kmeans",
    "knn",
    "labelprop",
    "gcn",
    "gmres",
    "cg",
    "bicgstab",
)
WITHOUT_OEI = ("cg", "bicgstab")
COMPUTE_BOUND = ("gmres", "gcn")

#: Configurations: the order of the rows and the side of the blocks.
CONFIGURATIONS = tuple((order, side) for order in ORDERS for side in (1, 16, 256))

#: Factors for the analysis of Table 4.1. A random numbering gives the same shares at every size.
REUSE_SCALES = {"co": 16, "bu": 4, "wi": 32, "ad": 4, "ro": 16, "eu": 32}

#: Iterations of a run.
ITERATIONS = 20

#: Matrices at full size; orders and blocks are compared for the latter two. The windowed order
#: takes half a minute for "ca", and much longer for the large ones.
SMALL, ORDERED = ("ca", "gy", "g2"), ("gy", "g2")


def matrix_of(name: str, scale: int = 1) -> Any:
    """Return ca-AstroPh's lower triangle if there is a file, and a synthetic stand-in otherwise."""
    path = os.environ.get("SIDA_CA")
    # The thesis has the lower triangle of this undirected graph.
    if name == "ca" and path and scale == 1:
        return sparse.tril(io.mmread(path))
    return stand_in(name, scale=scale)


@cache
def pattern(name: str, scale: int) -> Pattern:
    """Return the pattern of a matrix."""
    return pattern_of(matrix_of(name, scale))


@cache
def permutation(name: str, scale: int, order: str) -> np.ndarray | None:
    """Return an order of the rows of a matrix."""
    return order_of(pattern(name, scale), order)


def machine(scale: int, **changes: Any) -> Architecture:
    """Return the machine of Zhang 2024 §4.5.1, all of whose sizes and rates are scaled down.

    So a step takes as many cycles as that of the whole machine for the whole matrix.
    """
    whole = dataclasses.replace(load_architecture(), **changes)
    return dataclasses.replace(
        whole,
        pes=max(1, whole.pes // scale),
        memory_bytes_per_s=whole.memory_bytes_per_s / scale,
        buffer_bytes=whole.buffer_bytes // scale,
        sub_tensor=max(1, whole.sub_tensor // scale),
    )


@cache
def run(
    name: str, application: str, order: str = "none", side: int = 1, **sizes: Any
) -> dict[str, float]:
    """Simulate an application and return the figures of its report."""
    scale = SCALES[name]
    return figures(
        simulate_pattern(
            pattern(name, scale),
            machine(scale),
            application,
            order=permutation(name, scale, order),
            block=side,
            **sizes,
        )
    )


def figures(report: SparseReport) -> dict[str, float]:
    """Return the figures of a report that the tables need."""
    ours, other = report.energy, report.baseline_energy
    return {
        "speedup": report.speedup,
        "baseline_cycles": float(report.baseline.cycles),
        "oracle": report.oracle_share,
        "bandwidth": report.bandwidth_share,
        "useful": report.useful_bandwidth_share,
        "storage": report.storage_share,
        "energy": ours.joules / other.joules,
        "memory": ours.memory / other.memory,
        "buffer": ours.buffer / other.buffer,
        "compute": ours.compute / other.compute,
        "memory_part": ours.memory / other.joules,
        "buffer_part": ours.buffer / other.joules,
        "compute_part": ours.compute / other.joules,
        "baseline_memory": other.memory / other.joules,
        "baseline_buffer": other.buffer / other.joules,
        "seconds": report.seconds,
        "single_speedup": report.single_speedup,
        **savings("joined", ours, other, is_accesses(report)),
        **savings("single", ours, report.single_baseline_energy, is_accesses(report)),
    }


def is_accesses(report: SparseReport) -> tuple[float, float, float]:
    """Return joules that the thesis may not count in the buffer.

    These are the partial results that the IS core reads and writes, its reads of x for all but the
    first nonzero of a row: "a single vector element multiplies against multiple row elements"
    (§4.4.3), and repackings.
    """
    partial = repeated = 0
    for sweep, count in report.sweeps.items():
        if sweep.view:
            pattern_of_view = report.stored[sweep.view]
            values = count * sweep.is_features
            partial += 2 * values * pattern_of_view.nonzeros
            rows = pattern_of_view.elements
            repeated += values * max(0, pattern_of_view.nonzeros - rows)
    machine_of = report.architecture
    byte = float(machine_of.buffer_pj_per_byte) * 1e-12
    value = byte * machine_of.value_bytes
    return value * partial, value * repeated, 2 * byte * report.total("repacked")


def savings(
    name: str, ours: Energy, other: Energy, accesses: tuple[float, float, float]
) -> dict[str, float]:
    """Return the shares of a baseline's energy that SIDA saves, in all and of each part."""
    partial, repeated, _ = accesses
    return {
        f"{name}_energy": 1 - ours.joules / other.joules,
        f"{name}_memory": 1 - ours.memory / other.memory,
        f"{name}_buffer": 1 - ours.buffer / other.buffer,
        f"{name}_buffer_without": 1 - (ours.buffer - partial) / other.buffer,
        f"{name}_buffer_held": 1 - (ours.buffer - partial - repeated) / other.buffer,
        f"{name}_buffer_in_place": 1 - (ours.buffer - sum(accesses)) / other.buffer,
    }


def row(*cells: Any) -> None:
    """Print a row of a table."""
    print("|", " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells), "|")


def head(*cells: str) -> None:
    """Print the head of a table whose first column is text."""
    print()
    row(*cells)
    print("|---|" + "---:|" * (len(cells) - 1))


def reuse() -> None:
    """Print Table 4.1: the shares of the nonzeros that are held."""
    head("matrix", "kind", "most", "published", "mean", "published")
    for name, original in ORIGINALS.items():
        matrix = sparse.csr_array(matrix_of(name, REUSE_SCALES.get(name, 1)))
        most, mean = held_shares(matrix)
        row(name, original.kind, most, original.maximum, mean, original.mean)
        if name in SMALL:
            most, mean = held_shares(renumbered(matrix))
            row(
                f"{name}, random numbers",
                original.kind,
                most,
                original.maximum,
                mean,
                original.mean,
            )


def held_shares(matrix: Any) -> tuple[float, float]:
    """Return the largest and the mean share of the nonzeros of a CSR array that are held."""
    ones = np.broadcast_to(1.0, matrix.nnz)
    starts = matrix.indptr.astype(np.int64)
    # Values do not matter: a single 1.0 stands for all of them.
    held = held_elements(Sparse(matrix.shape, starts, matrix.indices, ones))
    return held.maximum / held.nonzeros, held.mean / held.nonzeros


def renumbered(matrix: Any) -> Any:
    """Return a lower triangle or directed graph with its vertices in random order."""
    n = matrix.shape[0]
    number = np.random.default_rng(1).permutation(n).astype(np.int32)
    rows = number[np.repeat(np.arange(n, dtype=np.int32), np.diff(matrix.indptr))]
    columns = number[matrix.indices]
    if sparse.triu(matrix, 1).nnz == 0:
        # A renumbered edge of an undirected graph goes back to the lower triangle.
        rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
    ones = np.ones(len(rows), np.int8)
    return sparse.csr_array(sparse.coo_array((ones, (rows, columns)), shape=matrix.shape))


def draw_figures(folder: Path) -> None:
    """Print and draw Figs. 4.17, 4.20, 4.22 and 4.23."""
    speedup(folder)
    unjoined()
    shares(folder)
    energy(folder)


def speedup(folder: Path) -> None:
    """Fig. 4.17: the speedup over the baseline."""
    head("speedup", *SCALES, "geomean")
    found = {a: [run(m, a)["speedup"] for m in SCALES] for a in APPLICATIONS}
    means = {a: float(gmean(values)) for a, values in found.items()}
    for application, values in found.items():
        row(application, *values, means[application])
    fused = {a: v for a, v in means.items() if a not in WITHOUT_OEI}
    low, high = (f(fused, key=fused.__getitem__) for f in (min, max))
    print(f"lowest geomean {fused[low]:.3f} {low}, highest {fused[high]:.3f} {high}")
    print(f"highest {max(max(values) for values in found.values()):.3f}")
    print(f"all {gmean(np.ravel([*found.values()])):.3f}")

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        place = np.arange(len(APPLICATIONS))
        bars(axes, [*found.values()], [*means.values()])
        # Zhang 2024, §4.5: range of the geometric means, and the highest speedup.
        for level, style in ((1.23, "--"), (2.56, "--"), (3.55, ":")):
            axes.axhline(level, color="black", ls=style, lw=0.8)
            axes.text(len(place) - 0.4, level, f"{level:g}", va="bottom", ha="right", fontsize=7)
        axes.set(ylabel="speedup over the baseline")
        axes.set_title("bars: geomean, points: matrices; lines: published range and highest")

    write_figure(folder / "sida_speedup.json", fill)


def bars(axes: Any, values: list[list[float]], means: list[float]) -> None:
    """Draw the mean of each application as a bar, and its matrices as points."""
    place = np.arange(len(APPLICATIONS))
    axes.bar(place, means, 0.7, color="#76b7b2")
    for x, points in zip(place, values, strict=True):
        axes.plot([x] * len(points), points, ".", ms=4, color="black")
    axes.set_xticks(place, APPLICATIONS, rotation=45, fontsize=7)


def preprocessing(folder: Path) -> None:
    """Fig. 4.19b and 4.21: bytes of blocked storage, and what orders and blocks gain."""
    head("storage by side", *SCALES, "mean")
    for side in (16, 32, 64, 128, 256):
        values = []
        for name, scale in SCALES.items():
            single = pattern(name, scale)
            stored = dual_bytes(blocked(single, side), machine(1))
            values.append(stored / dual_bytes(single, machine(1)))
        row(side, *values, float(np.mean(values)))
    found = {}
    head("speedup, geomean of the applications", *ORDERED)
    for order, side in CONFIGURATIONS:
        label = f"{order}, side {side}"
        found[label] = [
            float(gmean([run(m, a, order, side)["speedup"] for a in APPLICATIONS])) for m in ORDERED
        ]
        row(label, *found[label])
    plain = np.array(found["none, side 1"])
    for label, values in found.items():
        gain = np.array(values) / plain
        print(f"{label}: {gain.min():.3f} to {gain.max():.3f} of the speedup without")

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        place = np.arange(len(ORDERED))
        for number, (label, values) in enumerate(found.items()):
            axes.bar(place + (number - 4) * 0.09, values, 0.09, label=label)
        axes.axhline(1.37, color="black", ls="--", lw=0.8)
        axes.text(-0.4, 1.37, "published mean without: 1.37", va="bottom", fontsize=7)
        axes.set_xticks(place, ORDERED)
        axes.set(ylabel="speedup over the baseline, geomean of the applications")
        axes.legend(fontsize=7)

    write_figure(folder / "sida_preprocessing.json", fill)


def shares(folder: Path) -> None:
    """Figs. 4.20 and 4.22: the share of the oracle's performance and of the bandwidth."""
    published = {"oracle": (0.6678, "4.20"), "useful": (0.8293, "4.22")}
    found, means = {}, {}
    for key in ("oracle", "bandwidth", "useful"):
        # The thesis takes different means for the two figures.
        mean = np.mean if key == "oracle" else gmean
        found[key] = [[run(m, a)[key] for m in SCALES] for a in APPLICATIONS]
        means[key] = [float(mean(values)) for values in found[key]]
        head(f"share: {key}", *SCALES, "mean")
        for application, values, whole in zip(APPLICATIONS, found[key], means[key], strict=True):
            row(application, *values, whole)
        # Applications that the processing elements bound use little of the bandwidth by design.
        bound = [v for a, v in zip(APPLICATIONS, found[key], strict=True) if a not in COMPUTE_BOUND]
        print(
            f"{key}: {mean(np.ravel(found[key])):.4f}, "
            f"without {', '.join(COMPUTE_BOUND)} {mean(np.ravel(bound)):.4f}"
        )
    # Sizes that the thesis does not state, with which the processing elements bound both.
    for application, sizes in (("gcn", {"features": 64}), ("gmres", {"products": 50})):
        runs = [run(m, application, **sizes) for m in SCALES]
        for key in ("bandwidth", "useful"):
            values = [each[key] for each in runs]
            row(f"{application}, {sizes}, {key}", *values, float(gmean(values)))

    def fill(figure: Any) -> None:
        axes_of = figure.subplots(1, 2, sharey=True)
        names = {"oracle": "share of the oracle", "useful": "useful share of the bandwidth"}
        for axes, (key, (level, name)) in zip(axes_of, published.items(), strict=True):
            bars(axes, found[key], means[key])
            axes.axhline(level, color="black", ls="--", lw=0.8)
            axes.set_title(f"Fig. {name}: {names[key]}\nline: published mean {level:.2%}")

    write_figure(folder / "sida_shares.json", fill)


def energy(folder: Path) -> None:
    """Fig. 4.23: the energy as a share of the baseline's."""
    head("application", "energy", "memory", "buffer", "compute")
    kinds = ("energy", "memory", "buffer", "compute")
    for application in APPLICATIONS:
        values = [[run(m, application)[k] for m in SCALES] for k in kinds]
        row(application, *(float(np.mean(v)) for v in values))
    saved = [1 - np.mean([run(m, a)[k] for m in SCALES for a in APPLICATIONS]) for k in kinds]
    shown = (f"{kind} {share:.2%}" for kind, share in zip(kinds, saved, strict=True))
    print("saved:", ", ".join(shown))

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        place, floor = np.arange(len(APPLICATIONS)), np.zeros(len(APPLICATIONS))
        for kind in ("memory_part", "buffer_part", "compute_part"):
            values = np.array(
                [np.mean([run(m, a)[kind] for m in SCALES]) for a in APPLICATIONS], float
            )
            axes.bar(place, values, 0.6, bottom=floor, label=kind.removesuffix("_part"))
            floor += values
        # The published mean saving is 55.11 %.
        axes.axhline(1 - 0.5511, color="black", ls="--", lw=0.8)
        axes.text(-0.5, 0.46, "published mean: 0.449", fontsize=7)
        axes.set_xticks(place, APPLICATIONS, rotation=30)
        axes.set(ylabel="energy over that of the baseline, mean of the matrices", ylim=(0, 1.1))
        axes.legend(fontsize=7)

    write_figure(folder / "sida_energy.json", fill)


def cpu() -> None:
    """Print the time of a PageRank iteration in SciPy on this computer beside SIDA's."""
    head("matrix, full size", "SciPy, ms", "SIDA, ms", "speedup", "baseline, ms")
    for name in ("ca", "gy", "g2"):
        rows = sparse.csr_array(matrix_of(name)).astype(np.float64)
        seconds = scipy_iteration(rows)
        report = simulate_pattern(pattern_of(rows), machine(1), "pagerank")
        ours = report.seconds / ITERATIONS
        other = float(Fraction(report.baseline.cycles) / report.architecture.clock_hz) / ITERATIONS
        row(name, seconds * 1e3, ours * 1e3, seconds / ours, other * 1e3)


def scipy_iteration(rows: Any) -> float:
    """Return the least processor time of an iteration of PageRank, of at least ten."""
    n = rows.shape[0]
    columns, x, lost = rows.T.tocsr(), np.full(n, 1 / n), np.diff(rows.indptr) == 0
    share = 1 / np.maximum(np.diff(rows.indptr), 1)
    times = []
    # At least a second, because the clock of processor time is coarse.
    while len(times) < 10 or sum(times) < 1:
        begin = time.process_time()
        following = 0.85 * (columns @ (x * share)) + (0.15 + 0.85 * x[lost].sum()) / n
        np.abs(following - x).sum()
        times.append(time.process_time() - begin)
        x = following
    return min(times)


def pagerank(name: str, scale: int, **changes: Any) -> dict[str, float]:
    """Return the figures of PageRank on a machine with some changes."""
    matrix = pattern(name, scale)
    return figures(simulate_pattern(matrix, machine(scale, **changes), "pagerank"))


def unjoined() -> None:
    """Print speedups and energies against a baseline whose element-wise nodes are operators.

    Once with single nonzeros, and once with blocks of side 256.
    """
    parts = ("energy", "memory", "buffer", "buffer_without", "buffer_held", "buffer_in_place")
    saved = {}
    for side in (1, 256):
        head(f"speedup, side {side}", "joined", "each node", "most, each node")
        found = [[run(m, a, side=side) for m in SCALES] for a in APPLICATIONS]
        every = list(chain.from_iterable(found))
        for application, runs in [*zip(APPLICATIONS, found, strict=True), ("all", every)]:
            joined, single = ([f[k] for f in runs] for k in ("speedup", "single_speedup"))
            row(application, float(gmean(joined)), float(gmean(single)), max(single))
        for baseline in ("joined", "single"):
            saved[side, baseline] = [
                float(np.mean([f[f"{baseline}_{part}"] for f in every])) for part in parts
            ]
    more = ("without partial results", "x read once a row", "no repacking")
    head("saved, mean", "energy", "memory", "buffer", *more)
    for (side, baseline), values in saved.items():
        row(f"side {side}, {baseline} nodes", *values)


def choices() -> None:
    """Print what the choices that the thesis leaves open cost and give, for PageRank."""
    names = ("ca", "co")
    sizes = [{"sub_tensor": width} for width in (256, 1024, 4096)]
    thresholds = [{"repack_share": Fraction(1, part)} for part in (256, 16, 2)]
    buffers = [{"buffer_bytes": mib << 20} for mib in (16, 64, 256)]
    for title, changes in (("sub-tensor", sizes), ("repacking", thresholds), ("buffer", buffers)):
        head(f"PageRank, {title}", *names, "energy saved, mean")
        for change in changes:
            found = [
                figures(
                    simulate_pattern(
                        pattern(m, SCALES[m]), machine(SCALES[m], **change), "pagerank"
                    )
                )
                for m in names
            ]
            label = ", ".join(f"{k} {v}" for k, v in change.items())
            row(label, *(f["speedup"] for f in found), 1 - np.mean([f["energy"] for f in found]))
    head("PageRank, side of blocks", *names, "storage, mean")
    for side in (1, 4, 16, 256):
        found = [run(m, "pagerank", "none", side) for m in names]
        row(side, *(f["speedup"] for f in found), np.mean([f["storage"] for f in found]))
    head("PageRank, scale", "speedup", "share of the oracle", "share of the bandwidth")
    for name, scales in (("co", (128, 64, 32)),):
        for scale in scales:
            f = pagerank(name, scale)
            row(f"{name}, 1/{scale}", f["speedup"], f["oracle"], f["bandwidth"])


def main() -> None:
    """Make the parts that the command line names."""
    arguments = sys.argv[1:]
    parts = {"reuse", "figures", "preprocessing", "cpu", "choices"}
    folder = Path("docs/results")
    if arguments and arguments[0] not in parts:
        folder = Path(arguments.pop(0))
    if unknown := set(arguments) - parts:
        sys.exit(f"part must be one of {', '.join(sorted(parts))}, not {sorted(unknown)[0]!r}")
    wanted = set(arguments) or parts
    if "reuse" in wanted:
        reuse()
    if "figures" in wanted:
        draw_figures(folder)
    if "preprocessing" in wanted:
        preprocessing(folder)
    if "cpu" in wanted:
        cpu()
    if "choices" in wanted:
        choices()


if __name__ == "__main__":
    main()
