"""Fused dot products worked step by step, as Markdown.

The models of golden compute them and record their steps, which this file words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.general import (
    COMMON_BITS,
    GROUP,
    OWN_BITS,
    TOTAL_BITS,
    add_rounded,
    evaluate,
)
from vitruvian.golden.fp.reference import decode, floor_log2, fused_dot_reference
from vitruvian.golden.fp.reference import power_of_two as power
from vitruvian.golden.fp.spec import DotSpec


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


class _Term(NamedTuple):
    """One term of a sum: the names in its row of the table, its value and its exponent.

    A term that is zero for the largest exponent is not ``present``; ``kept`` is in units of q.
    """

    name: str
    a: str
    b: str
    value: Fraction
    exponent: int
    present: bool
    kept: int


class _Sum(NamedTuple):
    """One sum: its terms and C, the unit q, the sum of what is kept of them, and the result.

    ``trace`` has the steps that the model of golden recorded.
    """

    terms: list[_Term]
    c: _Term
    emax: int
    unit: Fraction
    total: Fraction
    d: int
    trace: dict[str, Any]


def finite(code: int, format: FloatFormat) -> Fraction:
    """Return the value of a code.

    Raises
    ------
    ValueError
        If it is an infinity or a NaN.
    """
    number = decode(code, format)
    if number.kind != "finite":
        raise ValueError(f"an operand must be a finite number, not {code:#x} in {format}")
    return number.value


def arrays(x: StepOperands, spec: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A and B as (1, K) codes, and C as (1,) codes."""
    a, b, c = (
        np.array(codes, code_dtype(format))
        for codes, format in (([x.a], spec.input), ([x.b], spec.input_b), ([x.c], spec.output))
    )
    return a, b, c


def hexadecimal(code: int, format: FloatFormat) -> str:
    """Return a code with all its digits."""
    return f"0x{code:0{format.storage_bits // 4}X}"


def scientific(value: Fraction, exponent: int | None = None) -> str:
    """Return a value as a significand times a power of two, by default with a leading one."""
    if value == 0:
        return "0"
    exponent = floor_log2(abs(value)) if exponent is None else exponent
    return f"{_digits(value / power(exponent))} · 2^{exponent}".replace("-", "−")


def _digits(value: Fraction) -> str:
    """Return a number with at most 10 digits."""
    return f"{float(value):.10g}".replace("-", "−")


def units(value: Fraction | int) -> str:
    """Return a number with all digits before the point and at most four behind it."""
    whole, rest = divmod(abs(Fraction(value)), 1)
    sign = "−" if value < 0 else ""
    # Four digits; an ellipsis says that there are more.
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
    for codes, format in ((x.a, spec.input), (x.b, spec.input_b), ((x.c,), out)):
        for code in codes:
            finite(code, format)
    if spec.addend.how == "late":
        # −0 is the addend that leaves every sum as it is, a sum of −0, too.
        nothing = out.negative_zero if spec.result.zero == "ieee" else 0
        lines, total = _block(replace(x, c=nothing), spec.replace(accumulate="tree"), names)
        # It raises an error for a sum that overflowed, which has no worked form.
        finite(total, out)
        rounding = "RTO" if spec.result.rounding == "RTO" else "RNE"
        first, second = (np.array([code], code_dtype(out)) for code in (total, x.c))
        d = int(add_rounded(first, second, spec.replace(rounding=rounding))[0])
        lines += [
            f"C is added to the rounded sum: {hexadecimal(total, out)} + {hexadecimal(x.c, out)}, "
            f"rounded by {rounding}, is {hexadecimal(d, out)}.",
            "",
        ]
        return lines, d
    if spec.sum.lanes == "halves":
        lines, c = [], x.c
        for half, words in ((False, "0 or 1"), (True, "2 or 3")):
            # The first two of every four terms, then the last two.
            own = [i for i in range(len(x.a)) if (i % 4 >= 2) == half]
            part = x.chosen(own, c, None)
            lines += [f"The terms with k mod 4 of {words} are added to {hexadecimal(c, out)}.", ""]
            more, c = _block(part, spec.replace(lanes="together"), [names[i] for i in own])
            lines += more
        return lines, c
    s = (_plain if spec.is_plain else _general)(x, spec, names)
    if not any(term.present for term in s.terms):
        return [f"All products are zero, and the result is {hexadecimal(s.d, out)}.", ""], s.d
    return (_aligned if spec.addend.how == "aligned" else _windowed)(s, spec), s.d


