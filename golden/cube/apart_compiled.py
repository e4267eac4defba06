"""Compiled loops of rules that add products first and C afterwards.

Products, truncated terms and their sums are exact in FP64. A sum of two numbers that FP64 cannot
hold is rounded to odd, so that rounding it again gives what one rounding gives (S. Boldo and
G. Melquiond, 2008). Everything that is compiled must be in this file, because Numba's cache does
not notice a change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two blocks of terms
_LEAST = -600  # E_max of products that are all zero, below that of any others
_EMIN, _BITS = -126, 23  # least exponent and fraction bits of FP32


@numba.njit(cache=True, nogil=True, error_model="numpy")
def apart_rows(
    a: np.ndarray,
    exp_a: np.ndarray,
    b: np.ndarray,
    exp_b: np.ndarray,
    d: np.ndarray,
    k: int,
    window: int,
    leading: bool,
    odd: bool,
    tiny: float,
) -> None:
    """Add A·B to D in place, in blocks of ``k`` terms whose truncated sum does not include C.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float64
        Finite operands whose products are exact.
    exp_a, exp_b : (M, K), (K, N) ndarray of int16
        Exponents of the operands, not normalised; far below all exponents for zeros.
    d : (M, N) ndarray of float32
        C on input, D on output.
    k, window : int
        Terms of a block, and fraction bits below E_max.
    leading : bool
        If True, E_max is the exponent of the largest product, otherwise the largest sum of two
        exponents.
    odd : bool
        If True, the terms, their sum and its sum with C are all rounded to odd. Otherwise, the
        terms are truncated, and the exact sum with C is rounded once (RNE).
    tiny : float
        Results below this number become zeros of their sign.
    """
    m, terms = a.shape
    n = b.shape[1]
    emax = np.empty(STRIP, np.int16)
    scale, total = np.empty(STRIP, np.float64), np.empty(STRIP, np.float64)
    least = np.float32(tiny)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        lanes = end - start
        emax, scale, total = emax[:lanes], scale[:lanes], total[:lanes]
        for top in range(0, m, _TILE):
            for first in range(0, terms, k):
                last = min(first + k, terms)
                for i in range(top, min(top + _TILE, m)):
                    emax[:] = _LEAST
                    if leading:
                        _largest_product(a[i], b, first, last, start, total, emax)
                    else:
                        _largest_sum(exp_a[i], exp_b, first, last, start, emax)
                    for j in range(lanes):
                        scale[j] = _power(np.int64(window) - np.int64(emax[j]))
                    if odd:
                        _add_odd(a[i], b, first, last, start, scale, total)
                    else:
                        _add_truncated(a[i], b, first, last, start, scale, total)
                    c = d[i, start:end]
                    for j in range(lanes):
                        value = total[j] * _power(np.int64(emax[j]) - np.int64(window))
                        value = np.float64(_rounded(value, True, least)) if odd else value
                        c[j] = _rounded(_odd_sum(value, np.float64(c[j])), odd, least)


@numba.njit(error_model="numpy")
def _power(exponent):
    """Return 2^exponent as a float64."""
    return np.int64(np.int64(exponent + 1023) << 52).view(np.float64)


@numba.njit(error_model="numpy")
def _largest_product(a, b, first, last, start, size, emax):
    """Raise E_max to the exponent of the largest product; ``size`` is a working array."""
    size[:] = 0
    for k in range(first, last):
        a0, b0 = a[k], b[k]
        for j in range(len(emax)):
            size[j] = max(size[j], abs(a0 * b0[start + j]))
    for j in range(len(emax)):
        exponent = (np.float64(size[j]).view(np.int64) >> 52) - 1023
        emax[j] = np.int16(max(exponent, _LEAST))


@numba.njit(error_model="numpy")
def _largest_sum(exp_a, exp_b, first, last, start, emax):
    """Raise E_max to the exponents of the products."""
    for k in range(first, last):
        e0, f0 = exp_a[k], exp_b[k]
        for j in range(len(emax)):
            emax[j] = max(emax[j], np.int16(e0 + f0[start + j]))


@numba.njit(error_model="numpy")
def _add_truncated(a, b, first, last, start, scale, total):
    """Set the sums to those of the truncated products, with −0 if all products are −0."""
    total[:] = -0.0
    k = first
    while k + 1 < last:
        a0, a1, b0, b1 = a[k], a[k + 1], b[k], b[k + 1]
        for j in range(len(total)):
            at, s = start + j, scale[j]
            total[j] += np.trunc(a0 * b0[at] * s) + np.trunc(a1 * b1[at] * s)
        k += 2
    if k < last:
        a0, b0 = a[k], b[k]
        for j in range(len(total)):
            total[j] += np.trunc(a0 * b0[start + j] * scale[j])


@numba.njit(error_model="numpy")
def _add_odd(a, b, first, last, start, scale, total):
    """Set the sums to those of the products rounded to odd, with +0 if all of them are zero."""
    total[:] = 0.0
    for k in range(first, last):
        a0, b0 = a[k], b[k]
        for j in range(len(total)):
            total[j] += _to_odd(a0 * b0[start + j] * scale[j])


@numba.njit(error_model="numpy")
def _to_odd(value):
    """Return an integer, or the odd one of the two next to a number below 2^31."""
    low = np.floor(value)
    return np.float64(np.int32(low) | np.int32(low != value))


@numba.njit(error_model="numpy")
def _odd_sum(x, y):
    """Return x + y rounded to odd; infinities and NaNs are those of the addition."""
    total = x + y
    back = total - x
    error = (x - (total - back)) + (y - back)  # exact (Knuth's TwoSum), NaN for an infinity
    bits = np.float64(total).view(np.int64)
    away = (error > 0) == (total > 0)
    changed = np.int64(bits + np.int64(1 if away else -1))
    # The sum lies between two neighbours, of which the other one is odd.
    bits = changed if abs(error) > 0 and bits & 1 == 0 else bits
    return np.int64(bits).view(np.float64)


@numba.njit(error_model="numpy")
def _rounded(value, odd, least):
    """Return the FP32 number of a value by RTO or RNE, or a zero of its sign below ``least``."""
    kept = value
    if odd:
        exponent = (np.float64(value).view(np.int64) >> 52 & 2047) - 1023
        place = max(exponent, _EMIN) - _BITS  # exponent of the last place
        kept = _to_odd(value * _power(-place)) * _power(place)
        kept = np.copysign(kept, value) if abs(value) < np.inf else value
    result = np.float32(kept)
    return np.copysign(np.float32(0), result) if abs(result) < least else result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def two_rows(a: np.ndarray, b: np.ndarray, d: np.ndarray, odd: bool, tiny: float) -> None:
    """Add A·B to D in place, two terms at a time: their sum is rounded to FP32, then C is added.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float64
        Operands whose products are exact, perhaps infinities and NaNs; K is even.
    d : (M, N) ndarray of float32
        C on input, D on output.
    odd : bool
        If True, the products and both sums are rounded to odd. Otherwise the products are exact,
        and both sums are rounded by RNE.
    tiny : float
        Rounded numbers below this one become zeros of their sign.
    """
    n = b.shape[1]
    least = np.float32(tiny)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        for top in range(0, a.shape[0], _TILE):
            for k in range(0, a.shape[1], 2):
                b0, b1 = b[k], b[k + 1]
                for i in range(top, min(top + _TILE, a.shape[0])):
                    a0, a1, c = a[i, k], a[i, k + 1], d[i, start:end]
                    for j in range(end - start):
                        x, y = a0 * b0[start + j], a1 * b1[start + j]
                        if odd:
                            x = np.float64(_rounded(x, True, least))
                            y = np.float64(_rounded(y, True, least))
                        both = np.float64(_rounded(_odd_sum(x, y), odd, least))
                        c[j] = _rounded(_odd_sum(both, np.float64(c[j])), odd, least)
