"""Train a network for handwritten digits under the arithmetic of real matrix units.

The 1797 digits of 8 × 8 pixels come with scikit-learn. Two thirds of them train a network with one
hidden layer by stochastic gradient descent. All matrix products, forward and backward, are those
of a machine, to the bit; weights, biases and their updates are FP32. Every run begins with the same
weights and sees the same batches, so that all differences are due to the products.

    python examples/train_digits.py [--steps 1900] [--only h100_e4m3] [--svg FILE] [--json FILE]
"""

import argparse
import json
import sys
import time

import numpy as np

from vitruvian.common.charts import write_figure
from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.golden.machines import Arithmetic
from vitruvian.sim.host.problems import TRAINED

#: The runs by name; None is NumPy's product of FP32 numbers.
RUNS: dict[str, Arithmetic | None] = {
    "fp32": None,
    "v100_fp16": Arithmetic("v100", "fp16"),
    "h100_e4m3": Arithmetic("h100", "e4m3", "e5m2", instruction="wgmma"),
    "mi300x_fp16": Arithmetic("mi300x", "fp16"),
    "mi300x_bf16": Arithmetic("mi300x", "bf16"),
    "mi300x_fp8": Arithmetic("mi300x", "fp8", "bf8"),
    "b200_nvfp4": Arithmetic("b200", "e2m1", instruction="nvf4_ue4m3"),
}
HIDDEN, BATCH, EPOCH = 64, 64, 19  # neurons; digits of a step; steps of a point in the plot
RATE, MOMENTUM = 0.1, 0.9


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return pixels from 0 to 1 and labels of all digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UserError("scikit-learn must be installed for its digits") from None
    pixels, labels = load_digits(return_X_y=True)
    return (pixels / 16).astype(np.float32), labels


class Network:
    """A network with one hidden layer of rectified sums, and its gradients."""

    def __init__(self, arithmetic: Arithmetic | None, seed: int, threads: int | None = None):
        rng = np.random.default_rng(seed)
        sizes = ((64, HIDDEN), (HIDDEN, 10))
        self.weights = [
            (rng.standard_normal(s) * np.sqrt(2 / s[0])).astype(np.float32) for s in sizes
        ]
        self.biases = [np.zeros(s[1], np.float32) for s in sizes]
        self.speeds = [np.zeros_like(v) for v in (*self.weights, *self.biases)]
        self.arithmetic, self.threads = arithmetic, threads

    def product(self, a, b, *roles):
        """Return A·B by the arithmetic of this run."""
        if self.arithmetic is None:
            return a @ b
        return self.arithmetic.product(a, b, roles, self.threads)

    def forward(self, x):
        """Return the rectified sums of the hidden layer and the sums of the last layer."""
        first, second = self.weights
        hidden = np.maximum(self.product(x, first, "forward", "forward") + self.biases[0], 0)
        return hidden, self.product(hidden, second, "forward", "forward") + self.biases[1]

    def step(self, x, labels):
        """Take one step of gradient descent with momentum; return the loss before it."""
        hidden, sums = self.forward(x)
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        here = (np.arange(len(x)), labels)
        loss = -float(np.log(np.maximum(shares[here], 1e-30)).mean())
        shares[here] -= 1
        last = shares / np.float32(len(x))
        inner = self.product(last, self.weights[1].T, "backward", "forward") * (hidden > 0)
        gradients = (
            self.product(x.T, inner, "forward", "backward"),
            self.product(hidden.T, last, "forward", "backward"),
            inner.sum(axis=0),
            last.sum(axis=0),
        )
        numbers = (*self.weights, *self.biases)
        for number, speed, gradient in zip(numbers, self.speeds, gradients, strict=True):
            speed *= np.float32(MOMENTUM)
            speed -= np.float32(RATE) * gradient
            number += speed
        return loss


