"""A network for handwritten digits: its images, its weights, and its results by golden functions.

A convolution of 3 × 3 pixels with 16 filters and padding of one pixel, bias, ReLU, maximum of
2 × 2 pixels, a fully connected layer of 256 × 10, bias, and the class with the largest sum.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from vitruvian.common.extras import need
from vitruvian.golden import vector
from vitruvian.golden.cube import mmad

#: Rows and columns of an image, filters, classes, and channels of a block.
SIDE, FILTERS, CLASSES, C0 = 8, 16, 10, 16
#: All images, those with whose labels the network was trained, and those in this package.
DIGITS, TRAINED, SAMPLE = 1797, 1198, 20


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the network.

    Attributes
    ----------
    conv : (16, 3, 3) ndarray of float16
    conv_bias : (16,) ndarray of float16
    full : (256, 10) ndarray of float16
        A row for each pixel of 4 × 4 and filter, filters fastest.
    full_bias : (10,) ndarray of float32
    """

    conv: np.ndarray
    conv_bias: np.ndarray
    full: np.ndarray
    full_bias: np.ndarray

    @property
    def conv_matrix(self) -> np.ndarray:
        """The filters as (144, 16): 16 channels at each position, of which the image has one."""
        matrix = np.zeros((9, C0, FILTERS), np.float16)
        matrix[:, 0] = self.conv.reshape(FILTERS, 9).T
        return matrix.reshape(9 * C0, FILTERS)

    @property
    def full_matrix(self) -> np.ndarray:
        """The fully connected layer as (16, 256); classes 10 to 15 have zeros."""
        matrix = np.zeros((16, len(self.full)), np.float16)
        matrix[:CLASSES] = self.full.T
        return matrix


def weights() -> Weights:
    """Return the trained weights, those of ``benchmarks/digits_weights.py``."""
    with (
        (files("vitruvian.sim.kernels.digits") / "weights.npz").open("rb") as file,
        np.load(file) as arrays,
    ):
        return Weights(**arrays)


def labelled() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's 1797 digits, (N, 8, 8) of float16 in [0, 1], and their labels.

    Their 17 levels of grey are exact in FP16. The first ``TRAINED`` trained the network.

    Raises
    ------
    UserError
        If scikit-learn is not installed.
    """
    pixels, labels = need("sklearn.datasets").load_digits(return_X_y=True)
    return (pixels.reshape(-1, SIDE, SIDE) / 16).astype(np.float16), labels


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some digits and their labels: first the held-out ones, then the others.

    The first ``SAMPLE`` are in this package and need no scikit-learn.

    Raises
    ------
    ValueError
        If there are not so many.
    UserError
        If scikit-learn is needed and not installed.

    References
    ----------
    E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
    Repository, 1998 (CC BY 4.0).
    """
    if not 1 <= count <= DIGITS:
        raise ValueError(f"images must be 1 … {DIGITS}, not {count}")
    if count <= SAMPLE:
        with (
            (files("vitruvian.sim.kernels.digits") / "sample.npz").open("rb") as file,
            np.load(file) as arrays,
        ):
            images, labels = arrays["images"], arrays["labels"].astype(np.int64)
        return (images[:count] / 16).astype(np.float16), labels[:count]
    images, labels = (np.roll(array, -TRAINED, 0) for array in labelled())
    return images[:count], labels[:count]


@dataclass(frozen=True, eq=False)
class Layers:
    """The results of all layers.

    Attributes
    ----------
    conv : (N, 64, 16) ndarray of float16
        After bias and ReLU.
    pooled : (N, 16, 16) ndarray of float16
        By pixel and filter.
    scores : (N, 10) ndarray of float32
    classes : (N,) ndarray of int32
    """

    conv: np.ndarray
    pooled: np.ndarray
    scores: np.ndarray
    classes: np.ndarray


def golden(images: np.ndarray, w: Weights, spec: Any) -> Layers:
    """Compute the network by golden functions.

    Parameters
    ----------
    images : (N, 8, 8) ndarray of float16
    spec : DotSpec
        The sums of the core's tile, from FP16 to FP32.
    """
    count, pixels = len(images), SIDE * SIDE
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    rows = np.zeros((count, pixels, 9, C0), np.float16)
    for place, (i, j) in enumerate(np.ndindex(3, 3)):
        rows[:, :, place, 0] = padded[:, i : i + SIDE, j : j + SIDE].reshape(count, pixels)
    left = rows.reshape(count * pixels, -1).view(np.uint16)
    sums = mmad(left, w.conv_matrix.view(np.uint16), spec=spec).view(np.float32)
    biased = vector.add(vector.convert(sums, "fp32", "fp16"), w.conv_bias)
    conv = vector.relu(biased).reshape(count, SIDE, SIDE, FILTERS)
    down = vector.maximum(conv[:, 0::2], conv[:, 1::2])
    pooled = vector.maximum(down[:, :, 0::2], down[:, :, 1::2])
    features = np.ascontiguousarray(pooled.reshape(count, -1))
    left, right = w.full_matrix.view(np.uint16), features.view(np.uint16).T
    sums = mmad(left, np.ascontiguousarray(right), spec=spec).view(np.float32)
    scores = vector.add(sums[:CLASSES].T, w.full_bias)
    return Layers(
        conv.reshape(count, pixels, FILTERS),
        pooled.reshape(count, 16, FILTERS),
        scores,
        scores.argmax(1).astype(np.int32),
    )


def plain_classes(images: np.ndarray, w: Weights) -> np.ndarray:
    """Return the classes of the same weights in NumPy's FP32, without any rounding to FP16."""
    padded = np.pad(images.astype(np.float32), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    sums = windows.reshape(-1, 9) @ w.conv.reshape(FILTERS, 9).T.astype(np.float32)
    conv = np.maximum(sums + w.conv_bias.astype(np.float32), 0)
    conv = conv.reshape(-1, 4, 2, 4, 2, FILTERS).max((2, 4)).reshape(len(images), -1)
    return (conv @ w.full.astype(np.float32) + w.full_bias).argmax(1).astype(np.int32)
