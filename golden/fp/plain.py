"""Fused dot products by plain rules, vectorised: integers, shifts and one rounding.

Every operand is decoded to a signed significand and an exponent, every term is truncated to a
multiple of one unit q, and the sum of the terms is rounded once. Sums of up to 59 bits are
computed in int64 (their terms in int32 if they fit), longer sums with Python ints or, if there are
many, by ``golden.fp.dot_compiled``, which returns the same bits.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.round import jam, round_pack
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.fp.terms import Terms

# Marks in place of an exponent for a zero (_ZERO) and for an infinity or NaN (_SPECIAL). They are
# so far from all exponents that a mark still shows after the exponents of two factors are added:
# the sum is below _ALL_ZERO for a zero product, and above _ANY_SPECIAL for a special one.
_ZERO, _SPECIAL = -(1 << 20), 1 << 22
_ALL_ZERO, _ANY_SPECIAL = -(1 << 19), 1 << 21
_CHUNK = 1 << 15  # terms per step, so that the arrays stay in the cache
_FEW = 256  # terms of a wide sum for which loading Numba takes longer than it saves


def evaluate_plain(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    spec: DotSpec,
    rounding: str | None = None,
    overflow: str = "infinity",
) -> np.ndarray:
    """Compute one block of n fused dot products by a plain rule (``DotSpec.is_plain``).

    Parameters
    ----------
    a, b : (n, K) ndarray of unsigned int, ``spec.input`` and ``spec.input_b`` codes
    c : (n,) ndarray of unsigned int, ``spec.output`` codes
    rounding : str, optional
        Any of ``ROUNDINGS``, by default ``spec.result.rounding``.
    overflow : str
        As in ``round_pack``.

    Returns
    -------
    (n,) ndarray of unsigned int, ``spec.output`` codes
    """
    rounding = spec.result.rounding if rounding is None else rounding
    d = np.empty(len(c), code_dtype(spec.output))
    step = max(_CHUNK // a.shape[1], 1)
    for start in range(0, len(c), step):
        rows = slice(start, start + step)
        d[rows] = _chunk(
            np.ascontiguousarray(a[rows].T),
            np.ascontiguousarray(b[rows].T),
            c[rows],
            spec,
            rounding,
            overflow,
        )
    return d


def _chunk(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec, rounding: str, overflow: str
) -> np.ndarray:
    """Compute what ``evaluate_plain`` does, with the terms on the first axis."""
    sig_a, exp_a = operand(a, spec.input)
    sig_b, exp_b = operand(b, spec.input_b)
    sig_c, exp_c = operand(c, spec.output)
    emax = np.maximum((exp_a + exp_b).max(axis=0), exp_c)
    special = (emax > _ANY_SPECIAL) | (emax < _ALL_ZERO)
    emax[special] = 0
    if special.any():
        # The finite terms of these rows may lie far above their E_max of 0, and shifting them
        # would overflow. Their sums are not used, so the terms are cleared.
        sig_a[:, special] = 0
        sig_c[special] = 0
    if spec.sum.floor is not None:
        emax = np.maximum(emax, spec.sum.floor)

    terms = Terms(sig_a, exp_a, sig_b, exp_b, sig_c, exp_c, emax)
    if sum_bits(spec, len(a)) < 60:
        sign, magnitude, exponent = plain_sum(terms, spec)
    elif a.size < _FEW:
        sign, magnitude, exponent = plain_sum(terms, spec, wide=True)
    else:
        from vitruvian.golden.fp.dot_compiled import compiled_sum  # here, as Numba loads slowly

        sign, magnitude, exponent = compiled_sum(terms, spec)
    d = round_pack(
        sign,
        magnitude,
        exponent,
        spec.output,
        rounding,
        result_bits=spec.result.bits,
        overflow=overflow,
    )
    if not spec.output.has_infinity:  # ``round_pack`` gave the canonical NaN for an overflow
        d[d == spec.output.canonical_nan] = spec.nan_code
    if rounding == "RD":  # an exact zero sum of nonzero terms is −0 (IEEE 754-2019, section 6.3)
        d[(magnitude == 0) & ~special] |= d.dtype.type(spec.output.sign_mask)
    if special.any():
        d[special] = _special(a[:, special], b[:, special], c[special], spec, rounding)
    if spec.result.zero == "positive":
        d[d == spec.output.negative_zero] = 0
    return d


@lru_cache
def _table(format: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Return the significand and the exponent of every code of a format, as ``operand`` does."""
    return _operand(np.arange(1 << format.code_bits), format, np.int32)


