"""State the arithmetic and the order of the vector unit, the storage conversion, sparse units."""

from collections.abc import Callable, Iterator
from typing import Any

from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.hdl.scu import Col2Im, Im2Col
from vitruvian.hdl.sparse import EwiseCore, ISCore, OSCore
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.vector import VectorUnit
from vitruvian.hdl.vector.operations import GROUPS, Format

_ROUNDING = "  Rounding: once for each operation, RNE (to nearest, ties to even); subnormal numbers"
_KEPT = "    are kept, and overflow gives infinity."


def stated(component: Any) -> Iterator[str]:
    """Yield lines that state what a unit computes; none for a unit without such lines."""
    for cls, text in _RULES.items():
        if isinstance(component, cls):
            yield from text(component)


def _nan(*formats: FloatFormat) -> str:
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
    yield _ROUNDING
    yield _KEPT
    if "convert" in config.groups:
        yield "  Conversions to integers round as the command says; they saturate, and NaN gives 0."
    if "functions" in config.groups:
        yield "  exp and ln, only of fp16, are correctly rounded."
    yield _nan(FORMATS["fp16"], FORMATS["fp32"])
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
    yield _ROUNDING
    yield _KEPT
    yield _nan(f)
    yield from _conversion(unit)
    yield "  A row that belongs to no pixel is dropped: its inside is 0."


def _conversion(unit: Any) -> Iterator[str]:
    config = unit.config
    plural = "" if config.rows == 1 else "s"
    size = f"{config.rows} row{plural} of {config.c0_bytes} bytes"
    yield f"Order: a beat is {size}. fetch requests the pixels ahead of time, and"
    yield "  rows answers in the same order with any delay."


def _core(number: FloatFormat, *, semiring: bool = True) -> Iterator[str]:
    """Yield the rules of the operators of a core."""
    beat = " A beat reduces the products of times by plus." if semiring else ""
    yield f"Arithmetic: on {number.name}.{beat}"
    yield "  Truth: and, or and other conditions give 1 or 0; a number is true unless it is zero or"
    yield "    NaN."
    yield "  Minimum and maximum prefer a number to NaN, and -0 < +0."
    if semiring:
        yield "  aril: the vector's element if the matrix value is true, otherwise the identity of"
        yield "    plus: +infinity for min, -infinity for max, 0 for the others."
    yield _ROUNDING
    yield _KEPT
    yield _nan(number)


def _os(unit: Any) -> Iterator[str]:
    yield from _core(unit.config.number)
    yield "Order: last ends a column behind its lane. A balanced tree over the lanes (2i and 2i + 1"
    yield "  first) reduces the part of a column in a beat, which then joins the part before it."


def _is(unit: Any) -> Iterator[str]:
    yield from _core(unit.config.number)
    yield "Order: beats take effect one after the other, and so do the lanes of a beat, from lane 0"
    yield "  on: y[column] = y[column] plus (a times x). write stores a; read gives the group of"
    yield f"  {unit.config.lanes} columns in which the column of lane 0 is."


def _ewise(unit: Any) -> Iterator[str]:
    yield from _core(unit.config.number, semiring=False)
    yield "Program: a write stores an instruction; a step runs instructions from its address to one"
    yield "  with end = 1, on the lanes that are present. load takes an item of x (a = 0) or v"
    yield "  (a = 1), store gives an item of y (d = 0) or w (d = 1)."


def _buffer(unit: Any) -> Iterator[str]:
    del unit
    yield "Arithmetic: none; values are copied bit by bit."
    yield "Order: index, group 0 first, then the orders columns and rows from 0 on. rows K may come"
    yield "  when columns K + 1 is done, and columns K + 3 when rows K is done."


def _control(unit: Any) -> Iterator[str]:
    del unit
    yield "Arithmetic: none."
    yield "Order: in step s, the stage os gets sub-tensor s, ewise s - 1 and is_ s - 2. A step ends"
    yield "  when every stage that has got one has set its done for a cycle."


def _oei(unit: Any) -> Iterator[str]:
    yield from _core(unit.config.number)
    yield "Order: all groups of index and vector, then run. A pass gives z and w as its program"
    yield "  stores them, then y, then status; after a refusal the unit stops until a reset."


_RULES: dict[type, Callable[[Any], Iterator[str]]] = {
    VectorUnit: _vector,
    Im2Col: _im2col,
    Col2Im: _col2im,
    OSCore: _os,
    ISCore: _is,
    EwiseCore: _ewise,
    DualBuffer: _buffer,
    PipelineControl: _control,
    OEIPipeline: _oei,
}
