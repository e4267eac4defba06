"""Codes of numbers that are chosen by sign, exponent and significand."""

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import ScaleFormat


def number(
    sign: np.ndarray, exponent: np.ndarray, fraction: np.ndarray, format: FloatFormat
) -> np.ndarray:
    """Return the codes of (−1)^sign · (1 + fraction / 2^fraction_bits) · 2^exponent.

    Below the least normal number the significand loses its low bits; above the largest number the
    result is the largest number.

    Parameters
    ----------
    sign, exponent, fraction : ndarray of int
        Arrays that broadcast.
    """
    f = format
    sign, exponent, fraction = np.broadcast_arrays(sign, exponent, fraction)
    field = np.clip(exponent + f.bias, 1, f.exponent_ones + 1).astype(np.int64)
    normal = (field << f.fraction_bits) | fraction.astype(np.int64)
    places = np.clip(f.emin - exponent, 0, f.fraction_bits + 2)
    small = ((1 << f.fraction_bits) | fraction.astype(np.int64)) >> places
    magnitude = np.where(exponent < f.emin, small, normal)
    magnitude = np.minimum(magnitude, f.max_finite >> f.storage_shift)
    codes = (magnitude << f.storage_shift).astype(code_dtype(f))
    masks = np.array([f.negative_zero, f.sign_mask], codes.dtype)  # a format may lack −0
    return codes | np.where(sign != 0, masks[(codes != 0).astype(int)], masks.dtype.type(0))


def random_number(
    rng: np.random.Generator, exponent: np.ndarray, format: FloatFormat, sign: bool | None = None
) -> np.ndarray:
    """Return codes with these exponents, and random significands and signs."""
    fraction = rng.integers(0, 1 << format.fraction_bits, exponent.shape)
    negative = rng.integers(0, 2, exponent.shape) if sign is None else np.array(int(sign))
    return number(negative, exponent, fraction, format)


def exponents(format: FloatFormat) -> tuple[int, int]:
    """Return the exponents of the least and of the largest normal number."""
    return format.emin, format.emax


def split(
    rng: np.random.Generator, exponent: np.ndarray, a: FloatFormat, b: FloatFormat
) -> tuple[np.ndarray, np.ndarray]:
    """Split exponents of products into those of normal factors at random, as far as possible."""
    low = np.clip(exponent - b.emax, a.emin, a.emax)
    high = np.clip(exponent - b.emin, a.emin, a.emax)
    first = rng.integers(np.minimum(low, high), np.maximum(low, high) + 1)
    rest = exponent - first
    # What one factor cannot take as a normal number, it takes as a subnormal one.
    second = np.clip(rest, b.emin - b.fraction_bits, b.emax)
    first = np.clip(exponent - second, a.emin - a.fraction_bits, a.emax)
    return first, second


def scale_codes(exponent: np.ndarray, format: ScaleFormat) -> np.ndarray:
    """Return the codes of the scales 2^exponent, as near as the format has them."""
    field = np.clip(exponent + format.bias, 1, (1 << format.exponent_bits) - 2)
    return (field << format.fraction_bits).astype(np.uint8)
