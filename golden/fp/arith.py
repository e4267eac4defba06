"""Elementwise arithmetic on codes: addition, multiplication, FMA and comparison.

The result of every operation is exact and then rounded once. ``rounding`` is "RNE", "RNA" (ties
away from zero), "RZ", "RU", "RD" or "RTO" (to odd); a NaN result is the canonical NaN of its
format. Arrays broadcast. All functions raise TypeError or ValueError if an operand does not hold
codes of its format, or if a format or a rounding is unknown.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import as_codes, code_dtype, unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.fp.plain import evaluate_plain
from vitruvian.golden.fp.round import check_rounding
from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.fp.window import ieee_window

#: Result of ``compare`` if an operand is a NaN
UNORDERED = 2


def fma(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> np.ndarray:
    """Return a·b + c, rounded once (IEEE 754 fusedMultiplyAdd).

    Parameters
    ----------
    a, b : array_like of unsigned int, ``format`` codes
    c : array_like of unsigned int, ``output`` codes
    format : FloatFormat or str
        Format of ``a`` and ``b``.
    output : FloatFormat or str, optional
        Format of ``c`` and of the result, by default ``format``.
    rounding : str
        One of ``ROUNDINGS``.

    Returns
    -------
    ndarray of unsigned int, ``output`` codes

    Raises
    ------
    TypeError, ValueError
        If an operand does not hold codes, or if a format or the rounding is unknown.

    Examples
    --------
    >>> hex(int(fma(0x4000, 0x4200, 0x3C00, "fp16")))
    '0x4700'
    """
    f = as_format(format)
    out = f if output is None else as_format(output, "output")
    check_rounding(rounding)
    spec = dot_spec(input=f, output=out, k=1, window=ieee_window(f, out))
    a, b, c = np.broadcast_arrays(as_codes(a, f, "a"), as_codes(b, f, "b"), as_codes(c, out, "c"))
    d = evaluate_plain(a.reshape(-1, 1), b.reshape(-1, 1), c.reshape(-1), spec, rounding, "ieee")
    return d.reshape(a.shape)[()]


def mul(
    a: ArrayLike,
    b: ArrayLike,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> np.ndarray:
    """Return a·b, rounded once to ``output``.

    Parameters
    ----------
    a, b : array_like of unsigned int, ``format`` codes
    format, output, rounding
        The same as those of ``fma``.

    Returns
    -------
    ndarray of unsigned int, ``output`` codes

    Examples
    --------
    >>> hex(int(mul(0x4000, 0x4200, "fp16")))
    '0x4600'
    """
    out = as_format(format) if output is None else as_format(output, "output")
    # The zero that is added must not change the sign of a zero product: x + (−0) = x, but with RD
    # a sum of zeros with different signs is −0, and x + (+0) = x instead.
    zero = 0 if rounding == "RD" else out.negative_zero
    return fma(a, b, code_dtype(out).type(zero), format, out, rounding)


def add(
    a: ArrayLike,
    b: ArrayLike,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> np.ndarray:
    """Return a + b, rounded once to ``output``.

    Parameters
    ----------
    a, b : array_like of unsigned int, ``format`` codes
    format, output, rounding
        The same as those of ``fma``; ``output`` must be able to hold every number of ``format``.

    Returns
    -------
    ndarray of unsigned int, ``output`` codes

    Raises
    ------
    ValueError
        If ``output`` cannot hold every number of ``format``.

    Examples
    --------
    >>> hex(int(add(0x3C00, 0x4000, "fp16")))
    '0x4200'
    """
    f = as_format(format)
    out = f if output is None else as_format(output, "output")
    holds = (
        out.fraction_bits >= f.fraction_bits
        and out.emax >= f.emax
        and out.emin - out.fraction_bits <= f.emin - f.fraction_bits
        and out.has_infinity >= f.has_infinity
    )
    if not holds:
        raise ValueError(f"output must hold every {f} number, not {out.name!r}")
    return fma(a, code_dtype(f).type(f.one), convert(b, f, out), f, out, rounding)


def _order(codes: np.ndarray, f: FloatFormat) -> np.ndarray:
    """Return int64 keys in the order of the numbers, with −0 before +0."""
    bits = (codes >> codes.dtype.type(f.storage_shift)).astype(np.uint64)
    magnitude = (bits & np.uint64((1 << (f.width - 1)) - 1)).astype(np.int64)
    negative = bits >> np.uint64(f.width - 1) & np.uint64(1)
    return np.where(negative, ~magnitude, magnitude)  # pyright: ignore[reportUnknownVariableType]


def compare(a: ArrayLike, b: ArrayLike, format: FloatFormat | str) -> np.ndarray:
    """Return −1, 0 or 1 for a < b, a = b or a > b, or ``UNORDERED`` (2) if one is a NaN.

    Parameters
    ----------
    a, b : array_like of unsigned int, ``format`` codes
        −0 equals +0.

    Returns
    -------
    ndarray of int8

    Examples
    --------
    >>> compare([0x3C00, 0x7E00], [0x4000, 0x3C00], "fp16").tolist()
    [-1, 2]
    """
    f = as_format(format)
    a, b = as_codes(a, f, "a"), as_codes(b, f, "b")
    u, v = unpack(a, f), unpack(b, f)
    x, y = _order(a, f), _order(b, f)
    zeros = (np.maximum(x, ~x) == 0) & (np.maximum(y, ~y) == 0)
    sign = np.where(zeros, 0, np.sign((x > y).astype(np.int8) - (x < y).astype(np.int8)))
    return np.where(u.nan | v.nan, UNORDERED, sign).astype(np.int8)[()]


def minimum_number(a: ArrayLike, b: ArrayLike, format: FloatFormat | str) -> np.ndarray:
    """Return the smaller number (IEEE 754-2019 minimumNumber).

    A number is preferred to a NaN, two NaNs give the canonical NaN, and −0 < +0.

    Parameters
    ----------
    a, b : array_like of unsigned int, ``format`` codes

    Returns
    -------
    ndarray of unsigned int, ``format`` codes

    Examples
    --------
    >>> hex(int(minimum_number(0x3C00, 0x7E00, "fp16")))
    '0x3c00'
    """
    return _pick(a, b, format, np.less_equal)


def maximum_number(a: ArrayLike, b: ArrayLike, format: FloatFormat | str) -> np.ndarray:
    """Return the larger number (IEEE 754-2019 maximumNumber); see ``minimum_number``.

    Examples
    --------
    >>> hex(int(maximum_number(0x3C00, 0x4000, "fp16")))
    '0x4000'
    """
    return _pick(a, b, format, np.greater_equal)


def _pick(
    a: ArrayLike, b: ArrayLike, format: FloatFormat | str, better: Callable[..., np.ndarray]
) -> np.ndarray:
    f = as_format(format)
    a, b = as_codes(a, f, "a"), as_codes(b, f, "b")
    u, v = unpack(a, f), unpack(b, f)
    take_a = ~u.nan & (v.nan | better(_order(a, f), _order(b, f)))
    d = np.where(take_a, a, b) & a.dtype.type(f.code_mask)
    nan = a.dtype.type(f.canonical_nan)
    return np.where(u.nan & v.nan, nan, d)[()]  # pyright: ignore[reportUnknownVariableType]
