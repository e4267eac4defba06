"""Handwritten digits, classified by a network whose matrix products all run on the Cube's RTL.

The 1797 digits of 8 × 8 pixels come with scikit-learn. A network of one hidden layer learns on two
thirds of them, its weights are rounded to fp16, and every product of its forward pass goes through
the compiled `cube_4x4x4`. Every accumulator is compared with golden, bit for bit.

    python examples/digits.py [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from golden.cube import mmad
from golden.fp import from_float, to_float
from hdl.cube import CONFIGS
from sim.rtl.cube import matmul

CONFIG = CONFIGS["cube_4x4x4"]
HIDDEN = 32
TRAINED = 1198


def layer(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, dict[str, int]]:
    """``x · weights + bias`` in float32, from fp16 operands, on the RTL; and what it took."""
    a, b = from_float(x, "fp16"), from_float(weights, "fp16")
    c = np.broadcast_to(from_float(bias, "fp32"), (len(x), len(bias))).copy()
    product = matmul(CONFIG, a, b, c)
    expected = mmad(a, b, c, spec=CONFIG.spec("fp16"))
    counts = {
        "accumulators": product.d.size,
        "mismatches": int((product.d != expected).sum()),
        "beats": product.beats,
        "cycles": product.cycles,
    }
    return to_float(product.d, "fp32"), counts


def main() -> int:
    parser = argparse.ArgumentParser(description="handwritten digits on the Cube's RTL")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    arguments = parser.parse_args()
    x, labels = load_digits(return_X_y=True)
    x = x / 16
    network = MLPClassifier((HIDDEN,), alpha=1e-3, max_iter=500, tol=1e-3, random_state=0)
    network.fit(x[:TRAINED], labels[:TRAINED])
    begin = time.perf_counter()
    values, counts = x, []
    for number, (weights, bias) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        values = values if number == 0 else np.maximum(values, 0)
        values, count = layer(values, weights, bias)
        counts.append(count)
    seconds = time.perf_counter() - begin
    right = values.argmax(1) == labels
    total = {key: sum(count[key] for count in counts) for key in counts[0]}
    figures = {
        "digits": len(x),
        "accuracy_all": round(float(right.mean()), 4),
        "accuracy_held_out": round(float(right[TRAINED:].mean()), 4),
        "accuracy_float64_held_out": round(float(network.score(x[TRAINED:], labels[TRAINED:])), 4),
        **total,
        "seconds": round(seconds, 1),
    }
    print(
        f"digits on the RTL of cube_4x4x4 (fp16, fp32 accumulation): {figures['digits']} digits, "
        f"{figures['accuracy_all']:.2%} right; {len(x) - TRAINED} held out: "
        f"{figures['accuracy_held_out']:.2%} (float64: {figures['accuracy_float64_held_out']:.2%})"
    )
    print(
        f"{total['accumulators']:,} accumulators, {total['mismatches']} mismatches with golden; "
        f"{total['beats']:,} beats in {total['cycles']:,} cycles, {seconds:.1f} s"
    )
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)
    return 1 if total["mismatches"] else 0


if __name__ == "__main__":
    sys.exit(main())
