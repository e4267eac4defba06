"""Fused dot products worked step by step, as Markdown, by the rules of ``DotSpec``.

The steps are computed with fractions, independently of the arrays of golden, which the tests
compare with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from vitruvian.flows.pages.machines.exact import (
    Number,
    decode,
    leading,
    operand,
    power,
    rounded,
    truncated,
)
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import unpack_scale
from vitruvian.golden.fp.spec import DotSpec

_GROUP = 16  # products in an exact sum of the lanes "sixteens"
_OWN, _COMMON, _TOTAL = 24, 32, 31  # fraction bits in the sums of CDNA 3


@dataclass(frozen=True)
class StepOperands:
    """The codes of one dot product.

    Attributes
    ----------
    a, b : tuple of int
    c : int
    scale_a, scale_b : tuple of int
        Codes of the blocks' scales, or empty.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()

    def chosen(self, terms: Sequence[int], c: int, block: int | None) -> "StepOperands":
        """Return the operands of some terms, with another C; terms with scales are in order."""
        scales = slice(0, 0)
        if block is not None:
            scales = slice(terms[0] // block, (terms[-1] + 1) // block)
        return StepOperands(
            a=tuple(self.a[k] for k in terms),
            b=tuple(self.b[k] for k in terms),
            c=c,
            scale_a=self.scale_a[scales],
            scale_b=self.scale_b[scales],
        )


@dataclass(frozen=True)
class _Term:
    """One term of a sum: the names in its row of the table, its value and its exponent.

    A term that is zero for the largest exponent is not ``present``.
    """

    name: str
    a: str
    b: str
    value: Fraction
    exponent: int
    present: bool
    lane: int = 0


def hexadecimal(code: int, format: FloatFormat) -> str:
    """Return a code with all its digits."""
    return f"0x{code:0{format.storage_bits // 4}X}"


def scientific(value: Fraction, exponent: int | None = None) -> str:
    """Return a value as a significand times a power of two, by default with a leading one."""
    if value == 0:
        return "0"
    exponent = leading(value) if exponent is None else exponent
    return f"{_digits(value / power(exponent))} · 2^{exponent}".replace("-", "−")


def _digits(value: Fraction) -> str:
    """Return a number with at most 10 digits."""
    return f"{float(value):.10g}".replace("-", "−")


def units(value: Fraction | int) -> str:
    """Return a number with all digits before the point and at most four behind it."""
    whole, rest = divmod(abs(Fraction(value)), 1)
    sign = "−" if value < 0 else ""
    shown, more = divmod(rest * 10_000, 1)
    digits = f"{int(shown):04}" + "…" if more else f"{int(shown):04}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table between empty lines."""
    lines = ["", *(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)), ""]
    return lines


def dot_steps(x: StepOperands, spec: DotSpec) -> tuple[list[str], int]:
    """Return the lines of a worked dot product and the code of its result.

    Raises
    ------
    ValueError
        If an operand is an infinity or a NaN, or if a product becomes an infinity.
    """
    lines: list[str] = []
    c = x.c
    out = spec.output
    for start in range(0, len(x.a), spec.k):
        terms = range(start, min(start + spec.k, len(x.a)))
        part = x.chosen(terms, c, spec.scales and spec.scales.block)
        before = c
        more, c = _block(part, spec, list(terms))
        if len(x.a) > spec.k:
            if c == before and not any(part.a):
                continue  # a step of zeros changes nothing
            name = f"Terms {terms[0]} to {terms[-1]}" if spec.k > 1 else f"Term {terms[0]}"
            lines += [f"**{name}**, C = {hexadecimal(before, out)}.", ""]
        lines += more
    return [*lines, f"**D = {hexadecimal(c, out)}**.", ""], c


def _block(x: StepOperands, spec: DotSpec, names: list[int]) -> tuple[list[str], int]:
    """Work one step of the machine."""
    out = spec.output
    if spec.addend.how == "late":
        nothing = out.negative_zero if spec.result.zero == "ieee" else 0
        inner = spec.replace(accumulate="tree")
        lines, total = _block(replace(x, c=nothing), inner, names)
        rounding = "RTO" if spec.result.rounding == "RTO" else "RNE"
        late = spec.replace(rounding=rounding, result_bits=out.fraction_bits, window=None)
        d = _added(total, x.c, late)
        lines += [
            f"C is added to the rounded sum: {hexadecimal(total, out)} + {hexadecimal(x.c, out)}, "
            f"rounded by {rounding}, is {hexadecimal(d, out)}.",
            "",
        ]
        return lines, d
    if spec.sum.lanes == "halves":
        lines, c = [], x.c
        for half, words in ((False, "0 or 1"), (True, "2 or 3")):
            own = [i for i in range(len(x.a)) if (i % 4 >= 2) == half]
            part = x.chosen(own, c, None)
            lines += [f"The terms with k mod 4 of {words} are added to {hexadecimal(c, out)}.", ""]
            more, c = _block(part, spec.replace(lanes="together"), [names[i] for i in own])
            lines += more
        return lines, c
    terms = _terms(x, spec, names)
    if not any(term.present for term in terms):
        d = _without_products(x, spec)
        return [f"All products are zero, and the result is {hexadecimal(d, out)}.", ""], d
    return (_aligned if spec.addend.how == "aligned" else _windowed)(x, spec, terms)


