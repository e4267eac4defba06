"""The scalar reference: plain Python with integers and ``Fraction``, one number at a time.

It is slow and straightforward; when two models disagree, this text decides. Codes are Python ints.
A function with the name of a vectorised function in ``golden.fp`` has the same parameters and
results for one element. ``fused_dot_reference`` is ``golden.fp.fused_dot`` for one element, and
``decode`` and ``encode`` are the steps that all functions share.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from vitruvian.golden.fp.formats import FloatFormat, IntFormat, Specials, as_format, as_int_format
from vitruvian.golden.fp.spec import DotSpec

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
    """A decoded code; a finite one is (−1)^sign · significand · 2^(exponent − fraction_bits)."""

    kind: str  # "nan", "infinity" or "finite"
    sign: int
    exponent: int
    significand: int
    fraction_bits: int

    @property
    def value(self) -> Fraction:
        """The value of a finite code."""
        magnitude = self.significand * power_of_two(self.exponent - self.fraction_bits)
        return -magnitude if self.sign else magnitude


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(x: Fraction) -> int:
    """Return the largest e with 2^e <= x, for a positive x."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power_of_two(e) <= x else e - 1


def decode(code: int, format: FloatFormat | str) -> Decoded:
    """Decode a code into its kind, sign, exponent and significand."""
    f = as_format(format)
    bits = code >> f.storage_shift
    sign = bits >> (f.width - 1) & 1
    field = bits >> f.fraction_bits & f.exponent_ones
    fraction = bits & ((1 << f.fraction_bits) - 1)
    if f.specials is Specials.FNUZ and bits == 1 << (f.width - 1):
        return Decoded("nan", sign, 0, 0, f.fraction_bits)
    if field == f.exponent_ones:
        if f.specials is Specials.IEEE:
            return Decoded("nan" if fraction else "infinity", sign, 0, 0, f.fraction_bits)
        if f.specials is Specials.OCP_E4M3 and fraction == (1 << f.fraction_bits) - 1:
            return Decoded("nan", sign, 0, 0, f.fraction_bits)
    if field == 0:
        return Decoded("finite", sign, f.emin, fraction, f.fraction_bits)
    return Decoded("finite", sign, field - f.bias, fraction | 1 << f.fraction_bits, f.fraction_bits)


def round_to_integer(x: Fraction, rounding: str, negative: bool) -> int:
    """Round the magnitude ``x`` >= 0 of a number with the given sign to an integer."""
    whole = x.numerator // x.denominator
    rest = x - whole
    half = Fraction(1, 2)
    up = {
        "RNE": rest > half or (rest == half and whole % 2 == 1),
        "RNA": rest >= half,
        "RZ": False,
        "RU": rest > 0 and not negative,
        "RD": rest > 0 and negative,
        "RTO": rest > 0 and whole % 2 == 0,
    }[rounding]
    return whole + up


def encode(
    value: Fraction,
    format: FloatFormat | str,
    rounding: str = "RNE",
    *,
    zero_sign: int = 0,
    result_bits: int | None = None,
    overflow: str = "ieee",
) -> int:
    """Round a number to a code.

    Parameters
    ----------
    rounding : str
        "RNE", "RNA" (ties away from zero), "RZ", "RU", "RD" or "RTO" (to odd).
    zero_sign : int
        Sign of the result if ``value`` is exactly zero.
    result_bits : int, optional
        Fraction bits to round to, fewer than the format's; the bits below are zero.
    overflow : str
        "ieee": RZ, RTO, and RU or RD if they round towards zero, stop at the largest finite number.
        "infinity": every overflow gives an infinity. "saturate": every overflow gives the largest
        finite number. A format without infinity gives its positive NaN instead of an infinity, and
        a format without NaN its largest number.

    Returns
    -------
    int
    """
    f = as_format(format)
    bits = f.fraction_bits if result_bits is None else result_bits
    if value == 0:
        return f.negative_zero if zero_sign else 0
    negative, magnitude = value < 0, abs(value)
    sign = f.sign_mask if negative else 0
    # The unit in the last place of the result; emin is the exponent of all subnormals.
    place = power_of_two(max(floor_log2(magnitude), f.emin) - bits)
    rounded = round_to_integer(magnitude / place, rounding, negative) * place
    largest = decode(f.max_finite, f).value
    if rounded > largest:
        inward = rounding in ("RZ", "RTO") or rounding == ("RU" if negative else "RD")
        if overflow == "saturate" or (overflow == "ieee" and inward):
            return sign | f.max_finite
        return _infinity(f, negative)
    if rounded == 0:
        return f.negative_zero if negative else 0
    exponent = max(floor_log2(rounded), f.emin)
    significand = rounded / power_of_two(exponent - f.fraction_bits)
    hidden = 1 << f.fraction_bits
    field = exponent + f.bias if significand >= hidden else 0
    return sign | (field << f.fraction_bits | int(significand) % hidden) << f.storage_shift


