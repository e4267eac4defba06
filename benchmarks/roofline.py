"""Make the pictures and tables of docs/results/roofline.md, and measure the roofline's speed.

    python benchmarks/roofline.py [FOLDER]

writes the pictures to FOLDER (by default docs/results) and prints the tables. It takes six
minutes, most of them for the networks.
"""

import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.papers.zhou25.misjudged import (
    mixed_precision,
    mixed_precision_kernel,
    two_transfers,
    two_transfers_kernel,
)
from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing.engine import run as run_engine
from vitruvian.sim.davinci.timing.lowering import CoreStream, lower_sequences
from vitruvian.sim.networks import NETWORKS
from vitruvian.sim.networks.run import STEPS, run
from vitruvian.sim.papers.zhou25 import CASES
from vitruvian.sim.papers.zhou25.published import SPEEDUPS
from vitruvian.sim.papers.zhou25.rooflines import case_rows, case_table
from vitruvian.sim.roofline import Count, analyse, counters_of
from vitruvian.sim.roofline.components import components_of
from vitruvian.sim.roofline.naive import naive_utilisations
from vitruvian.sim.roofline.plot import draw, draw_distribution, draw_naive


def examples() -> None:
    print("| operator | naive roofline | component-based roofline |\n|---|---|---|")
    for make in (two_transfers, two_transfers_kernel, mixed_precision, mixed_precision_kernel):
        counters = make()
        result = analyse(counters)
        naive = ", ".join(f"{k} {v:.1%}" for k, v in naive_utilisations(counters).items())
        row = result.highest
        print(f"| {counters.name} | {naive} | {row.component.title} {row.utilisation:.1%} |")


def contrast(path: Path) -> None:
    """Draw Fig. 3: both operators by both rooflines, with some work of another component."""
    chip = load_chip("ascend910")
    a, b = two_transfers(chip), mixed_precision(chip)
    cube, load = components_of(chip)["M"], components_of(chip)["MTE2"]
    # A fifth of the ceiling in half of the time, so that the plot has a second component.
    a_cube = Count(cube, {"fp16": 0.2 * a.total_s * cube.ceilings["fp16"]}, 0.5 * a.total_s)
    b_load = Count(load, {"GM->L1": 0.2 * b.total_s * load.ceilings["GM->L1"]}, 0.5 * b.total_s)
    results = [
        analyse(replace(a, counts=[*a.counts, a_cube])),
        analyse(replace(b, counts=[*b.counts, b_load])),
    ]

    def fill(figure) -> None:
        grid = iter(figure.subplots(2, 2).flat)
        for result in results:
            for method, title in ((draw_naive, "naive"), (draw, "by components")):
                axes = next(grid)
                method(axes, result, f"{result.counters.name}, {title}")
                below = (0.5, -0.18)
                axes.legend(fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=below)

    write_figure(path, fill, height=9.6)


def cases(folder: Path) -> None:
    for case in CASES.values():
        rows = case_rows(case)
        header, cells = case_table(case, rows)
        print(f"\n{case.name}, {rows[0].analysis.counters.chip}")
        for line in (header, ["---"] * len(header), *cells):
            print("| " + " | ".join(line) + " |")
        speedup = rows[0].analysis.counters.total_s / rows[-1].analysis.counters.total_s
        print(f"speedup {speedup:.2f}, published {SPEEDUPS[case.name]:.2f}")
        if case.name == "add_relu":
            pictures(folder / "roofline_add_relu.json", rows)


def pictures(path: Path, rows) -> None:
    def fill(figure) -> None:
        for axes, row in zip(figure.subplots(len(rows)), rows, strict=True):
            result = row.analysis
            draw(axes, result, f"{row.step.name}: {result.label}")

    write_figure(path, fill, height=3.6 * len(rows))


CHIPS = ("ascend310", "ascend310p", "ascend910")


def cases_on_other_chips() -> None:
    """Print the first and the last step of each case on each chip."""
    print("\n| case | chip | µs | U | highest R | classes | speedup |\n|---" + "|---" * 6 + "|")
    for case in CASES.values():
        for chip in CHIPS:
            rows = case_rows(case, chip)
            first, last = rows[0], rows[-1]
            both = [r.analysis for r in (first, last)]
            time = " → ".join(f"{a.counters.total_s * 1e6:,.1f}" for a in both)
            used = " → ".join(f"{r.metric.utilisation:.1%}" for r in (first, last))
            ratio = " → ".join(f"{a.longest.time_ratio:.1%}" for a in both)
            gain = both[0].counters.total_s / both[1].counters.total_s
            print(
                f"| {case.name} | {chip} | {time} | {case.metric} {used} | {ratio} "
                f"| {' → '.join(a.label for a in both)} | {gain:.2f} |"
            )


def networks(folder: Path) -> None:
    shares = {}
    print("\n| network, chip, step | runs of layers | µs | s | shares |\n|---|---|---|---|---|")
    for name, make in NETWORKS.items():
        for chip_name in CHIPS:
            chip = load_chip(chip_name)
            for step in STEPS:
                begin = perf_counter()
                times = run(make(), chip, step=step)
                seconds = perf_counter() - begin
                each = {
                    "layers": times.distribution(),
                    "layers, no buses": times.distribution(buses=False),
                    "layers, no buses, with launches": times.distribution(
                        buses=False, launch_s=float(chip.launch_s)
                    ),
                    "time": times.distribution(by_time=True),
                }
                # The picture has one chip, the table all.
                if chip_name == "ascend310":
                    shares |= {f"{name}, {step}, {k}": each[k] for k in ("layers", "time")}
                runs = sum(x.layer.times for x in times.layers)
                head = f"{name}, {chip_name}, {step} | {runs} | {times.seconds * 1e6:,.0f}"
                for key, found in each.items():
                    text = ", ".join(f"{b.value} {x:.2%}" for b, x in found.items())
                    print(f"| {head} | {seconds:.1f} | {key}: {text} |", flush=True)
    title = "classes of layers on the simulated Ascend 310"
    path = folder / "roofline_networks.json"
    write_figure(path, lambda figure: draw_distribution(figure.subplots(), shares, title))


def speed() -> None:
    chip = load_chip("ascend910")
    program = Program(chip, "a million")
    x, y = (program.tensor(name, (4096,), "fp16") for name in "xy")
    core = program.core()
    u = core.allocate("UB", (4096,), "fp16")
    for source, target, emit in (
        (Unit.MTE2, Unit.V, lambda: core.copy(u, x)),
        (Unit.V, Unit.MTE3, lambda: core.vrelu(u, u)),
        (Unit.MTE3, Unit.MTE2, lambda: core.copy(y, u)),
    ):
        emit()
        core.set_flag(source, target, 0)
        core.wait_flag(source, target, 0)
    table = core.instructions
    # A million instructions on 32 cores.
    order = np.tile(np.arange(len(table)), 1_000_000 // 32 // len(table) + 1)
    lowered, streams = lower_sequences(chip, table, {("aicore", c): order for c in range(32)})
    times = run_engine(lowered, streams)
    lists = [CoreStream(s.kind, s.index, list(s.instructions)) for s in streams]
    for kind, given in (("a table of instructions", streams), ("lists", lists)):
        report = Report("a million", chip, lowered, given, times)
        begin = perf_counter()
        analyse(counters_of(report, "all"))
        seconds = perf_counter() - begin
        print(f"roofline of {len(lowered):,} instructions in {kind}: {seconds:.2f} s")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results")
    speed()
    examples()
    contrast(target / "roofline_naive.json")
    cases(target)
    cases_on_other_chips()
    networks(target)
