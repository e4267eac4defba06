"""Measure the building of long programs, their lowering, and the checks.

python benchmarks/davinci_checks.py [--instructions 1000000] [--best 3]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.tiling import Tiling


def chain(instructions: int) -> Program:
    """Build a vector chain: every second instruction is a barrier for the dependent next one."""
    program = Program(load_chip("ascend910"), "vector chain")
    core = program.core()
    views = [core.allocate("UB", (128,), "fp16") for _ in range(256)]
    for view in views:
        core.vdup(view, 0.0)
    for i in range((instructions - len(views)) // 2):
        core.pipe_barrier(Unit.V)
        # Two sums, each of the two latest results, so that no source is the destination.
        core.vadd(views[i % 256], views[(i - 1) % 256], views[(i - 2) % 256])
    return program


def product(instructions: int) -> Program:
    """Build a matrix product without data in tiles of one fractal, of about this length."""
    steps = max(instructions // (64 * 64 * 13), 1)
    tiling = Tiling(64, steps, 64, 1)
    return matmul.build(1024, 16 * steps, 1024, chip=load_chip("ascend910"), tiling=tiling)


def timed(function: Callable[[], list], best: int) -> tuple[float, list]:
    """Return the least processor time of some calls, and the last result."""
    times = []
    result = []
    for _ in range(best):
        began = time.process_time()
        result = function()
        times.append(time.process_time() - began)
    return min(times), result


def main() -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description="Speed of the checks of long programs.")
    parser.add_argument("--instructions", type=int, default=1_000_000)
    parser.add_argument("--best", type=int, default=3)
    options = parser.parse_args()
    for build in (chain, product):
        began = time.process_time()
        program = build(options.instructions)
        built = time.process_time() - began
        began = time.process_time()
        lowered, streams = lower(program)
        lowering = time.process_time() - began
        check_lowered(program, lowered, streams)  # compiles the loops if the cache lacks them
        again = partial(check_lowered, program, lowered, streams)
        best, findings = timed(again, options.best)
        print(
            f"{program.name}: {len(lowered):,} instructions, built in {built:.1f} s, lowered in "
            f"{lowering:.2f} s, checked in {best:.2f} s, {len(findings)} findings",
            flush=True,
        )


if __name__ == "__main__":
    main()