def fused_dot_reference(
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    spec: DotSpec,
    trace: dict[str, Any] | None = None,
) -> int:
    """Return D = C + Σ A_k·B_k as ``DotSpec`` defines it.

    Parameters
    ----------
    a, b : sequences of int of one length, ``spec.input`` and ``spec.input_b`` codes
    c : int, a ``spec.output`` code
    trace : dict, optional
        Receives the steps of the last block: its ``terms`` with C last, E_max (``emax``), the terms
        ``kept`` in units of q and their ``total``.

    Returns
    -------
    int, a ``spec.output`` code

    Raises
    ------
    ValueError
        If the rule is not a plain one.
    """
    if not spec.is_plain:
        raise ValueError(f"spec must be a plain rule, not have {', '.join(spec.changes)}")
    if len(a) > spec.k:
        for start in range(0, len(a), spec.k):
            block = slice(start, start + spec.k)
            c = fused_dot_reference(a[block], b[block], c, spec, trace)
        return c

    pairs = [(decode(x, spec.input), decode(y, spec.input_b)) for x, y in zip(a, b, strict=True)]
    addend = decode(c, spec.output)
    special = _special(pairs, addend, spec)  # step 5
    if special is not None:
        return special
    terms = [*_products(pairs), Term(addend.sign, addend.exponent, addend.value)]  # step 1
    if trace is not None:
        trace.update(terms=terms)
    if not any(term.value for term in terms):
        return _zero(terms, spec)  # step 6
    emax = _largest_exponent(terms, spec)  # step 2
    kept, total = _cut_sum(terms, emax, spec)  # step 3
    if trace is not None:
        trace.update(emax=emax, kept=kept, total=total)
    return _rounded(total, spec)  # steps 4 and 6


# The numbered steps of docs/units/fp.md


class Term(NamedTuple):
    """A product or C: the exponent by which it is aligned, and its exact value."""

    sign: int
    exponent: int
    value: Fraction


def _products(pairs: Sequence[tuple[Decoded, Decoded]]) -> list[Term]:
    """Return the exact products, which are not normalised (step 1)."""
    return [Term(x.sign ^ y.sign, x.exponent + y.exponent, x.value * y.value) for x, y in pairs]


def _largest_exponent(terms: Sequence[Term], spec: DotSpec) -> int:
    """Return E_max of the terms that are not zero, and of the floor (step 2)."""
    exponents = [term.exponent for term in terms if term.value]
    return max(exponents if spec.sum.floor is None else [*exponents, spec.sum.floor])


