"""The rules of machines in fractions and plain integers: a model for tests, on single codes.

It shares the codec of ``golden.fp.reference`` with golden, and none of its sums.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from vitruvian.flows.pages.machines.steps import StepOperands
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.reference import (
    Decoded,
    convert,
    decode,
    encode,
    floor_log2,
    round_to_integer,
)
from vitruvian.golden.fp.reference import power_of_two as power
from vitruvian.golden.fp.scales import unpack_scale
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import ChainSpec, Machine, PhaseSpec

_GROUP = 16  # products in an exact sum of the lanes "sixteens"
_OWN, _COMMON, _TOTAL = 24, 32, 31  # fraction bits in the sums of CDNA 3


def exact_result(row: Machine, x: StepOperands) -> int:
    """Return the code of a dot product by the rule of a row.

    Raises
    ------
    ValueError
        If an operand is an infinity or a NaN, or if a product becomes an infinity.
    """
    rule: Any = row.rule
    model = {DotSpec: _dot, ChainSpec: _chain, PhaseSpec: _phases}[type(rule)]
    return model(x, rule)


def leading(value: Fraction) -> int:
    """Return the exponent of the leading one of a number that is not zero."""
    return floor_log2(abs(value))


def finite(code: int, format: FloatFormat) -> Decoded:
    """Decode a code, which must not be an infinity or a NaN."""
    number = decode(code, format)
    if number.kind != "finite":
        raise ValueError(f"an operand must be a finite number, not {code:#x} in {format}")
    return number


def product_of(x: Decoded, y: Decoded) -> Decoded:
    """Return the product, which is not normalised."""
    return Decoded(
        "finite",
        x.sign ^ y.sign,
        x.exponent + y.exponent,
        x.significand * y.significand,
        x.fraction_bits + y.fraction_bits,
    )


def operand(code: int, format: FloatFormat, spec: DotSpec) -> Decoded:
    """Decode an operand, converted and flushed as ``spec`` says."""
    if spec.a.convert is not None and spec.a.convert != format:
        code, format = convert(code, format, spec.a.convert), spec.a.convert
    number = finite(code, format)
    if spec.flush and number.significand and leading(number.value) < spec.output.emin:
        return number._replace(significand=0)
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


def rounded(value: Fraction, zero_is_negative: int, spec: DotSpec) -> int:
    """Return the code of a value rounded once and flushed as ``spec`` says.

    Parameters
    ----------
    zero_is_negative : int
        The sign of the result if ``value`` is zero.
    """
    out, result = spec.output, spec.result
    sign = out.negative_zero if value < 0 or (value == 0 and zero_is_negative) else 0
    if value == 0:
        return sign
    if result.flush == "before" and leading(value) < out.emin:
        return sign
    if result.flush == "unbounded":  # the value is below the least normal one after rounding
        place = power(leading(value) - result.bits)
        if round_to_integer(abs(value) / place, result.rounding, value < 0) * place < power(
            out.emin
        ):
            return sign
    code = encode(value, out, result.rounding, result_bits=result.bits, overflow="infinity")
    return sign if result.flush == "after" and not code & out.exponent_mask else code


@dataclass(frozen=True)
class _Term:
    """One term of a sum; one that is zero for the largest exponent is not ``present``."""

    value: Fraction
    exponent: int
    present: bool = True
    lane: int = 0


def _dot(x: StepOperands, spec: DotSpec) -> int:
    c = x.c
    for start in range(0, len(x.a), spec.k):
        terms = range(start, min(start + spec.k, len(x.a)))
        c = _block(x.chosen(terms, c, spec.scales and spec.scales.block), spec)
    return c


def _block(x: StepOperands, spec: DotSpec) -> int:
    """Return the result of one step of the machine."""
    out = spec.output
    if spec.addend.how == "late":
        nothing = out.negative_zero if spec.result.zero == "ieee" else 0
        total = _block(replace(x, c=nothing), spec.replace(accumulate="tree"))
        rounding = "RTO" if spec.result.rounding == "RTO" else "RNE"
        late = spec.replace(rounding=rounding, result_bits=out.fraction_bits, window=None)
        a, b = finite(total, out), finite(x.c, out)
        return rounded(a.value + b.value, a.sign & b.sign, late)
    if spec.sum.lanes == "halves":
        c = x.c
        for half in (False, True):
            own = [i for i in range(len(x.a)) if (i % 4 >= 2) == half]
            c = _block(x.chosen(own, c, None), spec.replace(lanes="together"))
        return c
    terms = _terms(x, spec)
    if not any(term.present for term in terms):
        return _without_products(x, spec)
    return (_aligned if spec.addend.how == "aligned" else _windowed)(x, spec, terms)


def _terms(x: StepOperands, spec: DotSpec) -> list[_Term]:
    """Return the products, the partial products of slices or the scaled sums of groups."""
    found: list[_Term] = []
    for i, (p, q) in enumerate(zip(x.a, x.b, strict=True)):
        a, b = operand(p, spec.input, spec), operand(q, spec.input_b, spec)
        product = product_of(a, b)
        exponent = product.exponent
        if spec.products.overflow and abs(product.value) >= power(spec.output.emax + 1):
            raise ValueError(f"a product must be less than 2^{spec.output.emax + 1}")
        if product.significand and spec.products.exponent == "leading":
            exponent = leading(product.value)
        for p_mask, q_mask in spec.products.slices or ((-1, -1),):
            significand = (a.significand & p_mask) * (b.significand & q_mask)
            partial = product._replace(significand=significand)
            found.append(_Term(partial.value, exponent, product.significand != 0, i % 2))
    return found if spec.scales is None else _scaled(found, x, spec)


def _scaled(terms: list[_Term], x: StepOperands, spec: DotSpec) -> list[_Term]:
    """Multiply terms, or exact sums of 16 of them, by the scales of their blocks."""
    assert spec.scales is not None
    size = _GROUP if spec.sum.lanes == "sixteens" else 1
    found: list[_Term] = []
    for start in range(0, len(terms), size):
        group = terms[start : start + size]
        codes = [s[start // spec.scales.block] for s in (x.scale_a, x.scale_b)]
        u = unpack_scale(np.array(codes), spec.scales.format)
        exponent = int(u.exponent.sum())
        factor = int(u.significand.prod()) * power(exponent - 2 * spec.scales.format.fraction_bits)
        total = sum((term.value for term in group), Fraction(0))
        exponent += group[0].exponent if size == 1 else 0
        present = any(term.present for term in group) and factor != 0
        found.append(_Term(total * factor, exponent, present))
    return found


def _without_products(x: StepOperands, spec: DotSpec) -> int:
    """Return the result if every product is zero."""
    products = [
        finite(p, spec.input).sign ^ finite(q, spec.input_b).sign
        for p, q in zip(x.a, x.b, strict=True)
    ]
    c = operand(x.c, spec.output, spec.replace(convert=None))
    if c.significand == 0:
        minus = spec.result.zero == "ieee" and all(products) and c.sign
        return spec.output.negative_zero if minus else 0
    if spec.addend.how == "aligned":
        return rounded(c.value, False, spec)
    return _windowed(x, spec, [])


def _windowed(x: StepOperands, spec: DotSpec, terms: list[_Term]) -> int:
    """Align all terms at one exponent, add and round."""
    c = operand(x.c, spec.output, spec.replace(convert=None))
    terms = [term for term in terms if term.present]
    if spec.addend.how == "tree" and c.significand:
        terms = [*terms, _Term(c.value, c.exponent)]
    total = sum((term.value for term in terms), Fraction(0))
    if spec.sum.window is not None:
        floor = [] if spec.sum.floor is None else [spec.sum.floor]
        emax = max([*(term.exponent for term in terms), *floor], default=0)
        unit = power(emax - spec.sum.window)
        kept = [truncated(t.value, unit, spec.sum.truncate) for t in terms]
        cut = any(k * unit != t.value for k, t in zip(kept, terms, strict=True))
        total = sum(kept) * unit + (unit / 2 if cut and spec.sum.truncate == "floor" else 0)
    d = rounded(total + (c.value if spec.addend.how == "after" else 0), False, spec)
    is_minus = spec.result.zero == "positive" and d == spec.output.negative_zero
    return 0 if is_minus else d


def _aligned(x: StepOperands, spec: DotSpec, terms: list[_Term]) -> int:
    """Return the result by the rule of CDNA 3: products, products and C, and their sum are cut."""
    out = spec.output
    c = finite(x.c, out)
    terms = [term for term in terms if term.present]
    emax = max(term.exponent for term in terms)
    total, parity = Fraction(0), spec.sum.lanes == "parity"
    for lane in (0, 1) if parity else (None,):
        own = [t for t in terms if lane is None or t.lane == lane]
        if not own:
            continue
        unit = power(max(term.exponent for term in own) - _OWN)
        part = sum(truncated(t.value, unit, "magnitude") for t in own) * unit
        total += _floored(part, emax - _OWN) if parity else part
    common = max(emax, c.exponent)
    dropped = parity and c.exponent < common - _OWN - 1
    both = _floored(total, common - _COMMON)
    both += _floored(Fraction(0) if dropped else c.value, common - _OWN)
    last = max(leading(both) if both else out.emin, out.emin) - _TOTAL
    return rounded(_floored(both, last), False, spec)


def _floored(value: Fraction, exponent: int) -> Fraction:
    return truncated(value, power(exponent), "floor") * power(exponent)


class _Adder:
    """Rounded operations on codes of the output format."""

    def __init__(self, spec: ChainSpec) -> None:
        self.spec, self.step, self.out = spec, spec.step, spec.output

    def number(self, code: int, format: FloatFormat) -> Decoded:
        """Decode a code, flushed as the rule says."""
        number = finite(code, format)
        tiny = number.significand and abs(number.value) < power(self.out.emin)
        if self.spec.zero_subnormals and not code & format.exponent_mask:
            return number._replace(sign=0, significand=0)
        return number._replace(significand=0) if self.step.flush and tiny else number

    def fma(self, a: int, b: int, code: int | None) -> int:
        """Return A·B + the value of ``code``, or A·B alone."""
        product = product_of(self.number(a, self.spec.input), self.number(b, self.spec.input_b))
        value, negative = product.value, product.sign
        if code is not None:
            addend = self.number(code, self.out)
            value, negative = value + addend.value, negative & addend.sign
        return rounded(value, negative, self.step)

    def add(self, x: int, y: int, *, flush: bool = True) -> int:
        """Return the rounded sum of two codes."""
        a, b = (self.number(z, self.out) if flush else finite(z, self.out) for z in (x, y))
        step = self.step if flush else self.step.replace(flush_result=None, flush=False)
        return rounded(a.value + b.value, a.sign & b.sign, step)

    def pairs(self, values: list[int], *, flush: bool = True) -> int:
        """Return the sum of values, added in neighbouring pairs."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [self.add(x, y, flush=flush) for x, y in pairs]
        return values[0]


