"""Elementwise addition, subtraction, multiplication, division, minimum, maximum and bit operations.

FP16 and FP32 follow IEEE 754: results are rounded to nearest, ties to even, subnormals are kept,
and an overflow gives an infinity. NumPy computes FP16 in FP32 and rounds again, which gives the
same bits for these operations because 24 ≥ 2·11 + 2 (S. A. Figueroa, "When is double rounding
innocuous?", 1995). Every NaN result is the canonical NaN. Integers wrap.

Arrays broadcast. All functions raise TypeError if the arrays have different types, or a type that
vectors do not have or the function does not support.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp import fma
from vitruvian.golden.vector.formats import canonical, check_floats, check_same, codes


def _apply(operation: Callable[..., np.ndarray], *operands: ArrayLike) -> np.ndarray:
    arrays = [np.asarray(x) for x in operands]
    check_same(*arrays)
    with np.errstate(all="ignore"):
        result = operation(*arrays)
    return canonical(result) if result.dtype.kind == "f" else result


def add(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return a + b.

    Parameters
    ----------
    a, b : array_like of one type
        float16, float32, or integers, which wrap.

    Returns
    -------
    ndarray of that type

    Raises
    ------
    TypeError
        If the types differ or are not types of vector elements.

    Examples
    --------
    >>> add(np.float16([2048]), np.float16([1])).tolist()
    [2048.0]
    """
    return _apply(np.add, a, b)


