"""Predict kernels that were measured on a 910B1 from its chip file.

python benchmarks/davinci_gemm.py [--part gemm] [--chip FILE] [--before FILE] [--out docs/results]

The parts are the published products of pto-isa (gemm), products and transfers of the vendor's
examples (cann, transfers), the published convolutions of pto-isa (convolutions), the same products
without one cause each (causes), and the fit of two numbers to three products of four (left-out).
"""

import argparse
import time
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.papers.ascend910b import measured, model
from vitruvian.common.charts import write_figure
from vitruvian.sim.davinci import Chip, Unit, load_chip
from vitruvian.sim.davinci.chip.file import chip_text, read_chip

UNITS = (Unit.M, Unit.MTE1, Unit.MTE2, Unit.FIX)

#: Latencies of the cache in nanoseconds at which the products are timed for ``left_out``; between
#: them the times are interpolated.
LATENCIES = (0, 50, 100, 150, 200, 250, 300)


def shares(run: model.Run, published: tuple[float, ...]) -> str:
    """Return the cells with the busy shares of ``UNITS``, and their differences."""
    cells = []
    for unit, share in zip(UNITS, published, strict=True):
        busy = 100 * run.busy_us[unit] / run.total_us
        cells.append(f"{busy:.1f} ({busy - share:+.1f})")
    return " | ".join(cells)