def _chain(x: StepOperands, spec: ChainSpec) -> int:
    adder, terms, c = _Adder(spec), len(x.a), x.c
    for start in range(0, terms, spec.k or terms):
        block = range(start, start + (spec.k or terms))
        c = (_tree if spec.products == "rounded" else _chains)(adder, x, block, c)
    return c


def _chains(adder: _Adder, x: StepOperands, block: range, c: int) -> int:
    """Return the result of the fused multiply-adds of one block."""
    spec, many = adder.spec, adder.spec.accumulators
    sums = [0] * many if many > 1 else [c]
    for k in reversed(block) if spec.descending else block:
        i = (k - block[0]) % many
        sums[i] = adder.fma(x.a[k], x.b[k], sums[i])
    if many == 1:
        return sums[0]
    if spec.add_c == "none":
        return adder.pairs([sums[(len(block) + i) % many] for i in range(many)], flush=False)
    return adder.add(c, adder.pairs(sums))


def _tree(adder: _Adder, x: StepOperands, block: range, c: int) -> int:
    """Return the result of one block of rounded products."""
    total = adder.pairs([adder.fma(x.a[k], x.b[k], None) for k in block])
    if adder.spec.zero_subnormals and not c & adder.out.exponent_mask:
        c = 0
    return adder.add(c, total)


