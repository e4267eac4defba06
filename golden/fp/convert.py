"""Elementwise conversions of codes: to other formats, to integers, and from numbers to codes.

Every result is exact and then rounded once; ``golden.fp.arith`` names the roundings.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.formats import FloatFormat, IntFormat, as_format, as_int_format
from vitruvian.golden.fp.round import round_pack, round_shift


def convert(
    codes: ArrayLike,
    source: FloatFormat | str,
    target: FloatFormat | str,
    rounding: str = "RNE",
    *,
    saturate: bool = False,
) -> np.ndarray:
    """Convert codes of ``source`` to codes of ``target``.

    Parameters
    ----------
    codes : array_like of unsigned int, ``source`` codes
    rounding : str
        One of ``ROUNDINGS``.
    saturate : bool
        If True, overflows and infinities become the largest finite number. If False, they follow
        IEEE 754 (RZ, and RU or RD if they round towards zero, stop at the largest finite number);
        in a format without infinity, a NaN takes the place of an infinity.

    Returns
    -------
    ndarray of unsigned int, ``target`` codes
        A NaN becomes ``target.canonical_nan``. In tf32 results the 13 unused bits are zero.

    Raises
    ------
    TypeError, ValueError
        If ``codes`` are not codes of ``source``, or if a format or the rounding is unknown.

    Examples
    --------
    >>> hex(int(convert(0x3C00, "fp16", "fp32")))
    '0x3f800000'
    """
    source, target = as_format(source, "source"), as_format(target, "target")
    u = unpack(codes, source)
    d = round_pack(
        u.sign,
        u.significand,
        u.exponent - source.fraction_bits,
        target,
        rounding,
        overflow="saturate" if saturate else "ieee",
    )
    sign = np.where(u.sign, target.sign_mask, 0).astype(d.dtype)
    if saturate:
        d = np.where(u.infinity, sign | d.dtype.type(target.max_finite), d)
    else:
        sign = sign if target.overflow_has_sign else np.zeros_like(sign)
        d = np.where(u.infinity, sign | d.dtype.type(target.overflow), d)
    return np.where(u.nan, d.dtype.type(target.canonical_nan), d)[()]


def to_int(
    codes: ArrayLike,
    source: FloatFormat | str,
    target: IntFormat | str = "int32",
    rounding: str = "RNE",
) -> np.ndarray:
    """Round codes to integers. Values out of range and infinities saturate; NaN gives 0.

    Parameters
    ----------
    codes : array_like of unsigned int, ``source`` codes
    target : IntFormat or str
        Integer format of at most 32 bits.
    rounding : str
        One of ``ROUNDINGS``.

    Returns
    -------
    ndarray of int8, uint8 or int32, the values

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> to_int([0x3E00, 0x4100], "fp16").tolist()
    [2, 2]
    """
    source, target = as_format(source, "source"), as_int_format(target, "target")
    if target.bits > 32:
        raise ValueError(f"bits of target must be at most 32, not {target.bits!r}")
    u = unpack(codes, source)
    # Exponents above 60 count as 60: the result saturates in any case, and it fits into an int64.
    shift = np.maximum(source.fraction_bits - u.exponent, source.fraction_bits - 60)
    magnitude = round_shift(u.significand, shift, u.sign, rounding)
    value = np.clip(np.where(u.sign, -magnitude, magnitude), target.minimum, target.maximum)
    bound = np.where(u.sign, target.minimum, target.maximum)
    return np.where(u.infinity, bound, value).astype(_int_dtype(target))[()]


def from_int(values: ArrayLike, target: FloatFormat | str, rounding: str = "RNE") -> np.ndarray:
    """Round integers to codes of ``target``.

    Parameters
    ----------
    values : array_like of int
        Magnitudes below 2^60.
    rounding : str
        One of ``ROUNDINGS``.

    Returns
    -------
    ndarray of unsigned int, ``target`` codes

    Raises
    ------
    TypeError
        If ``values`` are not integers.
    ValueError
        If a magnitude is 2^60 or more, or if the format or the rounding is unknown.

    Examples
    --------
    >>> hex(int(from_int(3, "fp16")))
    '0x4200'
    """
    values = np.asarray(values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"values must be integers, not {values.dtype}")
    if values.size and max(abs(int(values.min())), abs(int(values.max()))) >= 1 << 60:
        raise ValueError(f"magnitudes of values must be below 2**60, not {values.max()!r}")
    values = values.astype(np.int64)
    return round_pack(values < 0, np.abs(values), np.zeros_like(values), target, rounding)[()]


def from_float(
    values: ArrayLike,
    format: FloatFormat | str,
    rounding: str = "RNE",
    *,
    saturate: bool = False,
) -> np.ndarray:
    """Round real numbers to codes of ``format``.

    Parameters
    ----------
    values : array_like of float or int
        Numbers, which are first converted to float64.
    rounding, saturate
        The same as those of ``convert``.

    Returns
    -------
    ndarray of unsigned int, ``format`` codes

    Raises
    ------
    TypeError
        If ``values`` are not real numbers.

    Examples
    --------
    >>> hex(int(from_float(0.1, "bf16")))
    '0x3dcd'
    """
    values = np.asarray(values)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"values must be real numbers, not {values.dtype}")
    return convert(
        np.asarray(values, np.float64).view(np.uint64), "fp64", format, rounding, saturate=saturate
    )


def _int_dtype(format: IntFormat) -> np.dtype:
    bits = next(size for size in (8, 16, 32) if format.bits <= size)
    return np.dtype(f"{'int' if format.signed else 'uint'}{bits}")