def _plain(x: StepOperands, spec: DotSpec, names: list[int]) -> _Sum:
    """Return the sum of a plain rule by the reference, which has no widest sum."""
    trace: dict[str, Any] = {}
    d = fused_dot_reference(x.a, x.b, x.c, spec, trace)
    *products, c = trace["terms"]
    emax = trace.get("emax", 0)
    *kept, kept_c = trace.get("kept") or [0] * len(trace["terms"])
    terms = [
        _Term(*label, t.value, t.exponent, t.value != 0, k)
        for label, t, k in zip(_labels(x, spec, names), products, kept, strict=True)
    ]
    code = hexadecimal(x.c, spec.output)
    addend = _Term("C", code, "", c.value, c.exponent, c.value != 0, kept_c)
    unit = power(emax - (spec.sum.window or 0))
    return _Sum(terms, addend, emax, unit, trace.get("total", c.value), d, trace)


def _general(x: StepOperands, spec: DotSpec, names: list[int]) -> _Sum:
    """Return the sum of another rule by the model of all rules, which has a row of arrays."""
    trace: dict[str, Any] = {}
    scales = [np.array([row], np.uint8) for row in (x.scale_a, x.scale_b) if row]
    d = int(evaluate(*arrays(x, spec), spec, *scales, trace=trace)[0])
    products, p, z = trace["products"], trace["terms"], trace["addend"]
    if (products.plus | products.minus)[0]:
        raise ValueError(f"a product must be less than 2^{spec.output.emax + 1}")
    values = _values(p.significand[0], p.last[0])
    is_windowed = spec.addend.how != "aligned"
    kept = trace["kept"][0].tolist() if is_windowed else [0] * len(values)
    rows = list(zip(values, p.exponent[0].tolist(), p.present[0].tolist(), kept, strict=True))
    if spec.products.slices:  # the model has all products of a slice side by side, the table not
        # By pairs of operands, with the slices of each one after the other.
        rows = [row for i in range(len(names)) for row in rows[i :: len(names)]]
    labels = _labels(x, spec, names)
    if spec.sum.lanes == "sixteens":
        labels = _group_labels(x, spec, names, _values(products.significand[0], products.last[0]))
    terms = [_Term(*label, *row) for label, row in zip(labels, rows, strict=True)]
    magnitude = _values(z.significand, z.exponent - spec.output.fraction_bits)[0]
    addend = _Term(
        "C",
        hexadecimal(x.c, spec.output),
        "",
        -magnitude if z.sign[0] else magnitude,
        int(z.exponent[0]),
        magnitude != 0,
        int(trace.get("kept_c", [0])[0]),
    )
    emax = int(trace["emax"][0])
    unit = power(emax - (spec.sum.window or 0))
    return _Sum(terms, addend, emax, unit, _values(trace["total"], trace["unit"])[0], d, trace)


def _values(significands: np.ndarray, exponents: np.ndarray) -> list[Fraction]:
    """Return the values of numbers, significand · 2^exponent."""
    pairs = zip(significands.tolist(), exponents.tolist(), strict=True)
    return [significand * power(exponent) for significand, exponent in pairs]


def _labels(x: StepOperands, spec: DotSpec, names: list[int]) -> list[tuple[str, str, str]]:
    """Return the name and the operands of each product, or of each product of slices."""
    found: list[tuple[str, str, str]] = []
    for name, p, q in zip(names, x.a, x.b, strict=True):
        words = hexadecimal(p, spec.input), hexadecimal(q, spec.input_b)
        for masks in spec.products.slices or (None,):
            label = "" if masks is None else f", {masks[0]:X}·{masks[1]:X}"
            found.append((f"{name}{label}", *words))
    return found


