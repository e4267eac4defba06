"""The fast path of matrix products with FP64 operands and results, as IEEE units add them.

A sum is computed as a pair of FP64 numbers with a bound of its error. Where the bound reaches a
midpoint of two results, which is rare, the element is computed again by ``fused_dot``.
"""

import numpy as np

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.fp.spec import dot_spec

_LEAST_WINDOW = 100  # fraction bits, whose cut terms the bound of the error is made for
_REACH = 480  # exponent of operands whose products and their errors are normal numbers
_MOST_C = 1000


def fits_doubles(spec: DotSpec) -> bool:
    """Return True if ``double_mmad`` computes this rule: that of the ``ieee`` preset for FP64."""
    window = spec.sum.window
    if (spec.input.name, spec.output.name) != ("fp64", "fp64") or window is None:
        return False
    plain = dot_spec(input="fp64", output="fp64", k=spec.k, window=window)
    return window >= _LEAST_WINDOW and spec == plain


def double_mmad(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray | None:
    """Return D = C + A·B, or None if an operand is too small, too large, infinite or NaN.

    Parameters
    ----------
    a, b, c : (M, K), (K, N), (M, N) ndarray of uint64, FP64 codes
    spec : DotSpec
        A rule that ``fits_doubles``.

    Returns
    -------
    (M, N) ndarray of uint64, FP64 codes, or None

    Notes
    -----
    Let S be the sum of the magnitudes of C and of the K products. The errors of the K additions and
    K products are below (K + 1) · 2⁻⁵³ · S together, and adding them is wrong by less than
    2 K (K + 1) · 2⁻¹⁰⁶ · S. Each of the K + 1 terms is cut by less than 2^(E_max − F), and as no
    operand is subnormal, 2^E_max is at most S.
    """
    # Imported here because Numba loads slowly
    from vitruvian.golden.cube.doubles_compiled import products

    x, y = (np.ascontiguousarray(v).view(np.float64) for v in (a, b))
    sizes = [np.abs(v) for v in (x, y)]
    inside = [((v >= 2.0**-_REACH) & (v <= 2.0**_REACH) | (v == 0)).all() for v in sizes]
    d = np.array(c, np.uint64, order="C").view(np.float64)
    if not all(inside) or not (np.abs(d) <= 2.0**_MOST_C).all():
        return None
    k = min(spec.k, a.shape[1])
    assert spec.sum.window is not None
    bound = ((k + 2) ** 2 * 2.0**-104 + (k + 1) * 2.0**-spec.sum.window) * (1 + 2.0**-10)
    unsure = np.zeros(d.shape, np.bool)
    products(x, y, d, unsure, k, bound)
    codes = d.view(np.uint64)
    i, j = np.nonzero(unsure)
    if i.size:
        rows, columns, result = a[i], b.T[j], c[i, j]
        for first in range(0, a.shape[1], k):
            block = slice(first, first + k)
            result = np.asarray(fused_dot(rows[:, block], columns[:, block], result, spec))
        codes[i, j] = result
    return codes
