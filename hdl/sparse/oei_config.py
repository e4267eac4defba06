"""The parameters of the buffer, the control and the pipeline of the OEI dataflow."""

from dataclasses import dataclass

from amaranth.lib import data, enum

from vitruvian.common.validate import check_int

from .config import ISConfig, OSConfig, Plus, SparseConfig, Times, check_power
from .ewise_config import EwiseConfig

#: Largest numbers of rows, of elements in CSR space, and of beats in CSC space.
MOST_ROWS, MOST_ELEMENTS, MOST_BEATS = 1024, 1 << 14, 1024


class Refusal(enum.Enum, shape=2):
    """The reason why a pass over a matrix has been given up."""

    #: The pass has ended normally.
    NONE = 0
    #: The elements that wait for the second product do not fit in CSR space.
    SPACE = 1
    #: A row has more elements than its entry in the index.
    ROW = 2
    #: A beat has columns of two sub-tensors.
    BORDER = 3


class Kind(enum.Enum, shape=2):
    """The kinds of commands of the pipeline."""

    #: Write the numbers of elements of a group of rows.
    INDEX = 0
    #: Write a group of elements of the first product's vector.
    VECTOR = 1
    #: Hand a command to the element-wise core.
    EWISE = 2
    #: Start a pass.
    RUN = 3


@dataclass(frozen=True, kw_only=True)
class OEIConfig(SparseConfig):
    """The size of a pipeline that multiplies a vector twice by a matrix that it reads once.

    Parameters
    ----------
    lanes, format, multiplier
        As in ``SparseConfig``; a beat and each core have as many elements.
    rows : int
        Largest number of rows and columns of the matrix, a power of two from 2·lanes to 1024.
    columns : int
        Columns of a sub-tensor, a power of two from ``lanes`` to ``rows``.
    capacity : int
        Elements in CSR space, a power of two from 2·lanes to 16384.
    beats : int
        Beats in CSC space, from 1 to 1024.
    registers, instructions : int
        Registers and size of the program store of the element-wise core.
    """

    rows: int = 64
    columns: int = 8
    capacity: int = 256
    beats: int = 16
    registers: int = 16
    instructions: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power("rows", self.rows, 2 * self.lanes, MOST_ROWS)
        check_power("columns", self.columns, self.lanes, self.rows)
        check_power("capacity", self.capacity, 2 * self.lanes, MOST_ELEMENTS)
        check_int("beats", self.beats, 1, MOST_BEATS)
        # The element-wise core checks its part.
        _ = self.ewise

    @property
    def os(self) -> OSConfig:
        """The size of the output-stationary core."""
        return OSConfig(lanes=self.lanes, format=self.format, multiplier=self.multiplier)

    @property
    def ewise(self) -> EwiseConfig:
        """The size of the element-wise core."""
        return EwiseConfig(
            lanes=self.lanes,
            registers=self.registers,
            instructions=self.instructions,
            format=self.format,
            multiplier=self.multiplier,
        )

    @property
    def is_(self) -> ISConfig:
        """The size of the input-stationary core."""
        return ISConfig(
            lanes=self.lanes, depth=self.groups, format=self.format, multiplier=self.multiplier
        )

    @property
    def groups(self) -> int:
        """Groups of ``lanes`` rows."""
        return self.rows // self.lanes

    @property
    def subs(self) -> int:
        """Largest number of sub-tensors."""
        return self.rows // self.columns

    @property
    def lane_bits(self) -> int:
        """Bits that select a lane or a bank."""
        return self.lanes.bit_length() - 1

    @property
    def row_bits(self) -> int:
        """Bits of a row or a column."""
        return self.rows.bit_length() - 1

    @property
    def group_bits(self) -> int:
        """Bits of a group."""
        return self.groups.bit_length() - 1

    @property
    def sub_bits(self) -> int:
        """Bits of the index of a sub-tensor, with one more for the steps that empty the stages."""
        return self.subs.bit_length() + 1

    @property
    def slot_bits(self) -> int:
        """Bits of the address of an element in CSR space."""
        return self.capacity.bit_length() - 1

    @property
    def count_bits(self) -> int:
        """Bits of a number of elements."""
        return self.slot_bits + 1

    @property
    def csc(self) -> data.StructLayout:
        """The layout of a beat of columns.

        ``last`` ends a column after the lane, which need not have an element. The first column of a
        sub-tensor begins a new beat.
        """
        lane = data.StructLayout(
            {
                "value": self.number.storage_bits,
                "row": self.row_bits,
                "present": 1,
                "last": 1,
            }
        )
        return data.StructLayout({"lanes": data.ArrayLayout(lane, self.lanes)})

    @property
    def csr(self) -> data.StructLayout:
        """The layout of a beat of a row, whose elements are in the first lanes."""
        lane = data.StructLayout(
            {"value": self.number.storage_bits, "column": self.row_bits, "present": 1}
        )
        return data.StructLayout(
            {"lanes": data.ArrayLayout(lane, self.lanes), "row": self.row_bits}
        )

    @property
    def index(self) -> data.StructLayout:
        """The layout of the numbers of elements of a group of rows; group 0 begins a pass."""
        return data.StructLayout(
            {
                "group": self.group_bits,
                "counts": data.ArrayLayout(self.count_bits, self.lanes),
            }
        )

    @property
    def command(self) -> data.StructLayout:
        """The layout of a command.

        INDEX writes ``counts`` and VECTOR ``values`` for ``group``. EWISE hands ``ewise`` to the
        element-wise core. RUN starts a pass over a matrix with ``size`` columns, which are padded
        to whole sub-tensors, with a semiring for each product; the element-wise core then runs the
        program at ``ewise.address`` for each group.
        """
        semiring = data.StructLayout({"plus": Plus, "times": Times})
        return data.StructLayout(
            {
                "kind": Kind,
                "group": self.group_bits,
                "counts": data.ArrayLayout(self.count_bits, self.lanes),
                "values": self.values,
                "size": self.row_bits + 1,
                "first": semiring,
                "second": semiring,
                "ewise": self.ewise.command,
            }
        )
