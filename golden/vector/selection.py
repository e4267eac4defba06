"""Comparison to a mask, selection by a mask, and elements that change their place."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import one_of
from vitruvian.golden.vector.formats import check_same

#: Bytes of a block of the vector unit.
BLOCK_BYTES = 32

#: Comparisons by name
CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def compare(a: ArrayLike, b: ArrayLike, condition: str) -> np.ndarray:
    """Compare elements; with a NaN only "ne" is true, and −0 equals +0.

    Parameters
    ----------
    a, b : array_like of one type
    condition : {"eq", "ne", "lt", "le", "gt", "ge"}

    Returns
    -------
    ndarray of bool

    Raises
    ------
    ValueError
        If the condition is unknown.
    TypeError
        If the types differ or are not types of vector elements.

    Examples
    --------
    >>> compare(np.float16([1, np.nan]), np.float16([2, np.nan]), "lt").tolist()
    [True, False]
    """
    one_of("condition", condition, CONDITIONS)
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    return CONDITIONS[condition](a, b)


def select(bits: ArrayLike, a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Select elements of a or b; their bit patterns are unchanged, including those of NaNs.

    Parameters
    ----------
    bits : array_like of bool
        True selects the element of ``a``, False that of ``b``.
    a, b : array_like of one type

    Raises
    ------
    TypeError
        If the types differ or are not types of vector elements.

    Examples
    --------
    >>> select([True, False], np.float16([1, 2]), np.float16([3, 4])).tolist()
    [1.0, 4.0]
    """
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    return np.where(bits, a, b)


def pack(bits: ArrayLike) -> np.ndarray:
    """Pack (..., L) booleans into (..., ⌈L/8⌉) bytes, with lane 0 in the lowest bit.

    Examples
    --------
    >>> pack([True, False, True]).tolist()
    [5]
    """
    return np.packbits(np.asarray(bits, bool), axis=-1, bitorder="little")


def unpack_bits(data: ArrayLike, lanes: int) -> np.ndarray:
    """Unpack (..., B) bytes (uint8) to (..., lanes) booleans, the inverse of ``pack``.

    Examples
    --------
    >>> unpack_bits(np.uint8([5]), 3).tolist()
    [True, False, True]
    """
    return np.unpackbits(np.asarray(data), axis=-1, count=lanes, bitorder="little").astype(bool)


def transpose(a: ArrayLike) -> np.ndarray:
    """Exchange rows and columns of (..., 16, 16) elements.

    Raises
    ------
    ValueError
        If the shape is different.

    Examples
    --------
    >>> transpose(np.arange(256, dtype=np.int16).reshape(16, 16))[1, :3].tolist()
    [1, 17, 33]
    """
    a = np.asarray(a)
    if a.shape[-2:] != (16, 16):
        raise ValueError(f"a must be (..., 16, 16), not {a.shape}")
    return np.swapaxes(a, -1, -2).copy()


def fill_blocks(a: ArrayLike) -> np.ndarray:
    """Fill a block of 32 bytes with copies of each element; bit patterns are unchanged.

    Parameters
    ----------
    a : (...) array_like, elements of 2 or 4 bytes

    Returns
    -------
    (..., E) ndarray of the same type, where E is 32 bytes / the bytes of an element

    Raises
    ------
    TypeError
        If the elements have another size.

    Examples
    --------
    >>> fill_blocks(np.uint16([7, 9])).shape
    (2, 16)
    """
    a = np.asarray(a)
    if a.dtype.itemsize not in (2, 4):
        raise TypeError(f"elements must have 2 or 4 bytes, not {a.dtype.itemsize}")
    return np.repeat(a[..., None], BLOCK_BYTES // a.dtype.itemsize, axis=-1)
