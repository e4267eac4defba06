"""Element by element: add, subtract, multiply, divide, larger, smaller, and bits.

FP16 and FP32 are IEEE 754: rounded to nearest, ties to even, subnormals honoured, overflow to
infinity. NumPy does FP16 in FP32 and rounds again, which gives the same bits for these operations,
since 24 ≥ 2·11 + 2 (S. A. Figueroa, "When is double rounding innocuous?", 1995). Every NaN result
is the canonical one. Integers wrap.
"""

import numpy as np

from vitruvian.golden.fp import fma
from vitruvian.golden.vector.formats import canonical, check_floats, check_same, codes

__all__ = [
    "absolute",
    "add",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "div",
    "leaky_relu",
    "maximum",
    "minimum",
    "mul",
    "multiply_add",
    "relu",
    "shift_left",
    "shift_right",
    "sub",
]


def _apply(operation, *operands):
    arrays = [np.asarray(x) for x in operands]
    check_same(*arrays)
    with np.errstate(all="ignore"):
        result = operation(*arrays)
    return canonical(result) if result.dtype.kind == "f" else result


def add(a, b):
    """a + b.

    Parameters
    ----------
    a, b : ndarray of one type
        float16, float32, or integers, which wrap. Arrays broadcast.

    Raises
    ------
    TypeError
        For arrays of two types, or of one that no vector has. So do all functions here.
    """
    return _apply(np.add, a, b)


def sub(a, b):
    """a − b."""
    return _apply(np.subtract, a, b)


def mul(a, b):
    """a · b."""
    return _apply(np.multiply, a, b)


def div(a, b):
    """a / b, floating point: x/0 is an infinity, 0/0 NaN."""
    a, b = np.asarray(a), np.asarray(b)
    check_floats(a, b)
    return _apply(np.divide, a, b)


def maximum(a, b):
    """The larger: IEEE 754-2019 maximumNumber. A NaN loses to a number; −0 < +0."""
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    both = (codes(a) & codes(b)).view(a.dtype)  # of equal numbers themselves; of ±0 +0
    return canonical(np.where(a == b, both, np.fmax(a, b)))


def minimum(a, b):
    """The smaller: IEEE 754-2019 minimumNumber. A NaN loses to a number; −0 < +0."""
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    either = (codes(a) | codes(b)).view(a.dtype)
    return canonical(np.where(a == b, either, np.fmin(a, b)))


def relu(a):
    """max(a, +0): NaN and −0 give +0."""
    a = np.asarray(a)
    return maximum(a, np.zeros((), a.dtype))


def leaky_relu(a, slope):
    """a where a is above 0, else a · slope, rounded once; NaN stays NaN."""
    a = np.asarray(a)
    slope = np.asarray(slope, a.dtype)
    check_floats(a)
    return np.where(a > 0, a, mul(a, slope))


def absolute(a):
    """|a|: the sign bit is cleared. Of integers the smallest number stays."""
    a = np.asarray(a)
    return _apply(np.abs, a)


def bitwise_and(a, b):
    """The bits of both, of any type."""
    return _bits(np.bitwise_and, a, b)


def bitwise_or(a, b):
    """The bits of either, of any type."""
    return _bits(np.bitwise_or, a, b)


def bitwise_not(a):
    """The other bits, of any type."""
    return _bits(np.bitwise_not, a)


def _bits(operation, *operands):
    arrays = [np.asarray(x) for x in operands]
    check_same(*arrays)
    return operation(*map(codes, arrays)).view(arrays[0].dtype)


def shift_left(a, amount: int):
    """Integers shifted left; bits that leave are lost, and from the width on the result is 0."""
    a = _integers(a)
    return a << a.dtype.type(amount) if amount < 8 * a.dtype.itemsize else np.zeros_like(a)


def shift_right(a, amount: int, *, nearest: bool = False):
    """Integers shifted right: signed ones keep their sign.

    Parameters
    ----------
    a : ndarray of int
    amount : int
    nearest : bool
        Round to nearest, ties up, instead of down.
    """
    a = _integers(a)
    width = 8 * a.dtype.itemsize
    exact = a.astype(np.int64) if width < 64 else a.astype(object)
    half = 1 << amount >> 1 if nearest else 0
    return ((exact + half) >> amount).astype(a.dtype)


def _integers(a) -> np.ndarray:
    a = np.asarray(a)
    check_same(a)
    if a.dtype.kind not in "iu":
        raise TypeError(f"shifted numbers must be integers, not {a.dtype}")
    return a


def multiply_add(a, b, c):
    """a · b + c, rounded once.

    Parameters
    ----------
    a, b : ndarray of float16 or float32, both of one type
    c : ndarray of the same type; or of float32 for a and b of float16
        The result has its type.
    """
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    check_floats(a, b)
    names = {np.dtype(np.float16): "fp16", np.dtype(np.float32): "fp32"}
    if c.dtype not in names or c.dtype.itemsize < a.dtype.itemsize:
        raise TypeError(f"c must be {a.dtype}, or float32 with float16, not {c.dtype}")
    bits = fma(codes(a), codes(b), codes(c), names[a.dtype], names[c.dtype])
    return np.asarray(bits).view(c.dtype)[()]
