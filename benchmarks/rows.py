"""Measure the dot products of eight a second and core of rows: plain forms and generated kernels.

python benchmarks/rows.py [--seconds 0.5] [--rows 131072] [--only FAMILY ...]

A row of K terms counts as K/8 dot products of eight. Times are those of the processor, not of the
clock. The plain form computes fewer rows, which does not matter to its rate.
"""

import argparse
import sys
import time

import numpy as np

from vitruvian.golden.fp import from_float
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.run import compute
from vitruvian.golden.machines.table import find
from vitruvian.golden.sums import dots

CASES = {  # a family and one rule of it
    "chopped": "a100_mma_fp16_fp32",
    "late": "h100_mmasync_e4m3_fp16",
    "grouped": "b200_nvf4_ue4m3_fp32",
    "aligned": "cdna3_mfma_fp16_fp32",
    "apart": "gaudi2_bf16_fp32",
    "exact": "cdna1_mfma_fp16_fp32",
    "ieee": "ieee",
    "chain": "amx_tdpbf16ps",
    "pairs": "cdna2_mfma_bf161k_fp32",
    "two": "arm_bfdot_ebf1",
    "phases": "wh_mvmul_bf16_fp32_lofi",
}
PLAIN_ROWS = 1 << 13


def operands(rule, rows, kind, rng):
    """Return random codes, or the codes of random normal numbers, and scales if there are any."""
    # A rule of any K, or of single products, takes rows of eight.
    k = rule.k if (rule.k or 1) > 1 else 8
    arrays = []
    for format, shape in ((rule.input, (rows, k)), (rule.input_b, (rows, k)), (rule.output, rows)):
        size = int(np.prod(shape))
        if kind == "normal":
            codes = from_float(rng.standard_normal(size), format)
        else:
            codes = rng.integers(0, 1 << format.code_bits, size, dtype=np.uint64)
        arrays.append(codes.astype(code_dtype(format)).reshape(shape))
    if getattr(rule, "scales", None) is not None:
        # The smaller range has the scales from 1/4 to 3.25 in UE4M3.
        low, high = (0, 256) if kind == "codes" else (40, 70)
        shape = (rows, k // rule.scales.block)
        arrays += [rng.integers(low, high, shape).astype(np.uint8) for _ in "ab"]
    return arrays


def rate(rule, given, seconds):
    """Return millions of dot products of eight a second, in the fastest call of some seconds."""
    best, spent, work = 0.0, 0.0, given[0].size / 8
    while spent < seconds:
        start = time.process_time()
        compute(rule, *given)
        elapsed = time.process_time() - start
        spent += elapsed
        best = max(best, work / elapsed / 1e6)
    return best


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description="Dot products of eight a second and core of rows")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each rate")
    parser.add_argument("--rows", type=int, default=1 << 17, help="rows of a call of a kernel")
    parser.add_argument("--only", nargs="+", metavar="FAMILY", help="families to measure")
    options = parser.parse_args(argv)
    # No number of terms is too small for a generated kernel here.
    dots.SMALL = dots.MANY = dots.MANY_PLAIN = 0
    rng = np.random.default_rng(1)
    print("million dots of eight a second and core; first: seconds of the first call")
    print(f"{'family':9}{'rule':26}{'K':>3}{'first':>8}{'plain':>9}{'normal':>9}{'codes':>9}")
    for family, name in CASES.items():
        if options.only and family not in options.only:
            continue
        rule = PRESETS["ieee"].spec("fp16", k=8) if name == "ieee" else find(name).rule
        few = operands(rule, PLAIN_ROWS, "normal", rng)
        k = few[0].shape[1]
        start = time.process_time()
        compute(rule, *few)
        first = time.process_time() - start
        with dots.plain_forms():
            plain = rate(rule, few, options.seconds)
        rates = []
        for kind in ("normal", "codes"):
            rates.append(rate(rule, operands(rule, options.rows, kind, rng), options.seconds))
        numbers = f"{first:8.2f}{plain:9.2f}{rates[0]:9.1f}{rates[1]:9.1f}"
        print(f"{family:9}{name:26}{k:3}{numbers}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
