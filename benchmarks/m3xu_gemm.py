"""Multiply-accumulates a second of an M³XU's compiled RTL, on one core and on all, by precision.

Run: ``python benchmarks/m3xu_gemm.py [--size N] [--precisions A,B] [--json FILE]``
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from vitruvian.golden.m3xu import PRECISIONS, gemm, operand_dtype
from vitruvian.sim.rtl.m3xu import compute

#: What the project promises: FP32 multiply-accumulates a second on one core.
GOAL = 1e6
#: Settings of golden and of the unit. FP16 is that of the unit that has FP32 as well.
CASES = {
    "fp16": {"window": 48},
    "fp32": {},
    "fp32c": {},
    "fp64": {"k": 10},
}


def operand(rng, precision: str, size: int) -> np.ndarray:
    """A square matrix of normal deviates."""
    values = rng.standard_normal((size, size))
    if PRECISIONS[precision].is_complex:
        values = values + 1j * rng.standard_normal((size, size))
    return values.astype(operand_dtype(precision))


def measure(precision: str, size: int, repeats: int = 3) -> dict[str, float | str]:
    """Compare one product with golden, then time it: the best of a few runs."""
    settings: dict = {"precision": precision, **CASES[precision]}
    rng = np.random.default_rng(1)
    a, b = operand(rng, precision, size), operand(rng, precision, size)
    compute(a[:8], b[:, :4], threads=1, **settings)  # build
    row: dict[str, float | str] = {"precision": precision}
    for name, threads in (("one_core", 1), ("all_cores", os.cpu_count() or 1)):
        best, found = float("inf"), None
        for _ in range(repeats):
            started = time.perf_counter()
            found = compute(a, b, threads=threads, **settings)
            best = min(best, time.perf_counter() - started)
        assert found is not None
        if not np.array_equal(found.d, gemm(a, b, **settings)):
            raise SystemExit(f"{precision} differs from golden")
        row |= {f"{name}_macs": size**3 / best, f"{name}_cycles": found.cycles / best}
        row["macs_per_cycle"] = size**3 / found.cycles
    return row


def main() -> int:
    """Print the table; exit code 1 if FP32 was measured and misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=160, help="rows and columns of A and B")
    parser.add_argument("--precisions", default=",".join(CASES), help="separated by commas")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    names = options.precisions.split(",")
    if options.size < 8 or not set(names) <= set(CASES):
        parser.error(f"size must be 8 or more, precisions some of {', '.join(CASES)}")
    rows = [measure(name, options.size) for name in names]
    titles = ("M MAC/s", "M MAC/s, all cores", "cycles/s", "MAC/cycle")
    table = Table("precision", *titles)
    for row in rows:
        table.add_row(
            str(row["precision"]),
            *(f"{float(row[n]) / 1e6:.2f}" for n in ("one_core_macs", "all_cores_macs")),
            *(f"{float(row[n]):,.1f}" for n in ("one_core_cycles", "macs_per_cycle")),
        )
    Console().print(table)
    print("a complex MAC counts as one")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2) + "\n")
    met = [float(row["one_core_macs"]) >= GOAL for row in rows if row["precision"] == "fp32"]
    if met:
        print(f"goal (FP32, 1 M MAC/s on one core): {'met' if all(met) else 'missed'}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
