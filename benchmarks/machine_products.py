"""Measure the dot products per second of matrix products by the rules of machines.

python benchmarks/machine_products.py [ROW ...] [--size 1024] [--threads 1] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np

import vitruvian
from vitruvian import machines
from vitruvian.golden.fp import from_float
from vitruvian.golden.fp.blocks import quantise
from vitruvian.golden.machines.scaled import block_format

CASES = (
    *("v100_mma_fp16_fp32", "a100_mma_fp16_fp32", "a100_mma_fp16_fp16", "a100_mma_bf16_fp32"),
    *("a100_mma_tf32_fp32", "ada_mma_e4m3_fp32", "h100_mma_fp16_fp32", "h100_wgmma_e4m3_fp32"),
    *("b200_tcgen05_e2m1_fp32", "gaudi3_bf16_fp32", "b200_mmasync_e4m3_fp32"),
    *("b200_mxf8f6f4_e4m3_fp32", "b200_mxf8f6f4_e2m3_fp32", "b200_mxf8f6f4_e2m1_fp32"),
    *("b200_mxf4_fp32", "b200_nvf4_ue4m3_fp32", "cdna1_mfma_fp16_fp32", "cdna2_mfma_fp16_fp32"),
    *("cdna2_mfma_fp64_fp64", "cdna3_mfma_fp16_fp32", "cdna3_mfma_bf16_fp32"),
    *("cdna3_mfma_xf32_fp32", "cdna3_mfma_fp8_fp32", "cdna3_mfma_fp32_fp32", "amx_tdpbf16ps"),
    *("avx512_vdpbf16ps", "gaudi1_bf16_fp32", "gaudi2_bf16_fp32", "gaudi2_tf32_fp32"),
    *("gaudi2_fp32_fp32", "gaudi2_e5m2_fp32", "gaudi3_fp16_fp32", "gaudi3_fp32_fp32"),
    *("rvbna_bf16_n8_fp32", "arm_bfdot_ebf0", "arm_bfdot_ebf1"),
    *("wh_mvmul_bf16_fp32_lofi", "wh_mvmul_bf16_fp32_hifi4"),
)
TERMS = 8  # products of a dot product that is counted


def operands(rule, size):
    """Return codes of two square matrices, and the scales of their blocks if the rule has some."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, size, size))
    if getattr(rule, "scales", None) is None:
        pairs = ((a, rule.input), (b, rule.input_b))
        return [from_float(x.ravel(), f).reshape(size, size) for x, f in pairs], {}
    x = quantise(a, block_format(rule, rule.input))
    y = quantise(b, block_format(rule, rule.input_b), 0)
    return [x.codes, y.codes], {"scale_a": x.scales, "scale_b": y.scales}


def measure(stem, size, threads, seconds):
    """Return the dot products of ``TERMS`` terms per second of the fastest run.

    With one thread, the time is that of the processor, which other programs change little.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    (a, b), scales = operands(machines.find(stem).rule, size)
    options = {"machine": stem, "threads": threads, **scales}
    vitruvian.gemm(a, b, **options)  # tables, compilation
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = clock()
        vitruvian.gemm(a, b, **options)
        elapsed = clock() - start
        spent += elapsed
        best = max(best, size**3 / TERMS / elapsed)
    return best


def main(argv=None):
    """Print the table, and write it as JSON if the option is given."""
    parser = argparse.ArgumentParser(description="Dot products a second by the rules of machines")
    parser.add_argument("rows", nargs="*", default=CASES, metavar="ROW", help="rows of the table")
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of A and B")
    parser.add_argument("--threads", type=int, default=1, help="threads of a product")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rows = []
    print(f"{'row':26}{'K':>4}{f'million K = {TERMS} dots/s':>24}")
    for stem in options.rows:
        k = getattr(machines.find(stem).rule, "k", None) or 0
        rate = measure(stem, options.size, options.threads, options.seconds)
        print(f"{stem:26}{k or 'all':>4}{rate / 1e6:24.0f}", flush=True)
        rows.append({"row": stem, "k": k, "dots_per_s": rate, "threads": options.threads})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
