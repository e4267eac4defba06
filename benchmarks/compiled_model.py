"""Measure compiled models: build time, and vectors per second on one and on two cores.

The table also has the speed of golden on the same vectors.

Run: ``python benchmarks/compiled_model.py [--vectors N] [--json FILE]``
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from vitruvian.golden.fp import fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim import rtl
from vitruvian.sim.bench.fp.stimuli import dot_vectors

#: Goals of the project for the first row, in vectors per second on one core.
GOAL_RTL, GOAL_GOLDEN = 2e6, 1e6
UNITS = (("a100", 8, 0), ("a100", 8, 3), ("ieee", 8, 3), ("a100", 16, 3))


def rate(run: Callable[[], object], count: int, repeats: int = 3) -> float:
    """Return the vectors per second of the fastest of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return count / best


def measure(preset: str, k: int, pipeline: int, vectors: int) -> dict[str, float | str]:
    """Build one unit in an empty cache and measure the times of the build and of the runs."""
    spec = PRESETS[preset].spec("fp16", "fp32", k=k)
    previous = os.environ.get("VITRUVIAN_CACHE")
    with tempfile.TemporaryDirectory() as empty:
        os.environ["VITRUVIAN_CACHE"] = empty
        rtl.compile_verilog("module top(input x, output y); assign y = x; endmodule")  # run-time
        started = time.perf_counter()
        model = rtl.compile(DotProduct(spec=spec, pipeline=pipeline))
        build = time.perf_counter() - started
        if previous is None:
            del os.environ["VITRUVIAN_CACHE"]
        else:
            os.environ["VITRUVIAN_CACHE"] = previous
        a, b, c = dot_vectors(spec, vectors, seed=1)
        if not np.array_equal(model.run(a=a, b=b, c=c), fused_dot(a, b, c, spec)):
            raise SystemExit(f"{preset} K={k} pipeline={pipeline} differs from golden")
        return {
            "unit": f"{preset} fp16→fp32 K={k} pipeline={pipeline}",
            "build_seconds": build,
            "rtl_one_core": rate(lambda: model.run(a=a, b=b, c=c), vectors),
            "rtl_two_cores": rate(lambda: model.run(a=a, b=b, c=c, threads=2), vectors),
            "golden": rate(lambda: fused_dot(a, b, c, spec), vectors),
        }


def main() -> int:
    """Print the table; return 1 if the first row misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = [measure(*unit, options.vectors) for unit in UNITS]
    table = Table("unit", "build s", "RTL M/s", "RTL M/s, 2 threads", "golden M/s")
    for row in rows:
        table.add_row(
            str(row["unit"]),
            f"{row['build_seconds']:.1f}",
            *(f"{float(row[n]) / 1e6:.2f}" for n in ("rtl_one_core", "rtl_two_cores", "golden")),
        )
    Console().print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    first = rows[0]
    met = float(first["rtl_one_core"]) >= GOAL_RTL and float(first["golden"]) >= GOAL_GOLDEN
    print(f"goals (RTL 2 M/s, golden 1 M/s on one core): {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
