"""Compiled loops of sums in which every step is rounded, and of short sums that are rounded once.

Rounded operations are those of the processor: a fused multiply-add of FP32 or FP64 numbers is the
rule of the machines itself. Everything that is compiled must be in this file, because Numba's cache
does not notice a change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two blocks of terms
_PARTS = 40  # numbers whose sum is any exact sum


@intrinsic
def _multiply_add(_, x, y, z):
    """Return x · y + z, rounded once."""

    def generate(*code):  # context, builder, signature, arguments
        return code[1].fma(*code[3])

    return x(x, y, z), generate


_fma: Any = _multiply_add  # its first parameter is for Numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chains(
    a: np.ndarray,
    b: np.ndarray,
    d: np.ndarray,
    k: int,
    many: int,
    descending: bool,
    with_c: bool,
    tiny: float,
) -> None:
    """Add A·B to D in place by chains of fused multiply-adds, in blocks of ``k`` terms.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32 or float64
    d : (M, N) ndarray of the same type
        C on input, D on output.
    k, many : int
        Terms of a block, and accumulators. One begins with C, several with +0.
    descending : bool
        If True, the terms of a block are added in descending k.
    with_c : bool
        If False, the sum of several accumulators, which no result is flushed in, replaces D.
    tiny : float
        Results below this number become zeros of their sign.
    """
    m, terms = a.shape
    n = b.shape[1]
    sums = np.empty((4, STRIP), a.dtype)
    least = a.dtype.type(tiny)
    none = a.dtype.type(0)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        for top in range(0, m, _TILE):
            for first in range(0, terms, k):
                last = min(first + k, terms)
                for i in range(top, min(top + _TILE, m)):
                    c = d[i, start:end]
                    if many == 1:
                        if descending:
                            _chain(c, a[i], b, last - 1, first - 1, -1, start, least)
                        else:
                            _chain(c, a[i], b, first, last, 1, start, least)
                        continue
                    x, y = sums[0, : end - start], sums[1, : end - start]
                    z, w = sums[2, : end - start], sums[3, : end - start]
                    sums[:] = 0
                    for lane in range(many):
                        # Several accumulators that replace D begin with the first term not taken.
                        here = lane if with_c else (lane - (last - first)) % many
                        _chain(
                            sums[here, : end - start],
                            a[i],
                            b,
                            first + lane,
                            last,
                            many,
                            start,
                            least,
                        )
                    between = least if with_c else none
                    _plus(x, y, between)
                    if many == 4:
                        _plus(z, w, between)
                        _plus(x, z, between)
                    if with_c:
                        _plus(c, x, least)
                    else:
                        c[:] = x


@numba.njit(error_model="numpy")
def _flushed(value, least):
    """Return a value, or a zero of its sign if its magnitude is below ``least``."""
    return np.copysign(least - least, value) if abs(value) < least else value


@numba.njit(error_model="numpy")
def _chain(sums, a, b, first, last, step, start, least):
    """Add the products of every ``step``-th term to the sums."""
    k = first
    count = (last - first + step - (1 if step > 0 else -1)) // step
    while count >= 4:
        a0, a1, a2, a3 = a[k], a[k + step], a[k + 2 * step], a[k + 3 * step]
        b0, b1, b2, b3 = b[k], b[k + step], b[k + 2 * step], b[k + 3 * step]
        for j in range(len(sums)):
            at = start + j
            value = _flushed(_fma(a0, b0[at], sums[j]), least)
            value = _flushed(_fma(a1, b1[at], value), least)
            value = _flushed(_fma(a2, b2[at], value), least)
            sums[j] = _flushed(_fma(a3, b3[at], value), least)
        k += 4 * step
        count -= 4
    while count > 0:
        a0, b0 = a[k], b[k]
        for j in range(len(sums)):
            sums[j] = _flushed(_fma(a0, b0[start + j], sums[j]), least)
        k += step
        count -= 1


@numba.njit(error_model="numpy")
def _plus(x, y, least):
    """Add y to x."""
    for j in range(len(x)):
        x[j] = _flushed(x[j] + y[j], least)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pairs(a: np.ndarray, b: np.ndarray, d: np.ndarray, k: int, tiny: float) -> None:
    """Add A·B to D in place: rounded products of two or four terms, added in pairs, then C.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32
    d : (M, N) ndarray of float32
        C on input, D on output.
    k : int
        Terms of a block, 2 or 4; K is a multiple.
    tiny : float
        Results below this number become zeros of their sign, and a C below it becomes +0.
    """
    n = b.shape[1]
    least = np.float32(tiny)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        for top in range(0, a.shape[0], _TILE):
            for first in range(0, a.shape[1], k):
                for i in range(top, min(top + _TILE, a.shape[0])):
                    c = d[i, start:end]
                    half = first + k // 2
                    a0, a1, a2, a3 = a[i, first], a[i, first + 1], a[i, half], a[i, first + k - 1]
                    b0, b1, b2, b3 = b[first], b[first + 1], b[half], b[first + k - 1]
                    for j in range(end - start):
                        at = start + j
                        low = _flushed(a0 * b0[at], least) + _flushed(a1 * b1[at], least)
                        low = _flushed(low, least)
                        if k == 4:
                            high = _flushed(a2 * b2[at], least) + _flushed(a3 * b3[at], least)
                            low = _flushed(low + _flushed(high, least), least)
                        before = np.float32(0) if abs(c[j]) < least else c[j]
                        c[j] = _flushed(before + low, least)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def exact_rows(a: np.ndarray, b: np.ndarray, d: np.ndarray, k: int, plus: bool) -> None:
    """Add A·B to D in place, in blocks of ``k`` terms whose exact sum with C is rounded once (RNE).

    A sum in FP64 is rounded after adding and after subtracting a bound of its error. Where the two
    differ, the sum is computed exactly.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float64
        Finite operands whose products are exact.
    d : (M, N) ndarray of float32
        C on input, D on output.
    k : int
        Terms of a block.
    plus : bool
        If True, a sum of zeros is +0 whatever their signs.
    """
    n = b.shape[1]
    total, size = np.empty(STRIP, np.float64), np.empty(STRIP, np.float64)
    unsure = np.empty(STRIP, np.int32)
    numbers = np.empty(_PARTS, np.float64)
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        lanes = end - start
        for top in range(0, a.shape[0], _TILE):
            for first in range(0, a.shape[1], k):
                last = min(first + k, a.shape[1])
                for i in range(top, min(top + _TILE, a.shape[0])):
                    c = d[i, start:end]
                    for j in range(lanes):
                        total[j] = c[j]
                        size[j] = abs(np.float64(c[j]))
                    for row in range(first, last):
                        a0, b0 = a[i, row], b[row]
                        for j in range(lanes):
                            product = a0 * b0[start + j]
                            total[j] += product
                            size[j] += abs(product)
                    differ = np.int32(0)
                    for j in range(lanes):
                        error = size[j] * ((k + 2) * 2.0**-52)
                        low, high = np.float32(total[j] - error), np.float32(total[j] + error)
                        bits = np.int32(low.view(np.int32) ^ high.view(np.int32))
                        unsure[j] = bits if abs(c[j]) < np.inf else np.int32(0)
                        differ |= unsure[j]
                    if differ != 0:
                        for j in range(lanes):
                            if unsure[j] != 0:
                                total[j] = _odd_sum(a[i], b, first, last, start + j, c[j], numbers)
                    for j in range(lanes):
                        value = total[j] + 0.0 if plus else total[j]
                        c[j] = np.float32(value) if abs(c[j]) < np.inf else c[j]


@numba.njit(error_model="numpy")
def _odd_sum(a, b, first, last, column, c, numbers):
    """Return C and the products exactly added and rounded once to FP64, to odd.

    The numbers are kept apart so that no two overlap; the errors of additions are numbers again
    (J. R. Shewchuk, 1997, section 2.4). A number rounded to odd is rounded again correctly.
    """
    numbers[0] = c
    count = 1
    for k in range(first, last):
        value = a[k] * b[k, column]
        kept = 0
        for p in range(count):
            other = numbers[p]
            total = value + other
            back = total - value
            error = (value - (total - back)) + (other - back)
            if error != 0:
                numbers[kept] = error
                kept += 1
            value = total
        numbers[kept] = value
        count = kept + 1
    value, rest = np.float64(numbers[count - 1]), 0.0
    for p in range(count - 2, -1, -1):
        total = value + numbers[p]
        rest = numbers[p] - (total - value)
        value = total
        if rest != 0:
            break
    if rest != 0 and np.float64(value).view(np.int64) & 1 == 0:
        # The exact sum lies between two neighbours, of which the other one is odd.
        away = (rest > 0) == (value > 0)
        bits = np.float64(value).view(np.int64) + np.int64(1 if away else -1)
        value = np.int64(bits).view(np.float64)
    return value