def _cut_sum(terms: Sequence[Term], emax: int, spec: DotSpec) -> tuple[list[int] | None, Fraction]:
    """Cut each term to a multiple of q; return these, and the exact sum (steps 3 and 4)."""
    if spec.sum.window is None:
        return None, sum((term.value for term in terms), Fraction(0))
    q = power_of_two(emax - spec.sum.window)
    units = [term.value / q for term in terms]
    if spec.sum.truncate == "magnitude":
        cut = [int(u) for u in units]  # int() truncates towards zero
        return cut, sum(cut) * q
    cut = [u.numerator // u.denominator for u in units]  # floor
    sticky = any(u != n for u, n in zip(units, cut, strict=True))
    return cut, sum(cut) * q + sticky * q / 2


def _rounded(total: Fraction, spec: DotSpec) -> int:
    """Round the sum once, and choose the sign of a zero that this gives (steps 4 and 6)."""
    result = spec.result
    code = encode(
        total, result.format, result.rounding, result_bits=result.bits, overflow="infinity"
    )
    if code == result.format.sign_mask and result.zero == "positive":
        return 0
    return spec.nan_code if decode(code, result.format).kind == "nan" else code


def _special(
    pairs: Sequence[tuple[Decoded, Decoded]], addend: Decoded, spec: DotSpec
) -> int | None:
    """Return the result if a term is an infinity or a NaN (step 5), or None if there is none."""
    infinities: set[int] = set()
    for x, y in pairs:
        if "nan" in (x.kind, y.kind):
            return spec.nan_code
        if "infinity" in (x.kind, y.kind):
            if any(z.kind == "finite" and z.significand == 0 for z in (x, y)):
                return spec.nan_code
            infinities.add(x.sign ^ y.sign)
    if addend.kind == "nan":
        return spec.nan_code
    if addend.kind == "infinity":
        infinities.add(addend.sign)
    if not infinities:
        return None
    if len(infinities) == 2:
        return spec.nan_code
    return _infinity(spec.output, infinities.pop(), spec.nan_code)


def _zero(terms: Sequence[Term], spec: DotSpec) -> int:
    """Return the zero that a sum of zeros is (step 6)."""
    minus = spec.result.zero == "ieee" and all(term.sign for term in terms)
    return spec.output.sign_mask if minus else 0


def fma(
    a: int,
    b: int,
    c: int,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> int:
    """Return a·b + c (IEEE 754 fusedMultiplyAdd); c and the result are ``output`` codes."""
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


def _infinity(format: FloatFormat, sign: int, nan: int | None = None) -> int:
    """Return an infinity, or what replaces it: the code ``nan``, the NaN or the largest number."""
    if not format.overflow_has_sign:
        return format.canonical_nan if nan is None else nan
    return format.overflow | (format.sign_mask if sign else 0)


def mul(
    a: int,
    b: int,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> int:
    """Return a·b, rounded once to ``output`` (IEEE 754 multiplication)."""
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


def add(
    a: int,
    b: int,
    format: FloatFormat | str,
    output: FloatFormat | str | None = None,
    rounding: str = "RNE",
) -> int:
    """Return a + b, rounded once to ``output`` (IEEE 754 addition)."""
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


def convert(
    code: int,
    source: FloatFormat | str,
    target: FloatFormat | str,
    rounding: str = "RNE",
    *,
    saturate: bool = False,
) -> int:
    """Convert a code of ``source`` to a code of ``target``; a NaN becomes the canonical NaN."""
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


def to_int(
    code: int,
    source: FloatFormat | str,
    target: IntFormat | str = "int32",
    rounding: str = "RNE",
) -> int:
    """Round a code to an integer, with saturation; a NaN becomes 0."""
    x, i = decode(code, source), as_int_format(target)
    if x.kind == "nan":
        return 0
    if x.kind == "infinity":
        return i.minimum if x.sign else i.maximum
    n = round_to_integer(abs(x.value), rounding, bool(x.sign))
    return min(max(-n if x.sign else n, i.minimum), i.maximum)


def from_int(value: int, target: FloatFormat | str, rounding: str = "RNE") -> int:
    """Round an integer to a code."""
    return encode(Fraction(value), target, rounding)


def _order(x: Decoded) -> tuple[int, Fraction, int]:
    """Return a sort key: infinities at the ends, then the value, then −0 before +0."""
    if x.kind == "infinity":
        return (-1 if x.sign else 1, Fraction(0), 0)
    return (0, x.value, 0 if x.sign else 1)


def compare(a: int, b: int, format: FloatFormat | str) -> int:
    """Return −1, 0 or 1 for a < b, a = b or a > b (−0 equals +0), or 2 if one is a NaN."""
    x, y = decode(a, format), decode(b, format)
    if "nan" in (x.kind, y.kind):
        return 2
    p, q = _order(x)[:2], _order(y)[:2]
    return (p > q) - (p < q)


def minimum_number(a: int, b: int, format: FloatFormat | str) -> int:
    """Return the smaller number (IEEE 754-2019 minimumNumber), with −0 < +0."""
    return _pick(a, b, format, smaller=True)


def maximum_number(a: int, b: int, format: FloatFormat | str) -> int:
    """Return the larger number (IEEE 754-2019 maximumNumber), with −0 < +0."""
    return _pick(a, b, format, smaller=False)


def _pick(a: int, b: int, format: FloatFormat | str, smaller: bool) -> int:
    # A number is preferred to a NaN.
    f = as_format(format)
    x, y = decode(a, f), decode(b, f)
    if x.kind == "nan":
        return f.canonical_nan if y.kind == "nan" else b & f.code_mask
    if y.kind == "nan":
        return a & f.code_mask
    return (a if (_order(x) <= _order(y)) == smaller else b) & f.code_mask
