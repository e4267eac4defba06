"""The parameters of the sparse cores, their operators, and the layouts of their streams."""

from dataclasses import dataclass

from amaranth.lib import data, enum

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.names import FORMATS, KINDS, PLUS, TIMES

from ..fp.parts.multiply import check_multiplier

#: Largest number of lanes of a core.
MOST_LANES = 64
_MOST_DEPTH_BITS = 12
#: Numbers of results that a bank can have.
DEPTHS = tuple(1 << n for n in range(1, _MOST_DEPTH_BITS + 1))


class Plus(enum.Enum, shape=2):
    """The reduction ⊕ of a semiring."""

    ADD = PLUS.index("add")
    MIN = PLUS.index("min")
    MAX = PLUS.index("max")
    OR = PLUS.index("or")


class Times(enum.Enum, shape=3):
    """The operator ⊗ of a semiring."""

    MUL = TIMES.index("mul")
    ADD = TIMES.index("add")
    MIN = TIMES.index("min")
    MAX = TIMES.index("max")
    AND = TIMES.index("and")
    ARIL = TIMES.index("aril")
    SUB = TIMES.index("sub")
    OR = TIMES.index("or")


def check_power(thing: str, value: int, least: int, most: int) -> None:
    """Raise ``ValueError`` unless a parameter is a power of two within a range."""
    check_int(thing, value, least, most)
    one_of(thing, value, [1 << n for n in range(most.bit_length()) if least <= 1 << n <= most])


def check_lanes(thing: str, value: int) -> None:
    """Raise ``ValueError`` unless a number of lanes is a power of two that a core can have."""
    check_power(thing, value, 1, MOST_LANES)


@dataclass(frozen=True, kw_only=True)
class SparseConfig:
    """The parameters of all sparse cores: lanes of one format.

    Parameters
    ----------
    lanes : int
        Number of processing elements, a power of two from 1 to 64.
    format : str
        Format of all numbers, ``fp16``, ``bf16`` or ``fp32``.
    multiplier : {"booth", "dsp"}
        Form of the multipliers: for standard cells, or for the DSP blocks of an FPGA.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.
    """

    lanes: int = 8
    format: str = "fp32"
    multiplier: str = "booth"

    def __post_init__(self) -> None:
        check_lanes("lanes", self.lanes)
        one_of("format", self.format, FORMATS)
        check_multiplier(self.multiplier)

    @property
    def number(self) -> FloatFormat:
        """The format of all numbers."""
        return as_format(self.format)

    @property
    def values(self) -> data.ArrayLayout:
        """The layout of a number in each lane."""
        return data.ArrayLayout(self.number.storage_bits, self.lanes)


@dataclass(frozen=True, kw_only=True)
class OSConfig(SparseConfig):
    """The size of an output-stationary core."""

    @property
    def beat(self) -> data.StructLayout:
        """The layout of a beat: a matrix value and a vector element in each lane, with marks.

        ``present`` is 0 in a lane without an element. ``last`` ends a column after the lane, which
        need not have an element.
        """
        bits = self.number.storage_bits
        lane = data.StructLayout({"a": bits, "b": bits, "present": 1, "last": 1})
        return data.StructLayout(
            {"lanes": data.ArrayLayout(lane, self.lanes), "plus": Plus, "times": Times}
        )

    @property
    def columns(self) -> data.ArrayLayout:
        """The layout of an output: the reduced column of each lane that had a mark."""
        bits = self.number.storage_bits
        return data.ArrayLayout(data.StructLayout({"value": bits, "last": 1}), self.lanes)


class Kind(enum.Enum, shape=2):
    """The kinds of beats of an input-stationary core."""

    ADD = KINDS.index("add")
    WRITE = KINDS.index("write")
    READ = KINDS.index("read")


@dataclass(frozen=True, kw_only=True)
class ISConfig(SparseConfig):
    """The size of an input-stationary core.

    Parameters
    ----------
    lanes, format, multiplier
        As in ``SparseConfig``; there are as many banks as lanes.
    depth : int
        Results in a bank, a power of two from 2 to 4096.
    """

    depth: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power("depth", self.depth, 2, 1 << _MOST_DEPTH_BITS)

    @property
    def bank_bits(self) -> int:
        """Bits of a column that select its bank."""
        return self.lanes.bit_length() - 1

    @property
    def address_bits(self) -> int:
        """Bits of an address in a bank."""
        return self.depth.bit_length() - 1

    @property
    def column_bits(self) -> int:
        """Bits of a column."""
        return self.bank_bits + self.address_bits

    @property
    def beat(self) -> data.StructLayout:
        """The layout of a beat.

        ``kind`` ADD adds ``a ⊗ x`` to the column of each lane with ``present``. WRITE writes ``a``
        instead. READ reads the ``lanes`` columns of the group in which lane 0's column is.
        """
        bits = self.number.storage_bits
        lane = data.StructLayout({"a": bits, "column": self.column_bits, "present": 1})
        return data.StructLayout(
            {
                "lanes": data.ArrayLayout(lane, self.lanes),
                "x": bits,
                "kind": Kind,
                "plus": Plus,
                "times": Times,
            }
        )
