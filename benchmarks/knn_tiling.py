"""Make the tables and the pictures of docs/results/knn_tiling.md.

    python benchmarks/knn_tiling.py [FOLDER] [PART …]

writes the pictures to FOLDER (by default docs/results) and prints the tables. The parts are single,
batches, workload and search; by default all are made, in half an hour.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.papers.tang24.knn_tiling import (
    TilingProblem,
    divisors,
    fit_inverse,
    individual,
    search,
    selections,
    workload,
)
from benchmarks.papers.tang24.selection_costs import HostSort, heap_seconds
from benchmarks.papers.tang24.tile_times import SimulatedProfile, tile_seconds
from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci import Chip, load_chip, simulate
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.selbknn.build import build, largest_tile
from vitruvian.sim.kernels.selbknn.golden import distances
from vitruvian.sim.kernels.selbknn.operands import prepared

CHIP = load_chip("ascend310")
FEATURES = 128
NEIGHBOURS = (1, 2, 4, 8, 16, 32)
METHODS = ("selb", "selb-stay", "bitonic", "heap", "host")


def points(queries: int, train: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the operands of a search in normal points of 128 dimensions (Tang 2024, §3.5)."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(n, FEATURES)).astype(np.float16) for n in (queries, train))
    return prepared(x, y, "cosine-product")


def seconds(
    shape: KnnShape,
    operands: tuple[np.ndarray, np.ndarray],
    method: str,
    tile: int | None = None,
    chip: Chip = CHIP,
) -> float:
    """Return the time of a search on both cores, from the launch to the last result."""
    program = build(shape, chip, operands, method=method, tile=tile, data=False)
    return simulate(program, cube=None, checks=False).total_s


def share_of_comparisons(shape: KnnShape, operands: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the part of the bitonic k-selection that vcmp and vsel take, on the vector unit."""
    program = build(shape, CHIP, operands, method="bitonic", cores=1, data=False)
    report = simulate(program, cube=None, checks=False)
    times = {"compared": 0.0, "all": 0.0}
    for number, _, instr in report.instructions():
        # Flags and barriers of the vector unit are no work.
        if instr.unit.name == "V" and instr.op.startswith("v"):
            took = float(report.times.end[number] - report.times.start[number])
            times["all"] += took
            times["compared"] += took * (instr.op in ("vcmp", "vsel"))
    return times["compared"] / times["all"]


def heap_and_host(
    shape: KnnShape, values: np.ndarray, rest_s: float, chip: Chip = CHIP
) -> dict[str, float]:
    """Return the times of heaps and of the host; ``rest_s`` is what is no k-selection."""
    return {
        "heap": rest_s + heap_seconds(values, shape.k, chip),
        # The host sorts all distances, whatever k is.
        "host": rest_s + HostSort().seconds(shape.queries, shape.train),
    }


def table(rows: dict[int, dict[str, float]], unit: str, scale: float) -> None:
    print(f"| k | {' | '.join(f'{m}, {unit}' for m in METHODS)} |\n|---" + "|---" * 5 + "|")
    for k, times in rows.items():
        print(f"| {k} | " + " | ".join(f"{times[m] * scale:,.3f}" for m in METHODS) + " |")
    for name in METHODS[2:]:
        for base in METHODS[:2]:
            ratio = np.mean([times[name] / times[base] for times in rows.values()])
            print(f"{name} over {base}, mean over k: {ratio:.2f}")
    for name in METHODS:
        first, last = rows[min(rows)][name], rows[max(rows)][name]
        print(f"{name}: time of k = {max(rows)} over k = {min(rows)}: {last / first:.2f}")


def single_rows(chip: Chip = CHIP) -> dict[int, dict[str, float]]:
    """Return the times of all methods by k, of 32 queries among 4096 training points."""
    x, y = operands = points(32, 4096)
    values = distances(x[:GROUP], y)
    rows = {}
    for k in NEIGHBOURS:
        shape = KnnShape(32, 4096, FEATURES, k)
        times = {m: seconds(shape, operands, m, chip=chip) for m in METHODS[:3]}
        tile = largest_tile(shape, chip)
        parts = [values[:, at : at + tile] for at in range(0, 4096, tile)]
        # Launch, loads and products that the selection does not hide.
        rest = times["selb"] - float(tile_seconds(parts, k, chip).sum())
        rows[k] = times | heap_and_host(shape, values, rest, chip)
    return rows


