"""What a running kernel has: its own variables, its registers, and the sink for its work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    PRIVATE,
    Pointer,
    Scalar,
    Type,
    decode,
    encode,
)

__all__ = ["STACK_BYTES", "TEXT_LIMIT", "Address", "Call", "Machine", "Sink"]

#: Bytes of variables that are not in registers.
STACK_BYTES = 1 << 20

#: Characters of a core's prints that are kept.
TEXT_LIMIT = 1 << 20


class Address(NamedTuple):
    """A pointer's value: a buffer, a byte in it, and the dtype of what is there."""

    space: str
    address: int
    dtype: str


class Call(NamedTuple):
    """An intrinsic with its arguments, by the names of the signature."""

    name: str
    pipe: str
    arguments: Mapping[str, Any]
    position: Position


class Sink(Protocol):
    """Takes what a kernel does, in the order of its text."""

    def issue(self, call: Call) -> None:
        """Take an intrinsic."""

    def load(self, source: Address, position: Position) -> int | float:
        """Give the value that a scalar load reads."""
        ...

    def store(self, target: Address, value: int | float, position: Position) -> None:
        """Take a scalar store."""

    def print(self, text: str, position: Position) -> None:
        """Take what a printf prints."""


@dataclass
class Machine:
    """A core that runs a kernel.

    Attributes
    ----------
    sink : Sink
    block_idx, block_num : int
        The core's number and the number of cores.
    limit : int
        Calls, intrinsics and passes of a loop after which it is stopped.
    """

    sink: Sink
    block_idx: int
    block_num: int
    limit: int
    steps: int = 0
    depth: int = 0
    top: int = 64  # of the stack; address 0 is no variable's
    memory: bytearray = field(default_factory=lambda: bytearray(STACK_BYTES))
    registers: dict[str, int] = field(default_factory=dict)
    printed: int = 0  # characters
    issued: int = 0  # intrinsics and scalar accesses
    most_issued: int = field(init=False)

    def __post_init__(self) -> None:
        self.most_issued = max(self.limit // 10, 10_000)

    def print(self, text: str, position: Position) -> None:
        """Hand a printed text to the sink, as long as there is room for it."""
        room = TEXT_LIMIT - self.printed
        self.printed += len(text)
        if len(text) > room >= 0:
            text = text[:room] + "...\n(the rest of what this core prints is left out)\n"
        if room >= 0:
            self.sink.print(text, position)

    def issue(self, position: Position) -> None:
        """Count an intrinsic or a scalar access, of which a tenth of the steps is allowed.

        Raises
        ------
        CceError
            When they are too many.
        """
        self.issued += 1
        if self.issued > self.most_issued:
            message = (
                f"the kernel must end within {self.most_issued} intrinsics and scalar accesses"
            )
            raise CceError(position, f"{message}; it is here (--steps or limit= allows more)")

    def step(self, position: Position, count: int = 1) -> None:
        """Count one step, or several.

        Raises
        ------
        CceError
            When the limit is passed.
        """
        self.steps += count
        if self.steps > self.limit:
            message = f"the kernel must end within {self.limit} steps; it is here"
            raise CceError(position, f"{message} (--steps or limit= allows more)")

    def reserve(self, size: int, position: Position) -> int:
        """Room on the stack: the address of its first byte."""
        base = self.top
        self.top += -(-size // 16) * 16
        if self.top > len(self.memory):
            raise CceError(
                position, f"variables must fit {len(self.memory)} bytes; they need {self.top}"
            )
        return base

    def load(self, space: str, address: int, type: Type, position: Position):
        """The value at an address."""
        if space == PRIVATE:
            self._check(address, type.size, position)
            return decode(type, bytes(self.memory[address : address + type.size]))
        self.issue(position)
        value = self.sink.load(Address(space, address, _dtype(type, position)), position)
        return int(value != 0) if type is BOOL else value

    def store(self, space: str, address: int, type: Type, value, position: Position) -> None:
        """Put a value, of its type already, at an address."""
        if space == PRIVATE:
            self._check(address, type.size, position)
            self.memory[address : address + type.size] = encode(type, value)
        else:
            self.issue(position)
            self.sink.store(Address(space, address, _dtype(type, position)), value, position)

    def _check(self, address: int, size: int, position: Position) -> None:
        if not 64 <= address <= self.top - size:
            raise CceError(position, f"address {address:#x} is outside the function's variables")


def _dtype(type: Type, position: Position) -> str:
    if isinstance(type, Pointer):
        return "uint64"
    if not isinstance(type, Scalar):
        raise CceError(position, f"a value in memory must be a number, not {type}")
    return type.dtype
