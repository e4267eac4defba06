"""Predict four GEMMs that were measured on a 910B1 from its chip file.

python benchmarks/davinci_gemm.py [--chip FILE]
"""

import argparse
import time

from vitruvian.sim.davinci import Unit, load_chip
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.kernels.gemm import lower_gemm

#: Published with the example of pto-isa: size, milliseconds, busy shares of ``UNITS`` in per cent.
MEASURED = (
    (1536, 0.0388, (54.5, 42.2, 72.2, 7.7)),
    (3072, 0.2067, (79.0, 62.0, 90.9, 5.8)),
    (6144, 1.5060, (86.7, 68.1, 95.2, 3.1)),
    (7680, 3.1680, (80.6, 63.0, 98.4, 2.4)),
)
UNITS = (Unit.M, Unit.MTE1, Unit.MTE2, Unit.FIX)


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description="GEMMs of a 910B1, predicted.")
    parser.add_argument("--chip", default="ascend910b")
    chip = load_chip(parser.parse_args().chip)
    print("| m = k = n | measured ms | here ms | error | Cube % | MTE1 % | MTE2 % | FIX % | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size, milliseconds, shares in MEASURED:
        began = time.perf_counter()
        lowered, streams = lower_gemm(size, size, size, chip=chip)
        report = Report("gemm", chip, lowered, streams, engine.run(lowered))
        seconds = time.perf_counter() - began
        busy = dict.fromkeys(UNITS, 0.0)
        for row in report.units():
            if row.unit in busy:
                busy[row.unit] += 100 * row.busy / report.total_s / len(streams)
        cells = [
            f"{busy[u]:.1f} ({busy[u] - share:+.1f})"
            for u, share in zip(UNITS, shares, strict=True)
        ]
        error = report.total_s * 1e3 / milliseconds - 1
        print(
            f"| {size} | {milliseconds:.4f} | {report.total_s * 1e3:.4f} | {error:+.1%} | "
            f"{' | '.join(cells)} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
