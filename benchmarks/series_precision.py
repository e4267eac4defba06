"""Print the tables of docs/results/series_precision.md: Table 4.1 of Tang 2024, by simulation.

    python benchmarks/series_precision.py

takes about a minute. All values are computed on the simulated Ascend 310.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.papers.tang24.series_precision import (
    INPUTS,
    NAMES,
    ORDERS,
    PUBLISHED,
    Row,
    diverging,
    errors,
    on_chip,
    table,
)
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.cubefx import build as build_cubefx
from vitruvian.sim.kernels.series.functions import SeriesFunction

CHIP = load_chip("ascend310")


def cube(functions: Sequence[SeriesFunction], x: np.ndarray, order: int) -> np.ndarray:
    """Evaluate by Cube-fx on the simulated chip."""
    instance = build_cubefx(x, np.stack([f.coefficients(order) for f in functions]), CHIP)
    return instance.views["y"](simulate(instance.program, checks=False).outputs["y"])


def percent(error: float) -> str:
    """Return an error in per cent, with four digits and at most three decimals."""
    # The table of the thesis has three decimals, or four digits for larger errors.
    digits = 1 if error == 0 else int(np.floor(np.log10(100 * error)))
    return "< 0.0005" if error < 5e-6 else f"{100 * error:.{max(min(3, 3 - digits), 0)}f}"


def published(row: Row, method: str, order: int) -> float:
    return PUBLISHED[method, order][row.name][INPUTS.index(row.x)] / 100


def print_table(rows: list[Row], order: int) -> None:
    methods = ("series", "cube", "horner", "horner fused", "estrin", "naive", "motzkin")
    print(f"\nOrder {order}; errors in per cent, the published ones in brackets.\n")
    print("| function | x |", " | ".join(methods), "|")
    print("| --- | ---: |", " | ".join(["---:"] * len(methods)), "|")
    for row in rows:
        cells = []
        for method in methods:
            shown = percent(row.errors[method, order])
            if (method, order) in PUBLISHED:
                shown += f" ({percent(published(row, method, order))})"
            cells.append(shown)
        print(f"| {row.name} | {row.x} |", " | ".join(cells), "|")


def print_agreement(rows: list[Row]) -> None:
    print(
        "\n| method | order | the published digits | within a factor of 2 | largest factor | of |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for method, order in PUBLISHED:
        pairs = [(row.errors[method, order], published(row, method, order)) for row in rows]
        same = sum(percent_equal(a, b) for a, b in pairs)
        factors = [max(a / b, b / a) for a, b in pairs]
        near = sum(factor <= 2 for factor in factors)
        print(f"| {method} | {order} | {same} | {near} | {max(factors):.1f} | {len(pairs)} |")


def percent_equal(a: float, b: float) -> bool:
    """Return True if ``a`` rounds to the published ``b``: three decimals or four digits."""
    digits = min(3, 3 - int(np.floor(np.log10(100 * b))))
    # Half of the last place, and a margin for the binary representation of decimals.
    return abs(100 * a - 100 * b) <= 0.5000001 * 10.0**-digits


def print_averages(rows: list[Row]) -> None:
    """Print the means without the diverging rows, as the thesis takes them."""
    print("\n| method | order | mean error, % | published, % |\n| --- | ---: | ---: | ---: |")
    stated = {
        ("cube", 8): 1.112,
        ("cube", 16): 0.058,
        ("horner", 8): 1.115,
        ("horner", 16): 0.063,
    }
    for (method, order), value in stated.items():
        kept = [row for row in rows if not diverging(row.errors["series", order])]
        some = [row.errors[method, order] for row in kept]
        print(f"| {method} | {order} | {percent(float(np.mean(some)))} | {value} |")


def print_cordic() -> None:
    # CORDIC has no iteration for GELU.
    names = [name for name in NAMES if name != "gelu"]
    iterations = (4, 8, 10, 12)
    print("\n| function | x |", " | ".join(f"{n} iterations" for n in iterations), "|")
    print("| --- | ---: |", " | ".join(["---:"] * len(iterations)), "|")
    found = [errors(on_chip("cordic", CHIP, iterations=n), names, 1) for n in iterations]
    for i, name in enumerate(names):
        for j, x in enumerate(INPUTS):
            print(f"| {name} | {x} |", " | ".join(percent(each[i, j]) for each in found), "|")


def main() -> None:
    methods = {name: on_chip(name, CHIP) for name in ("horner", "estrin", "naive", "motzkin")}
    methods |= {"horner fused": on_chip("horner", CHIP, fused=True), "cube": cube}
    rows = table(methods)
    for order in ORDERS:
        print_table(rows, order)
    print_agreement(rows)
    print_averages(rows)
    print_cordic()


if __name__ == "__main__":
    main()