_TERMS, _HALF = 16, 8
_FRACTION = 10  # fraction bits of an operand
_SCALE = 13  # low bits that a group's sum gets
_WIDE = 24  # significand bits of Dst


class _PhaseOperand(NamedTuple):
    """An operand of the multiplier; zero has the field 0."""

    negative: bool
    field: int
    significand: int


def _phases(x: StepOperands, spec: PhaseSpec) -> int:
    c = x.c
    for start in range(0, len(x.a), _TERMS):
        terms = range(start, start + _TERMS)
        if spec.shared_bits is None:
            a, b = ([_operand(codes[k], spec) for k in terms] for codes in (x.a, x.b))
        else:
            bits, place = spec.shared_bits, start // _TERMS
            a = [_shared(x.a[k], x.scale_a[place], bits) for k in terms]
            b = [_shared(x.b[k], x.scale_b[place], bits) for k in terms]
        for phase in range(spec.phases):
            c = _phase(a, b, c, phase, spec)
    return c


def _operand(code: int, spec: PhaseSpec) -> _PhaseOperand:
    """Widen the code of an operand to 10 fraction bits."""
    f = spec.input
    code >>= f.storage_shift
    fraction = code & ((1 << f.fraction_bits) - 1)
    field = code >> f.fraction_bits & f.exponent_ones
    ones = code & 0x7F == 0x7F
    if not field:
        return _PhaseOperand(bool(code >> (f.width - 1)), 0, 0)
    fraction <<= _FRACTION - f.fraction_bits
    if (f.name == "fp8e4m3" or (f.name == "fp8e5m2" and spec.blackhole)) and ones:
        fraction = (1 << _FRACTION) - 1
    if f.name == "fp8e4m3":
        field += 8
    return _PhaseOperand(bool(code >> (f.width - 1)), field, 1 << _FRACTION | fraction)


