"""Bit-exact floating point: formats, arithmetic, and the fused dot product.

Numbers are arrays of codes, that is unsigned integers of the storage width. ``from_float`` and
``to_float`` convert between codes and float64. ``golden.fp.reference`` computes the same results
one number at a time with ``Fraction``.
"""

from vitruvian.golden.fp.arith import (
    UNORDERED,
    add,
    compare,
    fma,
    maximum_number,
    minimum_number,
    mul,
)
from vitruvian.golden.fp.codec import number_dtype, to_float, unpack
from vitruvian.golden.fp.convert import convert, from_float, from_int, to_int
from vitruvian.golden.fp.dot import fused_dot
from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS, FloatFormat, IntFormat, Specials
from vitruvian.golden.fp.intdot import int_dot, int_matmul
from vitruvian.golden.fp.round import ROUNDINGS
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.fp.window import ieee_window

__all__ = [
    "FORMATS",
    "INT_FORMATS",
    "ROUNDINGS",
    "UNORDERED",
    "DotSpec",
    "FloatFormat",
    "IntDotSpec",
    "IntFormat",
    "Specials",
    "add",
    "compare",
    "convert",
    "dot_spec",
    "fma",
    "from_float",
    "from_int",
    "fused_dot",
    "ieee_window",
    "int_dot",
    "int_matmul",
    "maximum_number",
    "minimum_number",
    "mul",
    "number_dtype",
    "to_float",
    "to_int",
    "unpack",
]
