"""Rounding of an exact integer magnitude to a code; all vectorised arithmetic ends here."""

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, Specials, as_format

ROUNDINGS = ("RNE", "RNA", "RZ", "RU", "RD", "RTO")
# Magnitudes must stay below 2^JAM_BITS: enough for the 53 bits of fp64, the half and the sticky
# bit, with a margin that keeps sums and shifts of them within an int64.
JAM_BITS = 60


def check_rounding(rounding: str) -> str:
    """Return ``rounding``, or raise ValueError if it is not one of ``ROUNDINGS``."""
    one_of("rounding", rounding, ROUNDINGS)
    return rounding


def bit_length(magnitude: np.ndarray) -> np.ndarray:
    """Return the bit length of each element of an int64 array, at least 0 and below 2^62."""
    # The exponent of the float64 is the bit length, unless the conversion rounded the number up
    # to a power of two.
    bits = (magnitude.astype(np.float64).view(np.int64) >> 52) - 1022
    bits -= magnitude >> np.clip(bits - 1, 0, 63) == 0
    return np.maximum(bits, 0)


_int_bit_length = np.vectorize(int.bit_length, otypes=[np.int64])


def jam(magnitude: np.ndarray, exponent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shorten Python-int magnitudes to 60 bits; OR all dropped bits into the last kept bit.

    Parameters
    ----------
    magnitude : ndarray of object
        Nonnegative Python ints.
    exponent : ndarray of int64
        Exponent of the magnitude's last bit.

    Returns
    -------
    magnitude, exponent : ndarray of int64
    """
    drop = np.maximum(_int_bit_length(magnitude) - JAM_BITS, 0)
    shift = drop.astype(object)
    kept = magnitude >> shift
    lost = (kept << shift) != magnitude
    return kept.astype(np.int64) | lost.astype(np.int64), exponent + drop


def round_shift(
    magnitude: np.ndarray, shift: np.ndarray, sign: np.ndarray, rounding: str
) -> np.ndarray:
    """Round (−1)^sign · magnitude · 2^−shift to integers and return their magnitudes.

    Parameters
    ----------
    magnitude : ndarray of int64
        At least 0 and below 2^60.
    shift : ndarray of int
        A negative shift must not make a magnitude reach 2^62.
    sign : ndarray of bool
        True for negative numbers, which matters to RU and RD.
    rounding : str
        One of ``ROUNDINGS``.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    ValueError
        If ``rounding`` is not one of ``ROUNDINGS``.
    """
    check_rounding(rounding)
    if shift.size and shift.min() < 0:
        magnitude = magnitude << np.maximum(-shift, 0)
        shift = np.maximum(shift, 0)
    shift = np.minimum(shift, JAM_BITS + 1)
    kept = magnitude >> shift
    if rounding == "RZ":
        return kept
    # Twice the remainder is compared with one unit of ``kept``. For ties to even, an odd ``kept``
    # makes a tie count as more than half.
    twice = (magnitude - (kept << shift)) << 1
    if rounding == "RTO":
        return kept | (twice != 0)
    unit = np.int64(1) << shift
    if rounding == "RNE":
        return kept + (twice + (kept & 1) > unit)
    if rounding == "RNA":
        return kept + (twice >= unit)
    return kept + ((twice > 0) & (sign == (rounding == "RD")))


def round_pack(
    sign: np.ndarray,
    magnitude: np.ndarray,
    exponent: np.ndarray,
    format: FloatFormat | str,
    rounding: str = "RNE",
    *,
    result_bits: int | None = None,
    overflow: str = "ieee",
) -> np.ndarray:
    """Round (−1)^sign · magnitude · 2^exponent once and return the codes.

    Parameters
    ----------
    sign : ndarray of bool
        True for negative numbers and for −0.
    magnitude : ndarray of int64
        At least 0 and below 2^60. The last bit may be a sticky bit if it is at least two bits
        below the result's last place.
    exponent : ndarray of int64
        Exponent of the magnitude's last bit.
    format : FloatFormat or str
        Format of the result.
    rounding : str
        "RNE", "RNA" (ties away from zero), "RZ", "RU", "RD" or "RTO" (to odd: if bits are cut off,
        the last bit is set).
    result_bits : int, optional
        Fraction bits to round to, fewer than the format's; the bits below are zero.
    overflow : str
        "ieee": RZ, RTO, and RU or RD if they round towards zero, stop at the largest finite
        number. "infinity": every overflow gives an infinity. "saturate": every overflow gives the
        largest finite number. A format without infinity gives its positive NaN instead of an
        infinity, and a format without NaN its largest number.

    Returns
    -------
    ndarray of unsigned int, ``format`` codes

    Raises
    ------
    ValueError
        If the format or the rounding is unknown.
    """
    f = as_format(format)
    bits = f.fraction_bits if result_bits is None else result_bits
    top = np.where(magnitude != 0, exponent + bit_length(magnitude) - 1, f.emin)
    place = np.maximum(top, f.emin) - bits  # exponent of the result's last bit
    kept = round_shift(magnitude, place - exponent, sign, rounding)

    # The hidden bit of ``kept`` is added to the exponent field (so the field starts one lower), and
    # a carry out of the rounding increments the exponent by itself. Exponents far above emax are
    # limited to emax + 1: such a number is above max_finite in any case.
    spare = f.fraction_bits - bits
    number = ((np.minimum(place + bits, f.emax + 1) - f.emin) << bits) + kept
    number = number.view(np.uint64)
    code = number << np.uint64(spare + f.storage_shift)
    over = number > np.uint64(f.max_finite >> f.storage_shift >> spare)
    if over.any():
        inward = overflow == "ieee" and rounding in ("RZ", "RTO")
        stop = np.full(code.shape, overflow == "saturate" or inward)
        if overflow == "ieee" and rounding in ("RU", "RD"):
            stop = stop | (sign == (rounding == "RU"))
        limit = np.where(stop, np.uint64(f.max_finite), np.uint64(f.overflow))
        code = np.where(over, limit, code)
        if not f.overflow_has_sign:
            sign = sign & (stop | ~over)
    if f.specials is Specials.FNUZ:  # there is no −0
        sign = sign & (code != 0)
    code |= sign.astype(np.uint64) << np.uint64(f.width - 1 + f.storage_shift)
    return code.astype(code_dtype(f))
