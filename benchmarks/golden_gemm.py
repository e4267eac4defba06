"""Measure the multiply-accumulates per second of ``golden.m3xu.gemm`` on one core.

python benchmarks/golden_gemm.py [--size 512] [--seconds 0.5] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np

from vitruvian.golden.m3xu import PRECISIONS, gemm, operand_dtype

CASES = [  # precision, k, multiplier_bits, preset
    ("fp16", 8, 12, "ieee"),
    ("fp16", 8, 12, "a100"),
    ("bf16", 8, 12, "ieee"),
    ("tf32", 8, 12, "ieee"),
    ("fp32", 8, 12, "ieee"),
    ("fp32c", 8, 12, "ieee"),
    ("fp64", 10, 12, "ieee"),
    ("fp64", 8, 27, "ieee"),
]


def operand(rng, precision, size):
    """Return a square matrix of normally distributed numbers."""
    values = rng.standard_normal((size, size))
    if PRECISIONS[precision].is_complex:
        values = values + 1j * rng.standard_normal((size, size))
    return values.astype(operand_dtype(precision))


def measure(a, b, seconds, **options):
    """Return the multiply-accumulates per second of the fastest run within ``seconds``."""
    gemm(a, b, **options)  # compilation
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = time.perf_counter()
        gemm(a, b, **options)
        elapsed = time.perf_counter() - start
        spent += elapsed
        best = max(best, len(a) ** 3 / elapsed)
    return best


def main(argv=None):
    """Print the table, and write it as JSON if the option is given."""
    parser = argparse.ArgumentParser(description="Multiply-accumulates a second of golden gemm")
    parser.add_argument("--size", type=int, default=512, help="rows and columns of A and B")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each row")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    rows = []
    print(f"{'precision':11}{'preset':8}{'lanes':>5}{'bits':>6}{'terms':>7}{'million MAC/s':>15}")
    for precision, k, bits, preset in CASES:
        a, b = operand(rng, precision, options.size), operand(rng, precision, options.size)
        units = {"precision": precision, "k": k, "multiplier_bits": bits, "preset": preset}
        rate = measure(a, b, options.seconds, **units)
        terms = PRECISIONS[precision].terms(k, bits)
        print(f"{precision:11}{preset:8}{k:5}{bits:6}{terms:7}{rate / 1e6:15.1f}")
        rows.append({**units, "terms": terms, "macs_per_second": rate})
    print("a complex MAC counts as one")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {"benchmark": "golden_gemm", "size": options.size, "rows": rows}, file, indent=2
            )
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
