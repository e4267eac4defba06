"""Chains of rounded operations worked step by step, as Markdown."""

from dataclasses import replace
from fractions import Fraction

from vitruvian.flows.pages.machines.exact import Number, decode, power, rounded
from vitruvian.flows.pages.machines.steps import StepOperands, hexadecimal, scientific, table
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.machines.spec import ChainSpec


class _Adder:
    """Rounded operations on codes of the output format, which are recorded in a table."""

    def __init__(self, spec: ChainSpec):
        self.spec = spec
        self.step = spec.step
        self.out = spec.output
        self.rows: list[list[str]] = []

    def number(self, code: int, format: FloatFormat) -> Number:
        """Decode a code, flushed as the rule says."""
        number = decode(code, format)
        tiny = number.significand and abs(number.value) < power(self.out.emin)
        subnormal = not code & format.exponent_mask
        if self.spec.zero_subnormals and subnormal:
            return replace(number, negative=False, significand=0)
        return replace(number, significand=0) if self.step.flush and tiny else number

    def fma(self, name: str, a: int, b: int, code: int | None) -> int:
        """Return A·B + the value of ``code``, or A·B alone."""
        spec = self.spec
        product = self.number(a, spec.input) * self.number(b, spec.input_b)
        words = f"{hexadecimal(a, spec.input)} · {hexadecimal(b, spec.input_b)}"
        value, negative = product.value, product.negative
        if code is not None:
            addend = self.number(code, self.out)
            words += f" + {hexadecimal(code, self.out)}"
            value, negative = value + addend.value, negative and addend.negative
        result = rounded(value, negative, self.step)
        if product.significand or code is None:
            self._record(name, words, value, result)
        return result

    def add(self, name: str, x: int, y: int, *, flush: bool = True) -> int:
        """Return the rounded sum of two codes."""
        if flush:
            a, b = self.number(x, self.out), self.number(y, self.out)
        else:
            a, b = decode(x, self.out), decode(y, self.out)
        step = self.step if flush else self.step.replace(flush_result=None, flush=False)
        value = a.value + b.value
        result = rounded(value, a.negative and b.negative, step)
        words = f"{hexadecimal(x, self.out)} + {hexadecimal(y, self.out)}"
        self._record(name, words, value, result)
        return result

    def pairs(self, names: list[str], values: list[int], *, flush: bool = True) -> int:
        """Return the sum of values, added in neighbouring pairs."""
        while len(values) > 1:
            names = [f"{x} + {y}" for x, y in zip(names[::2], names[1::2], strict=True)]
            names = [f"({name})" if len(names) > 1 else name for name in names]
            pairs = zip(names, values[::2], values[1::2], strict=True)
            values = [self.add(name, x, y, flush=flush) for name, x, y in pairs]
        return values[0]

    def _record(self, name: str, words: str, value: Fraction, result: int) -> None:
        code = hexadecimal(result, self.out)
        self.rows.append([name, words, scientific(value), code])


def chain_steps(x: StepOperands, spec: ChainSpec) -> tuple[list[str], int]:
    """Return the lines of a worked chain and the code of its result.

    Raises
    ------
    ValueError
        If an operand is an infinity or a NaN.
    """
    adder = _Adder(spec)
    terms = len(x.a)
    c = x.c
    for start in range(0, terms, spec.k or terms):
        block = range(start, start + (spec.k or terms))
        c = (_tree if spec.products == "rounded" else _chains)(adder, x, block, c)
    header = ["operation", "operands", "exact result", "rounded"]
    lines = table(header, adder.rows)
    note = "" if len(adder.rows) >= terms else " Operations with a product of zero are left out."
    return [*lines, f"**D = {hexadecimal(c, spec.output)}**.{note}", ""], c


def _chains(adder: _Adder, x: StepOperands, block: range, c: int) -> int:
    """Work the fused multiply-adds of one block."""
    spec, many = adder.spec, adder.spec.accumulators
    sums = [0] * many if many > 1 else [c]
    names = [f"s{i}" for i in range(many)] if many > 1 else ["s"]
    for k in reversed(block) if spec.descending else block:
        i = (k - block[0]) % many
        sums[i] = adder.fma(f"{names[i]}, term {k}", x.a[k], x.b[k], sums[i])
    if many == 1:
        return sums[0]
    if spec.add_c == "none":
        order = [(len(block) + i) % many for i in range(many)]
        return adder.pairs([names[i] for i in order], [sums[i] for i in order], flush=False)
    total = adder.pairs(names, sums)
    return adder.add("C + sum", c, total)


def _tree(adder: _Adder, x: StepOperands, block: range, c: int) -> int:
    """Work one block of rounded products."""
    names = [f"p{k}" for k in block]
    products = [adder.fma(name, x.a[k], x.b[k], None) for name, k in zip(names, block, strict=True)]
    total = adder.pairs(names, products)
    if adder.spec.zero_subnormals and not c & adder.out.exponent_mask:
        c = 0
    return adder.add("C + sum", c, total)
