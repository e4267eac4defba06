"""Bit-exact elementwise arithmetic on vectors of FP16, FP32 and integers.

Arrays have NumPy's own types (float16, float32, integers; bf16 as uint16 codes). Floating-point
results follow IEEE 754 with rounding to nearest, ties to even, and with subnormals; a NaN result is
the canonical quiet NaN with a clear sign (0x7E00, 0x7FC00000). Square root, reciprocals,
exponential and logarithm are correctly rounded. Integers wrap; conversions saturate.
"""

from vitruvian.golden.vector.arithmetic import (
    absolute,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    div,
    leaky_relu,
    maximum,
    minimum,
    mul,
    multiply_add,
    relu,
    shift_left,
    shift_right,
    sub,
)
from vitruvian.golden.vector.conversions import ROUNDINGS, convert, integral
from vitruvian.golden.vector.formats import DTYPES, canonical
from vitruvian.golden.vector.fours import from_fours, pack_fours, to_fours, unpack_fours
from vitruvian.golden.vector.functions import exp, ln, rec, rsqrt, sqrt
from vitruvian.golden.vector.reductions import largest, pair_sums, smallest, sum_tree
from vitruvian.golden.vector.selection import (
    CONDITIONS,
    compare,
    fill_blocks,
    pack,
    select,
    transpose,
    unpack_bits,
)

__all__ = [
    "CONDITIONS",
    "DTYPES",
    "ROUNDINGS",
    "absolute",
    "add",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "canonical",
    "compare",
    "convert",
    "div",
    "exp",
    "fill_blocks",
    "from_fours",
    "integral",
    "largest",
    "leaky_relu",
    "ln",
    "maximum",
    "minimum",
    "mul",
    "multiply_add",
    "pack",
    "pack_fours",
    "pair_sums",
    "rec",
    "relu",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right",
    "smallest",
    "sqrt",
    "sub",
    "sum_tree",
    "to_fours",
    "transpose",
    "unpack_bits",
    "unpack_fours",
]
