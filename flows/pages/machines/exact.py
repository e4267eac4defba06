"""Exact arithmetic on single codes, with fractions: what the worked examples are computed with."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.convert import convert
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec


@dataclass(frozen=True)
class Number:
    """A finite number (−1)^negative · significand · 2^(exponent − fraction_bits).

    Attributes
    ----------
    negative : bool
    exponent : int
    significand : int
    fraction_bits : int
    """

    negative: bool
    exponent: int
    significand: int
    fraction_bits: int

    @property
    def value(self) -> Fraction:
        """The value."""
        magnitude = self.significand * power(self.exponent - self.fraction_bits)
        return -magnitude if self.negative else magnitude

    def __mul__(self, other: "Number") -> "Number":
        """Return the product, which is not normalised."""
        return Number(
            self.negative != other.negative,
            self.exponent + other.exponent,
            self.significand * other.significand,
            self.fraction_bits + other.fraction_bits,
        )


def power(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(2) ** exponent


def leading(value: Fraction) -> int:
    """Return the exponent of the leading one of a number that is not zero."""
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return exponent if power(exponent) <= magnitude else exponent - 1


def decode(code: int, format: FloatFormat) -> Number:
    """Decode a code.

    Raises
    ------
    ValueError
        If the code is an infinity or a NaN.
    """
    u = unpack(np.array([code], code_dtype(format)), format)
    if u.infinity[0] or u.nan[0]:
        raise ValueError(f"an operand must be a finite number, not {code:#x} in {format}")
    return Number(bool(u.sign[0]), int(u.exponent[0]), int(u.significand[0]), format.fraction_bits)


def value_of(code: int, format: FloatFormat) -> Fraction:
    """Return the value of a code."""
    return decode(code, format).value


def operand(code: int, format: FloatFormat, spec: DotSpec) -> Number:
    """Decode an operand, converted and flushed as ``spec`` says."""
    if spec.a.convert is not None and spec.a.convert != format:
        code = int(convert(np.array([code], code_dtype(format)), format, spec.a.convert)[0])
        format = spec.a.convert
    number = decode(code, format)
    if spec.flush and number.significand and leading(number.value) < spec.output.emin:
        return Number(number.negative, number.exponent, 0, number.fraction_bits)
    return number


def truncated(value: Fraction, unit: Fraction, how: str) -> int:
    """Return a value in units, truncated to an integer: "magnitude", "odd" or "floor"."""
    units = value / unit
    if how == "floor":
        return units.numerator // units.denominator
    whole, rest = divmod(abs(units.numerator), units.denominator)
    if how == "odd" and rest:
        whole |= 1
    return -whole if value < 0 else whole


def _whole(units: Fraction, rounding: str) -> int:
    """Return a positive number rounded to an integer."""
    whole, rest = divmod(units.numerator, units.denominator)
    twice = 2 * rest
    if rounding == "RNE":
        whole += twice > units.denominator or (twice == units.denominator and whole & 1)
    elif rounding == "RTO" and rest:
        whole |= 1
    return whole


def _is_tiny(value: Fraction, spec: DotSpec) -> bool:
    """Return True if a value is below the least normal number when rounded to full precision."""
    exponent = leading(value)
    digits = _whole(abs(value) / power(exponent - spec.result.bits), spec.result.rounding)
    return digits * power(exponent - spec.result.bits) < power(spec.output.emin)


def rounded(value: Fraction, zero_is_negative: bool, spec: DotSpec) -> int:
    """Return the code of a value rounded once and flushed as ``spec`` says.

    Parameters
    ----------
    zero_is_negative : bool
        The sign of the result if ``value`` is zero.
    """
    out = spec.output
    negative = value < 0 or (value == 0 and zero_is_negative)
    sign = out.negative_zero if negative else 0
    if value == 0:
        return sign
    exponent = max(leading(value), out.emin)
    whole = _whole(abs(value) / power(exponent - spec.result.bits), spec.result.rounding)
    if spec.result.flush == "before" and leading(value) < out.emin:
        return sign
    if spec.result.flush == "unbounded" and _is_tiny(value, spec):
        return sign
    if not whole:
        return sign
    result = whole * power(exponent - spec.result.bits)
    exponent = leading(result)
    if exponent > out.emax:
        return out.overflow | sign
    if exponent < out.emin:
        if spec.result.flush == "after":
            return sign
        field, fraction = 0, result / power(out.emin - out.fraction_bits)
    else:
        field = exponent + out.bias
        fraction = result / power(exponent - out.fraction_bits) - (1 << out.fraction_bits)
    return ((field << out.fraction_bits | int(fraction)) << out.storage_shift) | sign
