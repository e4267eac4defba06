"""Kernels on the compiled core: machine code, predicted and measured cycles, bytes that differ.

    python benchmarks/core_kernels.py plain
    python benchmarks/core_kernels.py tiny matmul maxpool-im2col
    python benchmarks/core_kernels.py tiny plain --csv docs/results/data/core_cycles.csv
    python benchmarks/core_kernels.py plain --random 100
    python benchmarks/core_kernels.py tiny --latency 1 20 100
    python benchmarks/core_kernels.py mixed semiring --products

Every kernel but ``gemm`` has its default size, and tiles for the buffers of the core. What the core
lacks is said in its row. ``--random`` runs random programs, which no formula was made with, and
compares their bytes and cycles. ``--latency`` gives a global memory whose blocks come so many
cycles behind their request. ``--products`` runs a matrix product of 128 × 128 × 128 in every dtype
and operation of the core's tile.
"""

import argparse
import csv
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np

from vitruvian.golden.fp import from_float
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.machine_code.chip import core_chip
from vitruvian.sim.davinci.machine_code.core import core_product, predicted_cycles, run_on_core
from vitruvian.sim.davinci.machine_code.encode import EncodingError, Texts, encode
from vitruvian.sim.davinci.machine_code.overlapping_programs import OverlappingProgram
from vitruvian.sim.davinci.machine_code.random_programs import RandomProgram
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.kernels import KERNELS, matmul
from vitruvian.sim.rtl.core import core_config, core_facts, core_names

_PRODUCT_COLUMNS = ("core", "product", "predicted", "RTL", "least beats", "busy M in %")
_COLUMNS = ("core", "kernel", "latency", "instructions", "words", "predicted", "RTL", "error in %")

#: Sizes of kernels whose default one is beyond the MiB of global memory that a model has.
_SIZES = {"gemm": (256, 256, 256)}


def measure(names: Iterable[str], core: str, latency: int) -> list[tuple[object, ...]]:
    """Print a row for each kernel that the chip has, and the sums; return those that ran."""
    chip, ratios, errors, equal, refused = core_chip(core), [], [], 0, 0
    rows: list[tuple[object, ...]] = []
    for name in names:
        try:
            program = KERNELS[name].build(_SIZES.get(name), chip=chip, cores=1).program
        except ValueError as error:
            print(f"{name:28} not on the chip: {error}", flush=True)
            continue
        (only,) = [each for each in program if each.instructions]
        count, texts = len(only.instructions), Texts()
        words = sum(len(encode(instr, texts)) for instr in only.instructions)
        ratios.append(words / count)
        try:
            done = run_on_core(program, core, latency=latency)
        except EncodingError as error:
            refused += 1
            print(f"{name:28} {ratios[-1]:5.2f} words each  refused: {error}", flush=True)
            continue
        functional = Functional(program, core_product(core))
        functional.run()
        wrong = sum(done.differing(dict(functional.tensors())).values())
        equal += not wrong
        cycles, predicted = done.run.cycles, predicted_cycles(program, core, latency=latency)
        errors.append(100 * (predicted / cycles - 1))
        row = f"{predicted:9,} predicted {cycles:9,} cycles {errors[-1]:+6.2f} %"
        print(f"{name:28} {ratios[-1]:5.2f} words each {row}, {wrong} bytes differ", flush=True)
        rows.append((core, name, latency, count, words, predicted, cycles, f"{errors[-1]:+.2f}"))
    low, high = min(ratios), max(ratios)
    print(f"{equal} equal, {refused} refused; {low:.1f} to {high:.1f} words an instruction")
    _summary(errors)
    return rows


