"""Compiled loops of ``golden.cube.chopped``.

A product and its alignment are floating-point multiplications, which are exact here: the product of
two significands has at most 24 bits (53 with FP64 products), and a multiplication by a power of two
moves them. The conversion to an integer then truncates the magnitude, as the rule says. Everything
that is compiled must be in this file, because Numba's cache does not notice a change in another.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

__all__ = ["STRIP", "rows"]

STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two blocks of terms


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rows(
    a: np.ndarray,
    exp_a: np.ndarray,
    b: np.ndarray,
    exp_b: np.ndarray,
    d: np.ndarray,
    k: int,
    window: int,
    floor: int,
    emin: int,
    bits: int,
    nearest: bool,
    group: int,
    reach: int,
) -> None:
    """Add A·B to D in place, in blocks of ``k`` terms.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32 or float64
        Finite operands.
    exp_a, exp_b : (M, K), (K, N) ndarray of int16
        Exponents of the operands, not normalised; far below all exponents for zeros.
    d : (M, N) ndarray of float32
        C on input, D on output.
    k, window, floor : int
        Terms of a block, fraction bits below E_max, and the least E_max.
    emin, bits : int
        Least exponent and fraction bits of D.
    nearest : bool
        True for RNE with an overflow at 2^16 (FP16), False for RZ (FP32).
    group : int
        Terms whose truncated sum fits into 32 bits.
    reach : int
        Exponent of the largest scale of products. With FP32 products, E_max is so low that it would
        be exceeded only if all products are zero.
    """
    m, terms = a.shape
    n = b.shape[1]
    emax = np.empty(STRIP, np.int16)
    scale = np.empty(STRIP, a.dtype)
    part = np.empty(STRIP, np.int32)
    total = np.empty(STRIP, np.float64)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        lanes = end - start
        emax, scale, part, total = emax[:lanes], scale[:lanes], part[:lanes], total[:lanes]
        for top in range(0, m, _TILE):
            for first in range(0, terms, k):
                last = min(first + k, terms)
                for i in range(top, min(top + _TILE, m)):
                    # Whole rows with offsets are contiguous to the compiler, parts of a matrix
                    # are not, and only contiguous loops become vector instructions.
                    c = d[i, start:end]
                    _align(exp_a[i], exp_b, first, last, start, c, emax, floor, emin)
                    _begin(c, emax, window, reach, scale, total)
                    for begin in range(first, last, group):
                        _add(a[i], b, begin, min(begin + group, last), start, scale, part, total)
                    _finish(c, emax, total, window, emin, bits, nearest)


@numba.njit(error_model="numpy")
def _align(exp_a, exp_b, first, last, start, c, emax, floor, emin):
    """Find E_max of the products and C, and at least ``floor``."""
    lanes = len(c)
    for j in range(lanes):
        field = np.float32(c[j]).view(np.int32) >> 23 & 255
        exponent = max(field - 127, emin)
        emax[j] = np.int16(max(exponent if c[j] != 0 else floor, floor))
    k = first
    while k + 4 <= last:
        e0, e1, e2, e3 = exp_a[k], exp_a[k + 1], exp_a[k + 2], exp_a[k + 3]
        f0, f1, f2, f3 = exp_b[k], exp_b[k + 1], exp_b[k + 2], exp_b[k + 3]
        for j in range(lanes):
            at = start + j
            low = max(np.int16(e0 + f0[at]), np.int16(e1 + f1[at]))
            high = max(np.int16(e2 + f2[at]), np.int16(e3 + f3[at]))
            emax[j] = max(emax[j], max(low, high))
        k += 4
    while k < last:
        e0, f0 = exp_a[k], exp_b[k]
        for j in range(lanes):
            emax[j] = max(emax[j], np.int16(e0 + f0[start + j]))
        k += 1


@numba.njit(error_model="numpy")
def _power(exponent):
    """Return 2^exponent as a float64."""
    return np.int64(np.int64(exponent + 1023) << 52).view(np.float64)


@numba.njit(error_model="numpy")
def _begin(c, emax, window, reach, scale, total):
    """Begin the sums with the truncated C, and find the scales of the products."""
    for j in range(len(c)):
        places = np.int64(window) - np.int64(emax[j])
        scale[j] = _power(min(places, reach))
        total[j] = np.trunc(np.float64(c[j]) * _power(places))


@numba.njit(error_model="numpy")
def _add(a, b, first, last, start, scale, part, total):
    """Add the truncated products of a few terms."""
    lanes = len(total)
    for j in range(lanes):
        part[j] = 0
    k = first
    while k + 4 <= last:
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
        for j in range(lanes):
            at, s = start + j, scale[j]
            low = np.int32(a0 * b0[at] * s) + np.int32(a1 * b1[at] * s)
            high = np.int32(a2 * b2[at] * s) + np.int32(a3 * b3[at] * s)
            part[j] += np.int32(low + high)
        k += 4
    while k < last:
        a0, b0 = a[k], b[k]
        for j in range(lanes):
            part[j] += np.int32(a0 * b0[start + j] * scale[j])
        k += 1
    for j in range(lanes):
        total[j] += part[j]


@numba.njit(error_model="numpy")
def _finish(c, emax, total, window, emin, bits, nearest):
    """Round the sums to D; an infinity or NaN in C stays as it is."""
    for j in range(len(c)):
        value = total[j] * _power(np.int64(emax[j]) - window)
        exponent = (np.float64(value).view(np.int64) >> 52 & 2047) - 1023
        place = max(exponent, emin) - bits  # exponent of the last place
        if nearest:
            # 1.5 · 2^(place + 52) has the last place 2^place, so the addition rounds to it.
            large = 1.5 * _power(place + 52)
            value = (value + large) - large
            value = value if abs(value) < 65536.0 else np.copysign(np.inf, value)
        else:
            drop = np.int64(min(52 - exponent + place, 60))
            value = np.int64(np.float64(value).view(np.int64) >> drop << drop).view(np.float64)
        # Adding +0 makes −0 a +0.
        c[j] = np.float32(value) + np.float32(0) if abs(c[j]) < np.inf else c[j]
