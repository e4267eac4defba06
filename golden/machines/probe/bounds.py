"""Bounds on the terms of a rule: their exponents, their last bits and their size."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product as iterproduct

import numpy as np

from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import unpack_scale
from vitruvian.golden.fp.spec import DotSpec

_FEW = 4  # fraction bits of formats whose significands are all tried
_WIDE = 23  # fraction bits of fp32
_GROUP = 16  # products of a group of the lanes "sixteens"


@dataclass(frozen=True)
class Bounds:
    """Bounds on all nonzero values of one kind.

    Attributes
    ----------
    low, high : int
        The least and the largest exponent that the value is aligned by.
    last : int
        No value has a bit below 2^last.
    fine : int
        No value has a bit below 2^(E − fine), with E its exponent.
    hollow : int
        No value is smaller than 2^(E − hollow).
    size : Fraction
        No value is larger than ``size`` · 2^E.
    largest : Fraction
        No value is larger than this.
    """

    low: int
    high: int
    last: int
    fine: int
    hollow: int
    size: Fraction
    largest: Fraction


def _codes(format: FloatFormat) -> np.ndarray:
    """Return codes among which are those that bounds rest on: runs of ones and single ones.

    Formats wider than fp32 are neither converted nor flushed, so that fewer codes are enough.
    """
    f = format
    bits = [1 << i for i in range(f.fraction_bits) if f.fraction_bits <= _WIDE or i == 0]
    ones = [(1 << f.fraction_bits) - bit for bit in bits]
    fields = np.arange(f.exponent_ones + 1, dtype=np.uint64) << np.uint64(f.fraction_bits)
    fractions = np.array([0, *bits, *ones], np.uint64)
    codes = (fields[:, None] | fractions).ravel() << np.uint64(f.storage_shift)
    return codes.astype(code_dtype(f))


def _bounds(significand: np.ndarray, exponent: np.ndarray, fraction_bits: int) -> Bounds:
    """Return the bounds of significand · 2^(exponent − fraction_bits), where it is not zero."""
    rows = sorted({(int(m), int(e)) for m, e in zip(significand, exponent, strict=True) if m})
    rows = rows or [(1 << fraction_bits, 0)]
    last = [e - fraction_bits + (m & -m).bit_length() - 1 for m, e in rows]
    first = [e - fraction_bits + m.bit_length() - 1 for m, e in rows]
    return Bounds(
        low=min(e for _, e in rows),
        high=max(e for _, e in rows),
        last=min(last),
        fine=max(e - x for (_, e), x in zip(rows, last, strict=True)),
        hollow=max(e - x for (_, e), x in zip(rows, first, strict=True)),
        size=Fraction(max(m for m, _ in rows), 1 << fraction_bits),
        largest=max(m * Fraction(2) ** (e - fraction_bits) for m, e in rows),
    )


@lru_cache
def _operand(format: FloatFormat, to: FloatFormat | None, least: int | None) -> Bounds:
    """Return the bounds of an operand that is converted, and zero below 2^least."""
    codes = _codes(format)
    if to is not None and to != format:
        codes, format = convert(codes, format, to), to
    u = unpack(codes, format)
    number = ~(u.nan | u.infinity)
    bounds = _bounds(u.significand[number], u.exponent[number], format.fraction_bits)
    if least is None or least <= bounds.last:
        return bounds
    value = np.ldexp(u.significand.astype(float), u.exponent - format.fraction_bits)
    number &= value >= np.ldexp(1.0, least)
    return _bounds(u.significand[number], u.exponent[number], format.fraction_bits)


def _operands(rule: DotSpec) -> tuple[Bounds, Bounds]:
    least = rule.output.emin if rule.flush else None
    return (
        _operand(rule.input, rule.a.convert, least),
        _operand(rule.input_b, rule.a.convert, least),
    )


@lru_cache
def _leading_size(fraction_a: int, fraction_b: int) -> Fraction:
    """Return a bound of products as multiples of their leading ones."""
    if max(fraction_a, fraction_b) > _FEW:
        return Fraction(2)
    pairs = iterproduct(range(1, 2 << fraction_a), range(1, 2 << fraction_b))
    return max(Fraction(m * n, 1 << (m * n).bit_length() - 1) for m, n in pairs)


def product(rule: DotSpec) -> Bounds:
    """Return the bounds of the terms that products give, scaled and grouped as the rule says."""
    x, y = _operands(rule)
    low, high, last = x.low + y.low, x.high + y.high, x.last + y.last
    fine, hollow, size = x.fine + y.fine, x.hollow + y.hollow, x.size * y.size
    largest = x.largest * y.largest
    if rule.sum.lanes == "sixteens":  # the sum of a group is a factor; its exponent is 0
        size = _GROUP * largest
        low, high, fine, hollow = 0, 0, -last, -last
        largest = size
    elif rule.products.exponent == "leading":
        low, high = low - hollow, high + (size >= 2)
        fine, hollow = fine + (size >= 2), 0
        size = _leading_size(rule.input.fraction_bits, rule.input_b.fraction_bits)
    if rule.scales is not None:
        codes = np.arange(256, dtype=np.uint8)
        u = unpack_scale(codes[codes != rule.scales.format.nan], rule.scales.format)
        s = _bounds(u.significand, u.exponent, rule.scales.format.fraction_bits)
        low, high, last = low + 2 * s.low, high + 2 * s.high, last + 2 * s.last
        fine, hollow, size = fine + 2 * s.fine, hollow + 2 * s.hollow, size * s.size * s.size
        largest = largest * s.largest * s.largest
    return Bounds(low, high, last, fine, hollow, size, largest)


def addend(rule: DotSpec) -> Bounds:
    """Return the bounds of a C that is one of the terms."""
    return _operand(rule.output, None, rule.output.emin if rule.flush else None)


def largest_subnormal(rule: DotSpec) -> int:
    """Return the largest exponent, not converted, of a product with a subnormal factor."""
    a, b = rule.input, rule.input_b
    return max(a.emin + b.emax, a.emax + b.emin)
