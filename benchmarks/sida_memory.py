"""Print what a memory with timing changes in the figures of docs/results/sida.md, and draw it.

    python benchmarks/sida_memory.py [FOLDER] [PART …] [--dramsim3 PATH]

writes the picture to FOLDER (by default docs/results), tables as CSV to its folder ``data``, and
prints the latter. The parts are figures (in some ten minutes), choices and reference; by default
the first two are made. ``reference`` compares the model of ``sim.sparse.dram`` with DRAMsim3, whose
program ``dramsim3main`` PATH names. Matrices and scales are those of ``sida_figures``.
"""

import argparse
import csv
import dataclasses
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean

from benchmarks.papers.zhang24.planning import simulate_pattern
from benchmarks.sida_figures import (
    APPLICATIONS,
    COMPUTE_BOUND,
    SCALES,
    WITHOUT_OEI,
    machine,
    pattern,
)
from vitruvian.common.charts import write_figure
from vitruvian.sim.sparse.baselines import baseline
from vitruvian.sim.sparse.dram import Dram, DramMemory, load_dram
from vitruvian.sim.sparse.report import SparseReport
from vitruvian.sim.sparse.timing import sweep_steps

HBM2 = load_dram("hbm2")
PERMUTED = dataclasses.replace(HBM2, hashed=True)

#: Matrices for which other memories are tried: real, a power law that evicts, a mesh whose vectors
#: meet in one bank, and finite elements.
FEW = ("ca", "gy", "co", "ad")

#: Quantities of a run: against the joined and the single baseline, then with a baseline that stays
#: at the peak rate.
KEYS = ("joined", "single", "joined_peak", "single_peak", "oracle", "busy", "useful", "moved")


def figures_of(report: SparseReport) -> dict[str, float]:
    """Return the quantities of a run."""
    peak = [
        baseline(report.plain, report.architecture, report.schedule, joined=joined).cycles
        for joined in (True, False)
    ]
    values = (
        report.speedup,
        report.single_speedup,
        *(float(each / report.cycles) for each in peak),
        report.oracle_share,
        report.bandwidth_share,
        report.useful_bandwidth_share,
        report.moved_share,
    )
    return dict(zip(KEYS, values, strict=True))


@cache
def run(name: str, application: str, memory: Dram | None) -> dict[str, float]:
    """Simulate an application with and without a memory's timing."""
    scale = SCALES[name]
    report = simulate_pattern(pattern(name, scale), machine(scale), application, memory=memory)
    return figures_of(report)