def train(name: str, steps: int, seed: int = 1, threads: int | None = None) -> dict:
    """Train under one arithmetic; return the losses of all steps and the accuracies."""
    pixels, labels = digits()
    network = Network(RUNS[name], seed, threads)
    rng = np.random.default_rng(seed)
    losses, order = [], np.zeros(0, int)
    start = time.perf_counter()
    for _ in range(steps):
        if len(order) < BATCH:
            order = rng.permutation(TRAINED)
        batch, order = order[:BATCH], order[BATCH:]
        losses.append(network.step(pixels[batch], labels[batch]))
    seconds = time.perf_counter() - start
    right = network.forward(pixels)[1].argmax(axis=1) == labels
    return {
        "losses": losses,
        "final_loss": float(np.mean(losses[-EPOCH:])),
        "accuracy_trained": float(right[:TRAINED].mean()),
        "accuracy_held_out": float(right[TRAINED:].mean()),
        "seconds": round(seconds, 1),
    }


def curve(result: dict) -> np.ndarray:
    """Return the mean loss of every ``EPOCH`` steps."""
    losses = np.array(result["losses"])
    return np.array([losses[i : i + EPOCH].mean() for i in range(0, len(losses), EPOCH)])


def distances(result: dict, reference: dict) -> np.ndarray:
    """Return the relative differences of the losses of two runs, one for every ``EPOCH`` steps."""
    return np.abs(curve(result) / curve(reference) - 1)


def plot(path: str, results: dict[str, dict]) -> None:
    """Draw the mean loss of every ``EPOCH`` steps of each run, and its distance from FP32's."""
    dashes = ("-", "--", "-", ":", "-.", "--", "-")

    def fill(figure) -> None:
        left, right = figure.subplots(1, 2)
        for i, (name, result) in enumerate(results.items()):
            style = {"color": f"C{i}", "linestyle": dashes[i], "linewidth": 1.1}
            losses = curve(result)
            steps = np.arange(len(losses)) * EPOCH
            left.plot(steps, losses, label=name, **style)
            if name != "fp32" and "fp32" in results:
                right.plot(steps, distances(result, results["fp32"]) + 1e-9, **style)
        left.set(xlabel="step", ylabel=f"mean loss of {EPOCH} steps", yscale="log")
        right.set(xlabel="step", ylabel="relative difference from fp32", yscale="log")
        left.legend()
        for axes in (left, right):
            axes.yaxis.set_major_formatter("{x:g}")
            axes.grid(True, which="major", alpha=0.25)

    write_figure(path, fill, 9)


def main(arguments: list[str] | None = None) -> int:
    """Print the losses and accuracies; write the plot and the figures if that is asked."""
    parser = argparse.ArgumentParser(description="Train on digits under machines' arithmetic.")
    parser.add_argument("--steps", type=int, default=1900, help="Steps of gradient descent.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of weights and batches.")
    parser.add_argument("--only", choices=RUNS, action="append", help="Run this one; repeatable.")
    parser.add_argument("--threads", type=int, help="Threads of a product; default: all cores.")
    parser.add_argument("--svg", metavar="FILE", help="Draw the losses into this file.")
    parser.add_argument("--json", metavar="FILE", help="Write the figures to this file.")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.seed < 0:
        parser.error("steps must be at least 1, and seed at least 0")
    results: dict[str, dict] = {}
    heads = ("final loss", "from fp32", "trained", "held out", "s")
    print("products".ljust(14) + "".join(f"{head:>11}" for head in heads))
    try:
        for name in options.only or RUNS:
            r = results[name] = train(name, options.steps, options.seed, options.threads)
            r["from_fp32"] = None
            if "fp32" in results and name != "fp32":
                r["from_fp32"] = float(np.median(distances(r, results["fp32"])))
            far = "" if r["from_fp32"] is None else f"{r['from_fp32']:.2%}"
            accuracies = f"{r['accuracy_trained']:>11.2%}{r['accuracy_held_out']:>11.2%}"
            losses = f"{r['final_loss']:11.5f}{far:>11}"
            print(f"{name:14}{losses}{accuracies}{r['seconds']:11.1f}", flush=True)
        if options.svg:
            plot(options.svg, results)
        if options.json:
            write_whole(options.json, json.dumps(results, indent=1) + "\n")
    except (UserError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
