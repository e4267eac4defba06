"""State the arithmetic and the order of the vector unit and of the storage conversion.

The wings register the rules of further units.
"""

from collections.abc import Callable, Iterator
from typing import Any

from vitruvian.common.wings import registered
from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.hdl.scu import Col2Im, Im2Col
from vitruvian.hdl.vector import VectorUnit
from vitruvian.hdl.vector.operations import GROUPS, Format

#: Lines about rounding, for units that round each operation.
ROUNDING = "  Rounding: once for each operation, RNE (to nearest, ties to even); subnormal numbers"
KEPT = "    are kept, and overflow gives infinity."


def stated(component: Any) -> Iterator[str]:
    """Yield lines that state what a unit computes; none for a unit without such lines."""
    rules = dict(_RULES)
    for module in registered("header rules"):
        rules |= module.RULES
    for cls, text in rules.items():
        if isinstance(component, cls):
            yield from text(component)


def nan_rule(*formats: FloatFormat) -> str:
    """Return the line about the codes of NaN results."""
    codes = [f"0x{f.canonical_nan:0{f.storage_bits // 4}x}" for f in formats]
    if len(formats) == 1:
        return f"  NaN: every NaN result of arithmetic has the code {codes[0]}."
    each = " and ".join(f"{code} ({f.name})" for code, f in zip(codes, formats, strict=True))
    return f"  NaN: every NaN result of arithmetic has the code {each}."


def _vector(unit: Any) -> Iterator[str]:
    config, n = unit.config, unit.config.lanes
    yield f"Arithmetic: on {n} elements of fp16 or {n // 2} of fp32 at a time."
    if len(config.groups) < len(GROUPS):
        yield f"  Operations: {', '.join(op.name.lower() for op in config.operations)}."
    yield ROUNDING
    yield KEPT
    if "convert" in config.groups:
        yield "  Conversions to integers round as the command says; they saturate, and NaN gives 0."
    if "functions" in config.groups:
        yield "  exp and ln, only of fp16, are correctly rounded."
    yield nan_rule(FORMATS["fp16"], FORMATS["fp32"])
    if "compare" in config.groups:
        yield "  Minimum and maximum prefer a number to NaN, and -0 < +0."
    if "reduce" in config.groups:
        yield "  A reduction is a balanced tree: elements 2i and 2i + 1 first, then pairs of pairs;"
        yield "    every sum is rounded."
    yield "Repeats: a command takes one block of each operand that it reads and gives one block for"
    yield "  each repeat. Bit k of enable is 1 if byte k of data is to be written."
    reductions = [op for op in config.operations if unit.cycles(op, Format.FP16) > 1]
    if reductions:
        most = max(unit.cycles(op, Format.FP16) for op in reductions)
        yield f"Rate: a repeat in each cycle; a reduction takes up to {most} cycles."
    else:
        yield "Rate: a repeat in each cycle."


def _im2col(unit: Any) -> Iterator[str]:
    yield "Arithmetic: none; pixels are copied bit by bit."
    yield from _conversion(unit)
    yield "  Rows in the padding and behind the last patch have the value fill in each element."


def _col2im(unit: Any) -> Iterator[str]:
    f = as_format(unit.format)
    yield f"Arithmetic: d = a + b of {f.name}: a row of a fractal is added to its pixel."
    yield ROUNDING
    yield KEPT
    yield nan_rule(f)
    yield from _conversion(unit)
    yield "  A row that belongs to no pixel is dropped: its inside is 0."


def _conversion(unit: Any) -> Iterator[str]:
    config = unit.config
    plural = "" if config.rows == 1 else "s"
    size = f"{config.rows} row{plural} of {config.c0_bytes} bytes"
    yield f"Order: a beat is {size}. fetch requests the pixels ahead of time, and"
    yield "  rows answers in the same order with any delay."


_RULES: dict[type, Callable[[Any], Iterator[str]]] = {
    VectorUnit: _vector,
    Im2Col: _im2col,
    Col2Im: _col2im,
}
