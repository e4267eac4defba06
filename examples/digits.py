"""Classify handwritten digits by a network whose matrix products all run on the RTL of the Cube.

The 1797 digits of 8 × 8 pixels come with scikit-learn. A network with one hidden layer is trained
on two thirds of them. Its weights are rounded to FP16, and the compiled matrix unit computes every
product of the forward pass. Every accumulator is compared with golden, bit for bit.

    python examples/digits.py [--preset cube_4x4x4] [--dataflow broadcast] [--json FILE]
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import from_float, to_float
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.hdl.cube.choices import DATAFLOWS
from vitruvian.sim.host.problems import TRAINED, trained
from vitruvian.sim.rtl import BuildError
from vitruvian.sim.rtl.cube import matmul


def layer(
    config: MatrixUnitConfig, x: np.ndarray, weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, dict[str, int]]:
    """Compute ``x · weights + bias`` in FP32 from FP16 operands on the RTL.

    Parameters
    ----------
    x : (N, inputs) ndarray of float64
    weights : (inputs, outputs) ndarray of float64
    bias : (outputs,) ndarray of float64

    Returns
    -------
    values : (N, outputs) ndarray
    counts : dict of str to int
        Accumulators, mismatches with golden, beats and cycles.
    """
    a, b = from_float(x, "fp16"), from_float(weights, "fp16")
    c = np.broadcast_to(from_float(bias, "fp32"), (len(x), len(bias))).copy()
    product = matmul(config, a, b, c)
    expected = mmad(a, b, c, spec=config.spec("fp16"))
    return to_float(product.d, "fp32"), {
        "accumulators": product.d.size,
        "mismatches": int((product.d != expected).sum()),
        "beats": product.beats,
        "cycles": product.cycles,
    }


def classify(config: MatrixUnitConfig) -> dict[str, float]:
    """Train the network, run its forward pass on the RTL, and return the accuracy and the cost."""
    pixels, labels, network = trained()
    start = time.perf_counter()
    values, counts = pixels, Counter()
    for weights, bias in zip(network.coefs_, network.intercepts_, strict=True):
        if counts:
            values = np.maximum(values, 0)
        values, count = layer(config, values, weights, bias)
        counts.update(count)
    correct = values.argmax(axis=1) == labels
    held_out = slice(TRAINED, None)
    return {
        "digits": len(labels),
        "held_out": len(labels) - TRAINED,
        "accuracy_all": round(float(correct.mean()), 4),
        "accuracy_held_out": round(float(correct[held_out].mean()), 4),
        "accuracy_float64_held_out": round(network.score(pixels[held_out], labels[held_out]), 4),
        **counts,
        "mismatches": counts["mismatches"],
        "seconds": round(time.perf_counter() - start, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a result differs from golden, 2 if a tool is missing."""
    parser = argparse.ArgumentParser(
        description="Classify handwritten digits on the RTL of the Cube."
    )
    presets = [name for name, config in CONFIGS.items() if "fp16" in config.precisions]
    parser.add_argument(
        "--preset", choices=presets, default="cube_4x4x4", help="Configuration of the matrix unit."
    )
    parser.add_argument(
        "--dataflow", choices=DATAFLOWS, default="broadcast", help="Dataflow of the matrix unit."
    )
    parser.add_argument("--json", metavar="FILE", help="Write the figures to this file.")
    options = parser.parse_args(arguments)
    try:
        figures = classify(replace(CONFIGS[options.preset], dataflow=options.dataflow))
    except (UserError, BuildError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"digits on the RTL of {options.preset}, {options.dataflow} (fp16, fp32 accumulation): "
        f"{figures['digits']} digits, {figures['accuracy_all']:.2%} correct; "
        f"{figures['held_out']} held out: {figures['accuracy_held_out']:.2%} "
        f"(float64: {figures['accuracy_float64_held_out']:.2%})"
    )
    print(
        f"{figures['accumulators']:,} accumulators, {figures['mismatches']} mismatches with "
        f"golden; {figures['beats']:,} beats in {figures['cycles']:,} cycles, "
        f"{figures['seconds']} s"
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)
    return int(figures["mismatches"] > 0)


if __name__ == "__main__":
    sys.exit(main())
