"""Conversions between the formats of vector elements.

Conversions between floating-point formats follow IEEE 754 in five rounding modes, including the
result of an overflow (an infinity when rounding to nearest). A sixth mode rounds to odd, which is
for rounding in two steps. In conversions to integers, values out of range and infinities saturate,
and a NaN gives 0. Integers saturate when converted to narrower integers.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import one_of
from vitruvian.golden.fp import convert as convert_codes
from vitruvian.golden.fp import from_int
from vitruvian.golden.vector.formats import DTYPES, canonical, codes, dtype_of

#: Rounding modes by letter: to nearest with ties to even, ties away, down, up, to zero, to odd
ROUNDINGS = {"r": "RNE", "a": "RNA", "f": "RD", "c": "RU", "z": "RZ", "o": "odd"}

_FLOATS = ("fp16", "bf16", "fp32")


def convert(values: ArrayLike, source: str, target: str, rounding: str = "r") -> np.ndarray:
    """Convert elements from one format to another.

    Parameters
    ----------
    values : array_like of ``DTYPES[source]``
        Elements; bf16 as uint16 codes.
    source, target : str
        Keys of ``DTYPES``.
    rounding : {"r", "a", "f", "c", "z", "o"}
        A key of ``ROUNDINGS``.

    Returns
    -------
    ndarray of ``DTYPES[target]``

    Raises
    ------
    ValueError
        If a format or the rounding is unknown, if the rounding is "o" and the conversion is not
        from fp32 to fp16 or bf16, or if a 64-bit integer of magnitude 2^60 or more is converted
        to floating point.
    TypeError
        If ``values`` do not have the type of ``source``.

    Examples
    --------
    >>> convert(np.float16([1.5, 2.5]), "fp16", "int32").tolist()
    [2, 2]
    """
    values = np.asarray(values)
    if values.dtype != dtype_of(source):
        raise TypeError(f"values must be {dtype_of(source)} ({source}), not {values.dtype}")
    dtype_of(target)
    one_of("rounding", rounding, ROUNDINGS)
    narrower = source == "fp32" and target in ("fp16", "bf16")
    if rounding == "o" and not narrower:
        raise ValueError(f"odd rounding must be from fp32 to fp16 or bf16, not to {target!r}")
    if source in _FLOATS:
        return _from_float(values, source, target, rounding)
    if target in _FLOATS:
        return _to_float(values, target, rounding)
    bounds = np.iinfo(DTYPES[target])
    exact = values.astype(object) if values.dtype == np.uint64 else values.astype(np.int64)
    return np.clip(exact, bounds.min, bounds.max).astype(DTYPES[target])


def _from_float(values: np.ndarray, source: str, target: str, rounding: str) -> np.ndarray:
    if rounding == "r" and "bf16" not in (source, target) and target in _FLOATS:
        with np.errstate(all="ignore"):  # NumPy rounds to nearest, ties to even
            return canonical(values.astype(DTYPES[target]))
    if target in _FLOATS:
        bits = values if source == "bf16" else codes(values)
        if rounding == "o":
            result = _to_odd(bits, target)
        else:
            result = np.asarray(convert_codes(bits, source, target, ROUNDINGS[rounding]))
        return result if target == "bf16" else result.view(DTYPES[target])
    if source == "bf16":
        values = np.asarray(convert_codes(values, "bf16", "fp32")).view(np.float32)
    with np.errstate(invalid="ignore"):
        return _to_integer(values.astype(np.float64), DTYPES[target], rounding)


def integral(values: ArrayLike, rounding: str = "r") -> np.ndarray:
    """Round FP32 numbers to integral values, which stay FP32.

    Parameters
    ----------
    values : array_like of float32
    rounding : {"r", "a", "f", "c", "z"}
        As for ``convert``.

    Returns
    -------
    ndarray of float32

    Examples
    --------
    >>> [integral(np.float32([-1.5, 2.5]), way).tolist() for way in "raf"]
    [[-2.0, 2.0], [-2.0, 3.0], [-2.0, 2.0]]
    """
    values = np.asarray(values)
    if values.dtype != np.float32:
        raise TypeError(f"values must be float32, not {values.dtype}")
    one_of("rounding", rounding, ("r", "a", "f", "c", "z"))
    with np.errstate(invalid="ignore"):
        return canonical(_whole(values.astype(np.float64), rounding).astype(np.float32))


def _whole(values: np.ndarray, rounding: str) -> np.ndarray:
    """Round float64 values to integral ones."""
    if rounding == "a":
        return np.copysign(np.floor(np.abs(values) + 0.5), values)
    return {"r": np.rint, "f": np.floor, "c": np.ceil, "z": np.trunc}[rounding](values)


def _to_odd(bits: np.ndarray, target: str) -> np.ndarray:
    """Round towards zero, then set the last bit of every inexact result."""
    result = np.asarray(convert_codes(bits, "fp32", target, "RZ"))
    back = np.asarray(convert_codes(result, target, "fp32"))
    # Rounding to odd keeps the information that bits were lost, so a second rounding to fewer bits
    # gives the result of a single rounding.
    inexact = (back != bits) & ~np.isnan(bits.view(np.float32))
    return np.where(inexact, result | 1, result).astype(result.dtype)


def _to_integer(values: np.ndarray, dtype: np.dtype, rounding: str) -> np.ndarray:
    """Round float64 values to integers, with saturation; a NaN gives 0."""
    # The values have at most 24 significant bits, so float64 holds them exactly, and 0.5 more.
    whole = _whole(values, rounding)
    bounds = np.iinfo(dtype)
    # float64 cannot represent the largest int64, but it represents the power of two above it.
    top = 2.0 ** (bounds.bits - (bounds.min < 0))
    inside = np.where((whole >= bounds.min) & (whole < top), whole, 0)
    result = np.where(whole >= top, bounds.max, inside.astype(dtype))
    return np.where(whole < bounds.min, bounds.min, result).astype(dtype)


def _to_float(values: np.ndarray, target: str, rounding: str) -> np.ndarray:
    if rounding == "r" and target != "bf16" and values.dtype.itemsize < 8:
        with np.errstate(over="ignore"):  # integers of up to 32 bits are exact in float64
            return values.astype(np.float64).astype(DTYPES[target])
    small = values.dtype.itemsize < 8 or (np.abs(values.astype(object)) < 1 << 60).all()
    if not small:
        raise ValueError("magnitudes of 64-bit integers must be below 2**60 for floating point")
    result = np.asarray(from_int(values.astype(np.int64), target, ROUNDINGS[rounding]))
    return result if target == "bf16" else result.view(DTYPES[target])
