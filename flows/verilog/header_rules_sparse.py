"""State the arithmetic and the order of the cores for sparse tensor algebra."""

from collections.abc import Callable, Iterator
from typing import Any

from vitruvian.flows.verilog.header_rules import KEPT, ROUNDING, nan_rule
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.hdl.sparse import EwiseCore, ISCore, OSCore
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei import OEIPipeline


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
    yield ROUNDING
    yield KEPT
    yield nan_rule(number)


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


RULES: dict[type, Callable[[Any], Iterator[str]]] = {
    OSCore: _os,
    ISCore: _is,
    EwiseCore: _ewise,
    DualBuffer: _buffer,
    PipelineControl: _control,
    OEIPipeline: _oei,
}
