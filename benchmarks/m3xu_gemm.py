"""Multiply-accumulates per second of the compiled RTL of an M³XU, on one core and on all cores.

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

#: Goal of the project: FP32 multiply-accumulates per second on one core.
GOAL = 1e6

#: Settings of golden and of the unit by precision. The window makes FP16 run on the unit with FP32.
CASES = {
    "fp16": {"window": 48},
    "fp32": {},
    "fp32c": {},
    "fp64": {"k": 10},
}


def operand(rng, precision: str, size: int) -> np.ndarray:
    """Return a square matrix of standard normal numbers.

    Parameters
    ----------
    precision : str
        The matrix is complex for FP32C.
    size : int
        Rows and columns.
    """
    values = rng.standard_normal((size, size))
    if PRECISIONS[precision].is_complex:
        values = values + 1j * rng.standard_normal((size, size))
    return values.astype(operand_dtype(precision))


def measure(precision: str, size: int, repeats: int = 3) -> dict[str, float | str]:
    """Return the speed of one product, the best of some runs, after a comparison with golden.

    Parameters
    ----------
    precision : str
        A key of ``CASES``.
    size : int
        Rows and columns of A and B.
    repeats : int
        Number of runs.

    Raises
    ------
    SystemExit
        If the product differs from golden's.
    """
    settings: dict = {"precision": precision, **CASES[precision]}
    rng = np.random.default_rng(1)
    a, b = operand(rng, precision, size), operand(rng, precision, size)
    compute(a[:8], b[:, :4], threads=1, **settings)  # build
    row: dict[str, float | str] = {"precision": precision}
    for name, threads in (("one_core", 1), ("all_cores", os.cpu_count() or 1)):
        best, result = float("inf"), None
        for _ in range(repeats):
            start = time.perf_counter()
            result = compute(a, b, threads=threads, **settings)
            best = min(best, time.perf_counter() - start)
        assert result is not None
        if not np.array_equal(result.d, gemm(a, b, **settings)):
            raise SystemExit(f"{precision} differs from golden")
        row |= {f"{name}_macs": size**3 / best, f"{name}_cycles": result.cycles / best}
        row["macs_per_cycle"] = size**3 / result.cycles
    return row


def main() -> int:
    """Print the table; return 1 if FP32 was measured and misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=160, help="Rows and columns of A and B.")
    parser.add_argument(
        "--precisions", default=",".join(CASES), help="Precisions, separated by commas."
    )
    parser.add_argument("--json", metavar="FILE", help="Write the rows to this file as well.")
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
