"""Kernels on the compiled core: words of machine code, cycles, and bytes that differ.

    python benchmarks/core_kernels.py plain
    python benchmarks/core_kernels.py tiny matmul maxpool-im2col

Every kernel has its default size, on one core. What the core lacks is said in its row.
"""

import argparse
from collections.abc import Iterable

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.machine_code.core import core_product, run_on_core
from vitruvian.sim.davinci.machine_code.encode import EncodingError, Texts, encode
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.rtl.core import core_names


def measure(names: Iterable[str], core: str) -> None:
    """Print a row for each kernel that the chip has, and the sums."""
    chip, ratios, equal, refused = load_chip("ascend310"), [], 0, 0
    for name in names:
        try:
            program = KERNELS[name].build(chip=chip, cores=1).program
        except ValueError as error:
            print(f"{name:28} not on the chip: {error}", flush=True)
            continue
        (only,) = [each for each in program if each.instructions]
        count, texts = len(only.instructions), Texts()
        words = sum(len(encode(instr, texts)) for instr in only.instructions)
        ratios.append(words / count)
        try:
            done = run_on_core(program, core)
        except EncodingError as error:
            refused += 1
            print(f"{name:28} {ratios[-1]:5.2f} words each  refused: {error}", flush=True)
            continue
        functional = Functional(program, core_product(core))
        functional.run()
        wrong = sum(done.differing(dict(functional.tensors())).values())
        equal += not wrong
        row = f"{done.run.cycles:9,} cycles, {wrong} bytes differ"
        print(f"{name:28} {ratios[-1]:5.2f} words each {row}", flush=True)
    low, high = min(ratios), max(ratios)
    print(f"{equal} equal, {refused} refused; {low:.1f} to {high:.1f} words an instruction")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("core", choices=core_names(), help="Run on this core.")
    parser.add_argument("kernel", nargs="*", help="Run these kernels (default: all).")
    options = parser.parse_args()
    measure(options.kernel or KERNELS, options.core)
