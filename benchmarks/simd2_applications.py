"""Compare the semiring Cube of a core with its vector unit and with libraries of a CPU.

    OPENBLAS_NUM_THREADS=1 python benchmarks/simd2_applications.py PART … [--out FOLDER]

These are the figures of Zhang 2024, chapter 3, on our own core: ``micro`` Figs. 3.9 and 3.10,
``applications`` Figs. 3.11 to 3.13, ``crossover`` Fig. 3.14, ``addnorm`` the rate of that operation
by instructions, and ``libraries`` single operations in NumPy. All but ``crossover`` and the times
of libraries are simulated (``sim.davinci``, one core). With ``--out``, the tables and pictures of
docs/results are written.
"""

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import numpy as np
from scipy.stats import gmean

from benchmarks.papers.zhang24 import applications, crossover, plain
from vitruvian.common.charts import write_figure
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.golden.simd2.op import PARTS as PARTS_OF_SQUARE
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.kernels.semirings import convergence, cube, norms, vector
from vitruvian.sim.simd2.graph import Core

#: Square sizes, other shapes (m, k, n), and vertices of the applications.
SIZES = (512, 1024, 2048, 4096)
SHAPES = ((4096, 256, 4096), (1024, 4096, 1024), (256, 4096, 4096), (4096, 4096, 256))
VERTICES = (512, 1024, 2048)

#: The Cube has 64 pairs for a lane of FP32. A multiprocessor of the RTX 3080 has 512 FP16 pairs for
#: 128 lanes, so 4.
PUBLISHED_PAIRS = 4

#: Rows of the micro benchmark: name, operation, dtype of the results.
ROWS = (
    *((op.mnemonic, op, vector.default_out(op)) for op in Op),
    *((f"{op.mnemonic}, FP32", op, "fp32") for op in (Op.MINPLUS, Op.MINMUL)),
    ("addnorm by norms", Op.MMA, "fp32"),
    ("orand, bits", Op.ORAND, "bits"),
)

#: §3.6.2, Figs. 3.9 and 3.10: the text gives values for groups of operations alone.
PUBLISHED = {
    **dict.fromkeys(("mma", "addnorm", "addnorm by norms"), "3.1 to 5.96"),
    **dict.fromkeys(("minplus", "maxplus", "minmul", "maxmul"), "about 10"),
    **dict.fromkeys(("minmax", "maxmin", "orand"), "up to 15.8"),
}

Row = list[Any]


@cache
def seconds(name: str, op: Op, out: str, chip: str, shape: tuple[int, int, int], unit: str):
    """Return the seconds of a product; ``unit`` is "vector", "cube" or "sparse"."""
    m, k, n = shape
    core = load_chip(chip)
    if name == "addnorm by norms":
        k += norms.TERMS
    if unit == "vector":
        return vector.seconds(op, m, k, n // 16 if out == "bits" else n, chip=core, out=out)
    out = "fp16" if out == "bits" else out
    return cube.seconds(op, m, k, n, chip=core, out=out, sparse=unit == "sparse")


def speedup(name: str, op: Op, out: str, chip: str, shape: tuple[int, int, int]) -> float:
    """Return the time of the vector unit over that of the Cube."""
    times = (seconds(name, op, out, chip, shape, unit) for unit in ("vector", "cube"))
    return next(times) / next(times)


def scale(chip: str) -> float:
    """Return the factor from a speedup of this core to one of the published pairs for a lane."""
    core = load_chip(chip)
    assert core.cube is not None
    pairs = core.cube.m * core.cube.n * core.cube.depths["fp16"] / core.cube.step_s
    return float(PUBLISHED_PAIRS / (pairs / (64 / core.vector[""].repeat_s)))


def shown(value: Any) -> str:
    """Return a cell of a table."""
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return str(value)


def table(title: str, head: Sequence[str], rows: Sequence[Row], path: Path | None) -> None:
    """Print a table, and write it if there is a path."""
    cells = [[shown(cell) for cell in row] for row in rows]
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in (head, *cells)) for i in range(len(head))]
    for row in (head, *cells):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    sys.stdout.flush()
    if path is not None:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *cells])


