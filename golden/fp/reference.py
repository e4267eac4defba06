"""The slow reference: one number at a time, integers and `Fraction`, nothing clever.

Functions take and return codes as Python ints. Those that have the name of a vectorised one in
`golden.fp` have its parameters and results; `fused_dot_reference` is `golden.fp.fused_dot` for one
element, and `decode` and `encode` are the steps that all of them share. It is the text to read when
two models disagree.
"""

from fractions import Fraction
from typing import NamedTuple

from vitruvian.golden.fp.formats import as_format, as_int_format

__all__ = [
    "Decoded",
    "add",
    "compare",
    "convert",
    "decode",
    "encode",
    "fma",
    "from_int",
    "fused_dot_reference",
    "maximum_number",
    "minimum_number",
    "mul",
    "to_int",
]


class Decoded(NamedTuple):
    """One code taken apart: (−1)^sign · significand · 2^(exponent − fraction_bits) when finite."""

    kind: str  # "nan", "infinity" or "finite"
    sign: int
    exponent: int
    significand: int
    fraction_bits: int

    @property
    def value(self):
        """The finite value as a `Fraction`."""
        magnitude = self.significand * power_of_two(self.exponent - self.fraction_bits)
        return -magnitude if self.sign else magnitude


def power_of_two(exponent):
    """2^exponent as a `Fraction`."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(x):
    """The largest e with 2^e <= x, for a positive `Fraction`."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power_of_two(e) <= x else e - 1


def decode(code, format) -> Decoded:
    """Take a code apart."""
    f = as_format(format)
    bits = code >> f.storage_shift
    sign = bits >> (f.width - 1) & 1
    field = bits >> f.fraction_bits & f.exponent_ones
    fraction = bits & ((1 << f.fraction_bits) - 1)
    if field == f.exponent_ones:
        if f.nan == "ocp_e4m3":
            if fraction == (1 << f.fraction_bits) - 1:
                return Decoded("nan", sign, 0, 0, f.fraction_bits)
        elif fraction:
            return Decoded("nan", sign, 0, 0, f.fraction_bits)
        else:
            return Decoded("infinity", sign, 0, 0, f.fraction_bits)
    if field == 0:
        return Decoded("finite", sign, f.emin, fraction, f.fraction_bits)
    return Decoded("finite", sign, field - f.bias, fraction | 1 << f.fraction_bits, f.fraction_bits)


def round_to_integer(x, rounding, negative):
    """Round the magnitude `x` >= 0 of a number of the given sign to an integer."""
    whole = x.numerator // x.denominator
    rest = x - whole
    half = Fraction(1, 2)
    up = {
        "RNE": rest > half or (rest == half and whole % 2 == 1),
        "RNA": rest >= half,
        "RZ": False,
        "RU": rest > 0 and not negative,
        "RD": rest > 0 and negative,
    }[rounding]
    return whole + up


def encode(value, format, rounding="RNE", *, zero_sign=0, result_bits=None, overflow="ieee"):
    """Round a `Fraction` to a code.

    Parameters
    ----------
    value : Fraction
    format : FloatFormat or str
    rounding : str
        "RNE", "RNA" (ties away from zero), "RZ", "RU" or "RD".
    zero_sign : int
        Sign of the result when `value` is exactly zero.
    result_bits : int, optional
        Fraction bits to round to, fewer than the format's.
    overflow : str
        "ieee": RZ, and RU or RD away from it, stop at the largest finite number. "infinity":
        every overflow gives infinity. "saturate": every overflow gives the largest finite number.
    """
    f = as_format(format)
    bits = f.fraction_bits if result_bits is None else result_bits
    if value == 0:
        return f.sign_mask if zero_sign else 0
    negative, magnitude = value < 0, abs(value)
    sign = f.sign_mask if negative else 0
    place = power_of_two(max(floor_log2(magnitude), f.emin) - bits)
    rounded = round_to_integer(magnitude / place, rounding, negative) * place
    largest = decode(f.max_finite, f).value
    if rounded > largest:
        inward = rounding == "RZ" or rounding == ("RU" if negative else "RD")
        if overflow == "saturate" or (overflow == "ieee" and inward):
            return sign | f.max_finite
        return _infinity(f, negative)
    if rounded == 0:
        return sign
    exponent = max(floor_log2(rounded), f.emin)
    significand = rounded / power_of_two(exponent - f.fraction_bits)
    hidden = 1 << f.fraction_bits
    field = exponent + f.bias if significand >= hidden else 0
    return sign | (field << f.fraction_bits | int(significand) % hidden) << f.storage_shift


