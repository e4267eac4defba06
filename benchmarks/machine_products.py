"""Measure the dot products per second of matrix products by the rules of machines.

python benchmarks/machine_products.py [--size 1024] [--threads 1] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np

from vitruvian import machines
from vitruvian.golden.cube.mmad import mmad
from vitruvian.golden.fp import DotSpec, from_float

CASES = (
    *("v100_mma_fp16_fp32", "a100_mma_fp16_fp32", "a100_mma_fp16_fp16", "a100_mma_bf16_fp32"),
    *("a100_mma_tf32_fp32", "ada_mma_e4m3_fp32", "h100_mma_fp16_fp32", "h100_wgmma_e4m3_fp32"),
    *("b200_tcgen05_e2m1_fp32", "gaudi3_bf16_fp32"),
)
TERMS = 8  # products of a dot product that is counted


def measure(rule, size, threads, seconds):
    """Return the dot products of ``TERMS`` terms per second of the fastest run."""
    rng = np.random.default_rng(1)
    a, b = (
        from_float(rng.standard_normal(size * size), f).reshape(size, size)
        for f in (rule.input, rule.input_b)
    )
    mmad(a[:64], b[:, :64], spec=rule, threads=threads)  # tables, compilation
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = time.perf_counter()
        mmad(a, b, spec=rule, threads=threads)
        elapsed = time.perf_counter() - start
        spent += elapsed
        best = max(best, size**3 / TERMS / elapsed)
    return best


def main(argv=None):
    """Print the table, and write it as JSON if the option is given."""
    parser = argparse.ArgumentParser(description="Dot products a second by the rules of machines")
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of A and B")
    parser.add_argument("--threads", type=int, default=1, help="threads of a product")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rows = []
    print(f"{'row':24}{'K':>4}{f'million K = {TERMS} dots/s':>24}")
    for stem in CASES:
        rule = machines.find(stem).rule
        assert isinstance(rule, DotSpec)
        rate = measure(rule, options.size, options.threads, options.seconds)
        print(f"{stem:24}{rule.k:4}{rate / 1e6:24.0f}")
        rows.append({"row": stem, "k": rule.k, "dots_per_s": rate, "threads": options.threads})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
