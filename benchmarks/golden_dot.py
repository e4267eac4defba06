"""Measure the dot products per second of ``golden.fp.fused_dot`` on one core (processor time).

python benchmarks/golden_dot.py [--seconds 0.5] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np

from vitruvian.golden.fp import fused_dot
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.machines.presets import PRESETS

CASES = [  # preset, input, output, K (None: the preset's own)
    ("v100", "fp16", "fp32", None),
    ("a100", "fp16", "fp32", None),
    ("a100", "fp16", "fp16", None),
    ("a100", "bf16", "fp32", None),
    ("a100", "tf32", "fp32", None),
    ("h100", "fp16", "fp32", None),
    ("ada", "fp8e4m3", "fp32", None),
    ("h100", "fp8e5m2", "fp32", None),
    ("ieee", "fp16", "fp32", None),
    ("ieee", "bf16", "fp32", None),
    ("ieee", "fp32", "fp32", None),
    ("ieee", "fp64", "fp64", None),
    ("ieee", "fp16", "fp32", 1),
    ("ieee", "fp32", "fp32", 1),
    ("ieee", "fp64", "fp64", 1),
    ("exact", "fp8e4m3", "fp32", None),
    ("exact", "fp16", "fp32", None),
    ("exact", "bf16", "fp32", None),
    ("exact", "fp64", "fp64", None),
]

#: Calls before the measurement, each of 2²¹ terms: a rule is compiled after 2²⁴ (decision 0029).
_WARM = 9


def finite_codes(rng, format, shape):
    """Return random bit patterns of finite numbers."""
    high = format.max_finite + 1
    magnitude = rng.integers(0, high, shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64) * np.uint64(format.sign_mask)
    return (magnitude | sign).astype(code_dtype(format))


def measure(spec, seconds, rng):
    """Return the dot products per second of the fastest run within ``seconds``."""
    n = max((1 << 21) // spec.k, 1)
    a = finite_codes(rng, spec.input, (n, spec.k))
    b = finite_codes(rng, spec.input_b, (n, spec.k))
    c = finite_codes(rng, spec.output, n)
    for _ in range(_WARM):
        fused_dot(a, b, c, spec)
    best, spent = 0.0, 0.0
    while spent < seconds:
        start = time.process_time()
        fused_dot(a, b, c, spec)
        elapsed = time.process_time() - start
        spent += elapsed
        best = max(best, n / elapsed)
    return best


def main(argv=None):
    """Print the table, and write it as JSON if the option is given."""
    parser = argparse.ArgumentParser(description="Dot products a second of golden fused_dot")
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each row")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    rows = []
    print(f"{'preset':8}{'input':9}{'output':8}{'K':>3}  {'window':>6}  {'million dots/s':>14}")
    for preset, input, output, k in CASES:
        spec = PRESETS[preset].spec(input, output, k=k)
        rate = measure(spec, options.seconds, rng)
        window = "-" if spec.sum.window is None else spec.sum.window
        print(f"{preset:8}{input:9}{output:8}{spec.k:3}  {window!s:>6}  {rate / 1e6:14.2f}")
        rows.append(
            {
                "preset": preset,
                "input": input,
                "output": output,
                "k": spec.k,
                "window": spec.sum.window,
                "dots_per_second": rate,
            }
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "golden_dot", "rows": rows}, file, indent=2)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
