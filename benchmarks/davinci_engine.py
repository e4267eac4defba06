"""Measure the compiled engine in instructions per second of one thread, on tiled products.

python benchmarks/davinci_engine.py [--instructions 300000]
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from vitruvian.sim.davinci import Core, Program, Unit, load_chip
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import Lowered, lower

ORDER = [Unit.MTE2, Unit.MTE1, Unit.M, Unit.V, Unit.MTE3]


@contextmanager
def stage(core: Core, unit: Unit, k: int) -> Iterator[None]:
    """Wait for the neighbouring units, let the caller add its work, then set their flags."""
    at = ORDER.index(unit)
    near = ORDER[max(at - 1, 0) : at] + ORDER[at + 1 : at + 2]
    for other in near:
        core.wait_flag(other, unit, k)
    yield
    for other in near:
        core.set_flag(unit, other, k)


def tile_loop(cores: int, tiles: int) -> Program:
    """Build double-buffered tiles on each core: GM → L1 → L0A, L0B → Cube → UB → GM."""
    program = Program(load_chip("ascend310" if cores <= 2 else "ascend910"), "tiles")
    x = program.tensor("x", (64, 64), "fp16")
    y = program.tensor("y", (cores, tiles, 64, 64), "fp32")
    for c in range(cores):
        core = program.core(c)
        l1, a, b = (
            [core.allocate(m, (64, 64), "fp16") for _ in "01"] for m in ("L1", "L0A", "L0B")
        )
        out, u = ([core.allocate(m, (64, 64), "fp32") for _ in "01"] for m in ("L0C", "UB"))
        for early, late in pairwise(ORDER):
            for k in range(2):
                # Both buffers between two units are free at first.
                core.set_flag(late, early, k)
        for t in range(tiles):
            k = t % 2
            with stage(core, Unit.MTE2, k):
                core.nd2nz(l1[k], x)
            with stage(core, Unit.MTE1, k):
                core.load(a[k], l1[k])
                core.load(b[k], l1[k])
            with stage(core, Unit.M, k):
                core.mmad(out[k], a[k], b[k], m=64, k=64, n=64, init="zero")
            with stage(core, Unit.V, k):
                core.matrix_out(u[k], out[k], m=64, n=64)
            with stage(core, Unit.MTE3, k):
                core.copy(y[c, t], u[k])
        for early, late in pairwise(ORDER):
            for k in range(2):
                # Each flag was set once more than it was waited for.
                core.wait_flag(late, early, k)
    return program


def main() -> None:
    """Print a line for each number of cores."""
    parser = argparse.ArgumentParser(description="Speed of the compiled engine.")
    parser.add_argument("--instructions", type=int, default=300_000)
    instructions = parser.parse_args().instructions
    small = tile_loop(2, 5)
    findings = check(small, strict=True)
    if findings:  # the engine would measure a program that no device may run
        raise SystemExit(findings[0].message)
    # The first run loads the compiled engine, or compiles it.
    engine.run(lower(small)[0])
    for cores in (1, 2, 32):
        # A tile is 6 instructions of work, 8 that wait for flags and 8 that set them.
        lowered, _ = lower(tile_loop(cores, instructions // (22 * cores)))
        best = min(_time(lowered) for _ in range(3))
        busy = np.sum(lowered.init + lowered.data) / engine.run(lowered).total
        print(
            f"{cores:2d} cores: {len(lowered):,} instructions in {best:.3f} s, "
            f"{len(lowered) / best / 1e6:.2f} million a second ({busy:.1f} units busy on average)"
        )


def _time(lowered: Lowered) -> float:
    began = time.perf_counter()
    engine.run(lowered)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
