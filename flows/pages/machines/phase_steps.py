"""Tenstorrent's phases worked step by step, as Markdown, in plain integers."""

from typing import NamedTuple

from vitruvian.flows.pages.machines.steps import StepOperands, hexadecimal, table
from vitruvian.golden.machines.phases import PhaseSpec

_TERMS, _GROUP = 16, 8
_FRACTION = 10  # fraction bits of an operand
_SCALE = 13  # low bits that a group's sum gets
_WIDE = 24  # significand bits of Dst


class _PhaseOperand(NamedTuple):
    """An operand of the multiplier; zero has the field 0."""

    negative: bool
    field: int
    significand: int


def phase_steps(x: StepOperands, spec: PhaseSpec) -> tuple[list[str], int]:
    """Return the lines of a worked MVMUL and the code of its result."""
    lines: list[str] = []
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
            lines.append(f"**Phase {phase}**, Dst = {hexadecimal(c, spec.output)}.")
            more, c = _phase(a, b, c, phase, spec)
            lines += more
    return [*lines, f"**D = {hexadecimal(c, spec.output)}**.", ""], c


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
) -> tuple[list[str], int]:
    """Work one phase; return its lines and Dst."""
    wide = spec.output.name == "fp32"
    adjust = (97 if wide else -15) if spec.narrow else -127
    adjust -= 5 * (phase & 1) + 7 * (phase >> 1)
    rows: list[list[str]] = []
    numbers: list[tuple[bool, int, int]] = []  # sign, magnitude, exponent
    for group in range(_TERMS // _GROUP):
        products: list[tuple[int, bool, int, int]] = []
        for k in range(group * _GROUP, (group + 1) * _GROUP):
            x, y = a[k], b[k]
            if not x.field or not y.field:
                products.append((k, False, 0, max(adjust, 0)))
                continue
            p = (x.significand >> 1) & 0x1F if phase & 1 else x.significand >> 6
            q = (y.significand & 0xF) << 3 if phase & 2 else y.significand >> 4
            products.append((k, x.negative != y.negative, p * q, x.field + y.field + adjust))
        top = max(exponent for *_, exponent in products)
        total = 0
        for k, negative, product, exponent in products:
            aligned = _half_up(product, min(top - exponent, 30))
            total += -aligned if negative else aligned
            if product:
                sign = "−" if negative else ""
                rows.append([str(k), f"{sign}{product}", str(exponent), f"{sign}{aligned}"])
        if top <= 0:
            top = total = 0
        numbers.append((total < 0, abs(total) << _SCALE, top))
    field, fraction = _dst(c, spec)
    numbers.append((bool(c >> (spec.output.width - 1)), fraction, field))
    code, total, largest = _added(numbers, spec)
    lines = [*table(["term", "product", "exponent field", "in the group's units"], rows)]
    sums = " and ".join(f"{'−' * n}{m >> _SCALE} at {e}" for n, m, e in numbers[:2])
    lines += [
        f"The groups are {sums}; Dst is {'−' * numbers[2][0]}{fraction} at {field}. With the field "
        f"{largest}, their sum is {total}, and Dst becomes {hexadecimal(code, spec.output)}."
        "".replace("-", "−"),
        "",
    ]
    return lines, code


def _dst(code: int, spec: PhaseSpec) -> tuple[int, int]:
    """Return the exponent field and the 24-bit significand of Dst."""
    out = spec.output
    field = code >> out.fraction_bits & out.exponent_ones
    fraction = code & ((1 << out.fraction_bits) - 1) | 1 << out.fraction_bits
    return field, fraction << (_WIDE - 1 - out.fraction_bits) if field else 0


def _added(numbers: list[tuple[bool, int, int]], spec: PhaseSpec) -> tuple[int, int, int]:
    """Add the two groups and Dst; return the new code, the sum and its exponent field."""
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
        return 0, total, largest
    fraction = (value & ((1 << (_WIDE - 1)) - 1)) >> (_WIDE - 1 - out.fraction_bits)
    code = field << out.fraction_bits | fraction
    if out.name == "fp16" and field >= 32:
        code = out.exponent_mask | out.fraction_mask
    elif out.name != "fp16" and field >= 255:
        code = out.overflow
    return code | (total < 0) << (out.width - 1), total, largest
