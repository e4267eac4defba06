"""Print the tables of docs/results/cubefx.md, and draw its plots.

python benchmarks/cubefx_figures.py [--out docs/results] [--chip ascend310]
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.tang24 import cubefx_times as study
from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.cubefx import CubeFx, build

#: Numbers of functions, by chip; a run on the 910B takes some seconds, so there are fewer.
FUNCTIONS = {"ascend310": tuple(range(1, 18)), "ascend910b": (1, 5, 9)}
MERGED = tuple(range(1, 17))

#: Mean speedups are over the numbers of functions up to this one. The thesis does not say which
#: numbers its means are over; its text names 1 and 9.
MOST = 9

#: Published (§4.4.2): the speedup of Horner's method at one function, that of Cube-fx at nine, and
#: the time of Cube-fx at 17 functions over that at 16; mean and largest gain of merging (§4.4.3).
ONE = {
    "ascend310": {"horner": 2.68, "estrin": 2.87, "motzkin": 2.38},
    "ascend910b": {"horner": 6.02, "estrin": 6.38, "motzkin": 4.76},
}
NINE = {
    "ascend310": {"horner": 2.48, "estrin": 2.48, "motzkin": 2.80},
    "ascend910b": {"horner": 1.05, "estrin": 1.19, "motzkin": 1.42},
}
STEP = {"ascend310": 1.79, "ascend910b": 1.81}
MERGING = {"ascend310": (1.83, 3.39, 1.12), "ascend910b": (1.63, 2.68, 1.28)}

#: Options that change the time, by the text of their row.
VARIANTS = {
    "as above": CubeFx(merged=1),
    "without double buffering": CubeFx(merged=1, double_buffer=False),
    "one piece": CubeFx(merged=1, pieces=1),
    "16 pieces": CubeFx(merged=1, pieces=16),
    "with signs": CubeFx(merged=1, signs=True),
}

COLOURS = {
    "cube": "#d55e00",
    "naive": "#999999",
    "cordic": "#e69f00",
    "horner": "#0072b2",
    "estrin": "#56b4e9",
    "motzkin": "#009e73",
}


def row(quantity: str, published: float, ours: float) -> None:
    """Print a row of a table with the error of our number."""
    print(f"| {quantity} | {published:g} | {ours:.2f} | {100 * (ours / published - 1):+.0f} % |")


def comparison(chip: str, results: list[study.Comparison]) -> None:
    """Print the speedups on a chip beside the published ones."""
    print(f"\n**{chip}**\n\n| quantity | published | ours | error |\n| --- | ---: | ---: | ---: |")
    for method, stated in study.PUBLISHED[chip].items():
        some = np.array(results[0].functions) <= MOST
        mean = float(results[0].speedups(method)[some].mean())
        row(f"mean speedup of Cube-fx over {method}", stated, mean)
    first = results[0]
    one, nine = first.functions.index(1), first.functions.index(9)
    for method, stated in ONE[chip].items():
        row(
            f"speedup of {method} over Cube-fx, 1 function", stated, 1 / first.speedups(method)[one]
        )
    for method, stated in NINE[chip].items():
        row(f"speedup of Cube-fx over {method}, 9 functions", stated, first.speedups(method)[nine])
    step = [study.seconds(chip, "cube", number, first.count) for number in (16, 17)]
    row("time at 17 functions over 16", STEP[chip], step[1] / step[0])
    every = [float(np.mean([r.speedups(method) for r in results])) for method in first.times]
    shown = ", ".join(f"{m} {v:.2f}" for m, v in zip(first.times, every, strict=True))
    print(f"\nmean speedups over all {len(first.functions)} numbers of functions: {shown}\n")
    for result in results:
        last = study.crossover(chip, result.count)
        print(
            f"{result.count:,} inputs: Horner's method is as fast as Cube-fx or faster up to "
            f"{last} functions (published: {study.CROSSOVER[chip]})",
            flush=True,
        )
    print("\n| functions | " + " | ".join(first.times) + " |", flush=True)
    print("| ---: |" + " ---: |" * len(first.times))
    for at, number in enumerate(first.functions):
        times = " | ".join(f"{times[at] * 1e6:.1f}" for times in first.times.values())
        print(f"| {number} | {times} |")


def merging(chip: str) -> dict[int, np.ndarray]:
    """Print the gains of merged matrices on a chip, and return them by order."""
    numbers, orders = MERGED, study.ENHANCED[chip]
    best = {order: study.gains(chip, order, numbers) for order in orders}
    four = {order: study.gains(chip, order, numbers, 4) for order in orders}
    print(f"\n**{chip}**, merged matrices\n")
    print("| order | " + " | ".join(map(str, numbers)) + " | mean |")
    print("| ---: |" + " ---: |" * (len(numbers) + 1))
    for order, gains in best.items():
        print(f"| {order} | " + " | ".join(f"{g:.2f}" for g in gains) + f" | {gains.mean():.2f} |")
    every = np.concatenate(list(best.values()))
    print("\n| quantity | published | ours | error |\n| --- | ---: | ---: | ---: |")
    mean, largest, fixed = MERGING[chip]
    row("mean gain over the naive mapping", mean, float(every.mean()))
    row("largest gain", largest, float(every.max()))
    row("smallest gain", 1.0, float(every.min()))
    row("mean gain over t = 4", fixed, float((every / np.concatenate(list(four.values()))).mean()))
    return best


def variants(chip: str) -> None:
    """Print the time and the busy units of Cube-fx with other options, for 16 functions."""
    print("\n| Cube-fx | µs | busy share of the units |\n| --- | ---: | --- |")
    for text, options in VARIANTS.items():
        if options.pieces != CubeFx().pieces and chip == "ascend310":
            continue  # it always has a piece for each step
        table = np.ones((16, study.ORDER))
        instance = build(study.COUNTS[chip][0], table, load_chip(chip), options=options)
        report = simulate(instance.program, cube=None, checks=False)
        units: dict[str, list[float]] = {}
        for use in report.units():
            units.setdefault(use.unit.name, []).append(use.busy / report.total_s)
        shares = ", ".join(f"{name} {np.mean(share):.1%}" for name, share in units.items())
        print(f"| {text} | {report.total_s * 1e6:.1f} | {shares} |", flush=True)


def draw(path: Path, chip: str, result: study.Comparison, gains: dict[int, np.ndarray]) -> None:
    """Draw the times of the methods and the gains of merged matrices."""

    def fill(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for method, times in result.times.items():
            label = "Cube-fx" if method == "cube" else method
            left.plot(
                result.functions,
                np.array(times) * 1e6,
                marker="o",
                markersize=3,
                color=COLOURS[method],
                label=label,
            )
        left.set_xlabel("functions")
        left.set_ylabel("µs")
        left.set_title(f"{chip}, {result.count:,} inputs, order {study.ORDER}")
        left.set_ylim(bottom=0)
        left.legend()
        for order, values in gains.items():
            right.plot(MERGED, values, marker="o", markersize=3, label=f"order {order}")
        right.axhline(1, color="#999999", linewidth=0.8)
        right.set_xlabel("functions")
        right.set_ylabel("gain over the naive mapping")
        right.set_title("merged matrices")
        right.legend()

    write_figure(path, fill, 10, 3.6)


def main() -> None:
    """Print the tables, and draw the plots if a folder is given."""
    parser = argparse.ArgumentParser(description="Cube-fx beside the published numbers.")
    parser.add_argument("--out", type=Path, help="folder for the plots")
    parser.add_argument("--chip", choices=sorted(study.COUNTS), help="only this chip")
    options = parser.parse_args()
    for chip in study.COUNTS if options.chip is None else (options.chip,):
        # Both sizes on the 310; the second one of the 910B would take half an hour.
        counts = study.COUNTS[chip] if chip == "ascend310" else study.COUNTS[chip][:1]
        results = [study.compare(chip, count, FUNCTIONS[chip]) for count in counts]
        comparison(chip, results)
        variants(chip)
        gains = merging(chip)
        if options.out:
            draw(options.out / f"cubefx_{chip}.json", chip, results[0], gains)


if __name__ == "__main__":
    main()
