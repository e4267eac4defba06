"""Measure what the barriers between dependent instructions cost (decision 0018).

    python benchmarks/davinci_barriers.py

prints a row for each kernel and chip: the kernel on two cores with its barriers and without them.
The results without them would be wrong on a device; only the times are of interest here.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from vitruvian.sim.davinci import Program, load_chip
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Kind
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.kernels import KERNELS, matmul
from vitruvian.sim.kernels.tiling import Tiling

CHIPS = ("ascend310", "ascend310p", "ascend910")

#: Cycles of every flag and barrier in the last columns, which show the sensitivity.
CYCLES = 10


def _kernel(name: str, *size: int) -> Callable[[Chip], Program]:
    """Return a function that builds a kernel of a size without data on two cores."""
    return lambda chip: KERNELS[name].build(size, chip=chip, cores=2, data=False).program


#: The kernels by their title.
PROGRAMS: dict[str, Callable[[Chip], Program]] = {
    "softmax, 8 × 16 × 128": _kernel("softmax", 8, 16),
    "maxpool, 4 × 32 × 32, 3 × 3 / 2": _kernel("maxpool", 4, 32, 3, 2),
    "matmul 256 × 256 × 256": _kernel("matmul", 256, 256, 256),
    "matmul, tiling 8,4,8,2": lambda chip: matmul.build(
        256, 256, 256, chip=chip, cores=2, tiling=Tiling(8, 4, 8, 2)
    ),
}


def without_barriers(program: Program) -> int:
    """Remove the barriers of single units from a program, and return their number."""
    before = sum(len(core.instructions) for core in program)
    for core in program:
        core.instructions[:] = [i for i in core.instructions if i.kind != Kind.BARRIER]
    return before - sum(len(core.instructions) for core in program)


def total_ns(program: Program, chip: Chip) -> float:
    """Return the nanoseconds of a program on a chip."""
    return engine.run(*lower(program, chip)).total / 1e9


def main() -> None:
    """Print the table."""
    print(
        "| kernel | chip | instructions | barriers | ns | ns without "
        f"| ns if each flag and barrier takes {CYCLES} cycles | ns without |\n{'|---' * 8}|"
    )
    for title, build in PROGRAMS.items():
        for name in CHIPS:
            chip = load_chip(name)
            slow = replace(chip, flag_s=Fraction(CYCLES) / chip.clock_hz, _known={})
            program, bare = build(chip), build(chip)
            barriers = without_barriers(bare)
            count = sum(len(core.instructions) for core in program)
            times = [f"{total_ns(p, c):.1f}" for c in (chip, slow) for p in (program, bare)]
            print(f"| {title} | {name} | {count} | {barriers} | {' | '.join(times)} |", flush=True)


if __name__ == "__main__":
    main()
