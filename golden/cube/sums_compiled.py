"""Compiled fused sums with FP32 results: in float64 with an error bound, or in integers.

A fused sum of the ``ieee`` presets truncates its terms far below FP32's last place and then rounds
once. Products of two FP32 numbers are exact in float64, so a float64 sum equals the truncated sum
up to an error e with a known bound. If both ends of sum ± e round to the same FP32 number, every
number between them does, and that number is D. All other sums, which lie near the midpoint of two
FP32 numbers or cancel, are computed with integers (``_sum_exactly``). Everything that is compiled
must be in this file, because Numba's cache does not notice a change in another file.

The bound: let S be the sum of the magnitudes of C and of the K products, or a larger number, where
an operand that is subnormal in its format counts as the smallest normal number; so 2^E_max ≤ S.
The float64 sum is off by less than K·2⁻⁵²·S, and computing each end adds less than 2⁻⁵²·S. Each of
the K + 1 terms is truncated by less than 2^(E_max − F), and the sticky bit is at most what was cut
off. Together e = ((K + 2)·2⁻⁵² + (K + 1)·2⁻ᶠ)·S, increased by a thousandth for the rounding of e.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

#: Columns and rows of the part of B that is copied to a panel, which fits into the level-1 cache
STRIP, DEPTH = 256, 16

_TINY = 2.0**-126  # the smallest normal FP32 number
_NAN = np.float32(np.nan)
_INFINITY = np.inf


@numba.njit(cache=True, nogil=True, error_model="numpy")
def products(
    a: np.ndarray, b: np.ndarray, d: np.ndarray, k: int, window: int | None, emin: int
) -> None:
    """Add A·B to D in blocks of k terms.

    Parameters
    ----------
    a, b : (M, K), (K, N) contiguous ndarray of float32
    d : (M, N) ndarray of float32
        C on entry, D on return.
    k, window : int
        Terms of a block, and fraction bits below E_max, of an ``ieee`` spec. The sum of the window
        and the bit length of k is at most 54.
    emin : int
        Smallest exponent of a normal number in the operands' format.
    """
    least = 2.0**emin
    epsilon = _epsilon(k, window)
    depth = max(DEPTH // k, 1) * k
    panel = np.empty((depth, STRIP))
    total, new, uncertain = np.empty(STRIP), np.empty(STRIP, np.float32), np.empty(STRIP, np.int32)
    largest = np.empty(depth // k)
    x, y = np.empty(k, np.float32), np.empty(k, np.float32)
    for n in range(0, d.shape[1], STRIP):
        lanes = min(STRIP, d.shape[1] - n)
        for first in range(0, b.shape[0], depth):
            rows = min(depth, b.shape[0] - first)
            for row in range(rows):
                for j in range(lanes):
                    panel[row, j] = b[first + row, n + j]
            for block in range(0, rows, k):
                largest[block // k] = _largest(panel[block : min(block + k, rows), :lanes], least)
            for i in range(a.shape[0]):
                for block in range(0, rows, k):
                    end = min(block + k, rows)
                    # S is at most the number of terms times the largest |a| times the largest |b|.
                    bound = 0.0
                    for row in range(block, end):
                        bound = max(bound, _size(np.float64(a[i, first + row]), least))
                    bound *= (end - block) * largest[block // k]
                    row_d = d[i, n : n + lanes]
                    _add(a[i, first + block : first + end], panel[block:end], row_d, total)
                    if _round(row_d, total, bound, epsilon, new, uncertain):
                        for j in range(lanes):
                            if uncertain[j]:
                                for row in range(end - block):
                                    x[row] = a[i, first + block + row]
                                    y[row] = b[first + block + row, n + j]
                                new[j] = _sum_exactly(x, y, end - block, row_d[j], window, emin)
                    for j in range(lanes):
                        row_d[j] = new[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def squares(
    a: np.ndarray, b: np.ndarray, d: np.ndarray, k: int, window: int | None, emin: int
) -> None:
    """Add Σ (a·a − a·b − a·b + b·b) to D in blocks of k products; see ``golden.simd2.squares``.

    In float64, the square of the difference replaces the four products. Its error is below 2⁻⁵¹ of
    S = Σ (|a| + |b|)², which is less than the error saved by adding one number instead of four.
    The parameters are those of ``products``.
    """
    least, block_rows = 2.0**emin, k // 4
    epsilon = _epsilon(k, window)
    depth = max(DEPTH // block_rows, 1) * block_rows
    panel = np.empty((depth, STRIP))
    total, new, uncertain = np.empty(STRIP), np.empty(STRIP, np.float32), np.empty(STRIP, np.int32)
    largest = np.empty(depth // block_rows)
    x, y = np.empty(k, np.float32), np.empty(k, np.float32)
    for n in range(0, d.shape[1], STRIP):
        lanes = min(STRIP, d.shape[1] - n)
        for first in range(0, b.shape[0], depth):
            rows = min(depth, b.shape[0] - first)
            for row in range(rows):
                for j in range(lanes):
                    panel[row, j] = b[first + row, n + j]
            for block in range(0, rows, block_rows):
                end = min(block + block_rows, rows)
                largest[block // block_rows] = _largest(panel[block:end, :lanes], least)
            for i in range(a.shape[0]):
                for block in range(0, rows, block_rows):
                    end = min(block + block_rows, rows)
                    size = 0.0
                    for row in range(block, end):
                        size = max(size, _size(np.float64(a[i, first + row]), least))
                    size += largest[block // block_rows]
                    bound = (end - block) * size * size
                    row_d = d[i, n : n + lanes]
                    _add_differences(
                        a[i, first + block : first + end], panel[block:end], row_d, total
                    )
                    if _round(row_d, total, bound, epsilon, new, uncertain):
                        for j in range(lanes):
                            if uncertain[j]:
                                for row in range(end - block):
                                    p, w = a[i, first + block + row], b[first + block + row, n + j]
                                    _factors(
                                        p, w, x[4 * row : 4 * row + 4], y[4 * row : 4 * row + 4]
                                    )
                                terms = 4 * (end - block)
                                new[j] = _sum_exactly(x, y, terms, row_d[j], window, emin)
                    for j in range(lanes):
                        row_d[j] = new[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _factors(p, w, x, y):
    """Store the factors of the four products of (p − w)² in x and y; zeros if p equals w."""
    p, w = (np.float32(0), np.float32(0)) if p == w else (p, w)
    x[0], x[1], x[2], x[3] = p, -p, -p, w
    y[0], y[1], y[2], y[3] = p, w, w, w


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_differences(a, b, c, total):
    for j in range(c.shape[0]):
        total[j] = c[j]
    for k in range(a.shape[0]):
        p, w = np.float64(a[k]), b[k]
        for j in range(c.shape[0]):
            difference = p - w[j]
            total[j] += difference * difference


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _epsilon(k, window):
    """Return e / S, the relative error bound of the module's docstring."""
    return ((k + 2) * 2.0**-52 + (k + 1) * 2.0**-window) * (1 + 2.0**-10)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _size(x, least):
    """Return the magnitude of a finite operand, at least ``least``; 0 for a zero, ∞ or NaN."""
    size = abs(x)
    if not size < _INFINITY or size == 0:
        return 0.0
    return max(size, least)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(panel, least):
    largest = 0.0
    for row in range(panel.shape[0]):
        for j in range(panel.shape[1]):
            largest = max(largest, _size(panel[row, j], least))
    return largest


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add(a, b, c, total):
    """Add C and the products in float64.

    The products are exact, so the compiler may contract them to FMAs without changing a bit.
    """
    terms, lanes = a.shape[0], c.shape[0]
    for j in range(lanes):
        total[j] = c[j]
    whole = terms // 4 * 4
    for k in range(0, whole, 4):
        p, q, r, s = (
            np.float64(a[k]),
            np.float64(a[k + 1]),
            np.float64(a[k + 2]),
            np.float64(a[k + 3]),
        )
        w, x, y, z = b[k], b[k + 1], b[k + 2], b[k + 3]
        for j in range(lanes):
            total[j] = total[j] + p * w[j] + q * x[j] + r * y[j] + s * z[j]
    for k in range(whole, terms):
        p, w = np.float64(a[k]), b[k]
        for j in range(lanes):
            total[j] += p * w[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _round(c, total, bound, epsilon, new, uncertain):
    """Round sums to FP32 and mark those that are uncertain; return True if there is one.

    A mark in ``uncertain`` is the exclusive OR of the rounded ends of the interval.
    """
    any_uncertain = np.int32(0)
    for j in range(c.shape[0]):
        size = abs(np.float64(c[j]))
        size = _TINY if size < _TINY and size != 0 else size
        size = size if size < _INFINITY else 0.0
        error = epsilon * (bound + size)
        low, high = np.float32(total[j] - error), np.float32(total[j] + error)
        number = total[j] == total[j]
        new[j] = low if number else _NAN
        uncertain[j] = np.int32(low.view(np.int32) ^ high.view(np.int32)) if number else np.int32(0)
        any_uncertain |= uncertain[j]
    return any_uncertain != 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_exactly(x, y, terms, c, window, emin):
    """Return the D of one element with finite operands as ``golden.fp.dot`` defines it."""
    emax = np.int64(-(1 << 20))
    for k in range(terms):
        if x[k] != 0 and y[k] != 0:
            emax = max(emax, _exponent(x[k], emin) + _exponent(y[k], emin))
    if c != 0:
        emax = max(emax, _exponent(c, -126))
    if emax == -(1 << 20):  # only zeros, whose sum is −0 if all are −0, in float64 as well
        plain = np.float64(c)
        for k in range(terms):
            plain += np.float64(x[k]) * np.float64(y[k])
        return np.float32(plain)
    # In units of q = 2^(emax − window), the floor of a term is an integer below 2^(window + 2).
    scale = _power(window - emax)
    total, lost = np.int64(0), False
    for k in range(terms + 1):
        value = np.float64(c) if k == terms else np.float64(x[k]) * np.float64(y[k])
        value *= scale
        kept = np.floor(value)
        total += np.int64(kept)
        lost |= kept != value
    total = 2 * total + np.int64(lost)
    # Shorten the magnitude to 53 bits with a sticky bit; the conversion to FP32 then rounds once.
    magnitude, unit = abs(total), emax - window - 1
    while magnitude >= 1 << 53:
        magnitude = magnitude >> 1 | magnitude & 1
        unit += 1
    value = np.float64(magnitude) * _power(unit)
    return np.float32(-value if total < 0 else value)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _power(exponent):
    """Return 2^exponent, which must be a normal number of float64."""
    return np.int64((exponent + 1023) << 52).view(np.float64)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exponent(x, emin):
    return max(((np.int64(np.float32(x).view(np.int32)) >> 23) & 255) - 127, emin)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def norms(a: np.ndarray, b: np.ndarray, d: np.ndarray, k: int, window: int | None) -> None:
    """Add Σ (a − b)² to D in blocks of k terms, with each difference rounded to FP32.

    The parameters are those of ``products``.
    """
    epsilon = _epsilon(k, window)
    depth = max(DEPTH // k, 1) * k
    total, new, uncertain = np.empty(STRIP), np.empty(STRIP, np.float32), np.empty(STRIP, np.int32)
    x = np.empty(k, np.float32)
    for n in range(0, d.shape[1], STRIP):
        lanes = min(STRIP, d.shape[1] - n)
        for first in range(0, b.shape[0], depth):
            rows = min(depth, b.shape[0] - first)
            for i in range(a.shape[0]):
                for block in range(first, first + rows, k):
                    end = min(block + k, first + rows)
                    row_d = d[i, n : n + lanes]
                    _add_squares(a[i, block:end], b[block:end, n : n + lanes], total)
                    if _round_squares(row_d, total, epsilon, new, uncertain):
                        for j in range(lanes):
                            if uncertain[j]:
                                for row in range(end - block):
                                    x[row] = a[i, block + row] - b[block + row, n + j]
                                new[j] = _sum_exactly(x, x, end - block, row_d[j], window, -126)
                    for j in range(lanes):
                        row_d[j] = new[j]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_squares(a, b, total):
    """Add the squares of FP32 differences in float64.

    The squares are exact, so the compiler may contract them to FMAs without changing a bit.
    """
    terms, lanes = b.shape
    for j in range(lanes):
        total[j] = 0.0
    whole = terms // 4 * 4
    for k in range(0, whole, 4):
        p, q, r, s = a[k], a[k + 1], a[k + 2], a[k + 3]
        w, x, y, z = b[k], b[k + 1], b[k + 2], b[k + 3]
        for j in range(lanes):
            e, f = np.float64(np.float32(p - w[j])), np.float64(np.float32(q - x[j]))
            g, h = np.float64(np.float32(r - y[j])), np.float64(np.float32(s - z[j]))
            total[j] = total[j] + e * e + f * f + g * g + h * h
    for k in range(whole, terms):
        p, w = a[k], b[k]
        for j in range(lanes):
            e = np.float64(np.float32(p - w[j]))
            total[j] += e * e


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _round_squares(c, total, epsilon, new, uncertain):
    """Add C to sums of squares and round them as ``_round`` does; S is |C| plus this sum.

    A sum of squares below 10⁻⁷⁰ is always uncertain: the differences may be subnormal, and S far
    smaller than 2^E_max.
    """
    any_uncertain = np.int32(0)
    for j in range(c.shape[0]):
        squares = total[j]
        size = abs(np.float64(c[j]))
        size = _TINY if size < _TINY and size != 0 else size
        size = size if size < _INFINITY else 0.0
        size += squares if squares < _INFINITY else 0.0
        value, error = np.float64(c[j]) + squares, epsilon * size
        low, high = np.float32(value - error), np.float32(value + error)
        number = value == value
        new[j] = low if number else _NAN
        differ = np.int32(low.view(np.int32) ^ high.view(np.int32))
        small = squares < 1e-70 and squares != 0 and abs(value) < _INFINITY
        differ = np.int32(1) if small else differ
        uncertain[j] = differ if number else np.int32(0)
        any_uncertain |= uncertain[j]
    return any_uncertain != 0
