"""Handwritten digits, read by a network whose every matrix product runs on the Cube's RTL.

The 1797 digits of scikit-learn (8 × 8 pixels, 17 shades) go through a network of one hidden layer.
It is trained here, in float64, on the first 1000 of them; its weights are then rounded to FP16.
Each product is cut into tiles for the unit, sent through the compiled RTL as beats, and every
accumulator that comes out is compared with golden, bit for bit.

    python examples/digits.py [--preset cube_4x4x4] [--dataflow systolic] [--json FILE]
"""

import argparse
import json
import os
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from golden.cube import mmad
from golden.fp import convert, from_float, to_float
from hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig, Start
from hdl.cube.config import DATAFLOWS
from sim.rtl import BuildError, CompiledModel, ToolError, compile_unit

TRAINED = 1000
HIDDEN = 32
MINUS_ZERO = 0x8000  # +0 · −0 = −0: padding that changes not even a sign


@dataclass(frozen=True)
class Layer:
    """Weights (inputs, outputs) as FP16 codes and biases (outputs,) as FP32 codes."""

    weights: np.ndarray
    bias: np.ndarray


class Cube:
    """Matrix products of any size on a compiled matrix unit, FP16 in and FP32 out.

    Attributes
    ----------
    beats, cycles : int
        Sent to the unit so far, and what it took.
    checked, wrong : int
        Accumulators compared with golden so far, and those that differ.
    """

    def __init__(self, config: MatrixUnitConfig):
        self.config = config
        self.model: CompiledModel = compile_unit(MatrixUnit, config=config)
        self.beats = self.cycles = self.checked = self.wrong = 0

    def product(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """a (rows, K) · b (K, columns) + c (columns,), all of them codes."""
        config = self.config
        rows, columns = len(a), b.shape[1]
        a = _padded(a, config.m, config.k, 0)
        b = _padded(b.T, config.n, config.k, MINUS_ZERO)
        bias = np.zeros(len(b), np.uint32)
        bias[:columns] = c
        d = self._run(a, b, bias)
        expected = mmad(a, b.T, np.broadcast_to(bias, d.shape), spec=config.spec("fp16"))
        self.checked += d.size
        self.wrong += int((d != expected).sum())
        return d[:rows, :columns]

    def _run(self, a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
        config = self.config
        m, n, k = config.m, config.n, config.k
        tiles = [(i, j) for i in range(0, len(a), m) for j in range(0, len(b), n)]
        blocks = a.shape[1] // k
        # Tiles of a group take turns, one in each slot: no beat has to wait for the one before.
        order = [
            (tile, block)
            for group in range(0, len(tiles), config.slot_count)
            for block in range(blocks)
            for tile in range(group, min(group + config.slot_count, len(tiles)))
        ]
        tile, block = np.array(order).T
        row, column = np.array(tiles)[tile].T
        lanes = block[:, None, None] * k + np.arange(k)
        start = np.where(block == 0, Start.FROM_C.value, Start.ACCUMULATE.value)
        beats = {
            "a": _bus(a[(row[:, None] + np.arange(m))[..., None], lanes]),
            "b": _bus(b[(column[:, None] + np.arange(n))[..., None], lanes]),
            "precision": np.full(len(order), config.precisions.index("fp16"), np.uint8),
            "start": start.astype(np.uint8),
            "slot": (tile % config.slot_count).astype(np.uint8),
            "emit": (block == blocks - 1).astype(np.uint8),
        }
        if not config.precision_bits:
            del beats["precision"]
        first, last = block == 0, block == blocks - 1
        c = np.repeat(bias[column[first][:, None] + np.arange(n)][:, None, :], m, axis=1)
        result = self.model.stream(inputs={"i": beats, "c": c}, outputs={"o": len(tiles)})
        self.beats += len(order)
        self.cycles += result.cycles
        d = np.empty((len(a), len(b)), np.uint32)
        for i, j, fractal in zip(row[last], column[last], result.outputs["o"], strict=True):
            d[i : i + m, j : j + n] = fractal
        return d


def _padded(x: np.ndarray, rows: int, terms: int, code: int) -> np.ndarray:
    """Filled up to whole fractals."""
    extra = -len(x) % rows, -x.shape[1] % terms
    return np.pad(x, ((0, extra[0]), (0, extra[1])), constant_values=code)


def _bus(codes: np.ndarray) -> np.ndarray:
    """FP16 operands (…, k) side by side, in the words that the compiled model takes."""
    octets = np.ascontiguousarray(codes).view(np.uint8)
    words = -(-octets.shape[-1] // 8)
    octets = np.pad(octets, [(0, 0)] * (octets.ndim - 1) + [(0, 8 * words - octets.shape[-1])])
    found = np.ascontiguousarray(octets).view("<u8")
    return found[..., 0] if words == 1 else found


def trained() -> tuple[np.ndarray, np.ndarray, list[Layer], float]:
    """Pixels (FP16 codes), labels, the layers, and the accuracy in float64."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels / 16
    network = MLPClassifier((HIDDEN,), max_iter=150, learning_rate_init=0.005, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(pixels[:TRAINED], labels[:TRAINED])
    layers = [
        Layer(from_float(weights, "fp16"), from_float(bias, "fp32"))
        for weights, bias in zip(network.coefs_, network.intercepts_, strict=True)
    ]
    return from_float(pixels, "fp16"), labels, layers, float(network.score(pixels, labels))


def classify(cube: Cube, pixels: np.ndarray, layers: list[Layer]) -> np.ndarray:
    """The digit that each row of pixels shows."""
    x = pixels
    for layer in layers[:-1]:
        x = cube.product(x, layer.weights, layer.bias)
        x = np.where(x >> 31, 0, x).astype(np.uint32)  # rectifier
        x = convert(x, "fp32", "fp16")
    last = cube.product(x, layers[-1].weights, layers[-1].bias)
    return to_float(last, "fp32").argmax(axis=1)


def main(arguments: list[str] | None = None) -> int:
    """Train, classify, print; 1 if an accumulator differs from golden."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    parser = argparse.ArgumentParser(description="Handwritten digits on the Cube's RTL.")
    able = [name for name, config in CONFIGS.items() if "fp16" in config.precisions]
    parser.add_argument("--preset", choices=able, default="cube_4x4x4")
    parser.add_argument("--dataflow", choices=DATAFLOWS, default="broadcast")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here")
    options = parser.parse_args(arguments)
    config = replace(CONFIGS[options.preset], dataflow=options.dataflow)
    started = time.monotonic()
    try:
        pixels, labels, layers, in_float = trained()
        cube = Cube(config)
    except ImportError as error:
        print(
            f"error: {error.name} not found; install it (pip install scikit-learn)", file=sys.stderr
        )
        return 2
    except (ToolError, BuildError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    right = classify(cube, pixels, layers) == labels
    numbers = {
        "preset": options.preset,
        "dataflow": options.dataflow,
        "digits": len(labels),
        "accuracy": float(right.mean()),
        "accuracy_unseen": float(right[TRAINED:].mean()),
        "accuracy_float64": in_float,
        "accumulators": cube.checked,
        "mismatches": cube.wrong,
        "beats": cube.beats,
        "cycles": cube.cycles,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(
        f"digits on {options.preset} ({options.dataflow}): {right.sum()} of {len(labels)} right, "
        f"{right.mean():.2%}; of {len(labels) - TRAINED} not trained on, "
        f"{right[TRAINED:].mean():.2%}; in float64 {in_float:.2%}\n"
        f"{cube.beats:,} beats in {cube.cycles:,} cycles, {cube.checked:,} accumulators, "
        f"{cube.wrong} mismatches with golden ({numbers['seconds']} s)"
    )
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")
    return int(cube.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
