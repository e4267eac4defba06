"""Squares of differences as a unit for products makes them: a·a − a·b − a·b + b·b.

The difference itself is never rounded. The four products go into a fused sum as any others do, so
its window is counted from the largest of a·a and b·b; a pair of equal numbers counts as zero.
"""

import numpy as np

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.simd2.op import PARTS

__all__ = ["square_parts", "square_sums"]

_TERMS = 1 << 20  # that are worked on at a time


def square_parts(a, b) -> tuple[np.ndarray, np.ndarray]:
    """The four pairs of factors of each (a − b)².

    Parameters
    ----------
    a, b : (..., K) ndarray of a floating-point dtype

    Returns
    -------
    (..., 4·K) ndarrays of that dtype
        Zeros where a = b; where one of them is infinite one ∞·∞ and zeros; NaNs where a − b is one.
    """
    a, b = np.broadcast_arrays(a, b)
    endless = np.isinf(a) | np.isinf(b)
    bad = np.isnan(a) | np.isnan(b) | (endless & (a == b))
    plain = ~(endless | bad | (a == b))
    x, y = (np.where(plain, value, a.dtype.type(0)) for value in (a, b))
    first = np.where(bad, a.dtype.type(np.nan), np.where(endless, a.dtype.type(np.inf), x))
    left = np.stack([first, -x, -x, y], -1)
    right = np.stack([first, y, y, y], -1)
    shape = (*a.shape[:-1], PARTS * a.shape[-1])
    return left.reshape(shape), right.reshape(shape)


def square_sums(a, b, c, spec: DotSpec) -> np.ndarray:
    """C + Σ (a − b)², in blocks of ``spec.k / 4`` squares.

    Parameters
    ----------
    a : (M, K) ndarray
    b : (K, N) ndarray
        Of the dtype of ``spec.input``.
    c : (M, N) ndarray of float32
    spec : DotSpec
        Of the sum of products; its k is a multiple of 4.

    Returns
    -------
    (M, N) ndarray of float32
    """
    if spec.k % PARTS:
        raise ValueError(f"k must be a multiple of {PARTS} for squares, not {spec.k!r}")
    d = np.array(c, order="C").view(np.uint32)
    columns, block = np.ascontiguousarray(b.T), spec.k // PARTS
    rows = max(_TERMS // max(spec.k * b.shape[1], 1), 1)
    for i in range(0, a.shape[0], rows):
        for k in range(0, a.shape[1], block):
            span = slice(k, k + block)
            parts = square_parts(a[i : i + rows, None, span], columns[None, :, span])
            x, y = (part.view(f"u{part.dtype.itemsize}") for part in parts)
            d[i : i + rows] = fused_dot(x, y, d[i : i + rows], spec)
    return d.view(np.float32)