def sub(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return a − b.

    Examples
    --------
    >>> sub(np.int16([-32768]), np.int16([1])).tolist()
    [32767]
    """
    return _apply(np.subtract, a, b)


def mul(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return a · b.

    Examples
    --------
    >>> mul(np.float16([300]), np.float16([300])).tolist()
    [inf]
    """
    return _apply(np.multiply, a, b)


def div(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the floating-point quotient a / b; x/0 is an infinity and 0/0 a NaN.

    Examples
    --------
    >>> div(np.float16([1, 1]), np.float16([3, 0])).tolist()
    [0.333251953125, inf]
    """
    a, b = np.asarray(a), np.asarray(b)
    check_floats(a, b)
    return _apply(np.divide, a, b)


def maximum(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the larger number (IEEE 754-2019 maximumNumber).

    A number is preferred to a NaN, and −0 < +0.

    Examples
    --------
    >>> maximum(np.float16([1, np.nan]), np.float16([2, 3])).tolist()
    [2.0, 3.0]
    """
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    # If a == b, either the codes are equal, or they are +0 and −0, and the AND of the codes is +0.
    both = (codes(a) & codes(b)).view(a.dtype)

    def larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Not np.fmax, which returns a NaN if an operand is a signaling NaN.
        return np.where(a == b, both, np.where(np.isnan(a) | (b > a), b, a))

    return _apply(larger, a, b)


def minimum(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the smaller number (IEEE 754-2019 minimumNumber).

    A number is preferred to a NaN, and −0 < +0.

    Examples
    --------
    >>> minimum(np.float16([1, np.nan]), np.float16([2, 3])).tolist()
    [1.0, 3.0]
    """
    a, b = np.asarray(a), np.asarray(b)
    check_same(a, b)
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    # The OR of the codes of +0 and −0 is −0.
    either = (codes(a) | codes(b)).view(a.dtype)

    def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(a == b, either, np.where(np.isnan(a) | (b < a), b, a))

    return _apply(smaller, a, b)


def relu(a: ArrayLike) -> np.ndarray:
    """Return max(a, +0); NaN and −0 give +0.

    Examples
    --------
    >>> relu(np.float16([-1, 2])).tolist()
    [0.0, 2.0]
    """
    a = np.asarray(a)
    return maximum(a, np.zeros((), a.dtype))


def leaky_relu(a: ArrayLike, slope: ArrayLike) -> np.ndarray:
    """Return a for a > 0, else a · slope, rounded once; a NaN gives a NaN.

    Examples
    --------
    >>> leaky_relu(np.float16([-1, 2]), np.float16(0.25)).tolist()
    [-0.25, 2.0]
    """
    a = np.asarray(a)
    slope = np.asarray(slope, a.dtype)
    check_floats(a)
    return np.where(a > 0, a, mul(a, slope))


def absolute(a: ArrayLike) -> np.ndarray:
    """Return |a|; for floating point the sign bit is cleared, the smallest integer is unchanged.

    Examples
    --------
    >>> absolute(np.float16([-1.5, 2])).tolist()
    [1.5, 2.0]
    """
    a = np.asarray(a)
    return _apply(np.abs, a)


def bitwise_and(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the bitwise AND of the codes of a and b, of any type.

    Examples
    --------
    >>> bitwise_and(np.uint16([0x0FF0]), np.uint16([0x00FF])).tolist()
    [240]
    """
    return _bits(np.bitwise_and, a, b)


def bitwise_or(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Return the bitwise OR of the codes of a and b, of any type.

    Examples
    --------
    >>> bitwise_or(np.uint16([0x0F00]), np.uint16([0x00FF])).tolist()
    [4095]
    """
    return _bits(np.bitwise_or, a, b)


def bitwise_not(a: ArrayLike) -> np.ndarray:
    """Return the bitwise complement of the codes of a, of any type.

    Examples
    --------
    >>> bitwise_not(np.uint16([1])).tolist()
    [65534]
    """
    return _bits(np.bitwise_not, a)


def _bits(operation: Callable[..., np.ndarray], *operands: ArrayLike) -> np.ndarray:
    arrays = [np.asarray(x) for x in operands]
    check_same(*arrays)
    return operation(*map(codes, arrays)).view(arrays[0].dtype)


def shift_left(a: ArrayLike, amount: int) -> np.ndarray:
    """Shift integers left; bits shifted out are lost.

    Parameters
    ----------
    a : array_like of int
    amount : int
        At least 0. If it is the width of an element or more, the result is 0.

    Examples
    --------
    >>> shift_left(np.int16([3]), 2).tolist()
    [12]
    """
    a = _integers(a)
    return a << a.dtype.type(amount) if amount < 8 * a.dtype.itemsize else np.zeros_like(a)


def shift_right(a: ArrayLike, amount: int, *, nearest: bool = False) -> np.ndarray:
    """Shift integers right; signed integers are sign-extended.

    Parameters
    ----------
    a : array_like of int
    amount : int
        At least 0.
    nearest : bool
        If True, round to nearest with ties up; if False, round down.

    Examples
    --------
    >>> shift_right(np.int16([-5, 5]), 1).tolist()
    [-3, 2]
    >>> shift_right(np.int16([-5, 5]), 1, nearest=True).tolist()
    [-2, 3]
    """
    a = _integers(a)
    width = 8 * a.dtype.itemsize
    # In the type of the elements, adding the half could overflow.
    exact = a.astype(np.int64) if width < 64 else a.astype(object)
    half = 1 << amount >> 1 if nearest else 0
    return ((exact + half) >> amount).astype(a.dtype)


def _integers(a: ArrayLike) -> np.ndarray:
    a = np.asarray(a)
    check_same(a)
    if a.dtype.kind not in "iu":
        raise TypeError(f"shifted numbers must be integers, not {a.dtype}")
    return a


def multiply_add(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> np.ndarray:
    """Return a · b + c, rounded once.

    Parameters
    ----------
    a, b : array_like of float16 or float32, both of one type
    c : array_like of the same type, or of float32 if a and b are float16

    Returns
    -------
    ndarray of the type of c

    Raises
    ------
    TypeError
        If a type is not one of these.

    Examples
    --------
    >>> multiply_add(np.float16([0.1]), np.float16([10]), np.float16([-1])).tolist()
    [-0.000244140625]
    """
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    check_floats(a, b)
    names = {np.dtype(np.float16): "fp16", np.dtype(np.float32): "fp32"}
    if c.dtype not in names or c.dtype.itemsize < a.dtype.itemsize:
        raise TypeError(f"c must be {a.dtype}, or float32 with float16, not {c.dtype}")
    if c.dtype == np.float16:
        return _half_multiply_add(a, b, c)
    bits = fma(codes(a), codes(b), codes(c), names[a.dtype], names[c.dtype])
    return np.asarray(bits).view(c.dtype)[()]


def _half_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return a · b + c of FP16 numbers, rounded once, by way of FP64.

    A product has 22 bits and is exact. A sum is inexact in FP64 only if more than 53 bits lie
    between its first and last one. As c ≥ 2⁻²⁴, a product that is much larger than c then overflows
    FP16 anyway; and if c is the larger one, the product is below 2⁻³¹ · c, so that both the exact
    sum and that of FP64 are rounded to c.
    """
    with np.errstate(all="ignore"):
        total = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return canonical(np.asarray(total).astype(np.float16))[()]
