"""The operators of C as functions of two values of one type."""

import math
import operator
from collections.abc import Callable

from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import DOUBLE, INT, UINT64, Scalar, converter

COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_RING = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_BITS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def binary(sign: str, type: Scalar, position: SourcePosition) -> Callable:
    """Return the function of one of the operators + - * / % & | ^ for values of one type.

    Parameters
    ----------
    sign : str
        The operator.
    type : Scalar
        The type of both operands and of the result.
    position : SourcePosition
        The position of the operator, for messages.

    Raises
    ------
    CceError
        If floating point does not have the operator. The returned function raises it if it divides
        an integer by zero.
    """
    if type.is_float:
        if sign not in "+-*/":
            raise CceError(position, f"operands of {sign} must be integers, not {type}")
        return _rounded(_divide_floats if sign == "/" else _RING[sign], type)
    if sign in _BITS:
        return _BITS[sign]  # the result of operands in range is in range
    wrap = _wrapping(type)
    if sign in _RING:
        apply = _RING[sign]
        return lambda a, b: wrap(apply(a, b))

    def divide(a, b):
        if b == 0:
            raise CceError(position, f"the right side of {sign} is zero")
        quotient = abs(a) // abs(b)  # C truncates towards zero; // rounds down
        if (a < 0) != (b < 0):
            quotient = -quotient
        return wrap(quotient if sign == "/" else a - quotient * b)

    return divide


def shift(sign: str, type: Scalar, position: SourcePosition) -> Callable:
    """Return the function of << or >>, which takes a value of ``type`` and a count.

    Raises
    ------
    CceError
        The returned function raises it if the count is negative, or not below the width.
    """
    bits, wrap = 8 * type.size, _wrapping(type)

    def apply(value, count):
        if not 0 <= count < bits:
            raise CceError(position, f"a shift of {type} must be 0 to {bits - 1}, not {count}")
        return wrap(value << count) if sign == "<<" else value >> count

    return apply


def _wrapping(type: Scalar) -> Callable:
    """Return the function that wraps an integer modulo 2^bits into the range of a type."""
    other = UINT64 if type.kind == "i" else INT
    convert = converter(other, type)
    assert convert is not None  # the signs differ, so a conversion exists
    return convert


def _rounded(apply: Callable, type: Scalar) -> Callable:
    """Return ``apply`` computed in double and then rounded to a type.

    The result is that of a single rounding: double has 53 significant bits, and 2p + 2 bits are
    enough for a type of p <= 24 bits.
    """
    convert = converter(DOUBLE, type)
    if convert is None:
        return apply
    return lambda a, b: convert(apply(a, b))


def _divide_floats(a, b):
    """Divide as IEEE 754 does; Python raises an exception for a divisor of zero."""
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)
