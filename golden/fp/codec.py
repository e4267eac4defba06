"""Vectorised decoding of codes, which are arrays of unsigned integers of the storage width."""

from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp.formats import FloatFormat, Specials, as_format


class Unpacked(NamedTuple):
    """Decoded codes: a finite value is (−1)^sign · significand · 2^(exponent − fraction_bits)."""

    sign: np.ndarray  # bool
    exponent: np.ndarray  # int64
    significand: np.ndarray  # int64, 0 for zero, infinity and NaN
    infinity: np.ndarray  # bool
    nan: np.ndarray  # bool


def code_dtype(format: FloatFormat | str) -> np.dtype:
    """Return the unsigned NumPy type that holds a code of ``format``.

    Raises
    ------
    ValueError
        If the format is unknown or is stored in more than 64 bits.
    """
    bits = as_format(format).storage_bits
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        if bits <= 8 * np.dtype(dtype).itemsize:
            return np.dtype(dtype)
    raise ValueError(f"storage_bits must be at most 64 for an array, not {bits!r}")


def _integers(values: ArrayLike, thing: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind in "iu" or not array.size:
        return array
    if array.dtype == object or not isinstance(values, np.ndarray):
        # NumPy turns a list of Python ints on both sides of 2^63 into floats.
        exact = np.asarray(values, dtype=object)
        if all(isinstance(x, (int, np.integer)) for x in exact.ravel()):
            return exact
    raise TypeError(f"{thing} must be integers, not {array.dtype}")


def number_dtype(format: FloatFormat | str) -> np.dtype:
    """Return the element type of arrays that hold numbers of ``format``, from NumPy or ml_dtypes.

    Raises
    ------
    ValueError
        If the format is unknown or has no such type.

    Examples
    --------
    >>> str(number_dtype("bf16"))
    'bfloat16'
    """
    f = as_format(format)
    if f.dtype is None:
        raise ValueError(f"format must be one with an array type, not {f.name!r}")
    return np.dtype(getattr(ml_dtypes, f.dtype, f.dtype))


def as_codes(values: ArrayLike, format: FloatFormat | str, thing: str = "codes") -> np.ndarray:
    """Return ``values`` as an array of codes of ``format``.

    Parameters
    ----------
    values : array_like of int
        Integers of any type that fit into the format's width, for TF32 its 32 bits of storage.
    thing : str
        Name of the argument, for error messages.

    Returns
    -------
    ndarray of ``code_dtype(format)``

    Raises
    ------
    TypeError
        If ``values`` are not integers.
    ValueError
        If a value is negative or wider than the format.
    """
    dtype, f = code_dtype(format), as_format(format)
    array = np.asarray(values)
    if array.dtype == dtype and f.code_bits == 8 * dtype.itemsize:
        return array
    return check_codes(values, f.code_bits, thing, f" ({f})").astype(dtype, copy=False)


def check_codes(values: ArrayLike, bits: int, thing: str, note: str = "") -> np.ndarray:
    """Return ``values`` as an array of integers of at most ``bits`` bits.

    Raises
    ------
    TypeError
        If ``values`` are not integers.
    ValueError
        If a value is negative or has more bits; ``note`` follows the limit in the message.
    """
    array = _integers(values, thing)
    limit = (1 << bits) - 1
    if array.size and (int(array.min()) < 0 or int(array.max()) > limit):
        bad = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise ValueError(f"{thing} must be between 0 and {limit:#x}{note}, not {bad!r}")
    # An empty list has the type of floats.
    return array if array.size else array.astype(np.uint8)


def unpack_pairs(values: ArrayLike, axis: int = -1, thing: str = "codes") -> np.ndarray:
    """Return the 4-bit codes of bytes that hold two of them, the first in the low bits.

    Parameters
    ----------
    values : (..., K / 2, ...) array_like of int
        Bytes from 0 to 255.
    axis : int
        The axis along which the codes of a byte are neighbours.
    thing : str
        Name of the argument, for error messages.

    Returns
    -------
    (..., K, ...) ndarray of uint8

    Raises
    ------
    TypeError, ValueError
        If ``values`` are not integers from 0 to 255, or have no axis.
    """
    pairs = check_codes(values, 8, thing).astype(np.uint8)
    if not pairs.ndim:
        raise ValueError(f"{thing} must have an axis of packed codes, not the shape ()")
    place = axis % pairs.ndim
    two = np.moveaxis(np.stack([pairs & 0xF, pairs >> 4]), 0, place + 1)
    return two.reshape(*pairs.shape[:place], 2 * pairs.shape[place], *pairs.shape[place + 1 :])


def unpack(codes: ArrayLike, format: FloatFormat | str) -> Unpacked:
    """Decode codes into sign, exponent, significand and flags for infinity and NaN.

    Parameters
    ----------
    codes : array_like of unsigned int, ``format`` codes

    Returns
    -------
    Unpacked
        Five arrays of the shape of ``codes``.

    Raises
    ------
    TypeError, ValueError
        If ``codes`` are not codes of ``format``.
    """
    f = as_format(format)
    bits = as_codes(codes, f).astype(np.uint64) >> np.uint64(f.storage_shift)
    sign = (bits >> np.uint64(f.width - 1) & np.uint64(1)).astype(bool)
    field = (bits >> np.uint64(f.fraction_bits) & np.uint64(f.exponent_ones)).astype(np.int64)
    fraction = (bits & np.uint64((1 << f.fraction_bits) - 1)).astype(np.int64)
    ones = (1 << f.fraction_bits) - 1
    conditions = f.classify(fraction == 0, fraction != 0, fraction == ones)
    infinity, nan = (
        np.zeros(field.shape, bool) if x is None else (field == f.exponent_ones) & x
        for x in conditions
    )
    if f.specials is Specials.FNUZ:
        nan = bits == np.uint64(1 << (f.width - 1))
    # A zero exponent field means a subnormal: no hidden bit, and the exponent of field 1.
    hidden = (field != 0).astype(np.int64) << f.fraction_bits
    significand = np.where(nan | infinity, 0, fraction | hidden)
    return Unpacked(sign, np.maximum(field, 1) - f.bias, significand, infinity, nan)


def to_float(codes: ArrayLike, format: FloatFormat | str) -> np.ndarray:
    """Return the values of ``codes`` as float64, exact for every format up to fp64.

    Parameters
    ----------
    codes : array_like of unsigned int, ``format`` codes

    Raises
    ------
    TypeError, ValueError
        If ``codes`` are not codes of ``format``.

    Examples
    --------
    >>> to_float([0x3C00, 0xFC00], "fp16").tolist()
    [1.0, -inf]
    """
    f = as_format(format)
    u = unpack(codes, f)
    magnitude = np.ldexp(
        u.significand.astype(np.float64), (u.exponent - f.fraction_bits).astype(np.int32)
    )
    magnitude = np.where(u.infinity, np.inf, np.where(u.nan, np.nan, magnitude))
    return np.where(u.sign, -magnitude, magnitude)