def table(folder: Path, name: str, head: list[str], rows: list[list[Any]]) -> None:
    """Print a table and write it as CSV."""
    path = folder / "data" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = [[f"{x:.3f}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *shown])
    print(path, *(" | ".join(row) for row in [head, *shown]), sep="\n", flush=True)


def values(key: str, memory: Dram | None) -> dict[str, list[float]]:
    """Return a quantity of all runs by application."""
    return {a: [run(m, a, memory)[key] for m in SCALES] for a in APPLICATIONS}


def figures(folder: Path) -> None:
    """Print every figure with and without timing, and draw speedups and shares."""
    for name in SCALES:
        begin = time.process_time()
        for application in APPLICATIONS:
            for memory in (None, HBM2):
                run(name, application, memory)
        print(f"{name}: {time.process_time() - begin:.0f} s", flush=True)
    table(
        folder,
        "sida_memory",
        [
            "quantity",
            "published",
            "without timing",
            "with timing",
            "with timing, baseline at its roofline",
        ],
        summary(),
    )
    useful = values("useful", HBM2)
    table(
        folder,
        "sida_memory_share",
        ["useful share, with timing", *SCALES, "geomean"],
        [[a, *each, float(gmean(each))] for a, each in useful.items()],
    )
    write_figure(folder / "sida_memory.json", draw)


def summary() -> list[list[Any]]:
    """Return the rows of the table of all figures."""
    rows = []
    memories = (None, HBM2, HBM2)
    for kind, published in (("joined", (1.23, 2.56, 3.55)), ("single", (1.23, 2.56, 3.55))):
        keys = (kind, kind, f"{kind}_peak")
        found = [values(key, memory) for key, memory in zip(keys, memories, strict=True)]
        means = [
            [float(gmean(v)) for a, v in each.items() if a not in WITHOUT_OEI] for each in found
        ]
        every = [np.ravel([*each.values()]) for each in found]
        without = [np.ravel([each[a] for a in WITHOUT_OEI]) for each in found]
        names = f"{kind} nodes: "
        rows += [
            [f"{names}geomean of all pairs", 1.76, *(float(gmean(v)) for v in every)],
            [f"{names}lowest geomean", published[0], *map(min, means)],
            [f"{names}highest geomean", published[1], *map(max, means)],
            [f"{names}highest speedup", published[2], *(float(v.max()) for v in every)],
            [
                f"{names}cg and bicgstab, range",
                "0.75 to 1.20",
                *(f"{v.min():.2f} to {v.max():.2f}" for v in without),
            ],
        ]
    for key, label, whole, bound in (
        ("oracle", "share of the oracle, mean", 0.6678, ""),
        ("busy", "share of the bandwidth, geomean", 0.8293, 0.9294),
        ("useful", "useful share of the bandwidth, geomean", 0.8293, 0.9294),
    ):
        mean = np.mean if key == "oracle" else gmean
        found = [values(key, memory) for memory in (None, HBM2)]
        means = [float(mean(np.ravel([*v.values()]))) for v in found]
        rows.append([label, whole, *means, ""])
        part = [
            float(mean(np.ravel([v[a] for a in APPLICATIONS if a not in COMPUTE_BOUND])))
            for v in found
        ]
        rows.append([f"{label}, without gmres and gcn", bound, *part, ""])
    moved = float(np.mean([*values("moved", HBM2).values()]))
    rows.append(["bytes moved over bytes asked for, mean", "", 1.0, moved, ""])
    return rows


def draw(figure: Any) -> None:
    """Draw the geomean of each application without and with timing."""
    place = np.arange(len(APPLICATIONS))
    axes_of = figure.subplots(2, 1, sharex=True)
    for axes, series, level, top, label in (
        (
            axes_of[0],
            [
                ("without timing", "joined", None),
                ("with timing", "joined", HBM2),
                ("with timing, baseline at its roofline", "joined_peak", HBM2),
            ],
            1.76,
            2.4,
            "speedup, joined",
        ),
        (
            axes_of[1],
            [("without timing", "useful", None), ("with timing", "useful", HBM2)],
            0.8293,
            1.3,
            "useful share",
        ),
    ):
        for number, (name, key, memory) in enumerate(series):
            means = [float(gmean(each)) for each in values(key, memory).values()]
            axes.bar(place + (number - 1) * 0.27, means, 0.27, label=name)
        axes.axhline(level, color="black", ls="--", lw=0.8)
        axes.set_ylabel(label)
        axes.set_ylim(0, top)
        axes.legend(fontsize=7, loc="upper right", ncols=3)
    axes_of[0].set_title("geomean of the nine matrices; lines: published means", fontsize=8)
    axes_of[1].set_xticks(place, APPLICATIONS, rotation=45, fontsize=7)


def choices(folder: Path) -> None:
    """Print the useful share and the speedup of PageRank with other memories."""
    others = {
        "as in hbm2.toml": HBM2,
        "no refresh": HBM2.replaced(refi=0),
        "tRFC 350 ns (8 Gbit)": HBM2.replaced(rfc=350),
        "tFAW 16 ns": HBM2.replaced(faw=16),
        "channels change every 256 bytes": dataclasses.replace(HBM2, interleave=4),
        "banks permuted by the row": PERMUTED,
        "queues of 8 requests": HBM2.replaced(queue=8),
        "queues of 128 requests": HBM2.replaced(queue=128),
    }
    rows = []
    for label, dram in others.items():
        found = [run(m, "pagerank", dram) for m in FEW]
        means = (float(gmean([f[k] for f in found])) for k in ("useful", "joined", "joined_peak"))
        rows.append([label, *(f["useful"] for f in found), *means])
        print(rows[-1], flush=True)
    for scale in (32, 64, 128):
        report = simulate_pattern(pattern("co", scale), machine(scale), "pagerank", memory=HBM2)
        of = figures_of(report)
        label = f"co alone, scaled down by {scale}"
        places = [of["useful"] if m == "co" else "" for m in FEW]
        rows.append([label, *places, of["useful"], of["joined"], of["joined_peak"]])
    head = ["PageRank, useful share", *FEW, "geomean", "speedup", "baseline at its roofline"]
    table(folder, "sida_memory_choices", head, rows)


def traces() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return artificial traces of a channel, by name."""
    rng, n = np.random.default_rng(1), 20_000
    reads = np.zeros(n, bool)
    half = np.arange(n // 2)
    alternate = np.arange(n) % 2 == 1
    pieces = rng.integers(0, 1 << 21, n // 8)[:, None] * 8 + np.arange(8)
    some = rng.random(n) < 0.1
    return {
        "one stream, reads": (np.arange(n), reads),
        "one stream, writes": (np.arange(n), ~reads),
        "random bursts": (rng.integers(0, 1 << 24, n), reads),
        "random pieces of 512 bytes": (pieces.ravel(), reads),
        "two streams in turn": (np.stack([half, (1 << 20) + half], 1).ravel(), reads),
        "a copy": (np.stack([half, (1 << 20) + 224 + half], 1).ravel(), alternate),
        "a tenth random": (
            np.where(some, rng.integers(1 << 20, 1 << 24, n), np.cumsum(~some)),
            reads,
        ),
        "rows of one bank": (np.arange(2000) * 512, reads[:2000]),
    }


def reference(folder: Path, command: str) -> None:
    """Compare the model with DRAMsim3 on artificial traces and on those of sweeps."""
    rows = []
    one = DramMemory(HBM2, 1, 1), DramMemory(HBM2, 1, 1, command)
    for name, (atoms, writes) in traces().items():
        ours, theirs = (m.serve(atoms.astype(np.int64), writes)[0] for m in one)
        peak = HBM2.channel.burst * len(atoms)
        rows.append([name, peak / theirs, peak / ours, f"{100 * (ours / theirs - 1):+.2f} %"])
    errors = []
    for name, scale in SCALES.items():
        for application in ("pagerank", "kmeans", "gmres", "cg"):
            report = simulate_pattern(
                pattern(name, scale), machine(scale), application, memory=HBM2
            )
            timing = report.timing
            assert timing is not None
            # The longest sweep of a run has most of its time.
            seconds = {s: n * timing.sweeps[s].seconds for s, n in report.sweeps.items()}
            sweep = max(seconds, key=seconds.__getitem__)
            _, log = sweep_steps(sweep, report.stored, report.architecture, logs=True)
            requests = timing.requests(sweep, report.stored, log)
            ours = timing.memory.replay(requests)
            theirs = dataclasses.replace(timing.memory, command=command).replay(requests)
            errors.append(ours.seconds / theirs.seconds - 1)
            rows.append(
                [
                    f"{application} on {name}, sweep of kind {sweep.kind}",
                    theirs.ideal_seconds / theirs.seconds,
                    ours.ideal_seconds / ours.seconds,
                    f"{100 * errors[-1]:+.2f} %",
                ]
            )
            print(rows[-1], flush=True)
    table(
        folder,
        "sida_memory_reference",
        ["requests", "share of the peak, DRAMsim3", "our model", "time, error"],
        rows,
    )
    worst = max(errors, key=abs)
    print(f"sweeps: mean error {np.mean(np.abs(errors)):.4f}, largest {worst:+.4f}")


def main() -> None:
    """Make the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--dramsim3")
    options = parser.parse_args()
    wanted, folder = options.arguments, Path("docs/results")
    if wanted and wanted[0] not in ("figures", "choices", "reference"):
        folder = Path(wanted.pop(0))
    wanted = wanted or ["figures", "choices"]
    if "figures" in wanted:
        figures(folder)
    if "choices" in wanted:
        choices(folder)
    if "reference" in wanted:
        if options.dramsim3 is None:
            parser.error("reference must come with --dramsim3 PATH")
        reference(folder, options.dramsim3)


if __name__ == "__main__":
    main()