def micro(folder: Path | None, chips: Sequence[str]) -> None:
    """Print the speedups of single operations, Figs. 3.9 and 3.10."""
    found = {
        chip: {
            name: [speedup(name, op, out, chip, (n, n, n)) for n in SIZES] for name, op, out in ROWS
        }
        for chip in chips
    }
    head = ["operation", "results", "vector instructions"]
    for chip in chips:
        head += [*(f"{chip}, {n}" for n in SIZES), f"{chip}, scaled"]
    rows = []
    for name, op, out in ROWS:
        row: Row = [name, out, vector.instructions_per_term(op)]
        for chip in chips:
            values = found[chip][name]
            row += [*values, values[-1] * scale(chip)]
        rows.append([*row, PUBLISHED.get(name.partition(",")[0], "")])
    path = folder and folder / "data" / "simd2_micro.csv"
    table("vector unit's time over the Cube's, square", [*head, "published"], rows, path)
    shapes = ["×".join(map(str, shape)) for shape in SHAPES]
    rows = [
        [name, *(speedup(name, op, out, chips[0], shape) for shape in SHAPES)]
        for name, op, out in ROWS
    ]
    path = folder and folder / "data" / "simd2_shapes.csv"
    table(f"the same, m×k×n, {chips[0]}", ["operation", *shapes], rows, path)
    if folder:
        write_figure(folder / "simd2_micro.json", lambda figure: draw_micro(figure, found))


def logarithmic(*axes_of: Any, **settings: Any) -> None:
    """Set axes to a logarithmic scale with numbers that are no powers, and other settings."""
    for axes in axes_of:
        axes.set(yscale="log", **settings)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_micro(figure: Any, found: dict[str, dict[str, list[float]]]) -> None:
    """Draw Fig. 3.9 for one or two chips."""
    names = ("minplus, FP32", "minplus", "mma", "addnorm", "orand, bits")
    axes_of = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
    for axes, (chip, values) in zip(axes_of, found.items(), strict=True):
        for name, marker in zip(names, "osd^v", strict=True):
            axes.plot(range(len(SIZES)), values[name], marker + "-", label=name)
        axes.set_xticks(range(len(SIZES)), [str(size) for size in SIZES])
        logarithmic(axes, title=chip, xlabel="rows and columns")
    axes_of[0].set(ylabel="vector unit's time over the Cube's")
    axes_of[0].legend(fontsize=7)