def _added(x: int, y: int, spec: DotSpec) -> int:
    """Return x + y, rounded once."""
    a, b = decode(x, spec.output), decode(y, spec.output)
    return rounded(a.value + b.value, a.negative and b.negative, spec)


def _terms(x: StepOperands, spec: DotSpec, names: list[int]) -> list[_Term]:
    """Return the products, the partial products of slices or the scaled sums of groups."""
    found: list[_Term] = []
    for i, (p, q) in enumerate(zip(x.a, x.b, strict=True)):
        a, b = operand(p, spec.input, spec), operand(q, spec.input_b, spec)
        product = a * b
        exponent = product.exponent
        if spec.products.overflow and abs(product.value) >= power(spec.output.emax + 1):
            raise ValueError(f"a product must be less than 2^{spec.output.emax + 1}")
        if product.significand and spec.products.exponent == "leading":
            exponent = leading(product.value)
        words = (hexadecimal(p, spec.input), hexadecimal(q, spec.input_b))
        for masks in spec.products.slices or (None,):
            partial, label = product, str(names[i])
            if masks is not None:
                partial = replace(
                    product, significand=(a.significand & masks[0]) * (b.significand & masks[1])
                )
                label += f", {masks[0]:X}·{masks[1]:X}"
            present = product.significand != 0
            found.append(_Term(label, *words, partial.value, exponent, present, i % 2))
    if spec.scales is None:
        return found
    return _scaled(found, x, spec, names)


def _scaled(terms: list[_Term], x: StepOperands, spec: DotSpec, names: list[int]) -> list[_Term]:
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
        first = group[0]
        if size > 1:
            name = f"{names[start]}–{names[start + size - 1]}"
            a, b = _digits(total), " · ".join(f"0x{s:02X}" for s in codes)
        else:
            exponent += first.exponent
            name, a, b = first.name, first.a, first.b
        present = any(term.present for term in group) and factor != 0
        found.append(_Term(name, a, b, total * factor, exponent, present))
    return found


def _without_products(x: StepOperands, spec: DotSpec) -> int:
    """Return the result if every product is zero."""
    products = [
        decode(p, spec.input).negative != decode(q, spec.input_b).negative
        for p, q in zip(x.a, x.b, strict=True)
    ]
    c = operand(x.c, spec.output, spec.replace(convert=None))
    if c.significand == 0:
        return spec.output.negative_zero if _minus(products, c, spec) else 0
    return _windowed(x, spec, [])[1] if spec.addend.how != "aligned" else _aligned(x, spec, [])[1]


def _minus(products: list[bool], c: Number, spec: DotSpec) -> bool:
    return spec.result.zero == "ieee" and all(products) and c.negative


def _windowed(x: StepOperands, spec: DotSpec, terms: list[_Term]) -> tuple[list[str], int]:
    """Align all terms at one exponent, add and round."""
    out = spec.output
    c = operand(x.c, out, spec.replace(convert=None))
    terms = [term for term in terms if term.present]
    if spec.addend.how == "tree" and c.significand:
        code = hexadecimal(x.c, out)
        terms = [*terms, _Term("C", code, "", c.value, c.exponent, True)]
    exponents = [term.exponent for term in terms]
    floor = [] if spec.sum.floor is None else [spec.sum.floor]
    emax = max([*exponents, *floor], default=0)
    if spec.sum.window is None:
        unit = min((power(leading(t.value) - 60) for t in terms if t.value), default=Fraction(1))
        kept = [t.value / unit for t in terms]
    else:
        unit = power(emax - spec.sum.window)
        kept = [Fraction(truncated(t.value, unit, spec.sum.truncate)) for t in terms]
    total = sum(kept, Fraction(0)) * unit
    if (
        spec.sum.window is not None
        and spec.sum.truncate == "floor"
        and any(k * unit != t.value for k, t in zip(kept, terms, strict=True))
    ):
        total += unit / 2
    lines = _window_lines(spec, terms, kept, emax, unit, total)
    words = "Their sum"
    if spec.addend.how == "after":
        total += c.value
        words = f"With C = {hexadecimal(x.c, out)}, which is added exactly, it"
    d = rounded(total, False, spec)
    if spec.result.zero == "positive" and d == out.negative_zero:
        d = 0
    kept_bits = ""
    if spec.result.bits < out.fraction_bits:
        kept_bits = f" with {spec.result.bits} fraction bits"
    lines += [
        f"{words} is {scientific(total)}, which {spec.result.rounding} rounds{kept_bits} to "
        f"{hexadecimal(d, out)}.",
        "",
    ]
    return lines, d


