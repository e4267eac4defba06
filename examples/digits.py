"""Handwritten digits, classified by a network whose matrix products all run on the Cube's RTL.

The 1797 digits of 8 × 8 pixels come with scikit-learn. A network of one hidden layer learns on two
thirds of them, its weights are rounded to FP16, and every product of its forward pass goes through
the compiled matrix unit. Every accumulator is compared with golden, bit for bit.

    python examples/digits.py [--preset cube_4x4x4] [--dataflow broadcast] [--json FILE]
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np

from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import from_float, to_float
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.hdl.cube.config import DATAFLOWS
from vitruvian.sim.rtl import BuildError, ToolError
from vitruvian.sim.rtl.cube import matmul

HIDDEN = 32
TRAINED = 1198


def trained():
    """Pixels in [0, 1], labels, and a network that has seen the first ``TRAINED`` of them."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels / 16
    network = MLPClassifier((HIDDEN,), alpha=1e-3, max_iter=500, tol=1e-3, random_state=0)
    network.fit(pixels[:TRAINED], labels[:TRAINED])
    return pixels, labels, network


def layer(
    config: MatrixUnitConfig, x: np.ndarray, weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, dict[str, int]]:
    """``x · weights + bias`` in FP32, from FP16 operands, on the RTL; and what it took."""
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
    """Train, run the forward pass on the RTL, and count what was right and what it took."""
    pixels, labels, network = trained()
    begin = time.perf_counter()
    values, counts = pixels, Counter()
    for weights, bias in zip(network.coefs_, network.intercepts_, strict=True):
        if counts:
            values = np.maximum(values, 0)
        values, count = layer(config, values, weights, bias)
        counts.update(count)
    right = values.argmax(axis=1) == labels
    held_out = slice(TRAINED, None)
    return {
        "digits": len(labels),
        "held_out": len(labels) - TRAINED,
        "accuracy_all": round(float(right.mean()), 4),
        "accuracy_held_out": round(float(right[held_out].mean()), 4),
        "accuracy_float64_held_out": round(network.score(pixels[held_out], labels[held_out]), 4),
        **counts,
        "mismatches": counts["mismatches"],
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; 1 if an accumulator differs from golden, 2 if something is missing."""
    parser = argparse.ArgumentParser(description="handwritten digits on the Cube's RTL")
    able = [name for name, config in CONFIGS.items() if "fp16" in config.precisions]
    parser.add_argument("--preset", choices=able, default="cube_4x4x4")
    parser.add_argument("--dataflow", choices=DATAFLOWS, default="broadcast")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    try:
        figures = classify(replace(CONFIGS[options.preset], dataflow=options.dataflow))
    except ImportError as error:
        print(f"error: {error.name} not found; pip install scikit-learn", file=sys.stderr)
        return 2
    except (ToolError, BuildError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"digits on the RTL of {options.preset}, {options.dataflow} (fp16, fp32 accumulation): "
        f"{figures['digits']} digits, {figures['accuracy_all']:.2%} right; "
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