def addnorm(folder: Path | None, chips: Sequence[str]) -> None:
    """Print the instructions and rates that give the speedup of addnorm, and of mma.

    The third column is the unit of ``sim.simd2.graph.Core``, 4×4×4 beside 16 lanes; the others are
    simulated at 4096×4096×4096 and scaled to as many pairs for a lane.
    """
    small = Core()
    cases = (
        ("mma", Op.MMA, small.unit.k, "mma"),
        ("minplus, FP32", Op.MINPLUS, small.unit.k, "minplus"),
        ("addnorm, four products", Op.ADDNORM, small.unit.k // PARTS_OF_SQUARE, "addnorm"),
        ("addnorm, one product (not built)", Op.ADDNORM, small.unit.k, ""),
        ("addnorm by norms, both units", Op.MMA, small.unit.k, "addnorm by norms"),
    )
    rows = []
    for title, op, depth, form in cases:
        count, pairs = vector.instructions_per_term(op), small.unit.m * small.unit.n * depth
        row: Row = [title, count, pairs, float(count * pairs / small.lanes)]
        for chip in chips:
            shape = (4096, 4096, 4096)
            row.append(speedup(form, op, "fp32", chip, shape) * scale(chip) if form else "")
        rows.append(row)
    head = ["operation", "vector instructions", "pairs a cycle, 4×4×4", "ratio, 16 lanes"]
    head += [f"{chip}, scaled" for chip in chips]
    table("plus-norm", head, rows, folder and folder / "data" / "simd2_addnorm.csv")


def libraries(folder: Path | None, chips: Sequence[str]) -> None:
    """Print the times of single operations in NumPy and golden, on this CPU, at 1024×1024×1024.

    Raises
    ------
    SystemExit
        If the results differ: those of selections in any bit, those of sums by float32's rounding.
    """
    rng, side, rows = np.random.default_rng(1), 1024, []
    for op in Op:
        a, b = (rng.random((side, side)).astype(np.float16).astype(np.float32) for _ in "ab")
        if op is Op.ORAND:
            a, b = ((x > 0.99).astype(np.float32) for x in (a, b))
        got, expected = plain.product(op, a, b), mmo(op, a, b)
        # Each of 1024 float32 additions rounds a number of at most 1024.
        bound = side**2 * 2.0**-24 if op.plus == "add" else 0
        if not np.allclose(got, expected, rtol=0, atol=bound):
            raise SystemExit(f"{op.mnemonic}: NumPy's values differ from golden's")
        out, shape = vector.default_out(op), (side, side, side)
        times = [crossover.least_seconds(partial(f, op, a, b), 3) for f in (plain.product, mmo)]
        times += [seconds(op.mnemonic, op, out, chips[0], shape, x) for x in ("vector", "cube")]
        rows.append([op.mnemonic, *(1e3 * t for t in times), times[0] / times[3]])
    head = [
        "operation",
        "NumPy, ms",
        "golden, ms",
        "vector unit, ms",
        "Cube, ms",
        "NumPy over Cube",
    ]
    path = folder and folder / "data" / "simd2_libraries.csv"
    table(f"one thread, and one core of {chips[0]}", head, rows, path)


def application(name: str, vertices: int, chip: str) -> dict[str, float]:
    """Return the seconds and iterations of an application."""
    core, op = load_chip(chip), applications.operation(name)
    method, cpu, values = applications.library(name, vertices)
    out = vector.default_out(op)
    shape = (vertices, applications.FEATURES if name == "knn" else vertices, vertices)
    if cpu < 1:
        cpu = min(cpu, *(applications.library(name, vertices)[1] for _ in "12"))
    units = ("vector", "cube", "sparse")
    once = {unit: seconds(name, op, out, chip, shape, unit) for unit in units}
    base = seconds(name, op, "bits", chip, shape, "vector") if name == "gtc" else once["vector"]
    found = {"cpu": cpu, "base": base, **once}
    if name == "knn":
        return found | {"method": method, **dict.fromkeys(("leyzorek", "worst", "bellman"), 1)}
    check_values(name, vertices, values)
    return found | {
        "method": method,
        "check": convergence.seconds(vertices**2, chip=core),
        "leyzorek": applications.leyzorek(name, vertices),
        "worst": applications.worst(vertices),
        "bellman": applications.bellman_ford(name, vertices),
    }


def check_values(name: str, vertices: int, expected: np.ndarray) -> None:
    """Compare the values of the semiring's algorithm with those of the library.

    Raises
    ------
    SystemExit
        If they differ. FP16 holds all values but those of minrp, which each iteration of at most
        2^i edges rounds, and maxrp's logarithms are those of float64.
    """
    values, iterations = applications.solution(name, vertices)
    if name == "mst":  # minimax values are the weights of the tree
        inside = values[~np.eye(vertices, dtype=bool)]
        equal = np.array_equal(np.unique(inside[np.isfinite(inside)]), np.unique(expected))
    else:
        bound = {"minrp": 2.0**iterations * 2.0**-11, "maxrp": 1e-12}.get(name, 0.0)
        equal = np.allclose(values, expected, rtol=bound, atol=0)
    if not equal:
        raise SystemExit(f"{name}: values differ from those of the library")


def times_of(found: dict[str, float], unit: str) -> dict[str, float]:
    """Return the seconds of the three algorithms on a unit."""
    check = found.get("check", 0.0)
    return {
        "check": found["leyzorek"] * (found[unit] + check),
        "no check": found["worst"] * found[unit],
        "bellman-ford": found["bellman"] * (found[unit] + check),
    }


def apps(folder: Path | None, chips: Sequence[str]) -> None:
    """Print the applications, Figs. 3.11 to 3.13, on the first chip."""
    chip, results = chips[0], {}
    for vertices in VERTICES:
        for name in applications.APPLICATIONS:
            results[name, vertices] = application(name, vertices, chip)
    head = ["application", "vertices", "Leyzorek", "without check", "Bellman–Ford"]
    head += ["CPU, ms", "vector unit's best, ms", "vector Leyzorek, ms", "Cube Leyzorek, ms"]
    head += ["library"]
    rows: list[Row] = []
    for (name, vertices), x in results.items():
        vec, ours = times_of(x, "vector")["check"], times_of(x, "cube")["check"]
        counts = [x["leyzorek"], x["worst"], x["bellman"]]
        milli = [1e3 * t for t in (x["cpu"], x["base"], vec, ours)]
        rows.append([name, vertices, *counts, *milli, x["method"]])
    path = folder and folder / "data" / "simd2_application_times.csv"
    table(f"iterations and times, {chip}", head, rows, path)
    head = ["application", "vertices", "Leyzorek", "without check", "Bellman–Ford"]
    head += ["2:4, Leyzorek", "2:4 over dense", "same algorithm", "CPU over Cube"]
    gains = {key: gains_of(x) for key, x in results.items()}
    rows = [[*key, *values] for key, values in gains.items()]
    for vertices in VERTICES:
        of_size = [values for (_, size), values in gains.items() if size == vertices]
        rows.append(["geomean", vertices, *map(float, gmean(of_size))])
    path = folder and folder / "data" / "simd2_applications.csv"
    table(f"the vector unit's best time over the Cube's, {chip}", head, rows, path)
    if folder:
        write_figure(folder / "simd2_applications.json", lambda figure: draw_apps(figure, gains))


def gains_of(x: dict[str, float]) -> list[float]:
    """Return the speedups of an application: see the head of the table in ``apps``."""
    dense, sparse = times_of(x, "cube"), times_of(x, "sparse")
    same = times_of(x, "vector")["check"] / dense["check"]
    over = [x["base"] / t for t in (*dense.values(), sparse["check"])]
    return [*over, dense["check"] / sparse["check"], same, x["cpu"] / dense["check"]]


def draw_apps(figure: Any, gains: dict[tuple[str, int], list[float]]) -> None:
    """Draw Figs. 3.11 and 3.12 at the largest size."""
    axes = figure.subplots()
    place = np.arange(len(applications.APPLICATIONS))
    names = ("Leyzorek, check", "Leyzorek, no check", "Bellman–Ford, check", "2:4, Leyzorek")
    for number, label in enumerate(names):
        values = [gains[name, VERTICES[-1]][number] for name in applications.APPLICATIONS]
        axes.bar(place + 0.2 * (number - 1.5), values, 0.2, label=label)
    axes.axhline(1, color="black", lw=0.8)
    axes.set_xticks(place, applications.APPLICATIONS)
    logarithmic(axes, ylabel="vector unit's best time over the Cube's")
    axes.set_title(f"{VERTICES[-1]} vertices")
    axes.legend(fontsize=7, ncols=2)


def crossing(folder: Path | None, chips: Sequence[str]) -> None:
    """Print where a sparse product wins over a dense one, Fig. 3.14, on this CPU."""
    del chips
    rows: list[Row] = []
    drawn = {}
    for size in (1024, 4096):
        dense = {library: crossover.dense_seconds(library, size) for *_, library in crossover.PAIRS}
        for name, op, library, other in crossover.PAIRS:
            ratios = [
                dense[other] / crossover.sparse_seconds(library, op, size, sparsity)
                for sparsity in crossover.SPARSITIES
            ]
            where = crossover.crossover(crossover.SPARSITIES, ratios)
            rows.append([name, op, size, *ratios, "never" if where is None else f"{where:.2%}"])
            drawn[f"{name}, {op}, {size}"] = ratios
            print(rows[-1], flush=True)
    head = ["sparse, dense", "operation", "size", *(f"{x:g}" for x in crossover.SPARSITIES)]
    path = folder and folder / "data" / "simd2_crossover.csv"
    table("dense time over sparse time", [*head, "crossover"], rows, path)
    if folder:
        write_figure(folder / "simd2_crossover.json", lambda figure: draw_crossing(figure, drawn))


def draw_crossing(figure: Any, drawn: dict[str, list[float]]) -> None:
    """Draw Fig. 3.14."""
    axes = figure.subplots()
    place = range(len(crossover.SPARSITIES))
    for number, (label, values) in enumerate(drawn.items()):
        style = "--" if number < len(crossover.PAIRS) else "-"
        color = f"C{number % len(crossover.PAIRS)}"
        axes.plot(place, values, "o" + style, color=color, label=label)
    axes.axhline(1, color="black", lw=0.8)
    axes.set_xticks(place, [f"{x:.1%}" for x in crossover.SPARSITIES])
    logarithmic(axes, xlabel="share of zeros", ylabel="dense time over sparse time")
    axes.legend(fontsize=7)


#: The parts by name.
PARTS = {
    "micro": micro,
    "addnorm": addnorm,
    "libraries": libraries,
    "applications": apps,
    "crossover": crossing,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the parts."""
    parser = argparse.ArgumentParser(description="Compare a semiring Cube with a vector unit.")
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--chips",
        default="ascend310p,ascend310",
        metavar="NAMES",
        help="simulate these chips; applications take the first (default: ascend310p,ascend310)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write tables and pictures to this folder"
    )
    options = parser.parse_args(argv)
    for part in options.parts:
        PARTS[part](options.out, options.chips.split(","))
    return 0


if __name__ == "__main__":
    sys.exit(main())
