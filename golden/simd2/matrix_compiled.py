"""Compiled inner loops of ``mmo`` for ⊕ in {min, max}: rows of B, a strip of columns at a time.

Where neither NaNs nor the signs of zeros can matter, candidates are compared as floating-point
numbers, four rows of B in one pass (``quick``). Everywhere else they are compared as *ranks*: int32
in the order of the numbers, −0 before +0; inverted where the largest is wanted, so that the
smallest rank always wins, and a NaN has the last rank of all (``ranked``, ``ranked_extrema``).
All that is compiled is in this file: Numba's cache looks at the time stamp of no other.
"""

import numba
import numpy as np

__all__ = ["STRIP", "TURN", "WORST", "quick", "ranked", "ranked_extrema"]

#: Columns in a strip: a row of it stays in the first-level cache, ``_DEPTH`` rows of B in the second.
STRIP = 1024
_DEPTH = 16

_LOW_BITS = np.int32(0x7FFFFFFF)
_LAST = np.int32(0x7FFFFFFF)
_FIRST = np.int32(-0x80000000)
_SHIFT = np.int32(31)

#: What turns ranks, modulo 2³², and the last of them that is not a NaN.
TURN, WORST = np.int32(-0x7FFFFF), np.int32(0x7F000001)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quick(a, b, d, multiply, sign):
    """The smallest of float32 candidates sign·a·b or sign·(a+b); sign is ±1.

    d (M, N) float32 is what they are compared with, in place. To find the largest, it has the
    other sign, too.
    """
    for n in range(0, d.shape[1], STRIP):
        stop = min(n + STRIP, d.shape[1])
        for k in range(0, b.shape[0], _DEPTH):
            end = min(k + _DEPTH, b.shape[0])
            if multiply:
                _products(a, b, d, sign, k, end, n, stop)
            else:
                _sums(a, b, d, sign, k, end, n, stop)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sums(a, b, d, sign, begin, end, n, stop):
    whole = begin + (end - begin) // 4 * 4
    for i in range(a.shape[0]):
        row = d[i, n:stop]
        for k in range(begin, whole, 4):
            p, q, r, s = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            w, x, y, z = b[k, n:stop], b[k + 1, n:stop], b[k + 2, n:stop], b[k + 3, n:stop]
            for j in range(row.shape[0]):
                best = row[j]
                term = sign * (p + w[j])
                best = term if term < best else best
                term = sign * (q + x[j])
                best = term if term < best else best
                term = sign * (r + y[j])
                best = term if term < best else best
                term = sign * (s + z[j])
                best = term if term < best else best
                row[j] = best
        for k in range(whole, end):
            p, w = a[i, k], b[k, n:stop]
            for j in range(row.shape[0]):
                term = sign * (p + w[j])
                row[j] = term if term < row[j] else row[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _products(a, b, d, sign, begin, end, n, stop):
    whole = begin + (end - begin) // 4 * 4
    for i in range(a.shape[0]):
        row, left = d[i, n:stop], sign * a[i]
        for k in range(begin, whole, 4):
            p, q, r, s = left[k], left[k + 1], left[k + 2], left[k + 3]
            w, x, y, z = b[k, n:stop], b[k + 1, n:stop], b[k + 2, n:stop], b[k + 3, n:stop]
            for j in range(row.shape[0]):
                best = row[j]
                term = p * w[j]
                best = term if term < best else best
                term = q * x[j]
                best = term if term < best else best
                term = r * y[j]
                best = term if term < best else best
                term = s * z[j]
                best = term if term < best else best
                row[j] = best
        for k in range(whole, end):
            p, w = left[k], b[k, n:stop]
            for j in range(row.shape[0]):
                term = p * w[j]
                row[j] = term if term < row[j] else row[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def ranked(a, b, d, multiply, flip):
    """As ``quick``, with turned ranks in d (int32); flip is −1 where the largest is wanted, else 0.

    A rank is turned by adding ``TURN``: the best infinity becomes the first int32, and NaNs of both
    signs, which have ranks at both ends, come together behind the other infinity, ``WORST``.
    """
    for n in range(0, d.shape[1], STRIP):
        stop = min(n + STRIP, d.shape[1])
        for k in range(0, b.shape[0], _DEPTH):
            end = min(k + _DEPTH, b.shape[0])
            if multiply:
                _ranked_products(a, b, d, flip, k, end, n, stop)
            else:
                _ranked_sums(a, b, d, flip, k, end, n, stop)


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _rank(term, flip):
    # Numba widens every result to 64 bits
    code = np.float32(term).view(np.int32)
    low = np.int32(np.int32(code >> _SHIFT) & _LOW_BITS)
    return np.int32(np.int32(np.int32(code ^ low) ^ flip) + TURN)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ranked_sums(a, b, d, flip, begin, end, n, stop):
    whole = begin + (end - begin) // 4 * 4
    for i in range(a.shape[0]):
        row = d[i, n:stop]
        for k in range(begin, whole, 4):
            p, q, r, s = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            w, x, y, z = b[k, n:stop], b[k + 1, n:stop], b[k + 2, n:stop], b[k + 3, n:stop]
            for j in range(row.shape[0]):
                best = min(row[j], _rank(p + w[j], flip))
                best = min(best, _rank(q + x[j], flip))
                best = min(best, _rank(r + y[j], flip))
                row[j] = min(best, _rank(s + z[j], flip))
        for k in range(whole, end):
            p, w = a[i, k], b[k, n:stop]
            for j in range(row.shape[0]):
                row[j] = min(row[j], _rank(p + w[j], flip))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ranked_products(a, b, d, flip, begin, end, n, stop):
    whole = begin + (end - begin) // 4 * 4
    for i in range(a.shape[0]):
        row = d[i, n:stop]
        for k in range(begin, whole, 4):
            p, q, r, s = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            w, x, y, z = b[k, n:stop], b[k + 1, n:stop], b[k + 2, n:stop], b[k + 3, n:stop]
            for j in range(row.shape[0]):
                best = min(row[j], _rank(p * w[j], flip))
                best = min(best, _rank(q * x[j], flip))
                best = min(best, _rank(r * y[j], flip))
                row[j] = min(best, _rank(s * z[j], flip))
        for k in range(whole, end):
            p, w = a[i, k], b[k, n:stop]
            for j in range(row.shape[0]):
                row[j] = min(row[j], _rank(p * w[j], flip))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def ranked_extrema(a, b, d):
    """The smallest of the larger ranks: minmax on ranks, maxmin on inverted ones.

    a, b, d : int32 ranks. A NaN is the first rank of all in a and b, the last one in d.
    """
    for n in range(0, d.shape[1], STRIP):
        stop = min(n + STRIP, d.shape[1])
        for k in range(0, b.shape[0], _DEPTH):
            _ranked_extrema(a, b, d, k, min(k + _DEPTH, b.shape[0]), n, stop)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ranked_extrema(a, b, d, begin, end, n, stop):
    whole = begin + (end - begin) // 4 * 4
    for i in range(a.shape[0]):
        row = d[i, n:stop]
        for k in range(begin, whole, 4):
            p, q, r, s = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            w, x, y, z = b[k, n:stop], b[k + 1, n:stop], b[k + 2, n:stop], b[k + 3, n:stop]
            for j in range(row.shape[0]):
                rank = max(p, w[j])
                best = min(row[j], _LAST if rank == _FIRST else rank)
                rank = max(q, x[j])
                best = min(best, _LAST if rank == _FIRST else rank)
                rank = max(r, y[j])
                best = min(best, _LAST if rank == _FIRST else rank)
                rank = max(s, z[j])
                row[j] = min(best, _LAST if rank == _FIRST else rank)
        for k in range(whole, end):
            p, w = a[i, k], b[k, n:stop]
            for j in range(row.shape[0]):
                rank = max(p, w[j])
                row[j] = min(row[j], _LAST if rank == _FIRST else rank)