def _shared(code: int, exponent: int, bits: int) -> _PhaseOperand:
    """Widen the code of an operand with a shared exponent."""
    negative = bool(code >> (bits - 1))
    magnitude = (code & ((1 << (bits - 1)) - 1)) << (8 - bits)
    if not magnitude:
        return (
            _PhaseOperand(negative, 0xFF, 1 << _FRACTION)
            if negative
            else _PhaseOperand(False, 0, 0)
        )
    while magnitude < 0x40:
        magnitude, exponent = magnitude * 2, exponent - 1
    field = exponent % 256
    return _PhaseOperand(negative, field, magnitude << 4 if field else 0)


def _half_up(magnitude: int, shift: int, *, ties_down: bool = False) -> int:
    """Return a magnitude divided by 2^shift; a tie goes up, or down."""
    if shift <= 0:
        return magnitude
    return (magnitude + (1 << (shift - 1)) - (ties_down and magnitude > 0)) >> shift


def _phase(
    a: list[_PhaseOperand], b: list[_PhaseOperand], c: int, phase: int, spec: PhaseSpec
) -> int:
    """Return Dst after one phase."""
    adjust = (97 if spec.output.name == "fp32" else -15) if spec.narrow else -127
    adjust -= 5 * (phase & 1) + 7 * (phase >> 1)
    numbers: list[tuple[bool, int, int]] = []  # sign, magnitude, exponent
    for group in range(0, _TERMS, _HALF):
        products: list[tuple[bool, int, int]] = []
        for x, y in zip(a[group : group + _HALF], b[group : group + _HALF], strict=True):
            if not x.field or not y.field:
                products.append((False, 0, max(adjust, 0)))
                continue
            p = (x.significand >> 1) & 0x1F if phase & 1 else x.significand >> 6
            q = (y.significand & 0xF) << 3 if phase & 2 else y.significand >> 4
            products.append((x.negative != y.negative, p * q, x.field + y.field + adjust))
        top = max(exponent for *_, exponent in products)
        total = 0
        for negative, product, exponent in products:
            aligned = _half_up(product, min(top - exponent, 30))
            total += -aligned if negative else aligned
        if top <= 0:
            top = total = 0
        numbers.append((total < 0, abs(total) << _SCALE, top))
    field, fraction = _dst(c, spec)
    numbers.append((bool(c >> (spec.output.width - 1)), fraction, field))
    return _added(numbers, spec)


def _dst(code: int, spec: PhaseSpec) -> tuple[int, int]:
    """Return the exponent field and the 24-bit significand of Dst."""
    out = spec.output
    field = code >> out.fraction_bits & out.exponent_ones
    fraction = code & ((1 << out.fraction_bits) - 1) | 1 << out.fraction_bits
    return field, fraction << (_WIDE - 1 - out.fraction_bits) if field else 0


def _added(numbers: list[tuple[bool, int, int]], spec: PhaseSpec) -> int:
    """Add the two groups and Dst; return the new code."""
    out, wide = spec.output, spec.output.name == "fp32"
    largest = max(exponent for *_, exponent in numbers)
    total = 0
    for index, (negative, magnitude, exponent) in enumerate(numbers):
        down = negative and index < 2
        shift = largest - exponent
        value = 0 if shift >= 31 else _half_up(magnitude, shift, ties_down=down)
        if not wide:
            value = _half_up(value, _SCALE, ties_down=down) << _SCALE
        total += -value if negative else value
    magnitude = abs(total)
    left = _WIDE - magnitude.bit_length()
    if not spec.blackhole and total == -1:
        left = -4  # Wormhole's erratum
    field = largest - left
    value = magnitude << left if left >= 0 else _half_up(magnitude, -left)
    for drop in (0,) if wide else (0, _WIDE - (11 if spec.narrow else 8)):
        value = _half_up(value, drop) << drop
        if value >> _WIDE:
            field, value = field + 1, value >> 1
    if not magnitude or field <= 0 or largest <= 0:
        return 0
    fraction = (value & ((1 << (_WIDE - 1)) - 1)) >> (_WIDE - 1 - out.fraction_bits)
    code = field << out.fraction_bits | fraction
    if out.name == "fp16" and field >= 32:
        code = out.exponent_mask | out.fraction_mask
    elif out.name != "fp16" and field >= 255:
        code = out.overflow
    return code | (total < 0) << (out.width - 1)
