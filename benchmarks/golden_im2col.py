"""Measure ``golden.scu.im2col`` against a copy of the same patches by NumPy's strides.

Run: ``python benchmarks/golden_im2col.py [--seconds 0.3] [--json FILE]``

The exit code is 1 if a row takes more than twice the time of the copy.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from vitruvian.golden.scu import Patches, im2col
from vitruvian.golden.scu.patches import ROWS

#: Largest allowed time as a multiple of the copy's.
GOAL = 2.0
#: Channels, height and width, kernel, stride, padding: the pooling layers of InceptionV3 (Rohwedder
#: 2021, Table 5.1), the first one of ResNet-50, and a convolution of its 56 × 56 stage.
LAYERS = (
    (64, 147, 3, 2, 0),
    (192, 71, 3, 2, 0),
    (288, 35, 3, 2, 0),
    (768, 17, 3, 2, 0),
    (64, 112, 3, 2, 1),
    (64, 56, 3, 1, 1),
)


def copied(image: np.ndarray, p: Patches, mode: int) -> np.ndarray:
    """Return the result of ``im2col`` by strides: a view of windows that is copied once."""
    top, bottom, left, right = p.pad
    padded = np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, p.kernel, axis=(1, 2))
    windows = windows[:, :: p.stride[0], :: p.stride[1]]  # (C1, Oh, Ow, C0, Kh, Kw)
    groups, c0, steps = len(image), image.shape[-1], len(image) * p.kernel[0] * p.kernel[1]
    if mode == 1:
        fractals = np.zeros((groups, *p.kernel, ROWS * p.fractals, c0), image.dtype)
        turned = windows.transpose(0, 4, 5, 1, 2, 3)
        fractals[:, :, :, : p.count] = turned.reshape(groups, *p.kernel, p.count, c0)
        return fractals.reshape(steps, p.fractals, ROWS, c0)
    fractals = np.zeros((p.fractals * ROWS, steps, c0), image.dtype)
    fractals[: p.count] = windows.transpose(1, 2, 0, 4, 5, 3).reshape(p.count, steps, c0)
    return fractals.reshape(p.fractals, ROWS, steps, c0).swapaxes(1, 2).copy()


def converted(image: np.ndarray, p: Patches, mode: int) -> np.ndarray:
    """Return the result of golden."""
    return im2col(image, p, mode=mode)


def fastest(run: Callable[[], object], seconds: float) -> float:
    """Return the seconds of the fastest of the runs that fit into ``seconds``."""
    best, spent = float("inf"), 0.0
    while spent < seconds:
        started = time.perf_counter()
        run()
        elapsed = time.perf_counter() - started
        best, spent = min(best, elapsed), spent + elapsed
    return best


def main(argv: list[str] | None = None) -> int:
    """Print the table, and write it as JSON if the option is given."""
    parser = argparse.ArgumentParser(description="Time of golden Im2Col against a strided copy")
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each measurement")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too")
    options = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    rows = []
    print(f"{'image':>16} {'kernel':>6} {'stride':>6} {'pad':>4} {'mode':>5}", end="")
    print(f"{'first, ms':>11}{'golden, ms':>12}{'copy, ms':>10}{'ratio':>7}")
    for channels, size, kernel, stride, pad in LAYERS:
        image = rng.normal(size=(channels // 16, size, size, 16)).astype(np.float16)
        p = Patches(
            height=size,
            width=size,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(pad, pad, pad, pad),
        )
        for mode in (0, 1):
            started = time.perf_counter()
            result = converted(image, p, mode)  # the first call numbers the pixels
            first = time.perf_counter() - started
            if not np.array_equal(result, copied(image, p, mode)):
                raise SystemExit(f"golden differs from the copy for {p} in mode {mode}")
            golden, copy = (
                fastest(lambda f=f, a=(image, p, mode): f(*a), options.seconds)
                for f in (converted, copied)
            )
            shape = f"{channels} × {size} × {size}"
            print(f"{shape:>16} {kernel:6} {stride:6} {pad:4} {mode:5}", end="")
            print(f"{1e3 * first:11.2f}{1e3 * golden:12.2f}{1e3 * copy:10.2f}{golden / copy:7.2f}")
            rows.append(
                {
                    "channels": channels,
                    "size": size,
                    "kernel": kernel,
                    "stride": stride,
                    "pad": pad,
                    "mode": mode,
                    "first_s": first,
                    "golden_s": golden,
                    "copy_s": copy,
                }
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"benchmark": "golden_im2col", "rows": rows}, file, indent=2)
            file.write("\n")
    return int(any(row["golden_s"] > GOAL * row["copy_s"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
