"""The control bits of a slice, and what they are for each operation."""

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import data, enum

from .operations import Condition, Operation


class Select(enum.Enum, shape=3):
    """The result of a slice that needs neither an adder nor a multiplier."""

    B = 0
    MAX = 1
    MIN = 2
    BITS = 3
    AND = 4
    OR = 5
    NOT = 6


class Source(enum.Enum, shape=3):
    """The part of a slice that the result comes from."""

    SELECT = 0
    ADD = 1
    MULTIPLY = 2
    CONVERT = 3
    FUNCTION = 4


class Form(enum.Enum, shape=3):
    """The form of the block that a beat leaves in the output register.

    ``SAME``: elements at their lanes. ``HALVES``, ``BYTES``: the lower 16 or 8 bits of every lane,
    packed. ``BITS``: a bit for each lane, packed. ``INDEXED``: an element and its lane.
    """

    SAME = 0
    HALVES = 1
    BYTES = 2
    BITS = 3
    INDEXED = 4


def control_layout() -> data.StructLayout:
    """Return the layout of the control bits of a beat.

    ``wide`` is set for FP32 operands, ``wide_result`` for 32-bit results. ``accept`` has a bit for
    each relation (less, equal, greater, unordered) for which a comparison is true; if ``match`` is
    set, a flag says instead that a and b are the same element, or both NaNs.
    """
    return data.StructLayout(
        {
            "wide": 1,
            "wide_result": 1,
            "source": Source,
            "select": Select,
            "accept": 4,
            "match": 1,
            "subtract": 1,
            "conversion": 3,
            "rounding": 3,
            "logarithm": 1,
        }
    )


#: The relations (less 1, equal 2, greater 4, unordered 8) for which a condition holds.
_ACCEPT: Mapping[Condition, int] = MappingProxyType(
    {
        Condition.EQ: 2,
        Condition.NE: 1 | 4 | 8,
        Condition.LT: 1,
        Condition.LE: 1 | 2,
        Condition.GT: 4,
        Condition.GE: 4 | 2,
    }
)


def condition_mask(condition: Value) -> Value:
    """Return the field ``accept`` for a condition's code."""
    result: Value = Const(0, 4)
    for member, mask in _ACCEPT.items():
        result = result | (Const(mask, 4) & (condition == member.value).replicate(4))
    return result


def is_one_of(code: Value, *operations: Operation) -> Value:
    """Return 1 if ``code`` is one of the operations."""
    return Cat(*(code == operation.value for operation in operations)).any()