def _operand(codes: np.ndarray, format: FloatFormat, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    u = unpack(codes, format)
    exponent = np.where(u.significand == 0, _ZERO, u.exponent)
    exponent = np.where(u.infinity | u.nan, _SPECIAL, exponent)
    return np.where(u.sign, -u.significand, u.significand).astype(dtype), exponent.astype(np.int32)


def operand(codes: np.ndarray, format: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Decode codes to signed significands and exponents.

    The value is significand · 2^(exponent − fraction_bits). Zeros, infinities and NaNs have a
    significand of 0 and a mark in place of the exponent.
    """
    if format.storage_bits > 16:
        return _operand(codes, format, np.int64)
    significand, exponent = _table(format)
    return significand.take(codes), exponent.take(codes)


def sum_bits(spec: DotSpec, terms: int) -> int:
    """Return a width that holds the sum, its sign and the sticky bit; huge without a window."""
    if spec.sum.window is None:
        return 1 << 20
    product_bits = spec.input.fraction_bits + spec.input_b.fraction_bits
    return max(spec.sum.window, product_bits, spec.output.fraction_bits) + terms.bit_length() + 4


def plain_sum(
    terms: Terms, spec: DotSpec, wide: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sum of the truncated terms.

    Parameters
    ----------
    wide : bool
        If True, compute with Python ints, for sums that do not fit into an int64.

    Returns
    -------
    sign : (n,) ndarray of bool
    magnitude : (n,) ndarray of int64
        With ``wide``, shortened by ``jam``.
    exponent : (n,) ndarray of int64
        Exponent of the magnitude's last bit.
    """
    # The type of a term. The sum of K terms is always accumulated in int64, or in Python ints.
    dtype = object if wide else np.int32 if sum_bits(spec, 0) < 32 else np.int64
    product = terms.sig_a.astype(dtype, copy=False) * terms.sig_b.astype(dtype, copy=False)
    addend = terms.sig_c.astype(dtype, copy=False)
    unit, last_p, last_c = _units(product, terms, spec)
    product_bits = spec.input.fraction_bits + spec.input_b.fraction_bits
    product, cut_p = _cut(product, last_p - unit, product_bits, spec)
    addend, cut_c = _cut(addend, last_c - unit, spec.output.fraction_bits, spec)
    total = product.sum(axis=0, dtype=object if wide else np.int64) + addend
    if spec.sum.truncate == "floor":  # append the sticky bit, which halves the unit
        total = (total << 1) + (cut_p.any(axis=0) | cut_c)
        unit = unit - 1
    sign, magnitude = (total < 0).astype(bool), np.abs(total)
    if wide:
        return sign, *jam(magnitude, unit.astype(np.int64))
    return sign, magnitude, unit.astype(np.int64)


def _units(
    product: np.ndarray, terms: Terms, spec: DotSpec
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the exponents of q, of every product's last bit and of C's last bit.

    Without a window, q is the lowest last bit of all nonzero terms.
    """
    fraction_p = spec.input.fraction_bits + spec.input_b.fraction_bits
    last_p = terms.exp_a + terms.exp_b - np.int32(fraction_p)
    last_c = terms.exp_c - np.int32(spec.output.fraction_bits)
    if spec.sum.window is not None:
        return terms.emax - np.int32(spec.sum.window), last_p, last_c
    none = np.int32(1 << 20)
    lowest = np.where(product == 0, none, last_p).min(axis=0)
    return np.minimum(lowest, np.where(terms.sig_c == 0, none, last_c)), last_p, last_c


def _cut(
    significand: np.ndarray, gap: np.ndarray, fraction_bits: int, spec: DotSpec
) -> tuple[np.ndarray, Any]:
    """Return significand · 2^gap truncated to integers, and which of them lost bits."""
    # All significands are first shifted left by one common amount, the largest gap that occurs;
    # each is then shifted right by the rest, so that no shift amount is negative.
    if spec.sum.window is None:
        up = int(gap.max(where=significand != 0, initial=0))
    else:
        up = max(spec.sum.window - fraction_bits, 0)  # the gap of a term with the exponent E_max
    right = np.clip(up - gap, 0, up + fraction_bits + 2).astype(significand.dtype, copy=False)
    value = significand << up
    if spec.sum.truncate == "magnitude":
        kept = np.abs(value) >> right
        return np.where(value < 0, -kept, kept), np.False_
    kept = value >> right
    return kept, (kept << right) != value


def _special(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec, rounding: str
) -> np.ndarray:
    """Return the results of rows that have an infinity or NaN, or only zeros."""
    x, y, z = unpack(a, spec.input), unpack(b, spec.input_b), unpack(c, spec.output)
    sign = x.sign ^ y.sign
    infinity = x.infinity | y.infinity
    zero = ((x.significand == 0) & ~x.infinity) | ((y.significand == 0) & ~y.infinity)
    # IEEE 754-2019, section 7.2: ∞·0 and sums of infinities with different signs are invalid.
    positive = (infinity & ~sign).any(axis=0) | (z.infinity & ~z.sign)
    negative = (infinity & sign).any(axis=0) | (z.infinity & z.sign)
    nan = (x.nan | y.nan | (infinity & zero)).any(axis=0) | z.nan | (positive & negative)
    if rounding == "RD":
        minus = sign.any(axis=0) | z.sign
    else:
        minus = sign.all(axis=0) & z.sign & (spec.result.zero == "ieee")
    out = spec.output
    d = np.where(minus, out.negative_zero, 0).astype(code_dtype(out))
    if out.overflow_has_sign:
        d[positive] = out.overflow
        d[negative] = out.overflow | out.sign_mask
    else:
        nan |= positive | negative
    d[nan] = spec.nan_code
    return d
