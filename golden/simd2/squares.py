"""Squared differences as a unit for products computes them: a·a − a·b − a·b + b·b.

The difference itself is never rounded. The four products enter a fused sum like any other terms, so
the window is counted from the largest of a·a and b·b. A pair of equal numbers counts as zero.
"""

import numpy as np

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.simd2.op import PARTS

_TERMS = 1 << 20  # terms per step, which bounds the memory


def square_parts(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the four pairs of factors of each (a − b)².

    Parameters
    ----------
    a, b : (..., K) ndarray of a floating-point dtype

    Returns
    -------
    left, right : (..., 4·K) ndarray of that dtype
        Zeros if a = b; ∞·∞ and zeros if a or b is infinite; NaNs if a − b is a NaN.
    """
    a, b = np.broadcast_arrays(a, b)
    infinite = np.isinf(a) | np.isinf(b)
    nan = np.isnan(a) | np.isnan(b) | (infinite & (a == b))
    plain = ~(infinite | nan | (a == b))
    x, y = (np.where(plain, value, a.dtype.type(0)) for value in (a, b))
    first = np.where(nan, a.dtype.type(np.nan), np.where(infinite, a.dtype.type(np.inf), x))
    left = np.stack([first, -x, -x, y], -1)
    right = np.stack([first, y, y, y], -1)
    shape = (*a.shape[:-1], PARTS * a.shape[-1])
    return left.reshape(shape), right.reshape(shape)


def square_sums(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Return C + Σ (a − b)², computed in blocks of ``spec.k / 4`` squares.

    Parameters
    ----------
    a : (M, K) ndarray of the dtype of ``spec.input``
    b : (K, N) ndarray of the same dtype
    c : (M, N) ndarray of float32
    spec : DotSpec
        Arithmetic of the sum of products. Its k is a multiple of 4.

    Returns
    -------
    (M, N) ndarray of float32

    Raises
    ------
    ValueError
        If ``spec.k`` is not a multiple of 4.
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