def fused_dot_reference(a, b, c, spec):
    """D = C + Σ A_k·B_k as `DotSpec` defines it: sequences of codes `a` and `b`, a code `c`."""
    if len(a) > spec.k:
        for start in range(0, len(a), spec.k):
            block = slice(start, start + spec.k)
            c = fused_dot_reference(a[block], b[block], c, spec)
        return c

    a = [decode(code, spec.input) for code in a]
    b = [decode(code, spec.input_b) for code in b]
    c = decode(c, spec.output)

    # Specials
    infinities = set()
    for x, y in zip(a, b, strict=True):
        if "nan" in (x.kind, y.kind):
            return spec.nan_code
        if "infinity" in (x.kind, y.kind):
            if (x.kind == "finite" and x.significand == 0) or (
                y.kind == "finite" and y.significand == 0
            ):
                return spec.nan_code
            infinities.add(x.sign ^ y.sign)
    if c.kind == "nan":
        return spec.nan_code
    if c.kind == "infinity":
        infinities.add(c.sign)
    if len(infinities) == 2:
        return spec.nan_code
    if infinities:
        return _infinity(spec.output, infinities.pop(), spec.nan_code)

    # Terms: (sign, exponent, exact value)
    terms = [
        (x.sign ^ y.sign, x.exponent + y.exponent, x.value * y.value)
        for x, y in zip(a, b, strict=True)
    ]
    terms.append((c.sign, c.exponent, c.value))
    nonzero = [exponent for _, exponent, value in terms if value]
    if not nonzero:
        minus = spec.zero == "ieee" and all(sign for sign, _, _ in terms)
        return spec.output.sign_mask if minus else 0

    if spec.window is None:
        total = sum(value for _, _, value in terms)
    else:
        if spec.emax_floor is not None:
            nonzero.append(spec.emax_floor)
        q = power_of_two(max(nonzero) - spec.window)
        units = [value / q for _, _, value in terms]
        if spec.truncate == "magnitude":
            total = sum(int(u) for u in units) * q  # int() chops towards zero
        else:
            cut = [u.numerator // u.denominator for u in units]  # floor
            sticky = any(u != n for u, n in zip(units, cut, strict=True))
            total = sum(cut) * q + sticky * q / 2
    code = encode(
        total, spec.output, spec.rounding, result_bits=spec.result_bits, overflow="infinity"
    )
    if code == spec.output.sign_mask and spec.zero == "positive":
        return 0
    return spec.nan_code if decode(code, spec.output).kind == "nan" else code


def fma(a, b, c, format, output=None, rounding="RNE"):
    """a·b + c, IEEE 754 fusedMultiplyAdd; c and the result in `output`."""
    f = as_format(format)
    out = f if output is None else as_format(output)
    x, y, z = decode(a, f), decode(b, f), decode(c, out)
    product_sign = x.sign ^ y.sign
    kinds = (x.kind, y.kind)
    if "nan" in kinds or z.kind == "nan":
        return out.canonical_nan
    if "infinity" in kinds:
        other = y if x.kind == "infinity" else x
        if other.kind == "finite" and other.significand == 0:
            return out.canonical_nan
        if z.kind == "infinity" and z.sign != product_sign:
            return out.canonical_nan
        return _infinity(out, product_sign)
    if z.kind == "infinity":
        return _infinity(out, z.sign)
    zero_sign = product_sign if product_sign == z.sign else int(rounding == "RD")
    return encode(x.value * y.value + z.value, out, rounding, zero_sign=zero_sign)


def _infinity(format, sign, nan=None):
    if not format.has_infinity:
        return format.canonical_nan if nan is None else nan
    return format.infinity | (format.sign_mask if sign else 0)


def mul(a, b, format, output=None, rounding="RNE"):
    """a·b, IEEE 754 multiplication."""
    f = as_format(format)
    out = f if output is None else as_format(output)
    x, y = decode(a, f), decode(b, f)
    sign = x.sign ^ y.sign
    if "nan" in (x.kind, y.kind):
        return out.canonical_nan
    if "infinity" in (x.kind, y.kind):
        if "finite" in (x.kind, y.kind) and (x if x.kind == "finite" else y).significand == 0:
            return out.canonical_nan
        return _infinity(out, sign)
    return encode(x.value * y.value, out, rounding, zero_sign=sign)


def add(a, b, format, output=None, rounding="RNE"):
    """a + b, IEEE 754 addition."""
    f = as_format(format)
    out = f if output is None else as_format(output)
    x, y = decode(a, f), decode(b, f)
    if "nan" in (x.kind, y.kind):
        return out.canonical_nan
    if "infinity" in (x.kind, y.kind):
        signs = {z.sign for z in (x, y) if z.kind == "infinity"}
        return out.canonical_nan if len(signs) == 2 else _infinity(out, signs.pop())
    zero_sign = x.sign if x.sign == y.sign else int(rounding == "RD")
    return encode(x.value + y.value, out, rounding, zero_sign=zero_sign)


def convert(code, source, target, rounding="RNE", *, saturate=False):
    """A code of `source` as a code of `target`; NaN becomes the canonical NaN."""
    x, out = decode(code, source), as_format(target)
    if x.kind == "nan":
        return out.canonical_nan
    if x.kind == "infinity":
        if saturate:
            return out.max_finite | (out.sign_mask if x.sign else 0)
        return _infinity(out, x.sign)
    return encode(
        x.value, out, rounding, zero_sign=x.sign, overflow="saturate" if saturate else "ieee"
    )


def to_int(code, source, target="int32", rounding="RNE"):
    """A code rounded to an integer value and saturated; NaN becomes 0."""
    x, i = decode(code, source), as_int_format(target)
    if x.kind == "nan":
        return 0
    if x.kind == "infinity":
        return i.minimum if x.sign else i.maximum
    n = round_to_integer(abs(x.value), rounding, bool(x.sign))
    return min(max(-n if x.sign else n, i.minimum), i.maximum)


def from_int(value, target, rounding="RNE"):
    """An integer value as a code."""
    return encode(Fraction(value), target, rounding)


def _order(x) -> tuple[int, Fraction, int]:
    """Sort key of a number: infinities outside, then the value, then −0 before +0."""
    if x.kind == "infinity":
        return (-1 if x.sign else 1, Fraction(0), 0)
    return (0, x.value, 0 if x.sign else 1)


def compare(a, b, format):
    """−1, 0 or 1 as a <, =, > b (−0 equals +0); 2 when one of them is NaN."""
    x, y = decode(a, format), decode(b, format)
    if "nan" in (x.kind, y.kind):
        return 2
    p, q = _order(x)[:2], _order(y)[:2]
    return (p > q) - (p < q)


def minimum_number(a, b, format):
    """IEEE 754-2019 minimumNumber: a NaN loses to a number, −0 < +0."""
    return _pick(a, b, format, smaller=True)


def maximum_number(a, b, format):
    """IEEE 754-2019 maximumNumber: a NaN loses to a number, −0 < +0."""
    return _pick(a, b, format, smaller=False)


def _pick(a, b, format, smaller):
    f = as_format(format)
    x, y = decode(a, f), decode(b, f)
    if x.kind == "nan":
        return f.canonical_nan if y.kind == "nan" else b & f.code_mask
    if y.kind == "nan":
        return a & f.code_mask
    return (a if (_order(x) <= _order(y)) == smaller else b) & f.code_mask