def single(folder: Path) -> None:
    """Fig. 3.3: 32 queries among 4096 training points."""
    x, y = points(32, 4096)
    rows = single_rows()
    print("\n32×128 by 128×4096")
    table(rows, "ms", 1e3)
    shape = KnnShape(16, 4096, FEATURES, 16)
    print(f"vcmp and vsel in the bitonic selection: {share_of_comparisons(shape, (x[:16], y)):.2%}")

    def fill(figure) -> None:
        axes = figure.subplots()
        for name in METHODS:
            axes.plot(list(rows), [rows[k][name] * 1e3 for k in rows], marker=".", label=name)
        axes.set(xlabel="k", ylabel="ms", xscale="log", yscale="log")
        axes.set_xticks(list(rows), [str(k) for k in rows])
        axes.legend()

    write_figure(folder / "knn_single.json", fill, 6)


def batch_rows(chip: Chip = CHIP) -> dict[int, dict[str, float]]:
    """Return the times of all methods by k, of 1280 queries among 204800 points.

    They are 40 equal rounds of a group on each core. A tile of the network takes the same time as
    every other one; the heaps of four queries are counted and scaled.
    """
    queries, train, rounds, sampled = 1280, 204800, 40, 4
    x, y = operands = points(32, train, 1)
    values = distances(x[:sampled], y)
    launch = float(chip.launch_s)
    rows = {}
    for k in NEIGHBOURS:
        shape = KnnShape(32, train, FEATURES, k)
        times = {
            # A round is simulated once; all rounds belong to one launch.
            m: launch + rounds * (seconds(shape, operands, m, 4096, chip) - launch)
            for m in METHODS[:2]
        }
        tile = largest_tile(KnnShape(32, 1 << 16, FEATURES, k), chip, "bitonic")
        few, more = (
            seconds(KnnShape(32, n * tile, FEATURES, k), (x, y[: n * tile]), "bitonic", tile, chip)
            for n in (2, 4)
        )
        # The time of a tile, without what the first ones take longer.
        each = (more - few) / 2
        times["bitonic"] = launch + rounds * (few - launch + (train / tile - 2) * each)
        # A heap hides the products behind itself; the time of the sampled queries is scaled.
        chain = heap_seconds(values, k, chip) * GROUP / sampled
        times["heap"] = launch + rounds * chain
        times["host"] = launch + HostSort().seconds(queries, train)
        rows[k] = times
        print(f"k {k}: " + ", ".join(f"{m} {t:.4f}" for m, t in times.items()), flush=True)
    return rows


def batches() -> None:
    """Print the times of Fig. 3.7."""
    rows = batch_rows()
    print("\n1280×128 by 128×204800")
    table(rows, "s", 1)


EXAMPLES = ((16, 1024, 8), (16, 4096, 8), (16, 4096, 16), (16, 4096, 32))


def tiles(folder: Path) -> None:
    """Fig. 3.6: selections and times of ten tiles, with their fits."""
    curves, ratios = [], []
    print("\n| m | n | k | selections of tiles 1, 2, 5, 10 | k / t | R² | steps | R² | time |")
    print("|---" * 10 + "|")
    for m, n, k in EXAMPLES:
        values = np.random.default_rng(k).normal(size=(m, 10 * n)).astype(np.float16)
        selected, steps = selections(values, k, n)
        times = tile_seconds([values[:, at : at + n] for at in range(0, 10 * n, n)], k, CHIP)
        fits = [fit_inverse(y) for y in (selected.mean(0), steps, times)]
        some = [0, 1, 4, 9]
        shown = ", ".join(f"{selected.mean(0)[t]:.2f}" for t in some)
        law = ", ".join(f"{workload(k, 10)[t]:.2f}" for t in some)
        r2 = [f"{fit.r2:.3f}" for fit in fits]
        print(
            f"| {m} | {n} | {k} | {shown} | {law} | {r2[0]} | {steps[0]} … {steps[-1]} | {r2[1]} "
            f"| {times[0] * 1e6:.1f} … {times[-1] * 1e6:.1f} µs | {r2[2]} |"
        )
        ratios.append([fit.r2 for fit in fits])
        curves.append((f"n = {n}, k = {k}", times, fits[2]))
    print("mean R² of selections, steps and times:", np.mean(ratios, 0).round(3), "published 0.97")
    many = np.random.default_rng(99).normal(size=(512, 10 * 256)).astype(np.float16)
    selected, _ = selections(many, 16, 256)
    ratio = selected.mean(0) / workload(16, 10)
    print("selections of 512 queries over k / t, k = 16, n = 256:", ratio.round(3))

    def fill(figure) -> None:
        axes = figure.subplots()
        t = np.linspace(1, 10, 91)
        for label, times, fit in curves:
            (line,) = axes.plot(t, 1e6 * (fit.slope / t + fit.constant))
            axes.plot(range(1, 11), times * 1e6, "o", color=line.get_color(), label=label)
        axes.set(xlabel="tile t", ylabel="k-selection, µs")
        axes.legend()

    write_figure(folder / "knn_tiles.json", fill, 6)


