"""Measure the wall time of Cube-fx with data, and compare the result with its golden model.

python benchmarks/cubefx.py [--inputs 1638400] [--chip ascend910b]
"""

import argparse
import itertools
import time

import numpy as np

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.series.functions import as_functions
from vitruvian.sim.ops.series import built


def main() -> None:
    """Print the wall times of the three parts, the simulated time and the differences."""
    parser = argparse.ArgumentParser(description="Cube-fx with data.")
    parser.add_argument("--inputs", type=int, default=1_638_400, help="number of inputs")
    parser.add_argument("--chip", default="ascend910b", help="name of the chip")
    options = parser.parse_args()
    x = np.random.default_rng(1).uniform(-1.5, 1.5, options.inputs).astype(np.float16)
    functions, chip = as_functions(["sin", "cos", "tanh"]), load_chip(options.chip)
    marks = [time.perf_counter()]
    instance = built(functions, x, 16, "cube", chip, 1)
    marks.append(time.perf_counter())
    report = simulate(instance.program, checks=False)
    marks.append(time.perf_counter())
    count, wrong = instance.compare(report.outputs)
    marks.append(time.perf_counter())
    parts = [after - before for before, after in itertools.pairwise(marks)]
    print(f"{options.inputs:,} inputs, 3 functions, order 16, signs, on {chip.name}")
    print(f"built in {parts[0]:.1f} s, simulated in {parts[1]:.1f} s, golden in {parts[2]:.1f} s")
    print(f"{report.total_s * 1e6:.1f} µs on the chip; {wrong} of {count:,} elements differ")


if __name__ == "__main__":
    main()
