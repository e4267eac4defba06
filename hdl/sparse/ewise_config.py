"""The parameters of the element-wise core, its operations, and the layouts of its streams."""

from dataclasses import dataclass

from amaranth.lib import data, enum

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.fp.formats import FloatFormat, as_format

from ..fp.parts.multiply import check_multiplier
from .config import FORMATS, check_lanes

#: Numbers of registers and of instructions that a core can have.
REGISTERS = (4, 8, 16, 32, 64)
STORES = (8, 16, 32, 64, 128, 256)


class Operation(enum.Enum, shape=4):
    """The kinds of instructions, in the order of ``golden.sparse.programs.OPERATIONS``."""

    LOAD = 0
    STORE = 1
    COPY = 2
    ABS = 3
    NOT = 4
    EXCHANGE = 5
    WHERE = 6
    EQUAL = 7
    ADD = 8
    SUB = 9
    MUL = 10
    LESS = 11
    MIN = 12
    MAX = 13
    AND = 14
    OR = 15


class Command(enum.Enum, shape=1):
    """The kinds of commands: run a program, or write an instruction to the store."""

    STEP = 0
    WRITE = 1


@dataclass(frozen=True, kw_only=True)
class EwiseConfig:
    """The size of an element-wise core.

    Parameters
    ----------
    lanes : int
        Number of processing elements, a power of two from 1 to 64.
    registers : int
        Vector registers, a power of two from 4 to 64.
    instructions : int
        Size of the program store, a power of two from 8 to 256.
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
    registers: int = 16
    instructions: int = 64
    format: str = "fp32"
    multiplier: str = "booth"

    def __post_init__(self) -> None:
        check_lanes("lanes", self.lanes)
        for name, allowed in (("registers", REGISTERS), ("instructions", STORES)):
            check_int(name, getattr(self, name), 1)
            one_of(name, getattr(self, name), allowed)
        one_of("format", self.format, FORMATS)
        check_multiplier(self.multiplier)

    @property
    def number(self) -> FloatFormat:
        """The format of all numbers."""
        return as_format(self.format)

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
    def values(self) -> data.ArrayLayout:
        """The layout of an item of an input stream."""
        return data.ArrayLayout(self.number.storage_bits, self.lanes)

    @property
    def results(self) -> data.StructLayout:
        """The layout of an item of an output stream: values, and the lanes with an element."""
        return data.StructLayout({"values": self.values, "present": self.lanes})