def gemm(chip: Chip) -> dict[str, float]:
    """Print a row for each product of pto-isa; return the errors in per cent."""
    print("| m = k = n | measured ms | here ms | error | Cube % | MTE1 % | MTE2 % | FIX % | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    errors = {}
    for size, milliseconds, busy in measured.PRODUCTS:
        began = time.perf_counter()
        run = model.gemm(chip, size, size, size)
        error = 100 * (run.total_us / 1e3 / milliseconds - 1)
        errors[f"{size}"] = error
        print(
            f"| {size} | {milliseconds:.4f} | {run.total_us / 1e3:.4f} | {error:+.1f}% | "
            f"{shares(run, busy)} | {time.perf_counter() - began:.1f} |",
            flush=True,
        )
    return errors


def convolutions(chip: Chip) -> dict[str, float]:
    """Print a row for each convolution of pto-isa; return the errors in per cent."""
    print(
        "| N, C, H, W, filters | measured ms | here ms | error | Cube % | MTE1 % | MTE2 % | FIX % |"
    )
    print("|---|---|---|---|---|---|---|---|")
    errors = {}
    for size, milliseconds, busy in measured.CONVOLUTIONS:
        run = model.convolution(chip, size)
        error = 100 * (run.total_us / 1e3 / milliseconds - 1)
        errors[f"{size[1]}×{size[2]}×{size[3]}"] = error
        print(
            f"| {', '.join(map(str, size))} | {milliseconds:.4f} | {run.total_us / 1e3:.4f} | "
            f"{error:+.1f}% | {shares(run, busy)} |",
            flush=True,
        )
    print(f"mean error {np.mean(np.abs(list(errors.values()))):.1f} %")
    return errors


def cann(chip: Chip) -> dict[str, float]:
    """Print the time of MTE2 in the vendor's examples of products; return the errors."""
    print("| example | published MTE2 µs | here | error | published total | here | error |")
    print("|---|---|---|---|---|---|---|")
    errors = {}
    for name, (m, k, n), blocking, mte2, total in measured.EXAMPLES:
        run = model.gemm(chip, m, k, n, blocking)
        busy = run.busy_us[Unit.MTE2]
        errors[name] = 100 * (busy / mte2 - 1)
        print(
            f"| {name} | {mte2:.1f} | {busy:.1f} | {errors[name]:+.1f}% | {total:.1f} | "
            f"{run.total_us:.1f} | {100 * (run.total_us / total - 1):+.1f}% |",
            flush=True,
        )
    return errors


def transfers(chip: Chip) -> dict[str, float]:
    """Print the times of the vendor's example of loads to L1; return the errors in per cent."""
    print("| loads | published µs | here | error |")
    print("|---|---|---|---|")
    errors = {}
    for name, load, microseconds in measured.LOADS:
        busy = model.loads(chip, load).busy_us[Unit.MTE2]
        errors[name] = 100 * (busy / microseconds - 1)
        print(f"| {name} | {microseconds:.1f} | {busy:.1f} | {errors[name]:+.1f}% |", flush=True)
    return errors


def causes(text: str) -> None:
    """Print the errors without one cause each: of times, and of MTE2 in the vendor's examples."""
    examples = [measured.EXAMPLES[at] for at in (0, 1, 2, 4)]
    size, published, _ = measured.CONVOLUTIONS[3]
    names = [f"{size}" for size, _, _ in measured.PRODUCTS] + [name for name, *_ in examples]
    names.append(f"convolution of {size[1]} channels")
    print(f"| chip file | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for cause, change in model.CAUSES.items():
        chip = read_chip(change(text))
        errors = [
            model.gemm(chip, size, size, size).total_us / 1e3 / milliseconds - 1
            for size, milliseconds, _ in measured.PRODUCTS
        ]
        for _, (m, k, n), blocking, mte2, _ in examples:
            errors.append(model.gemm(chip, m, k, n, blocking).busy_us[Unit.MTE2] / mte2 - 1)
        errors.append(model.convolution(chip, size).total_us / 1e3 / published - 1)
        print(f"| {cause} | {' | '.join(f'{100 * e:+.1f}%' for e in errors)} |", flush=True)


def left_out(text: str) -> None:
    """Print the two fitted numbers and all errors if they are fitted to some of the products."""
    times: dict[int, list[float]] = {size: [] for size, _, _ in measured.PRODUCTS}
    for latency in LATENCIES:
        chip = read_chip(model.with_fitted(text, latency, 0))
        for size, each in times.items():
            each.append(model.gemm(chip, size, size, size).total_us)
    published = {size: 1e3 * milliseconds for size, milliseconds, _ in measured.PRODUCTS}
    print("| fitted to | latency ns | launch µs | errors |")
    print("|---|---|---|---|")
    sizes = tuple(times)
    for some in (sizes, *reversed(list(combinations(sizes, 3)))):
        latency, launch = _fit({s: times[s] for s in some}, published)
        errors = {s: _error(times[s], latency, launch, published[s]) for s in sizes}
        cells = ", ".join(
            f"{s}: {100 * e:+.1f}%{'' if s in some else ' (left out)'}" for s, e in errors.items()
        )
        print(f"| {', '.join(map(str, some))} | {latency:g} | {launch:.1f} | {cells} |")


def _error(times: list[float], latency: float, launch: float, published: float) -> float:
    return (float(np.interp(latency, LATENCIES, times)) + launch) / published - 1


def _fit(times: Mapping[int, list[float]], published: Mapping[int, float]) -> tuple[float, float]:
    """Return the latency and launch with the least sum of squared relative errors."""
    grid = [(latency, launch / 10) for latency in range(0, 301, 5) for launch in range(0, 201, 1)]

    def badness(at: tuple[float, float]) -> float:
        return sum(_error(each, *at, published[size]) ** 2 for size, each in times.items())

    return min(grid, key=badness)


PARTS: Mapping[str, Callable[[Chip], dict[str, float]]] = {
    "gemm": gemm,
    "cann": cann,
    "transfers": transfers,
    "convolutions": convolutions,
}
STUDIES: Mapping[str, Callable[[str], None]] = {"causes": causes, "left-out": left_out}


def draw(path: Path, now: Mapping[str, dict[str, float]], before: Mapping[str, dict]) -> None:
    """Write the picture of all errors, before and now."""

    def fill(figure) -> None:
        axes = figure.subplots()
        names = [name for part in now.values() for name in part]
        y = np.arange(len(names))
        for label, colour, errors in (("before", "#bbbbbb", before), ("now", "#31688e", now)):
            values = [value for part in errors.values() for value in part.values()]
            axes.plot(values, y, "o", color=colour, markersize=4, label=label)
        axes.axvline(0, color="#333333", linewidth=0.8)
        axes.set_yticks(y, names)
        axes.invert_yaxis()
        axes.set_xlim(-70, 70)
        axes.set_xlabel("error in per cent")
        axes.legend(loc="lower right")

    write_figure(path, fill, 8, 5)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measured kernels of a 910B1, predicted.")
    parser.add_argument(
        "--part",
        choices=(*PARTS, *STUDIES, "all"),
        default="gemm",
        help="print this part (default: gemm); all has those of which the picture is drawn",
    )
    parser.add_argument(
        "--chip", default="ascend910b", metavar="FILE", help="take this chip (default: ascend910b)"
    )
    parser.add_argument(
        "--before", metavar="FILE", help="print the same of this chip, too (default: none)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the picture to this folder (default: none)"
    )
    args = parser.parse_args()
    if args.part in STUDIES:
        STUDIES[args.part](chip_text(args.chip)[0])
        return
    chosen = list(PARTS) if args.part == "all" else [args.part]
    found = []
    for name in filter(None, (args.chip, args.before)):
        print(f"\n**{name}**")
        found.append({part: PARTS[part](load_chip(name)) for part in chosen})
    if args.out is not None:
        draw(args.out / "gemm910b1_errors.json", found[0], found[-1])


if __name__ == "__main__":
    main()
