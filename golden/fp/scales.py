"""Formats of the scales that blocks of values share: unsigned powers of two, or small numbers."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int, one_of


class DecodedScales(NamedTuple):
    """Decoded scales: a value is significand · 2^(exponent − fraction_bits)."""

    exponent: np.ndarray  # int64
    significand: np.ndarray  # int64, 0 for zero and NaN
    nan: np.ndarray  # bool


@dataclass(frozen=True)
class ScaleFormat:
    """An unsigned encoding: an exponent field and a fraction field.

    Parameters
    ----------
    name : str
        Name of the format; the key in ``SCALES``.
    exponent_bits, fraction_bits : int
        Widths of the fields. The bits above them are ignored.
    bias : int
        Exponent field of 1.0.
    subnormals : bool
        If True, exponent field 0 has no hidden bit, so that zero and subnormals exist.
    nan : int or None
        The code that is a NaN.

    References
    ----------
    OCP Microscaling Formats Specification, section 5.4 (UE8M0); NVIDIA PTX ISA (UE4M3).
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    subnormals: bool
    nan: int | None

    def __post_init__(self) -> None:
        check_int("exponent_bits", self.exponent_bits, 1, 8)
        check_int("fraction_bits", self.fraction_bits, 0, 7)

    def __str__(self) -> str:
        return self.name

    @property
    def width(self) -> int:
        """The number of bits that carry meaning."""
        return self.exponent_bits + self.fraction_bits

    @property
    def max_finite(self) -> int:
        """The code of the largest scale."""
        largest = (1 << self.width) - 1
        return largest - 1 if self.nan == largest else largest


SCALES = {
    s.name: s
    for s in (
        ScaleFormat("ue8m0", 8, 0, 127, subnormals=False, nan=0xFF),
        ScaleFormat("ue4m3", 4, 3, 7, subnormals=True, nan=0x7F),
        # The scale of HiF4. Which code is a NaN is not certain; 0xFF is assumed.
        ScaleFormat("ue6m2", 6, 2, 48, subnormals=False, nan=0xFF),
    )
}


def as_scale(value: ScaleFormat | str) -> ScaleFormat:
    """Return the scale format called ``value``; a ``ScaleFormat`` is returned unchanged.

    Raises
    ------
    ValueError
        If ``value`` is not a key of ``SCALES``.
    """
    if isinstance(value, ScaleFormat):
        return value
    one_of("scale", value, SCALES)
    return SCALES[value]


def unpack_scale(codes: ArrayLike, format: ScaleFormat | str) -> DecodedScales:
    """Decode codes of a scale.

    Parameters
    ----------
    codes : array_like of uint8

    Returns
    -------
    DecodedScales
        Three arrays of the shape of ``codes``.
    """
    f = as_scale(format)
    bits = np.asarray(codes).astype(np.int64) & ((1 << f.width) - 1)
    field = bits >> f.fraction_bits
    fraction = bits & ((1 << f.fraction_bits) - 1)
    nan = np.zeros(bits.shape, bool) if f.nan is None else bits == f.nan
    if f.subnormals:
        significand = np.where(field == 0, fraction, fraction | 1 << f.fraction_bits)
        field = np.maximum(field, 1)
    else:
        significand = fraction | 1 << f.fraction_bits
    return DecodedScales(field - f.bias, np.where(nan, 0, significand), nan)


def scale_value(codes: ArrayLike, format: ScaleFormat | str) -> np.ndarray:
    """Return the values of scales as float64, exactly; parameters as of ``unpack_scale``."""
    f = as_scale(format)
    u = unpack_scale(codes, f)
    exponent = (u.exponent - f.fraction_bits).astype(np.int32)
    value = np.ldexp(u.significand.astype(np.float64), exponent)
    return np.where(u.nan, np.nan, value)


def encode_scale(
    values: ArrayLike, format: ScaleFormat | str, *, saturate: bool = False
) -> np.ndarray:
    """Round numbers to scales: to nearest, ties to the even code.

    Parameters
    ----------
    values : array_like of float
    saturate : bool
        If True, a number that is too large becomes the largest scale. If False, it becomes a NaN.

    Returns
    -------
    ndarray of uint8
        A NaN and a negative number become the NaN. In a format without zero, zero and numbers that
        are too small become the least scale.
    """
    f = as_scale(format)
    assert f.nan is not None and f.max_finite == f.nan - 1
    x = np.asarray(values, np.float64)
    bad = np.isnan(x) | (x < 0)
    numbers = scale_value(np.arange(f.nan), f)
    # The number that would follow the largest scale bounds what is rounded to that scale.
    beyond = 2 * numbers[-1] - numbers[-2] if f.fraction_bits else 2 * numbers[-1]
    code = nearest(np.where(bad, 0, x), np.append(numbers, beyond))
    if saturate:
        code = np.minimum(code, f.max_finite)
    return np.where(bad, f.nan, code).astype(np.uint8)


def nearest(values: np.ndarray, numbers: np.ndarray, *, away: bool = False) -> np.ndarray:
    """Return for each value the index of the nearest number.

    Parameters
    ----------
    values : ndarray of float64
        No NaNs. Values outside the range of the numbers get the first or the last index.
    numbers : ndarray of float64
        At least two, in ascending order, such that the means of neighbours are exact.
    away : bool
        If True, a value in the middle of two numbers goes to the larger one, otherwise to the one
        with the even index.
    """
    middles = (numbers[1:] + numbers[:-1]) / 2
    low = np.searchsorted(middles, values, side="left")  # a middle itself is not passed
    tie = values == middles[np.minimum(low, len(middles) - 1)]
    return low + (tie & (away | (low % 2 == 1)))
