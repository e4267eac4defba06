"""Train the network of ``vitruvian digits`` and write its weights.

    python benchmarks/digits_weights.py sim/kernels/digits/weights.npz

NumPy trains in FP32 on the first two thirds of scikit-learn's digits: Adam, 60 epochs of batches of
32, each image moved by at most one pixel, seed 0. The weights are rounded to FP16, the biases of
the fully connected layer stay in FP32. Another version of NumPy or of BLAS may give other weights;
those in the repository are what the tests use.
"""

import argparse

import numpy as np

from vitruvian.sim.kernels.digits.network import CLASSES, FILTERS, TRAINED, labelled

_EPOCHS, _BATCH, _RATE, _DECAY = 60, 32, 2e-3, 1e-4
Parameters = dict[str, np.ndarray]


def patches(x: np.ndarray) -> np.ndarray:
    """Return the 3 × 3 neighbourhoods of all pixels, (N, 64, 9)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return windows.reshape(len(x), 64, 9)


def gradients(p: Parameters, x: np.ndarray, labels: np.ndarray) -> Parameters:
    """Return the gradients of the mean cross entropy."""
    n = len(x)
    rows = patches(x)
    sums = np.maximum(rows @ p["conv"] + p["conv_bias"], 0)
    # Windows of 2 × 2 pixels: (row, row in the window, column, column in it).
    windows = sums.reshape(n, 4, 2, 4, 2, FILTERS).transpose(0, 1, 3, 5, 2, 4).reshape(n, 16, -1, 4)
    features = windows.max(-1).reshape(n, -1)
    scores = features @ p["full"] + p["full_bias"]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    scores /= scores.sum(1, keepdims=True)
    scores[np.arange(n), labels] -= 1
    scores /= n
    back = (scores @ p["full"].T).reshape(n, 16, FILTERS)
    first = np.eye(4, dtype=np.float32)[windows.argmax(-1)] * (windows.max(-1) > 0)[..., None]
    back = (first * back[..., None]).reshape(n, 4, 4, FILTERS, 2, 2)
    back = back.transpose(0, 1, 4, 2, 5, 3).reshape(n * 64, FILTERS)
    return {
        "conv": rows.reshape(n * 64, 9).T @ back,
        "conv_bias": back.sum(0),
        "full": features.T @ scores,
        "full_bias": scores.sum(0),
    }


def train() -> Parameters:
    """Return the trained parameters in FP32."""
    rng = np.random.default_rng(0)
    pixels, labels = labelled()
    pixels, labels = pixels[:TRAINED].astype(np.float32), labels[:TRAINED]
    p = {
        "conv": rng.normal(0, np.sqrt(2 / 9), (9, FILTERS)),
        "conv_bias": np.zeros(FILTERS),
        "full": rng.normal(0, np.sqrt(2 / (16 * FILTERS)), (16 * FILTERS, CLASSES)),
        "full_bias": np.zeros(CLASSES),
    }
    p = {name: array.astype(np.float32) for name, array in p.items()}
    mean = {name: np.zeros_like(array) for name, array in p.items()}
    square = {name: np.zeros_like(array) for name, array in p.items()}
    step = 0
    for epoch in range(_EPOCHS):
        order = rng.permutation(TRAINED)
        rate = _RATE * (1 - epoch / _EPOCHS)
        for start in range(0, TRAINED, _BATCH):
            chosen = order[start : start + _BATCH]
            down, across = rng.integers(-1, 2, 2)
            x = np.pad(pixels[chosen], ((0, 0), (1, 1), (1, 1)))
            x = x[:, 1 + down : 9 + down, 1 + across : 9 + across]
            step += 1
            for name, slope in gradients(p, x, labels[chosen]).items():
                slope = slope + _DECAY * p[name]
                mean[name] += 0.1 * (slope - mean[name])
                square[name] += 0.001 * (slope**2 - square[name])
                size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
                p[name] -= (rate / (1 - 0.9**step) * mean[name] / size).astype(np.float32)
    return p


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("out", metavar="FILE", help="Write the weights to this file (.npz).")
    out = parser.parse_args().out
    p = train()
    np.savez(
        out,
        conv=p["conv"].T.reshape(FILTERS, 3, 3).astype(np.float16),
        conv_bias=p["conv_bias"].astype(np.float16),
        full=p["full"].astype(np.float16),
        full_bias=p["full_bias"],
    )


if __name__ == "__main__":
    main()
