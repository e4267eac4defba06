"""The operations of the vector unit, and the layout of a command."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from amaranth.lib import data, enum

#: Width of the number of repeats, as in the packed words of the DaVinci instructions.
REPEAT_BITS = 8


class Format(enum.Enum, shape=1):
    """The format of the source elements."""

    FP16 = 0
    FP32 = 1


class Operation(enum.Enum, shape=5):
    """The operation of a command; ``OPERATIONS`` says what each one reads."""

    DUP = 0
    ADD = 1
    SUB = 2
    MUL = 3
    MAX = 4
    MIN = 5
    RELU = 6
    SELECT = 7
    COMPARE = 8
    COMPARE_BITS = 9
    LOAD_BITS = 10
    AND = 11
    OR = 12
    NOT = 13
    SUM = 14
    SUM_BLOCK = 15
    SUM_PAIR = 16
    LARGEST = 17
    LARGEST_BLOCK = 18
    SMALLEST = 19
    SMALLEST_BLOCK = 20
    TO_FP32 = 21
    TO_FP16 = 22
    TO_INT32 = 23
    TO_INT16 = 24
    TO_INT8 = 25
    TO_UINT8 = 26
    EXP = 27
    LN = 28


class Condition(enum.Enum, shape=3):
    """The relation that a comparison tests; with a NaN only ``NE`` is true."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class Rounding(enum.Enum, shape=3):
    """The rounding of a conversion to integers."""

    NEAREST_EVEN = 0
    NEAREST_AWAY = 1
    DOWN = 2
    UP = 3
    ZERO = 4


#: The groups of operations that a unit may have or lack.
GROUPS = ("add", "multiply", "compare", "logic", "reduce", "convert", "functions")


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The properties of an operation that the unit's control needs.

    Attributes
    ----------
    groups : frozenset of str
        The groups of operations that a unit must have; empty if every unit has the operation.
    reads_a, reads_b : bool
        True if a repeat takes a block from the stream. ``b`` may be replaced by the scalar.
    formats : tuple of Format
        The formats of the source. In other formats the result is undefined.
    """

    groups: frozenset[str]
    reads_a: bool = True
    reads_b: bool = False
    formats: tuple[Format, ...] = (Format.FP16, Format.FP32)


def _traits(groups: str, *, a: bool = True, b: bool = False, only: Format | None = None) -> Traits:
    formats = (Format.FP16, Format.FP32) if only is None else (only,)
    return Traits(groups=frozenset(groups.split()), reads_a=a, reads_b=b, formats=formats)


OPERATIONS: Mapping[Operation, Traits] = MappingProxyType(
    {
        Operation.DUP: _traits("", a=False),
        Operation.ADD: _traits("add", b=True),
        Operation.SUB: _traits("add", b=True),
        Operation.MUL: _traits("multiply", b=True),
        Operation.MAX: _traits("compare", b=True),
        Operation.MIN: _traits("compare", b=True),
        Operation.RELU: _traits("compare"),
        Operation.SELECT: _traits("compare", b=True),
        Operation.COMPARE: _traits("compare", b=True),
        Operation.COMPARE_BITS: _traits("compare", b=True),
        Operation.LOAD_BITS: _traits("compare"),
        Operation.AND: _traits("logic", b=True),
        Operation.OR: _traits("logic", b=True),
        Operation.NOT: _traits("logic"),
        Operation.SUM: _traits("add reduce"),
        Operation.SUM_BLOCK: _traits("add reduce"),
        Operation.SUM_PAIR: _traits("add reduce"),
        Operation.LARGEST: _traits("compare reduce"),
        Operation.LARGEST_BLOCK: _traits("compare reduce"),
        Operation.SMALLEST: _traits("compare reduce"),
        Operation.SMALLEST_BLOCK: _traits("compare reduce"),
        Operation.TO_FP32: _traits("convert", only=Format.FP16),
        Operation.TO_FP16: _traits("convert", only=Format.FP32),
        Operation.TO_INT32: _traits("convert"),
        Operation.TO_INT16: _traits("convert"),
        Operation.TO_INT8: _traits("convert", only=Format.FP16),
        Operation.TO_UINT8: _traits("convert", only=Format.FP16),
        Operation.EXP: _traits("functions", only=Format.FP16),
        Operation.LN: _traits("functions", only=Format.FP16),
    }
)


def command_layout(lanes: int) -> data.StructLayout:
    """Return the layout of a command of a unit with ``lanes`` FP16 lanes.

    ``mask`` has one bit for each lane; with FP32 sources, or 32-bit results, its lower half counts.
    ``repeat`` is the number of blocks; 0 does nothing. If ``from_scalar`` is set, every lane has
    ``scalar`` as its operand b. An FP16 scalar is in the lower half of the word.
    """
    return data.StructLayout(
        {
            "operation": Operation,
            "format": Format,
            "condition": Condition,
            "rounding": Rounding,
            "from_scalar": 1,
            "scalar": 32,
            "repeat": REPEAT_BITS,
            "mask": lanes,
        }
    )
