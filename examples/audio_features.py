"""Compute features of an audio signal by Taylor series on a simulated chip.

The five features of Tang 2024, Table 4.2, of every sample of a WAV file, or of a tone with vibrato,
are evaluated by Horner's rule and by Cube-fx, and compared with NumPy in float64.

    python examples/audio_features.py [FILE.wav] [--chip ascend910b] [--order 6] [--out FILE.npy]
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import Chip, load_chip
from vitruvian.sim.kernels.cubefx import build as build_cubefx
from vitruvian.sim.kernels.kernel import KernelInstance
from vitruvian.sim.kernels.series.build import build
from vitruvian.sim.kernels.series.functions import SeriesFunction
from vitruvian.sim.papers.tang24.audio import FEATURES, evaluate, read_wave, synthetic

#: Speedups of Cube-fx over Horner's rule in Tang 2024, §4.4.4, for 16M inputs.
PUBLISHED = {"ascend310": 1.70, "ascend910b": 0.89}


def by_horner(chip: Chip):
    """Return the builder of programs that use Horner's rule on one core or group."""
    return lambda x, functions, order: build("horner", x, functions, order, chip)


def by_cube(chip: Chip):
    """Return the builder of programs that use Cube-fx on one core or group."""

    def builder(x: np.ndarray, functions: Sequence[SeriesFunction], order: int) -> KernelInstance:
        return build_cubefx(x, np.stack([f.coefficients(order) for f in functions]), chip)

    return builder


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return 2 after a mistake of the user."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", nargs="?", help="A WAV file of integers (default: a tone).")
    parser.add_argument("--chip", default="ascend310", help="The chip (default: ascend310).")
    parser.add_argument("--order", type=int, default=8, help="Coefficients (default: 8).")
    parser.add_argument("--size", type=int, default=1 << 16, help="Samples of the tone.")
    parser.add_argument("--out", metavar="FILE", help="Write the features of Cube-fx here (.npy).")
    options = parser.parse_args(arguments)
    try:
        if options.out and not options.out.endswith(".npy"):
            raise UserError(f"--out must end in .npy, not {options.out!r}")
        chip = load_chip(options.chip)
        signal = read_wave(options.file) if options.file else synthetic(options.size)
        found = {
            "Horner's rule": evaluate(signal, by_horner(chip), options.order),
            "Cube-fx": evaluate(signal, by_cube(chip), options.order),
        }
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    horner, cube = found.values()
    print(f"{len(signal.samples):,} samples at {signal.rate_hz:,} Hz, order {options.order}")
    print("| feature | " + " | ".join(f"largest error, {name}" for name in found) + " |")
    print("| --- | ---: | ---: |")
    for feature, *errors in zip(FEATURES, horner.errors, cube.errors, strict=True):
        print(f"| {feature} | " + " | ".join(f"{error:.2e}" for error in errors) + " |")
    print(
        f"{chip.name}: Horner's rule {horner.total_s * 1e6:.1f} µs, Cube-fx "
        f"{cube.total_s * 1e6:.1f} µs in 16 launches; Cube-fx is "
        f"{horner.total_s / cube.total_s:.2f} times as fast "
        f"(published for 16M inputs: {PUBLISHED.get(chip.name, 'none')})"
    )
    if options.out:
        np.save(options.out, cube.values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
