"""Measure products on the simulated Ascend 310: share of the peak, gain of double buffering.

Tang 2024, §2.4.2, lists 12 shapes from W × W × 2W to W × W × 6W without the values of W; here W is
128 to 1024. The tilings are those of the guided search.

python benchmarks/davinci_matmul.py [--most 1024]
"""

import argparse
from dataclasses import replace

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.kernels.search import TilingSearch, guided

WIDTHS = (128, 256, 512, 1024)
RATIOS = (2, 4, 6)


def main() -> None:
    """Print a line for each shape, then the mean and the largest share."""
    parser = argparse.ArgumentParser(description="Matrix products on the simulated Ascend 310.")
    parser.add_argument("--most", type=int, default=max(WIDTHS), help="largest W")
    most = parser.parse_args().most
    chip = load_chip("ascend310")
    peak = float(chip.peak_operations())
    shares = []
    print("| shape | best tiling | µs | of the peak | best with bNum 1 | gain |")
    print("|---|---|---|---|---|---|")
    for width in [w for w in WIDTHS if w <= most]:
        for ratio in RATIOS:
            problem = TilingSearch(width, width, ratio * width)
            best = guided(problem).best[0]
            single = guided(replace(problem, b_nums=(1,))).best[0]
            share = 2 * width * width * ratio * width / best.seconds / peak
            shares.append(share)
            print(
                f"| {width}×{width}×{ratio * width} | {best.tiling} | {best.seconds * 1e6:.2f} | "
                f"{share:.2%} | {single.seconds * 1e6:.2f} | {single.atto / best.atto:.2f} |",
                flush=True,
            )
    mean = sum(shares) / len(shares)
    print(f"\nmean {mean:.2%}, largest {max(shares):.2%} of {peak / 1e12:.2f} TFLOPS")


if __name__ == "__main__":
    main()
