"""The parameters of the element-wise core, its operations, and the layouts of its streams."""

from dataclasses import dataclass

from amaranth.lib import data, enum

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.sparse.names import OPERATIONS

from .config import SparseConfig

#: Numbers of registers and of instructions that a core can have.
REGISTERS = (4, 8, 16, 32, 64)
STORES = (8, 16, 32, 64, 128, 256)


class Operation(enum.Enum, shape=4):
    """The kinds of instructions."""

    LOAD = OPERATIONS.index("load")
    STORE = OPERATIONS.index("store")
    COPY = OPERATIONS.index("copy")
    ABS = OPERATIONS.index("abs")
    NOT = OPERATIONS.index("not")
    EXCHANGE = OPERATIONS.index("exchange")
    WHERE = OPERATIONS.index("where")
    EQUAL = OPERATIONS.index("equal")
    ADD = OPERATIONS.index("add")
    SUB = OPERATIONS.index("sub")
    MUL = OPERATIONS.index("mul")
    LESS = OPERATIONS.index("less")
    MIN = OPERATIONS.index("min")
    MAX = OPERATIONS.index("max")
    AND = OPERATIONS.index("and")
    OR = OPERATIONS.index("or")


class Command(enum.Enum, shape=1):
    """The kinds of commands: run a program, or write an instruction to the store."""

    STEP = 0
    WRITE = 1


@dataclass(frozen=True, kw_only=True)
class EwiseConfig(SparseConfig):
    """The size of an element-wise core.

    Parameters
    ----------
    lanes, format, multiplier
        As in ``SparseConfig``.
    registers : int
        Vector registers, a power of two from 4 to 64.
    instructions : int
        Size of the program store, a power of two from 8 to 256.
    """

    registers: int = 16
    instructions: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (("registers", REGISTERS), ("instructions", STORES)):
            check_int(name, getattr(self, name), 1)
            one_of(name, getattr(self, name), allowed)

    @property
    def register_bits(self) -> int:
        """Bits of the number of a register."""
        return self.registers.bit_length() - 1

    @property
    def address_bits(self) -> int:
        """Bits of an address in the program store."""
        return self.instructions.bit_length() - 1

    @property
    def instruction(self) -> data.StructLayout:
        """The layout of an instruction.

        ``LOAD`` has the number of the input stream in ``a``, ``STORE`` that of the output stream in
        ``d``, and ``EXCHANGE`` the binary logarithm of a distance between lanes in ``b``.
        """
        bits = self.register_bits
        return data.StructLayout({"op": Operation, "d": bits, "a": bits, "b": bits, "end": 1})

    @property
    def command(self) -> data.StructLayout:
        """The layout of a command.

        A step has the address of a program's first instruction and the lanes with an element
        (``present``). A write has an address and an instruction.
        """
        return data.StructLayout(
            {
                "kind": Command,
                "address": self.address_bits,
                "present": self.lanes,
                "instruction": self.instruction,
            }
        )

    @property
    def results(self) -> data.StructLayout:
        """The layout of an item of an output stream: values, and the lanes with an element."""
        return data.StructLayout({"values": self.values, "present": self.lanes})
