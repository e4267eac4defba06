"""Correctly rounded square root, reciprocals, exponential and logarithm.

Every result is the exact value rounded once, to nearest with ties to even, so its error is at most
half an ulp over the whole range, including subnormal results. The value is computed in float64,
where the relative error is far below 2⁻⁴⁶ on every machine and with every library. If 1 − 2⁻⁴⁶ and
1 + 2⁻⁴⁶ times the value round to the same number, that number is the result. Otherwise (once in
millions) a computation with 60 decimal digits decides; no value of these functions is a tie.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.vector.formats import canonical, check_floats

_DOUBT = 2.0**-46  # bound on the relative error of float64 results
_DIGITS = 60


def sqrt(a: ArrayLike) -> np.ndarray:
    """Return √a; a NaN for a < 0, and −0 for −0.

    Parameters
    ----------
    a : array_like of float16 or float32

    Returns
    -------
    ndarray of the type of ``a``

    Raises
    ------
    TypeError
        If the type is neither float16 nor float32; so do all functions of this module.

    Examples
    --------
    >>> sqrt(np.float16([4, 2, -1])).tolist()
    [2.0, 1.4140625, nan]
    """
    a = _floats(a)
    with np.errstate(all="ignore"):
        return canonical(np.sqrt(a))


def rec(a: ArrayLike) -> np.ndarray:
    """Return 1/a; ±0 gives the infinity of the same sign, and an infinity gives a zero.

    Examples
    --------
    >>> rec(np.float16([4, 3, 0])).tolist()
    [0.25, 0.333251953125, inf]
    """
    a = _floats(a)
    with np.errstate(all="ignore"):
        return canonical(np.divide(a.dtype.type(1), a))


def rsqrt(a: ArrayLike) -> np.ndarray:
    """Return 1/√a; a NaN for a < 0, and the infinity of the same sign for ±0.

    Examples
    --------
    >>> rsqrt(np.float16([4, 2, 0])).tolist()
    [0.5, 0.70703125, inf]
    """
    return _rounded(a, lambda x: 1 / np.sqrt(x), lambda x: 1 / x.sqrt())


def exp(a: ArrayLike) -> np.ndarray:
    """Return eᵃ; 1 for ±0, and +0 for −∞.

    Examples
    --------
    >>> exp(np.float16([0, 1, -np.inf])).tolist()
    [1.0, 2.71875, 0.0]
    """
    return _rounded(a, np.exp, Decimal.exp)


def ln(a: ArrayLike) -> np.ndarray:
    """Return the natural logarithm; −∞ for ±0, a NaN for a < 0, and +0 for 1.

    Examples
    --------
    >>> ln(np.float16([1, 10, 0])).tolist()
    [0.0, 2.302734375, -inf]
    """
    return _rounded(a, np.log, Decimal.ln)


def _floats(a: ArrayLike) -> np.ndarray:
    a = np.asarray(a)
    check_floats(a)
    return a


def _rounded(
    a: ArrayLike, quick: Callable[[np.ndarray], np.ndarray], slow: Callable[[Decimal], Decimal]
) -> np.ndarray:
    """Round the float64 results of ``quick``; where that is in doubt, ``slow`` decides."""
    a = _floats(a)
    with np.errstate(all="ignore"):
        value = quick(a.astype(np.float64))
        result = value.astype(a.dtype)
        low, high = (value * (1 - _DOUBT)).astype(a.dtype), (value * (1 + _DOUBT)).astype(a.dtype)
        doubt = (low != high) & ~np.isnan(value)
        if doubt.any():
            result = np.array(result)
            for position in zip(*np.nonzero(np.atleast_1d(doubt)), strict=True):
                index = position if a.ndim else ()
                approximate = float(value[index])
                ends = sorted((low[index], high[index]))
                result[index] = _decide(float(a[index]), approximate, ends, slow)
    return canonical(result)[()]


def _decide(x: float, value: float, ends: list[Any], slow: Callable[[Decimal], Decimal]) -> Any:
    """Return the one of two neighbouring numbers that is nearest to the exact value."""
    low, high = ends
    with localcontext() as context:
        context.prec = _DIGITS
        exact = slow(Decimal(x))
        if exact == Decimal(value):
            return value  # exact in float64, so rounding it once gives the right result
        top = 2.0 ** np.finfo(low.dtype).maxexp
        middle = (Decimal(_end(low, top)) + Decimal(_end(high, top))) / 2
        return high if exact > middle else low


def _end(x: np.floating, top: float) -> float:
    """Return a neighbour as a finite number.

    In rounding, an infinity counts as ``top``, the power of two after the largest finite number.
    """
    return float(np.copysign(top, x)) if np.isinf(x) else float(x)
