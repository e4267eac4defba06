"""Compiled loops of ``golden.cube.doubles``: sums with FP64 results as pairs of FP64 numbers.

A fused multiply-add gives the rounding error of a product, and six operations give that of an
addition (Knuth's TwoSum); both are exact. The sum of these errors is the second number of the pair.
Everything that is compiled must be in this file, because Numba's cache does not notice a change in
another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

STRIP = 256  # columns whose working arrays stay in the first-level cache
_TILE = 64  # rows of D between two steps


@intrinsic
def _multiply_add(_, x, y, z):
    """Return x · y + z, rounded once."""

    def generate(*code):  # context, builder, signature, arguments
        return code[1].fma(*code[3])

    return x(x, y, z), generate


_fma: Any = _multiply_add  # its first parameter is for Numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def products(
    a: np.ndarray, b: np.ndarray, d: np.ndarray, unsure: np.ndarray, k: int, bound: float
) -> None:
    """Add A·B to D in place, in blocks of ``k`` terms.

    Parameters
    ----------
    a, b : (M, K), (K, N) ndarray of float64
    d : (M, N) ndarray of float64
        C on input, D on output.
    unsure : (M, N) ndarray of bool
        Set to True where the error may change the rounding, so that D is not valid.
    k : int
        Terms of a block.
    bound : float
        Error of the pair of numbers, divided by the sum of the magnitudes of C and the products.
    """
    m, terms = a.shape
    n = b.shape[1]
    high, low, size = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    for start in range(0, n, STRIP):
        lanes = min(STRIP, n - start)
        for top in range(0, m, _TILE):
            for first in range(0, terms, k):
                last = min(first + k, terms)
                for i in range(top, min(top + _TILE, m)):
                    c, marks = d[i, start : start + lanes], unsure[i, start : start + lanes]
                    for j in range(lanes):
                        high[j], low[j], size[j] = c[j], 0.0, abs(c[j])
                    for row in range(first, last):
                        _add(a[i, row], b[row], start, lanes, high, low, size)
                    _close(c, marks, lanes, high, low, size, bound)


@numba.njit(error_model="numpy")
def _add(x, b, start, lanes, high, low, size):
    """Add the products of one term."""
    for j in range(lanes):
        # Numba does not look for negative numbers among unsigned ones, which would be a branch.
        y = b[np.uint64(start + j)]
        product = x * y
        rest = _fma(x, y, -product)
        total = high[j] + product
        back = total - high[j]
        error = (high[j] - (total - back)) + (product - back)
        high[j] = total
        low[j] += error + rest
        size[j] += abs(product)


@numba.njit(error_model="numpy")
def _close(c, marks, lanes, high, low, size, bound):
    """Round the sums after adding and after subtracting the bound; the two may differ."""
    for j in range(lanes):
        x, y = high[j], low[j]
        total = x + y
        back = total - x
        rest = (x - (total - back)) + (y - back)
        error = size[j] * bound
        lower, upper = total + (rest - error), total + (rest + error)
        # A sum of zeros has the sign that the addition gives it.
        c[j] = lower if size[j] > 0 else x
        marks[j] |= lower != upper