@dataclass(frozen=True)
class Published:
    """Simulated products, and selections as Tang 2024 reports them for 16 × 4096 distances.

    A selection without work takes 0.1516 ms, and one of all k = 16 steps 2.08 times as long
    (§3.5.1). Both are taken for any n2, and for each 16 queries.
    """

    products: SimulatedProfile

    def product_s(self, m1: int, n1: int) -> float:
        """Return f."""
        return self.products.product_s(m1, n1)

    def step_s(self, m2: int, n2: int) -> float:
        """Return g."""
        del n2
        # All 16 steps together take 2.08 − 1 times the constant.
        return -(-m2 // GROUP) * 151.6e-6 * 1.08 / 16

    def constant_s(self, m2: int, n2: int) -> float:
        """Return g₀."""
        del n2
        return -(-m2 // GROUP) * 151.6e-6


def tilings(chip: Chip = CHIP) -> None:
    """Eq. 3.9 for 1280 queries among 204800 points, exhaustive and pruned."""
    # Operands of products are in L1, distances and neighbours in UB.
    memory = sum(chip.kind().buffers[name].nbytes for name in ("L1", "UB"))
    print(
        "\n| times | k | points | m₁, n₁, m₂, n₂ | ms | pruned | published | pruned search, s "
        "| profile and search, s | over MM sizes | published | over kSel sizes | published |"
    )
    print("|---" * 13 + "|")
    # Tang 2024: the share that is pruned, and the gains over tiling each part alone.
    stated = {8: (0.7280, 1.29, 1.14), 16: (0.5523, 1.48, 1.05)}
    for k, (share, over_mm, over_ksel) in stated.items():
        limit = largest_tile(KnnShape(GROUP, 204800, FEATURES, k), chip)
        some = TilingProblem(
            1280, 204800, FEATURES, k, memory, divisors(1280, 16), divisors(204800, 128), limit
        )
        measured = SimulatedProfile(chip, FEATURES, k)
        stays = replace(measured, method="selb-stay")
        profiles = {"selb": measured, "selb-stay": stays, "published": Published(measured)}
        for name, profile in profiles.items():
            begin = perf_counter()
            whole = search(some, profile, prune=False)
            middle = perf_counter()
            pruned = search(some, profile)
            end = perf_counter()
            # Pruning must not change the result.
            assert (pruned.tiling, pruned.seconds) == (whole.tiling, whole.seconds)
            t = whole.tiling
            gains = [each.seconds / whole.seconds for each in individual(some, profile)]
            print(
                f"| {name} | {k} | {whole.points} | {t.m1}, {t.n1}, {t.m2}, {t.n2} "
                f"| {whole.seconds * 1e3:.2f} | {pruned.pruned_share:.2%} | {share:.2%} "
                f"| {end - middle:.3f} | {middle - begin:.1f} | {gains[0]:.2f} | {over_mm} "
                f"| {gains[1]:.2f} | {over_ksel} |",
                flush=True,
            )


def main(arguments: list[str]) -> None:
    parts = {
        "single": single,
        "batches": lambda _: batches(),
        "workload": tiles,
        "search": lambda _: tilings(),
    }
    folders = [a for a in arguments if a not in parts]
    folder = Path(folders[0] if folders else "docs/results")
    for name in [a for a in arguments if a in parts] or parts:
        parts[name](folder)


if __name__ == "__main__":
    main(sys.argv[1:])