def _window_lines(
    spec: DotSpec,
    terms: list[_Term],
    kept: list[Fraction],
    emax: int,
    unit: Fraction,
    total: Fraction,
) -> list[str]:
    """Return the table of the terms of a windowed or exact sum."""
    heads = ["sum", "scales"] if spec.sum.lanes == "sixteens" else ["A", "B"]
    rows = []
    for term, many in zip(terms, kept, strict=True):
        if spec.products.slices and not term.value:
            continue
        exponent = None if spec.products.slices else term.exponent
        row = [term.name, term.a, term.b, scientific(term.value, exponent)]
        if spec.sum.window is not None:
            row += [units(term.value / unit), units(many)]
        rows.append(row)
    header = ["term", *heads, "value"]
    if spec.sum.window is None:
        return [*table(header, rows), ""]
    reason = ""
    if terms and emax > max(term.exponent for term in terms):
        reason = ", the floor"
    how = {"magnitude": "truncated", "odd": "rounded to odd", "floor": "floored"}[spec.sum.truncate]
    return [
        f"E_max = {emax}{reason}, so a term is kept as a multiple of q = 2^{leading(unit)} "
        f"(E_max − {spec.sum.window}).".replace("^-", "^−").replace("= -", "= −"),
        *table([*header, "in units of q", how], rows),
        f"The kept terms add up to {units(total / unit)} · q.",
        "",
    ]


def _aligned(x: StepOperands, spec: DotSpec, terms: list[_Term]) -> tuple[list[str], int]:
    """Work the rule of CDNA 3: products, products and C, and their sum are cut in turn."""
    out = spec.output
    c = decode(x.c, out)
    terms = [term for term in terms if term.present]
    if not terms:
        return ["All products are zero.", ""], rounded(c.value, False, spec)
    emax = max(term.exponent for term in terms)
    total, rows, parts = Fraction(0), [], []
    for lane in (0, 1) if spec.sum.lanes == "parity" else (None,):
        own = [t for t in terms if lane is None or t.lane == lane]
        if not own:
            continue
        largest = max(term.exponent for term in own)
        unit = power(largest - _OWN)
        kept = [truncated(t.value, unit, "magnitude") for t in own]
        part = sum(kept) * unit
        rows += [
            [t.name, t.a, t.b, scientific(t.value, t.exponent), units(t.value / unit), units(k)]
            for t, k in zip(own, kept, strict=True)
        ]
        name = "" if lane is None else f"_{('even', 'odd')[lane]}"
        parts.append(f"T{name} is {scientific(part)}, in units of 2^{largest - _OWN}")
        if lane is not None:
            part = truncated(part, power(emax - _OWN), "floor") * power(emax - _OWN)
        total += part
    common = max(emax, c.exponent)
    floor_t = truncated(total, power(common - _COMMON), "floor") * power(common - _COMMON)
    dropped = spec.sum.lanes == "parity" and c.exponent < common - _OWN - 1
    own_c = Fraction(0) if dropped else c.value
    floor_c = truncated(own_c, power(common - _OWN), "floor") * power(common - _OWN)
    both = floor_t + floor_c
    cut = power(max(leading(both) if both else out.emin, out.emin) - _TOTAL)
    final = truncated(both, cut, "floor") * cut
    d = rounded(final, False, spec)
    lines = [
        f"E_d = {emax}; products are truncated at their own largest exponent − {_OWN}.",
        *table(["term", "A", "B", "value", "in units", "truncated"], rows),
        f"{'; '.join(parts)}.".replace("^-", "^−"),
        "",
        f"C = {hexadecimal(x.c, out)} = {scientific(c.value)}, so E_m = {common}. T floored at "
        f"2^(E_m − {_COMMON}) is {scientific(floor_t)}, and C floored at 2^(E_m − {_OWN}) is "
        f"{scientific(floor_c)}.",
        "",
        f"Their sum, floored to {_TOTAL + 1} significant bits, is {scientific(final)}, which RNE "
        f"rounds to {hexadecimal(d, out)}.",
        "",
    ]
    return [line.replace("= -", "= −") for line in lines], d
