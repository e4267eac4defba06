"""Compiled loops of ``golden.cube.chopped``.

A product and its alignment are floating-point multiplications, which are exact here: the product of
two significands has at most 24 bits (53 with FP64 products), and a multiplication by a power of two
moves them. The conversion to an integer then truncates the magnitude, as the rule says. Everything
that is compiled must be in this file, because Numba's cache does not notice a change in another.

``rows`` computes plain rules, ``aligned_rows`` that of CDNA 3, and ``grouped_rows`` that of exact
sums of 16 products with scales.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two blocks of terms
_NONE = -(1 << 14)  # the largest exponent of no terms
_GROUP = 16  # products of an exact sum
# CDNA 3: fraction bits of the products and of C, of their sum, and of the sum before rounding
_OWN, _COMMON, _TOTAL = 24, 32, 31


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
                        end_group = min(begin + group, last)
                        _add(a[i], b, begin, end_group, 1, start, scale, part, total)
                    _finish(c, emax, total, window, emin, bits, nearest)


@numba.njit(error_model="numpy")
def _align(exp_a, exp_b, first, last, start, c, emax, floor, emin):
    """Find E_max of the products and C, and at least ``floor``."""
    lanes = len(c)
    for j in range(lanes):
        field = np.float32(c[j]).view(np.int32) >> 23 & 255
        exponent = max(field - 127, emin)
        emax[j] = np.int16(max(exponent if c[j] != 0 else floor, floor))
    _largest(exp_a, exp_b, first, last, 1, start, emax)


@numba.njit(error_model="numpy")
def _largest(exp_a, exp_b, first, last, stride, start, emax):
    """Raise E_max to the exponents of the products with every ``stride``-th k."""
    lanes = len(emax)
    k = first
    while k + 3 * stride < last:
        p, q, r = k + stride, k + 2 * stride, k + 3 * stride
        e0, e1, e2, e3 = exp_a[k], exp_a[p], exp_a[q], exp_a[r]
        f0, f1, f2, f3 = exp_b[k], exp_b[p], exp_b[q], exp_b[r]
        for j in range(lanes):
            at = start + j
            low = max(np.int16(e0 + f0[at]), np.int16(e1 + f1[at]))
            high = max(np.int16(e2 + f2[at]), np.int16(e3 + f3[at]))
            emax[j] = max(emax[j], max(low, high))
        k += 4 * stride
    while k < last:
        e0, f0 = exp_a[k], exp_b[k]
        for j in range(lanes):
            emax[j] = max(emax[j], np.int16(e0 + f0[start + j]))
        k += stride


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
def _add(a, b, first, last, stride, start, scale, part, total):
    """Add the truncated products with every ``stride``-th k, whose sum fits into 32 bits."""
    lanes = len(total)
    for j in range(lanes):
        part[j] = 0
    k = first
    while k + 3 * stride < last:
        p, q, r = k + stride, k + 2 * stride, k + 3 * stride
        a0, a1, a2, a3 = a[k], a[p], a[q], a[r]
        b0, b1, b2, b3 = b[k], b[p], b[q], b[r]
        for j in range(lanes):
            at, s = start + j, scale[j]
            low = np.int32(a0 * b0[at] * s) + np.int32(a1 * b1[at] * s)
            high = np.int32(a2 * b2[at] * s) + np.int32(a3 * b3[at] * s)
            part[j] += np.int32(low + high)
        k += 4 * stride
    while k < last:
        a0, b0 = a[k], b[k]
        for j in range(lanes):
            part[j] += np.int32(a0 * b0[start + j] * scale[j])
        k += stride
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def aligned_rows(
    a: np.ndarray,
    exp_a: np.ndarray,
    b: np.ndarray,
    exp_b: np.ndarray,
    d: np.ndarray,
    huge: np.ndarray,
    k: int,
    lanes: int,
    emin: int,
    emax_out: int,
    reach: int,
) -> None:
    """Add A·B to D in place, in blocks of ``k`` terms, by the rule of CDNA 3.

    Parameters
    ----------
    a, exp_a, b, exp_b, d, k, emin, reach
        As for ``rows``.
    huge : (M, N) ndarray of bool
        Set to True where a product may be an infinity by itself, so that D is not valid.
    lanes : int
        2 if even and odd terms are summed apart, otherwise 1.
    emax_out : int
        Largest exponent of D.
    """
    m, terms = a.shape
    n = b.shape[1]
    # Exponents, scales and sums of the products, and of those of one of two lanes
    emax, own = np.empty(STRIP, np.int16), np.empty(STRIP, np.int16)
    scale = np.empty(STRIP, a.dtype)
    part = np.empty(STRIP, np.int32)
    total, sums = np.empty(STRIP, np.float64), np.empty(STRIP, np.float64)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        many = end - start
        emax, own, scale = emax[:many], own[:many], scale[:many]
        part, total, sums = part[:many], total[:many], sums[:many]
        for top in range(0, m, _TILE):
            for first in range(0, terms, k):
                last = min(first + k, terms)
                for i in range(top, min(top + _TILE, m)):
                    emax[:] = _NONE
                    _largest(exp_a[i], exp_b, first, last, 1, start, emax)
                    total[:] = 0
                    for lane in range(lanes):
                        own[:] = _NONE
                        begin = first + lane
                        _largest(exp_a[i], exp_b, begin, last, lanes, start, own)
                        for j in range(many):
                            scale[j] = _power(min(np.int64(_OWN) - np.int64(own[j]), reach))
                        sums[:] = 0
                        _add(a[i], b, begin, last, lanes, start, scale, part, sums)
                        for j in range(many):
                            places = max(np.int64(own[j]) - np.int64(emax[j]), -999)
                            total[j] += np.floor(sums[j] * _power(places))
                    _finish_aligned(d[i, start:end], emax, total, lanes, emin)
                    over = huge[i, start:end]
                    for j in range(many):
                        over[j] |= emax[j] >= emax_out


@numba.njit(error_model="numpy")
def _finish_aligned(c, emax, total, lanes, emin):
    """Floor the sums of the products and C, add them, floor the sum and round it to D."""
    for j in range(len(c)):
        field = np.float32(c[j]).view(np.int32) >> 23 & 255
        exponent = np.int64(max(field - 127, emin))
        own = np.int64(emax[j])
        common = max(own, exponent)
        value = np.floor(total[j] * _power(max(own - common + _COMMON - _OWN, -999)))
        addend = np.float64(c[j])
        addend = 0.0 if lanes > 1 and exponent < common - _OWN - 1 else addend
        value += np.floor(addend * _power(_OWN - common)) * (1 << (_COMMON - _OWN))
        # Adding +0 makes −0, a sum of zeros that were truncated to −0, a +0.
        value = (value + 0.0) * _power(common - _COMMON)
        leading = max((np.float64(value).view(np.int64) >> 52 & 2047) - 1023, emin)
        value = np.floor(value * _power(_TOTAL - leading)) * _power(leading - _TOTAL)
        c[j] = np.float32(value) if abs(c[j]) < np.inf else c[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def grouped_rows(
    a: np.ndarray,
    scale_a: np.ndarray,
    exp_a: np.ndarray,
    there_a: np.ndarray,
    b: np.ndarray,
    scale_b: np.ndarray,
    exp_b: np.ndarray,
    there_b: np.ndarray,
    d: np.ndarray,
    groups: int,
    window: int,
    floor: int,
    emin: int,
    bits: int,
    reach: int,
) -> None:
    """Add A·B to D in place; the terms are exact sums of 16 products, multiplied by two scales.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32
        Finite operands whose sums of 16 products are exact; K is a multiple of 16.
    scale_a, scale_b : (M, K / 16), (K / 16, N) ndarray of float64
        The scale of each 16 values.
    exp_a, exp_b : (M, K / 16), (K / 16, N) ndarray of int16
        Exponents of the scales, far below all others for zeros.
    there_a, there_b : (M, K / 16), (K / 16, N) ndarray of uint16
        One bit for each of 16 values, set if the value is not zero.
    groups : int
        Terms of a block.
    d, window, floor, emin, bits, reach
        As for ``rows``; D is rounded by RZ.
    """
    m = a.shape[0]
    n = b.shape[1]
    emax = np.empty(STRIP, np.int16)
    scale, total = np.empty(STRIP, np.float64), np.empty(STRIP, np.float64)
    sums = np.empty((groups, STRIP), np.float32)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        many = end - start
        emax, scale, total = emax[:many], scale[:many], total[:many]
        for top in range(0, m, _TILE):
            for first in range(0, exp_a.shape[1], groups):
                last = min(first + groups, exp_a.shape[1])
                for i in range(top, min(top + _TILE, m)):
                    c = d[i, start:end]
                    for j in range(many):
                        field = np.float32(c[j]).view(np.int32) >> 23 & 255
                        exponent = max(field - 127, emin)
                        emax[j] = np.int16(max(exponent if c[j] != 0 else floor, floor))
                    for g in range(first, last):
                        e0, f0, p0, q0 = exp_a[i, g], exp_b[g], there_a[i, g], there_b[g]
                        for j in range(many):
                            at = start + j
                            exponent = np.int16(e0 + f0[at])
                            exponent = exponent if p0 & q0[at] else np.int16(_NONE)
                            emax[j] = max(emax[j], exponent)
                        _exact_sum(a[i], b, _GROUP * g, start, sums[g - first, :many])
                    _begin(c, emax, window, reach, scale, total)
                    for g in range(first, last):
                        s0, t0, part = scale_a[i, g], scale_b[g], sums[g - first]
                        for j in range(many):
                            value = np.float64(part[j]) * (s0 * t0[start + j]) * scale[j]
                            total[j] += np.trunc(value)
                    _finish(c, emax, total, window, emin, bits, False)


@numba.njit(error_model="numpy")
def _exact_sum(a, b, first, start, sums):
    """Add 16 products, all of whose partial sums are exact."""
    for j in range(len(sums)):
        sums[j] = 0
    for k in range(first, first + _GROUP, 4):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
        for j in range(len(sums)):
            at = start + j
            sums[j] += (a0 * b0[at] + a1 * b1[at]) + (a2 * b2[at] + a3 * b3[at])
