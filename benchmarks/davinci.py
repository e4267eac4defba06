"""Measure DaVinci kernels: start-up, functional execution, the RTL Cube, and tiling searches.

python benchmarks/davinci.py [--guided 100]
"""

import argparse
import os
import resource
import subprocess
import sys
import time

import numpy as np

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels import KERNELS, matmul
from vitruvian.sim.kernels.search import TilingSearch, exhaustive, guided

CHIP = load_chip("ascend310")


def start() -> None:
    """Measure the processor time of a process that runs a kernel of one tile, with full caches."""
    code = (
        "from vitruvian.sim.davinci import load_chip, simulate\n"
        "from vitruvian.sim.kernels import KERNELS\n"
        "instance = KERNELS['matmul'].build((16, 16, 16), chip=load_chip('ascend310'))\n"
        "assert instance.compare(simulate(instance.program).outputs)[1] == 0\n"
    )
    for what in (["-c", code], ["-m", "vitruvian", "kernel", "matmul", "--size", "16x16x16"]):
        best = float("inf")
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *what], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            # The first two fields are the seconds in user mode and in the system.
            best = min(best, sum(after[:2]) - sum(before[:2]))
        name = "library" if what[0] == "-c" else "vitruvian kernel"
        print(f"one tile, {name}: {best:.2f} s of process time", flush=True)


def functional() -> None:
    """Measure a product with each implementation of the Cube."""
    data = matmul.operands(256, 256, 256)
    program = matmul.build(256, 256, 256, data=data)
    expected = matmul.expected(*data)
    simulate(program, cube="rtl", checks=False)  # builds the unit if it is not in the cache
    for cube in ("golden", "fast", "rtl"):
        began = time.perf_counter()
        report = simulate(program, cube=cube)
        seconds = time.perf_counter() - began
        same = np.array_equal(matmul.result(report.outputs["c"], 256, 256), expected)
        rate = 256**3 / seconds / 1e6
        print(
            f"256×256×256, cube={cube}: {seconds:.2f} s, {rate:.1f} million multiply-accumulates a "
            f"second, {'equal to golden' if same else 'not equal to golden'}",
            flush=True,
        )


def samples() -> None:
    """Measure every sample kernel with its checks and data."""
    for name, kernel in KERNELS.items():
        instance = kernel.build(chip=load_chip("ascend910b") if name == "gemm" else CHIP, cores=2)
        began = time.perf_counter()
        report = simulate(instance.program)
        seconds = time.perf_counter() - began
        count, wrong = instance.compare(report.outputs)
        print(
            f"{name}: {report.total_s * 1e6:.2f} µs simulated in {seconds * 1e3:.0f} ms, "
            f"{count:,} elements, {wrong} differ, {len(report.findings)} findings",
            flush=True,
        )


def searches(many: int) -> None:
    """Measure the exhaustive and the guided search for the fastest tiling of 1024³.

    Then compare the results of the two searches for ``many`` random products.
    """
    problem = TilingSearch(1024, 1024, 1024)
    for search in (exhaustive, guided):
        began = time.perf_counter()
        tuned = search(problem)
        print(
            f"1024×1024×1024, {search.__name__}: {tuned.best[0].tiling}, "
            f"{tuned.best[0].seconds * 1e6:.3f} µs, {tuned.evaluated} of {tuned.space} tilings in "
            f"{time.perf_counter() - began:.1f} s on {os.cpu_count()} cores",
            flush=True,
        )
    rng = np.random.default_rng(2)
    optima, worst, largest = 0, 0.0, 0.0
    sizes = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32)
    for _ in range(many):
        m, k, n = (16 * int(rng.choice(sizes)) for _ in range(3))
        name = str(rng.choice(["ascend310", "ascend310", "ascend910"]))
        cores = int(rng.choice([1, 2] if name == "ascend310" else [1, 4, 8]))
        problem, chip = TilingSearch(m, k, n, chip=name, cores=cores), load_chip(name)
        tried = guided(problem)
        shortest = min(problem.time(chip, t) for t in problem.tilings(chip))
        optima += tried.best[0].atto == shortest
        worst = max(worst, tried.best[0].atto / shortest - 1)
        largest = max(largest, tried.evaluated / tried.space)
    if many:
        print(
            f"guided search: optimum of {optima} of {many} random products, at most "
            f"{largest:.1%} of the tilings, at worst {worst:.2%} slower"
        )


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description="Speed of DaVinci kernels.")
    parser.add_argument("--guided", type=int, default=0, help="random products to search")
    options = parser.parse_args()
    start()
    functional()
    samples()
    searches(options.guided)


if __name__ == "__main__":
    main()
