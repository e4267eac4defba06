"""The one rounding: an exact magnitude of integer bits becomes a code."""

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import as_format
from vitruvian.validate import one_of

__all__ = ["ROUNDINGS", "bit_length", "jam", "round_pack", "round_shift"]

ROUNDINGS = ("RNE", "RNA", "RZ", "RU", "RD")
JAM_BITS = 60  # magnitudes must stay below 2^JAM_BITS: 53 bits of fp64, a half, sticky, and room


def check_rounding(rounding):
    """Return `rounding`, or raise ValueError when it is not one of `ROUNDINGS`."""
    one_of("rounding", rounding, ROUNDINGS)
    return rounding


def bit_length(magnitude):
    """Bits of each nonnegative int64 (below 2^62); 0 for 0."""
    bits = (magnitude.astype(np.float64).view(np.int64) >> 52) - 1022
    bits -= magnitude >> np.clip(bits - 1, 0, 63) == 0  # the float was rounded up to a power of two
    return np.maximum(bits, 0)


_int_bit_length = np.vectorize(int.bit_length, otypes=[np.int64])


def jam(magnitude, exponent):
    """Shorten Python-int magnitudes to 60 bits, the last one the OR of all that is dropped.

    Parameters
    ----------
    magnitude : ndarray of object
    exponent : ndarray of int64
        Weight of the magnitude's last bit.

    Returns
    -------
    magnitude, exponent : ndarray of int64
    """
    drop = np.maximum(_int_bit_length(magnitude) - JAM_BITS, 0)
    places = drop.astype(object)
    kept = magnitude >> places
    lost = (kept << places) != magnitude
    return kept.astype(np.int64) | lost.astype(np.int64), exponent + drop


def round_shift(magnitude, shift, sign, rounding):
    """Integers nearest to (−1)^sign · magnitude · 2^−shift, as magnitudes.

    `magnitude` is int64, at least 0 and below 2^60; a negative `shift` must not take it above 2^62.
    """
    check_rounding(rounding)
    if shift.size and shift.min() < 0:
        magnitude = magnitude << np.maximum(-shift, 0)
        shift = np.maximum(shift, 0)
    shift = np.minimum(shift, JAM_BITS + 1)
    kept = magnitude >> shift
    if rounding == "RZ":
        return kept
    twice = (magnitude - (kept << shift)) << 1
    one = np.int64(1) << shift
    if rounding == "RNE":
        return kept + (twice + (kept & 1) > one)
    if rounding == "RNA":
        return kept + (twice >= one)
    return kept + ((twice > 0) & (sign == (rounding == "RD")))


def round_pack(
    sign, magnitude, exponent, format, rounding="RNE", *, result_bits=None, overflow="ieee"
):
    """Codes of (−1)^sign · magnitude · 2^exponent, rounded once.

    Parameters
    ----------
    sign : ndarray of bool
    magnitude : ndarray of int64
        At least 0 and below 2^60. The last bit may stand for "something below" when it is at
        least two bits below the result's last place.
    exponent : ndarray of int64
    format : FloatFormat or str
    rounding : str
        "RNE", "RNA" (ties away from zero), "RZ", "RU" or "RD".
    result_bits : int, optional
        Fraction bits to round to, fewer than the format's; the bits below are zero.
    overflow : str
        "ieee": RZ, and RU or RD away from it, stop at the largest finite number. "infinity":
        every overflow gives infinity. "saturate": every overflow gives the largest finite number.
        A format without infinity gives its NaN, without a sign.

    Returns
    -------
    ndarray of unsigned int
    """
    f = as_format(format)
    bits = f.fraction_bits if result_bits is None else result_bits
    top = np.where(magnitude != 0, exponent + bit_length(magnitude) - 1, f.emin)
    place = np.maximum(top, f.emin) - bits  # weight of the result's last bit
    kept = round_shift(magnitude, place - exponent, sign, rounding)

    # With the hidden bit added to the exponent field, a carry of the rounding goes where it must.
    # Exponents far above emax are cut to emax + 1: such a number is above max_finite either way.
    spare = f.fraction_bits - bits
    number = ((np.minimum(place + bits, f.emax + 1) - f.emin) << bits) + kept
    number = number.view(np.uint64)
    code = number << np.uint64(spare + f.storage_shift)
    over = number > np.uint64(f.max_finite >> f.storage_shift >> spare)
    if over.any():
        stop = np.full(code.shape, overflow == "saturate" or (overflow, rounding) == ("ieee", "RZ"))
        if overflow == "ieee" and rounding in ("RU", "RD"):
            stop = stop | (sign == (rounding == "RU"))
        limit = np.where(stop, np.uint64(f.max_finite), np.uint64(f.overflow))
        code = np.where(over, limit, code)
        if not f.has_infinity:
            sign = sign & (stop | ~over)
    code |= sign.astype(np.uint64) << np.uint64(f.width - 1 + f.storage_shift)
    return code.astype(code_dtype(f))