def _group_labels(
    x: StepOperands, spec: DotSpec, names: list[int], products: list[Fraction]
) -> list[tuple[str, str, str]]:
    """Return the name, the exact sum and the scales of each group of 16 products."""
    assert spec.scales is not None
    found: list[tuple[str, str, str]] = []
    for start in range(0, len(names), GROUP):
        total = sum(products[start : start + GROUP], Fraction(0))
        codes = [s[start // spec.scales.block] for s in (x.scale_a, x.scale_b)]
        name = f"{names[start]}–{names[start + GROUP - 1]}"
        found.append((name, _digits(total), " · ".join(f"0x{s:02X}" for s in codes)))
    return found


def _windowed(s: _Sum, spec: DotSpec) -> list[str]:
    """Word a sum whose terms are aligned at one exponent, added and rounded."""
    terms = [term for term in s.terms if term.present]
    if spec.addend.how == "tree" and s.c.present:
        terms.append(s.c)
    total, words = s.total, "Their sum"
    if spec.addend.how == "after":
        total += s.c.value
        words = f"With C = {s.c.a}, which is added exactly, it"
    kept_bits = ""
    if spec.result.bits < spec.output.fraction_bits:
        kept_bits = f" with {spec.result.bits} fraction bits"
    return [
        *_window_lines(s, spec, terms),
        f"{words} is {scientific(total)}, which {spec.result.rounding} rounds{kept_bits} to "
        f"{hexadecimal(s.d, spec.output)}.",
        "",
    ]


def _window_lines(s: _Sum, spec: DotSpec, terms: list[_Term]) -> list[str]:
    """Return the table of the terms of a windowed or exact sum."""
    heads = ["sum", "scales"] if spec.sum.lanes == "sixteens" else ["A", "B"]
    rows = []
    for term in terms:
        if spec.products.slices and not term.value:
            continue
        # A product of slices has its pair's exponent, which is far above its leading one.
        exponent = None if spec.products.slices else term.exponent
        row = [term.name, term.a, term.b, scientific(term.value, exponent)]
        if spec.sum.window is not None:
            row += [units(term.value / s.unit), units(term.kept)]
        rows.append(row)
    header = ["term", *heads, "value"]
    if spec.sum.window is None:
        return [*table(header, rows), ""]
    # Larger than every term: only the rule's floor can be.
    reason = ", the floor" if s.emax > max(term.exponent for term in terms) else ""
    how = {"magnitude": "truncated", "odd": "rounded to odd", "floor": "floored"}[spec.sum.truncate]
    return [
        f"E_max = {s.emax}{reason}, so a term is kept as a multiple of "
        f"q = 2^{s.emax - spec.sum.window} (E_max − {spec.sum.window})."
        "".replace("^-", "^−").replace("= -", "= −"),
        *table([*header, "in units of q", how], rows),
        f"The kept terms add up to {units(s.total / s.unit)} · q.",
        "",
    ]


def _aligned(s: _Sum, spec: DotSpec) -> list[str]:
    """Word the rule of CDNA 3: products, products and C, and their sum are cut in turn."""
    rows, parts = [], []
    for lane, own, kept in s.trace["lanes"]:
        terms = [
            pair for pair in zip(s.terms[lane], kept[0].tolist(), strict=True) if pair[0].present
        ]
        if not terms:
            continue
        last = int(own[0]) - OWN_BITS
        rows += [
            [
                t.name,
                t.a,
                t.b,
                scientific(t.value, t.exponent),
                units(t.value / power(last)),
                units(k),
            ]
            for t, k in terms
        ]
        name = f"_{('even', 'odd')[lane.start]}" if spec.sum.lanes == "parity" else ""
        part = sum(k for _, k in terms) * power(last)
        parts.append(f"T{name} is {scientific(part)}, in units of 2^{last}")
    common = int(s.trace["common"][0])
    total = int(s.trace["kept"][0]) * power(common - COMMON_BITS)
    lines = [
        f"E_d = {s.emax}; products are truncated at their own largest exponent − {OWN_BITS}.",
        *table(["term", "A", "B", "value", "in units", "truncated"], rows),
        f"{'; '.join(parts)}.".replace("^-", "^−"),
        "",
        f"C = {s.c.a} = {scientific(s.c.value)}, so E_m = {common}. T floored at "
        f"2^(E_m − {COMMON_BITS}) is {scientific(total)}, and C floored at 2^(E_m − {OWN_BITS}) is "
        f"{scientific(s.c.kept * power(common - OWN_BITS))}.",
        "",
        f"Their sum, floored to {TOTAL_BITS + 1} significant bits, is {scientific(s.total)}, which "
        f"RNE rounds to {hexadecimal(s.d, spec.output)}.",
        "",
    ]
    return [line.replace("= -", "= −") for line in lines]
