"""Square root, reciprocals, exponential and logarithm, correctly rounded.

All of them are the exact value rounded once, to nearest, ties to even: at most half an ulp off,
over the whole range, subnormal results included. How: the value is worked out in float64, which is
off by much less than 2⁻⁴⁶ of it whatever machine and library. Where rounding 1 ± 2⁻⁴⁶ times the
value gives one and the same number, that is the result. Where it does not (once in millions) 60
decimal digits decide; no value of these functions is a tie.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np

from vitruvian.golden.vector.formats import canonical, check_floats

__all__ = ["exp", "ln", "rec", "rsqrt", "sqrt"]

_DOUBT = 2.0**-46
_DIGITS = 60


def sqrt(a):
    """√a; NaN below zero, and √−0 is −0.

    Parameters
    ----------
    a : ndarray of float16 or float32

    Raises
    ------
    TypeError
        For another type. So do all functions here.
    """
    a = _floats(a)
    with np.errstate(all="ignore"):
        return canonical(np.sqrt(a))


def rec(a):
    """1/a; ±0 gives an infinity of the same sign, and an infinity a zero."""
    a = _floats(a)
    with np.errstate(all="ignore"):
        return canonical(np.divide(a.dtype.type(1), a))


def rsqrt(a):
    """1/√a; NaN below zero; ±0 gives an infinity of the same sign."""
    return _rounded(a, lambda x: 1 / np.sqrt(x), lambda x: 1 / x.sqrt())


def exp(a):
    """eᵃ; 1 for ±0, +0 for −∞."""
    return _rounded(a, np.exp, Decimal.exp)


def ln(a):
    """Natural logarithm: −∞ for ±0, NaN below, +0 for 1."""
    return _rounded(a, np.log, Decimal.ln)


def _floats(a) -> np.ndarray:
    a = np.asarray(a)
    check_floats(a)
    return a


def _rounded(a, quick: Callable, slow: Callable[[Decimal], Decimal]):
    """``quick`` in float64, rounded; decided by ``slow`` where that is in doubt."""
    a = _floats(a)
    with np.errstate(all="ignore"):
        value = quick(a.astype(np.float64))
        result = value.astype(a.dtype)
        low, high = (value * (1 - _DOUBT)).astype(a.dtype), (value * (1 + _DOUBT)).astype(a.dtype)
        doubt = (low != high) & ~np.isnan(value)
        if doubt.any():
            result = np.array(result)
            for at in zip(*np.nonzero(np.atleast_1d(doubt)), strict=True):
                where = at if a.ndim else ()
                exact = float(value[where])
                ends = sorted((low[where], high[where]))
                result[where] = _decide(float(a[where]), exact, ends, slow)
    return canonical(result)[()]


def _decide(x: float, value: float, ends: list, slow: Callable[[Decimal], Decimal]):
    """Which of two neighbours is nearest to the exact value."""
    low, high = ends
    with localcontext() as context:
        context.prec = _DIGITS
        exact = slow(Decimal(x))
        if exact == Decimal(value):
            return value  # float64 holds it, and rounding it is right
        top = 2.0 ** np.finfo(low.dtype).maxexp
        middle = (Decimal(_end(low, top)) + Decimal(_end(high, top))) / 2
        return high if exact > middle else low


def _end(x, top: float) -> float:
    """A neighbour as a number: infinity stands for the power of two that overflow begins at."""
    return float(np.copysign(top, x)) if np.isinf(x) else float(x)
