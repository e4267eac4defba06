"""RV32I with the multiplications of M (Zmmul), one instruction after the other.

References
----------
The RISC-V Instruction Set Manual, volume I, version 20191213: chapters 2 (RV32I) and 7 (M).
"""

from collections.abc import Callable
from typing import Protocol

from .memory_map import (
    AUIPC,
    BRANCH,
    FENCE,
    IMMEDIATE,
    JAL,
    JALR,
    LOAD,
    LUI,
    REGISTER,
    STORE,
)

_WORD = 0xFFFFFFFF


class IllegalInstruction(ValueError):
    """A word that is no instruction of this machine, or an address that is not aligned."""


class HartBus(Protocol):
    """What a hart reads and writes: words, halves and bytes at byte addresses."""

    def load(self, address: int, size: int) -> int:
        """Return ``size`` bytes, the lowest byte first, as an unsigned integer."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the lowest ``size`` bytes of an integer."""
        ...


def signed(value: int, bits: int = 32) -> int:
    """Return the lowest bits of an integer in two's complement."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def _multiply_high(a: int, b: int) -> int:
    return (a * b) >> 32


#: Results of two operands by funct3; the second operand may be an immediate.
_ARITHMETIC: tuple[Callable[[int, int], int], ...] = (
    lambda a, b: a + b,
    lambda a, b: a << (b & 31),
    lambda a, b: int(signed(a) < signed(b)),
    lambda a, b: int(a < b),
    lambda a, b: a ^ b,
    lambda a, b: a >> (b & 31),
    lambda a, b: a | b,
    lambda a, b: a & b,
)
_MULTIPLICATIONS: tuple[Callable[[int, int], int], ...] = (
    lambda a, b: a * b,
    lambda a, b: _multiply_high(signed(a), signed(b)),
    lambda a, b: _multiply_high(signed(a), b),
    lambda a, b: _multiply_high(a, b),
)
_CONDITIONS: dict[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    4: lambda a, b: signed(a) < signed(b),
    5: lambda a, b: signed(a) >= signed(b),
    6: lambda a, b: a < b,
    7: lambda a, b: a >= b,
}
#: Bytes and sign of loads by funct3.
_LOADS = {0: (1, True), 1: (2, True), 2: (4, False), 4: (1, False), 5: (2, False)}


class Hart:
    """A hart: 31 registers, a program counter, and a bus.

    Parameters
    ----------
    bus : HartBus
        Instructions are read from it as words.
    pc : int
        Address of the first instruction.

    Attributes
    ----------
    x : list of int
        The 32 registers, unsigned; x[0] is 0.
    count : int
        Instructions that were carried out.
    """

    def __init__(self, bus: HartBus, pc: int):
        self.bus: HartBus = bus
        self.pc: int = pc
        self.x: list[int] = [0] * 32
        self.count: int = 0

    def step(self) -> None:
        """Carry out one instruction.

        Raises
        ------
        IllegalInstruction
            If it is none of this machine, or its address is not aligned.
        """
        word = self.bus.load(self.pc, 4)
        opcode, rd, kind = word & 0x7F, word >> 7 & 31, word >> 12 & 7
        a, b = self.x[word >> 15 & 31], self.x[word >> 20 & 31]
        immediate = signed(word >> 20, 12)
        following, result = self.pc + 4, None
        if opcode == LUI:
            result = word & 0xFFFFF000
        elif opcode == AUIPC:
            result = self.pc + (word & 0xFFFFF000)
        elif opcode == JAL:
            result, following = following, self.pc + _jump(word)
        elif opcode == JALR and kind == 0:
            result, following = following, (a + immediate) & ~1
        elif opcode == BRANCH and kind in _CONDITIONS:
            if _CONDITIONS[kind](a, b):
                following = self.pc + _branch(word)
        elif opcode == LOAD and kind in _LOADS:
            size, is_signed = _LOADS[kind]
            value = self.bus.load(self._aligned(a + immediate, size), size)
            result = signed(value, 8 * size) if is_signed else value
        elif opcode == STORE and kind < 3:
            place = a + signed(word >> 25 << 5 | rd, 12)
            self.bus.store(self._aligned(place, 1 << kind), 1 << kind, b)
        elif opcode in (IMMEDIATE, REGISTER):
            result = self._arithmetic(word, kind, a, b, immediate)
        elif opcode != FENCE:
            self._refuse(word)
        if following & 3:
            self._refuse(word)
        if rd and result is not None:
            self.x[rd] = result & _WORD
        self.pc = following & _WORD
        self.count += 1

    def _arithmetic(self, word: int, kind: int, a: int, b: int, immediate: int) -> int:
        function = word >> 25
        is_shift = kind in (1, 5)
        if word & 0x7F == IMMEDIATE:
            if not is_shift:
                return _ARITHMETIC[kind](a, immediate & _WORD)
            b = word >> 20 & 31
        elif function == 1 and kind < 4:
            return _MULTIPLICATIONS[kind](a, b)
        if function == 0:
            return _ARITHMETIC[kind](a, b)
        if function == 0x20 and kind == 5:
            return signed(a) >> (b & 31)
        if function == 0x20 and kind == 0 and word & 0x7F == REGISTER:
            return a - b
        self._refuse(word)
        return 0

    def _aligned(self, address: int, size: int) -> int:
        if address % size:
            message = f"address {address & _WORD:#010x} must be a multiple of {size}"
            raise IllegalInstruction(f"{message} at {self.pc:#010x}")
        return address & _WORD

    def _refuse(self, word: int) -> None:
        raise IllegalInstruction(f"{word:#010x} at {self.pc:#010x} is no instruction")


def _jump(word: int) -> int:
    parts = word >> 31 << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11
    return signed(parts | (word >> 21 & 0x3FF) << 1, 21)


def _branch(word: int) -> int:
    parts = word >> 31 << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5
    return signed(parts | (word >> 8 & 0xF) << 1, 13)
