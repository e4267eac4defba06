"""Comparison to bits, choice by bits, and transposition of 16×16 elements."""

import operator

import numpy as np

from vitruvian.golden.vector.formats import check_same
from vitruvian.validate import one_of

__all__ = ["CONDITIONS", "compare", "pack", "select", "transpose", "unpack_bits"]

#: Comparisons by name.
CONDITIONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def compare(a, b, condition: str) -> np.ndarray:
    """Whether each a stands to b as named; with a NaN only "ne" is true, and −0 equals +0.

    Raises
    ------
    ValueError
        For a condition that is none.
    TypeError
        For arrays of two types.
    """
    one_of("condition", condition, CONDITIONS)
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    return CONDITIONS[condition](a, b)


def select(bits, a, b) -> np.ndarray:
    """a where a bit is set, else b; the elements' bits are kept, those of NaN too."""
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    return np.where(bits, a, b)


def pack(bits) -> np.ndarray:
    """(..., L) truth values as (..., L/8) bytes, lane 0 in the lowest bit."""
    return np.packbits(np.asarray(bits, bool), axis=-1, bitorder="little")


def unpack_bits(data, lanes: int) -> np.ndarray:
    """(..., B) bytes as (..., lanes) truth values."""
    return np.unpackbits(np.asarray(data), axis=-1, count=lanes, bitorder="little").astype(bool)


def transpose(a) -> np.ndarray:
    """(..., 16, 16) elements with rows and columns exchanged.

    Raises
    ------
    ValueError
        For another shape.
    """
    a = np.asarray(a)
    if a.shape[-2:] != (16, 16):
        raise ValueError(f"a must be (..., 16, 16), not {a.shape}")
    return np.swapaxes(a, -1, -2).copy()
