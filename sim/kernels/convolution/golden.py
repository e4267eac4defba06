"""The results of the convolution kernels by the golden models, to the bit."""

import numpy as np

from vitruvian.golden import vector
from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.scu import Patches, im2col, kernel_matrix, to_nc1hwc0
from vitruvian.sim.kernels.convolution.shape import ConvShape


def dense(
    shape: ConvShape,
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    *,
    relu: bool = False,
    preset: str = "ieee",
) -> np.ndarray:
    """Compute a convolution in the order of the Cube.

    A sum starts with the bias in FP32, or with 0. It adds the products of 16 channels at one
    position of the kernel at once, rounded once to FP32: all positions of the kernel in a group of
    16 channels, row by row, then the next group of channels. The tiling does not change this order.
    The sum is then rounded to FP16.

    Parameters
    ----------
    x : (N, C, H, W) ndarray of float16
    w : (F, C / groups, Kh, Kw) ndarray of float16
    b : (F,) ndarray of float16, optional
    preset : str
        The preset of the accuracy, see ``golden.machines.PRESETS``.

    Returns
    -------
    (N, F, Oh, Ow) ndarray of float16
    """
    s, p = shape, shape.patches
    spec = PRESETS[preset].spec("fp16", k=16)
    parts = zip(np.split(x, s.groups, axis=1), np.split(w, s.groups), strict=True)
    starts = None if b is None else np.split(b.astype(np.float32), s.groups)
    found = []
    for g, (images, kernels) in enumerate(parts):
        right = np.ascontiguousarray(kernel_matrix(kernels))
        start = None
        if starts is not None:
            start = np.broadcast_to(starts[g].view(np.uint32), (p.count, len(kernels)))
        rows = [_rows(image, p) for image in images]
        sums = [mmad(row, right.view(np.uint16), start, spec=spec) for row in rows]
        found.append(np.stack(sums).view(np.float32))
    whole = np.concatenate(found, axis=-1).transpose(0, 2, 1)
    y = vector.convert(np.ascontiguousarray(whole), "fp32", "fp16")
    y = vector.relu(y) if relu else y
    return y.reshape(s.images, s.filters, p.rows, p.columns)


def depthwise(
    shape: ConvShape,
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    *,
    relu: bool = False,
) -> np.ndarray:
    """Compute a depthwise convolution in the order of the vector unit.

    A result starts with the first product, rounded to FP16. It adds the products of the other
    positions of the kernel, row by row, each rounded once with its sum; then the bias.

    Parameters
    ----------
    x : (N, C, H, W) ndarray of float16
    w : (C, 1, Kh, Kw) ndarray of float16
    b : (C,) ndarray of float16, optional

    Returns
    -------
    (N, C, Oh, Ow) ndarray of float16
    """
    p = shape.patches
    (top, bottom, left, right), (kh, kw) = p.pad, p.kernel
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, p.extent, (2, 3))
    patches = windows[:, :, :: p.stride[0], :: p.stride[1], :: p.dilation[0], :: p.dilation[1]]
    total: np.ndarray | None = None
    for i, j in np.ndindex(kh, kw):
        pixels = np.ascontiguousarray(patches[..., i, j])
        weights = np.broadcast_to(w[None, :, 0, i, j, None, None], pixels.shape)
        if total is None:
            total = vector.mul(pixels, weights)
        else:
            total = vector.multiply_add(pixels, weights, total)
    assert total is not None
    if b is not None:
        total = vector.add(total, np.broadcast_to(b[None, :, None, None], total.shape))
    return vector.relu(total) if relu else total


def _rows(image: np.ndarray, patches: Patches) -> np.ndarray:
    """Return the patches of an image (C, H, W) as rows of codes, with K as weights have it."""
    fractals = im2col(to_nc1hwc0(image), patches).swapaxes(-3, -2)
    rows = fractals.reshape(16 * patches.fractals, -1)[: patches.count]
    return np.ascontiguousarray(rows).view(np.uint16)
