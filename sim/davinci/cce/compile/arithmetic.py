"""What C's operators compute, as functions of two values of one type."""

import math
import operator
from collections.abc import Callable

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.types import DOUBLE, INT, UINT64, Scalar, converter

__all__ = ["COMPARISONS", "binary", "shift"]

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


def binary(sign: str, type: Scalar, position: Position) -> Callable:
    """Function of two values of `type` that gives one of `type`: + - * / % & | ^.

    Raises
    ------
    CceError
        For an operator that floating point does not have; when it is called, for a division of
        integers by zero.
    """
    if type.is_float:
        if sign not in "+-*/":
            raise CceError(position, f"operands of {sign} must be integers, not {type}")
        return _rounded(_divide_floats if sign == "/" else _RING[sign], type)
    if sign in _BITS:
        return _BITS[sign]  # of two's complement numbers in range it is in range
    wrap = _wrapping(type)
    if sign in _RING:
        apply = _RING[sign]
        return lambda a, b: wrap(apply(a, b))

    def divide(a, b):
        if b == 0:
            raise CceError(position, f"the right side of {sign} is zero")
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return wrap(quotient if sign == "/" else a - quotient * b)

    return divide


def shift(sign: str, type: Scalar, position: Position) -> Callable:
    """Function for << and >>: of a value of `type` and a count."""
    bits, wrap = 8 * type.size, _wrapping(type)

    def apply(value, count):
        if not 0 <= count < bits:
            raise CceError(position, f"a shift of {type} must be 0 to {bits - 1}, not {count}")
        return wrap(value << count) if sign == "<<" else value >> count

    return apply


def _wrapping(type: Scalar) -> Callable:
    """Any integer to the one of `type` that is the same modulo 2^bits."""
    other = UINT64 if type.kind == "i" else INT
    convert = converter(other, type)
    assert convert is not None  # from another signedness
    return convert


def _rounded(apply: Callable, type: Scalar) -> Callable:
    """In double, then rounded: to 24 bits and fewer the same as rounded once (53 ≥ 2·24 + 2)."""
    convert = converter(DOUBLE, type)
    if convert is None:
        return apply
    return lambda a, b: convert(apply(a, b))


def _divide_floats(a, b):
    if b:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)
