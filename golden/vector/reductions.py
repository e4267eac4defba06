"""Reductions of the last axis: sum, largest and smallest element of the enabled lanes.

The sum is a binary tree over neighbours, rounded at every node: lanes 0 and 1, lanes 2 and 3, and
so on, then pairs of those sums. A disabled lane counts as −0, the identity of addition, so the
value of its neighbour is passed on unchanged. If no lane is enabled, the sum is −0.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.vector.arithmetic import add
from vitruvian.golden.vector.formats import canonical, check_floats, check_same, codes


def sum_tree(a: ArrayLike, mask: ArrayLike = True) -> np.ndarray:
    """Return the sum over the last axis as a binary tree.

    Parameters
    ----------
    a : (..., L) array_like of float16 or float32
        L is a power of two.
    mask : (L,) array_like of bool, optional
        Enabled lanes, all by default.

    Returns
    -------
    (...,) ndarray of the same type

    Raises
    ------
    TypeError
        If the type is neither float16 nor float32.
    ValueError
        If L is not a power of two.

    Examples
    --------
    >>> float(sum_tree(np.float16([2048, 1, -2048, 1])))
    1.0
    """
    a = np.asarray(a)
    check_floats(a)
    if not a.shape or a.shape[-1] & (a.shape[-1] - 1) or not a.shape[-1]:
        raise ValueError(f"lanes must be a power of two, not {a.shape[-1:]}")
    a = np.where(mask, a, a.dtype.type(-0.0))
    while a.shape[-1] > 1:
        a = add(a[..., 0::2], a[..., 1::2])
    return canonical(a[..., 0])


def pair_sums(a: ArrayLike, mask: ArrayLike = True) -> np.ndarray:
    """Return the (..., L/2) sums of neighbours, the first level of the tree; see ``sum_tree``.

    Examples
    --------
    >>> pair_sums(np.float16([1, 2, 3, 4])).tolist()
    [3.0, 7.0]
    """
    a = np.asarray(a)
    check_floats(a)
    a = np.where(mask, a, a.dtype.type(-0.0))
    return add(a[..., 0::2], a[..., 1::2])


def largest(a: ArrayLike, mask: ArrayLike = True) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest element of the last axis and the first lane that has it.

    A number is preferred to a NaN, and −0 < +0. If all enabled lanes have NaNs, the result is the
    canonical NaN and the first enabled lane. If no lane is enabled, it is the element of lane 0.

    Parameters
    ----------
    a : (..., L) array_like
    mask : (L,) array_like of bool, optional
        Enabled lanes, all by default.

    Returns
    -------
    values : (...,) ndarray of the type of ``a``
    lanes : (...,) ndarray of int64

    Raises
    ------
    TypeError
        If ``a`` does not have a type of vector elements.

    Examples
    --------
    >>> value, lane = largest(np.float16([1, 3, 3]))
    >>> float(value), int(lane)
    (3.0, 1)
    """
    return _extreme(a, mask, 1)


def smallest(a: ArrayLike, mask: ArrayLike = True) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest element of the last axis and the first lane that has it.

    It treats NaNs, zeros and the mask as ``largest`` does.

    Examples
    --------
    >>> value, lane = smallest(np.float16([1, 0, 0]))
    >>> float(value), int(lane)
    (0.0, 1)
    """
    return _extreme(a, mask, -1)


def _extreme(a: ArrayLike, mask: ArrayLike, sign: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.asarray(a)
    check_same(a)
    enabled = np.broadcast_to(mask, a.shape)
    rank = sign * _rank(a)
    low = np.iinfo(np.int64).min
    if a.dtype.kind == "f":
        rank = np.where(np.isnan(a), low + 1, rank)
    rank = np.where(enabled, rank, low)
    lanes = np.argmax(rank, axis=-1)
    values = np.take_along_axis(a, lanes[..., None], axis=-1)[..., 0]
    return (canonical(values) if a.dtype.kind == "f" else values), lanes


def _rank(a: np.ndarray) -> np.ndarray:
    """Return int64 keys in the order of the elements, with −0 before +0."""
    if a.dtype.kind != "f":
        return a.astype(np.int64)
    bits = codes(a).astype(np.int64)
    top = np.int64(1) << (8 * a.dtype.itemsize - 1)
    return np.where(bits & top, ~(bits & (top - 1)), bits)
