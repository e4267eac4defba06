"""Formats of the scales that blocks of values share: unsigned powers of two, or small numbers."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.validate import check_int, one_of

__all__ = ["SCALES", "ScaleFormat", "Scales", "as_scale", "unpack_scale"]


class Scales(NamedTuple):
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


def unpack_scale(codes: ArrayLike, format: ScaleFormat | str) -> Scales:
    """Decode codes of a scale.

    Parameters
    ----------
    codes : array_like of uint8
    format : ScaleFormat or str

    Returns
    -------
    Scales
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
    return Scales(field - f.bias, np.where(nan, 0, significand), nan)
