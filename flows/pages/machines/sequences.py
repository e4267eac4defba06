"""Chains of rounded operations worked step by step, as Markdown.

The model of golden computes them and records its operations, which this file words.
"""

from collections.abc import Iterator
from fractions import Fraction

from vitruvian.flows.pages.machines.steps import (
    StepOperands,
    arrays,
    finite,
    hexadecimal,
    power,
    scientific,
    table,
)
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.machines.chain import ChainTrace, chain_dot
from vitruvian.golden.machines.spec import ChainSpec


def chain_steps(x: StepOperands, spec: ChainSpec) -> tuple[list[str], int]:
    """Return the lines of a worked chain and the code of its result.

    Raises
    ------
    ValueError
        If an operand is an infinity or a NaN.
    """
    trace: ChainTrace = []
    a, b, c = arrays(x, spec)
    d = int(chain_dot(a, b, c, spec, trace)[0])
    rows = list(_rows(x, spec, trace))
    lines = table(["operation", "operands", "exact result", "rounded"], rows)
    note = "" if len(rows) >= len(x.a) else " Operations with a product of zero are left out."
    return [*lines, f"**D = {hexadecimal(d, spec.output)}**.{note}", ""], d


def _rows(x: StepOperands, spec: ChainSpec, trace: ChainTrace) -> Iterator[list[str]]:
    """Yield the name, the operands, the exact and the rounded result of each operation."""
    out, many = spec.output, spec.accumulators
    size = spec.k or len(x.a)
    # The first term of a block, and the names of the sums that follow its products.
    start, sums = 0, iter(())
    for kind, *values in trace:
        if kind == "block":
            (start,) = values
            sums = _sum_names(spec, start, size)
            continue
        if kind == "add":
            name, words = next(sums), values[:2]
            if name == "C + sum":
                words.reverse()
            # The last sums of a chain without C are not flushed.
            flushes = spec.add_c != "none"
            value = sum((_value(code, out, spec, flushes) for code in words), Fraction(0))
            shown = " + ".join(hexadecimal(code, out) for code in words)
        else:
            k = start + values[0]
            product = _value(x.a[k], spec.input, spec) * _value(x.b[k], spec.input_b, spec)
            shown = f"{hexadecimal(x.a[k], spec.input)} · {hexadecimal(x.b[k], spec.input_b)}"
            name, value = f"p{k}", product
            if kind == "fma":
                name = f"s{values[0] % many if many > 1 else ''}, term {k}"
                value += _value(values[1], out, spec)
                shown += f" + {hexadecimal(values[1], out)}"
                # Adding zero changes no sum, and most terms of the examples are zeros.
                if not product:
                    continue
        yield [name, shown, scientific(value), hexadecimal(values[-1], out)]


def _value(code: int, format: FloatFormat, spec: ChainSpec, flushes: bool = True) -> Fraction:
    """Return the value of an operand, flushed as the rule says."""
    value = finite(code, format)
    cleared = spec.zero_subnormals and not code & format.exponent_mask
    tiny = spec.step.flush and abs(value) < power(spec.output.emin)
    return Fraction(0) if flushes and (cleared or tiny) else value


def _sum_names(spec: ChainSpec, start: int, size: int) -> Iterator[str]:
    """Yield the names of the sums behind the products of a block, in their order."""
    names = [f"p{k}" for k in range(start, start + size)]
    if spec.products != "rounded":
        first = size if spec.add_c == "none" else 0
        names = [f"s{(first + i) % spec.accumulators}" for i in range(spec.accumulators)]
    while len(names) > 1:
        # A tree of neighbours, level by level.
        names = [f"{x} + {y}" for x, y in zip(names[::2], names[1::2], strict=True)]
        names = [f"({name})" if len(names) > 1 else name for name in names]
        yield from names
    yield "C + sum"
