"""The results of the pooling kernels, computed on whole images with ``golden.vector``."""

import math

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.kernels.pooling.build import Pooling


def forward(pooling: Pooling, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return y, and the mask if the kernel saves it.

    Parameters
    ----------
    x : (N, C1, H, W, 16) ndarray of float16
    """
    if pooling.reduction == "max":
        parts = _parts(pooling, x, math.nan if pooling.argmax else -math.inf)
        start, combine = -math.inf, vector.maximum
    else:
        parts, start, combine = _parts(pooling, x, 0.0), 0.0, vector.add
    if pooling.method == "xy":
        parts_along_h = [_folded(row, start, combine) for row in parts]
        y = _folded(parts_along_h, start, combine)
    else:
        y = _folded([part for row in parts for part in row], start, combine)
    if pooling.reduction == "avg":
        return {"y": vector.div(y, np.broadcast_to(_divisors(pooling), y.shape))}
    if not pooling.argmax:
        return {"y": y}
    mask = np.zeros(pooling.shapes["mask"], np.float16)
    open_ = np.ones(y.shape, bool)
    for index, row in enumerate(parts):
        for column, part in enumerate(row):
            here = open_ & (part == y)
            mask[:, :, index, column][here] = 1
            if pooling.ties == "first":
                open_ &= ~here
    return {"y": y, "mask": mask}


def backward(
    pooling: Pooling, dy: np.ndarray, mask: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return dx.

    Parameters
    ----------
    dy : (N, C1, Oh, Ow, 16) ndarray of float16
    mask : (N, C1, Kh, Kw, Oh, Ow, 16) ndarray of float16, optional
        The mask of a max pooling.
    """
    p = pooling.patches
    kh, kw = p.kernel
    if mask is None:
        part = vector.div(dy, np.broadcast_to(_divisors(pooling), dy.shape))
        parts = [[part] * kw] * kh
    else:
        parts = [[vector.mul(mask[:, :, y, x], dy) for x in range(kw)] for y in range(kh)]
    image = np.zeros((*dy.shape[:2], *_padded(pooling), 16), np.float16)
    if pooling.method == "xy":
        for x in range(kw):
            lines = np.zeros((*dy.shape[:2], image.shape[2], p.columns, 16), np.float16)
            for y in range(kh):
                _add(lines, _range(p, 0, y), slice(None), parts[y][x])
            _add(image, slice(None), _range(p, 1, x), lines)
    else:
        for y in range(kh):
            for x in range(kw):
                _add(image, _range(p, 0, y), _range(p, 1, x), parts[y][x])
    top, left = p.pad[0], p.pad[2]
    return {"dx": np.ascontiguousarray(image[:, :, top:, left:][:, :, : p.height, : p.width])}


def _parts(pooling: Pooling, x: np.ndarray, padding: float) -> list[list[np.ndarray]]:
    """Return the pixel of each window at each position of the kernel, row by row."""
    p = pooling.patches
    padded = np.full((*x.shape[:2], *_padded(pooling), 16), padding, np.float16)
    padded[:, :, p.pad[0] : p.pad[0] + p.height, p.pad[2] : p.pad[2] + p.width] = x
    kh, kw = p.kernel
    return [[padded[:, :, _range(p, 0, y), _range(p, 1, c)] for c in range(kw)] for y in range(kh)]


def _padded(pooling: Pooling) -> tuple[int, int]:
    p = pooling.patches
    return p.height + p.pad[0] + p.pad[1], p.width + p.pad[2] + p.pad[3]


def _range(p, axis: int, position: int) -> slice:
    """Return the pixels that the windows have at a position of the kernel along an axis."""
    first = position * p.dilation[axis]
    count = (p.rows, p.columns)[axis]
    return slice(first, first + (count - 1) * p.stride[axis] + 1, p.stride[axis])


def _folded(parts: list[np.ndarray], start: float, combine) -> np.ndarray:
    total = np.full(parts[0].shape, start, np.float16)
    for part in parts:
        total = combine(total, part)
    return total


def _add(image: np.ndarray, rows: slice, columns: slice, part: np.ndarray) -> None:
    image[:, :, rows, columns] = vector.add(image[:, :, rows, columns], part)


def _divisors(pooling: Pooling) -> np.ndarray:
    """Return the divisors (Oh, Ow, 1), or one number, in FP16."""
    if pooling.divisors is None:
        return np.asarray(pooling.divisor, np.float16)
    p = pooling.patches
    return np.asarray(pooling.divisors).reshape(p.rows, p.columns, 1).astype(np.float16)