def random_programs(core: str, count: int, latency: int) -> None:
    """Print how many random programs give the simulator's bytes, and how well they are predicted.

    In every second one, all units work at once.
    """
    errors: dict[type, list[float]] = {RandomProgram: [], OverlappingProgram: []}
    wrong = 0
    for seed in range(7000, 7000 + count):
        kind = (RandomProgram, OverlappingProgram)[seed % 2]
        program = kind(seed, core).program
        done = run_on_core(program, core, latency=latency)
        predicted = predicted_cycles(program, core, latency=latency)
        errors[kind].append(100 * (predicted / done.run.cycles - 1))
        functional = Functional(program, core_product(core))
        functional.run()
        differing = sum(done.differing(dict(functional.tensors())).values())
        wrong += differing > 0
        if differing:
            print(f"seed {seed}: {differing} bytes differ", flush=True)
    print(f"{count} random programs, {wrong} with bytes that differ")
    for kind, found in errors.items():
        print(kind.__name__, end=": ")
        _summary(found)


def products(core: str, latency: int) -> list[tuple[object, ...]]:
    """Print and return a row for each product of the core's tile.

    ``least beats`` are the cycles of its beats alone, by which the cycles of the RTL are divided.
    """
    chip, tile, rows, size = core_chip(core), core_config(core).tile, [], 128
    for name, beat in core_facts(core)["products"].items():
        dtype, *operation = name.split()
        rng = np.random.default_rng(1)
        numbers = rng.integers(-8, 8, (2, size, size))
        if dtype == "bf16":
            data = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        elif dtype.startswith("fp8"):
            data = from_float(numbers.astype(np.float64), dtype)
        elif dtype in ("fp64", "fp32c"):
            data = numbers.astype({"fp64": np.float64, "fp32c": np.complex64}[dtype])
        else:
            data = numbers.astype(DTYPES[dtype])
        program = matmul.build(
            *(size,) * 3,
            chip=chip,
            cores=1,
            dtype=dtype,
            out=matmul.DTYPES[dtype][2][-1],
            data=tuple(data),
            operation=operation[0] if operation else "mma",
        )
        done = run_on_core(program, core, latency=latency)
        functional = Functional(program, core_product(core))
        functional.run()
        wrong = sum(done.differing(dict(functional.tensors())).values())
        cycles, predicted = done.run.cycles, predicted_cycles(program, core, latency=latency)
        least = size**3 // (tile.m * tile.n * beat["k"]) * beat["cycles"]
        busy = 100 * least / cycles
        row = f"{predicted:9,} predicted {cycles:9,} cycles, {busy:.1f} % of them beats"
        print(f"{name:16} {row}, {wrong} bytes differ", flush=True)
        rows.append((core, name, predicted, cycles, least, f"{busy:.1f}"))
    return rows


def _summary(errors: list[float]) -> None:
    sizes = [abs(error) for error in errors]
    if sizes:
        exact = sum(size == 0 for size in sizes)
        mean, largest = sum(sizes) / len(sizes), max(sizes)
        print(f"{exact} of {len(sizes)} exact; mean error {mean:.3f} %, largest {largest:.2f} %")


def main() -> None:
    """Measure what the arguments name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="+", help="Cores, and kernels (default: all kernels).")
    parser.add_argument("--csv", metavar="FILE", help="Write the rows to this file too.")
    parser.add_argument("--random", type=int, metavar="N", help="Run N random programs instead.")
    parser.add_argument("--products", action="store_true", help="Run products instead.")
    parser.add_argument(
        "--latency", type=int, nargs="+", default=[1], metavar="N",
        help="Cycles of global memory (default: 1).",
    )  # fmt: skip
    options = parser.parse_args()
    cores = [name for name in options.names if name in core_names()]
    kernels = [name for name in options.names if name not in cores] or list(KERNELS)
    rows = []
    for core, latency in product(cores, options.latency):
        print(f"{core}, memory of {latency} cycles")
        if options.random:
            random_programs(core, options.random, latency)
        elif options.products:
            rows += products(core, latency)
        else:
            rows += measure(kernels, core, latency)
    if options.csv:
        with Path(options.csv).open("w", newline="") as file:
            columns = _PRODUCT_COLUMNS if options.products else _COLUMNS
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])


if __name__ == "__main__":
    main()
