"""Print the times of the methods for Taylor series relative to Horner's rule (Tang 2024, §4.4.2).

    python benchmarks/series_times.py [FUNCTIONS]

simulates times alone, for 1, 3 and 9 functions or the given number. The times are in microseconds
without the launch; a program of 9 functions takes about a minute.
"""

import sys

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.series.build import METHODS, build
from vitruvian.sim.kernels.series.functions import as_functions

#: The inputs of the thesis.
COUNTS = {"ascend310": 16384, "ascend910b": 1638400}

#: Speedups of Cube-fx over each method, on both chips.
PUBLISHED = {
    "naive": (2.73, 1.63),
    "cordic": (6.06, 3.52),
    "cordic-compare": (6.06, 3.52),
    "horner": (1.64, 1.28),
    "estrin": (1.53, 1.20),
    "motzkin": (1.85, 1.42),
}


def main(arguments: list[str]) -> None:
    numbers = [int(text) for text in arguments] or [1, 3, 9]
    print("| chip | functions | method | time, µs | / Horner | published | fused, µs |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for column, (name, count) in enumerate(COUNTS.items()):
        chip = load_chip(name)
        for number in numbers:
            functions = as_functions([("sin", "cos", "tan")[n % 3] for n in range(number)])

            def microseconds(method: str, fused: bool = False) -> float:
                options = {"fused": fused, "iterations": 4}
                program = build(method, count, functions, 16, chip, **options).program  # noqa: B023
                total = simulate(program, cube=None, checks=False).total_s
                return 1e6 * float(total - float(chip.launch_s))  # noqa: B023

            horner = microseconds("horner")
            for method in METHODS:
                alone, fused = microseconds(method), microseconds(method, True)
                published = PUBLISHED[method][column] / PUBLISHED["horner"][column]
                print(
                    f"| {name} | {number} | {method} | {alone:.1f} | {alone / horner:.2f} | "
                    f"{published:.2f} | {fused:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
