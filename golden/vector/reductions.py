"""Many elements of the last axis to one: sum, largest, smallest; disabled lanes take no part.

The sum is a binary tree over neighbours, rounded at every node: lanes 0 and 1, 2 and 3, …; then
those sums two by two, and so on. A lane that takes no part is as if its neighbour's value went up
alone. Of a mask without any lane the sum is −0, the neutral element.
"""

from typing import Any

import numpy as np

from vitruvian.golden.vector.arithmetic import add
from vitruvian.golden.vector.formats import canonical, check_floats, check_same, codes

__all__ = ["largest", "pair_sums", "smallest", "sum_tree"]


def sum_tree(a, mask: Any = True):
    """Sum over the last axis.

    Parameters
    ----------
    a : (..., L) ndarray of float16 or float32
        L a power of two.
    mask : (L,) ndarray of bool, optional
        Lanes that take part.

    Returns
    -------
    (...,) ndarray of the same type

    Raises
    ------
    TypeError, ValueError
        For another type, and for another number of lanes.
    """
    a = np.asarray(a)
    check_floats(a)
    if not a.shape or a.shape[-1] & (a.shape[-1] - 1) or not a.shape[-1]:
        raise ValueError(f"lanes must be a power of two, not {a.shape[-1:]}")
    a = np.where(mask, a, a.dtype.type(-0.0))
    while a.shape[-1] > 1:
        a = add(a[..., 0::2], a[..., 1::2])
    return canonical(a[..., 0])


def pair_sums(a, mask: Any = True):
    """Sums of neighbours: (..., L) to (..., L/2), the first level of the tree."""
    a = np.asarray(a)
    check_floats(a)
    a = np.where(mask, a, a.dtype.type(-0.0))
    return add(a[..., 0::2], a[..., 1::2])


def largest(a, mask: Any = True):
    """Largest element of the last axis and the first lane that has it.

    A NaN loses to a number, and −0 < +0. If no enabled lane has a number, it is the canonical NaN
    and the first enabled lane. Without any enabled lane it is lane 0.

    Parameters
    ----------
    a : (..., L) ndarray
    mask : (L,) ndarray of bool, optional

    Returns
    -------
    values : (...,) ndarray of the type of a
    lanes : (...,) ndarray of int64
    """
    return _extreme(a, mask, 1)


def smallest(a, mask: Any = True):
    """As ``largest``, of the smallest element."""
    return _extreme(a, mask, -1)


def _extreme(a, mask, sign: int):
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
    """int64 numbers that sort as the elements do, −0 before +0."""
    if a.dtype.kind != "f":
        return a.astype(np.int64)
    bits = codes(a).astype(np.int64)
    top = np.int64(1) << (8 * a.dtype.itemsize - 1)
    return np.where(bits & top, ~(bits & (top - 1)), bits)
