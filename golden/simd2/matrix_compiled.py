"""Compiled inner loops of ``mmo`` for ⊕ in {min, max}, on one strip of columns after another.

If neither NaNs nor the signs of zeros can matter, candidates are compared as floating-point
numbers, with four rows of B in one pass (``quick``). Otherwise they are compared as *ranks*: int32
in the order of the numbers, with −0 before +0. For max the ranks are inverted, so that the smallest
rank always wins. A NaN has the last rank of all (``ranked``, ``ranked_extrema``).
Everything that is compiled must be in this file, because Numba's cache does not notice a change in
another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

#: Columns in a strip: one row of it fits into the level-1 cache, ``_DEPTH`` rows into level 2.
STRIP = 1024
_DEPTH = 16

_LOW_BITS = np.int32(0x7FFFFFFF)
_LAST = np.int32(0x7FFFFFFF)
_FIRST = np.int32(-0x80000000)
_SHIFT = np.int32(31)

#: Offset that ``ranked`` adds to ranks modulo 2³², and the last rotated rank that is not a NaN
TURN, WORST = np.int32(-0x7FFFFF), np.int32(0x7F000001)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def quick(a: np.ndarray, b: np.ndarray, d: np.ndarray, multiply: bool, sign: np.float32) -> None:
    """Reduce d in place to the smallest of d and all candidates sign·a·b or sign·(a+b).

    Parameters
    ----------
    a, b, d : (M, K), (K, N), (M, N) ndarray of float32
    multiply : bool
        If True, the candidates are products, otherwise sums.
    sign : float32
        ±1. To find the largest, it is −1, and the caller negates d before and after.
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
    # Four rows of B per pass, so that an element of d is loaded and stored once for four terms
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
        # A change of sign is exact, so one for each element of A replaces one for each product.
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
def ranked(a: np.ndarray, b: np.ndarray, d: np.ndarray, multiply: bool, flip: np.int32) -> None:
    """Reduce rotated ranks d to the smallest of d and the ranks of all candidates.

    The ranks of NaNs with one sign are the first of all, and those with the other sign the last. A
    rank is rotated by adding ``TURN`` modulo 2³²: then the best infinity is the first int32, and
    all NaNs follow after the other infinity, whose rotated rank is ``WORST``.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float32
    d : (M, N) ndarray of int32
        Rotated ranks of C, then of D.
    multiply : bool
        If True, the candidates are products, otherwise sums.
    flip : int32
        −1 if the largest is wanted (the ranks are inverted), else 0.
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
    # The codes of positive numbers are in order as integers. Those of negative numbers are in
    # reverse order, so all bits but the sign are inverted.
    # Numba widens the result of every integer operation to 64 bits, hence the conversions.
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
def ranked_extrema(a: np.ndarray, b: np.ndarray, d: np.ndarray) -> None:
    """Reduce ranks d to the smallest of d and max(a, b): minmax, or maxmin on inverted ranks.

    Parameters
    ----------
    a, b, d : (M, K), (K, N), (M, N) ndarray of int32
        Ranks. A NaN has the first rank of all in a and b, so that a number is preferred to it, and
        the last rank in d.
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
                # The maximum is a NaN only if both operands are. As a candidate, a NaN must lose.
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
