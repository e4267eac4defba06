"""The state of a running kernel: its variables, its registers, and the sink for its work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    PRIVATE,
    Pointer,
    Scalar,
    Type,
    decode,
    encode,
)

#: Bytes of memory for variables that are not in registers.
STACK_BYTES = 1 << 20

#: Number of characters of a core's prints that are kept.
TEXT_LIMIT = 1 << 20


class Address(NamedTuple):
    """The value of a pointer: a buffer, a byte in it, and the dtype of the element there."""

    space: str
    address: int
    dtype: str


class IntrinsicCall(NamedTuple):
    """An intrinsic with its arguments by the names of the signature."""

    name: str
    pipe: str
    arguments: Mapping[str, Any]
    position: SourcePosition


class Sink(Protocol):
    """Receiver of a kernel's intrinsics and scalar accesses, in the order in which they run."""

    def issue(self, call: IntrinsicCall) -> None:
        """Receive an intrinsic."""

    def load(self, source: Address, position: SourcePosition) -> int | float:
        """Return the value that a scalar load reads."""
        ...

    def store(self, target: Address, value: int | float, position: SourcePosition) -> None:
        """Receive a scalar store."""

    def peek(self, source: Address, count: int, position: SourcePosition) -> Sequence[int | float]:
        """Return elements that a debugging print shows, without an instruction that reads them."""
        ...

    def print(self, text: str, position: SourcePosition) -> None:
        """Receive the text of a printf."""


@dataclass
class CceMachine:
    """State of a core that runs a kernel.

    Attributes
    ----------
    sink : Sink
    block_idx, block_num : int
        Index of the core, and number of cores.
    limit : int
        Number of calls, intrinsics and passes of loops after which the kernel is stopped.
    """

    sink: Sink
    block_idx: int
    block_num: int
    limit: int
    steps: int = 0
    depth: int = 0
    top: int = 64  # first free byte of the stack; no variable is at address 0
    memory: bytearray = field(default_factory=lambda: bytearray(STACK_BYTES))
    registers: dict[str, int] = field(default_factory=dict)
    printed: int = 0  # characters
    issued: int = 0  # intrinsics and scalar accesses
    most_issued: int = field(init=False)

    def __post_init__(self) -> None:
        self.most_issued = max(self.limit // 10, 10_000)

    def print(self, text: str, position: SourcePosition) -> None:
        """Pass a printed text to the sink, up to ``TEXT_LIMIT`` characters in all."""
        room = TEXT_LIMIT - self.printed
        self.printed += len(text)
        if len(text) > room >= 0:
            text = text[:room] + "...\n(the rest of what this core prints is left out)\n"
        if room >= 0:
            self.sink.print(text, position)

    def issue(self, position: SourcePosition) -> None:
        """Count an intrinsic or a scalar access; the limit is a tenth of the steps.

        Raises
        ------
        CceError
            If the kernel exceeds the limit.
        """
        self.issued += 1
        if self.issued > self.most_issued:
            message = (
                f"the kernel must end within {self.most_issued} intrinsics and scalar accesses"
            )
            raise CceError(position, f"{message}; it is here (--steps or limit= allows more)")

    def step(self, position: SourcePosition, count: int = 1) -> None:
        """Count one step, or several.

        Raises
        ------
        CceError
            If the kernel exceeds the limit.
        """
        self.steps += count
        if self.steps > self.limit:
            message = f"the kernel must end within {self.limit} steps; it is here"
            raise CceError(position, f"{message} (--steps or limit= allows more)")

    def reserve(self, size: int, position: SourcePosition) -> int:
        """Reserve bytes on the stack and return the address of the first."""
        base = self.top
        self.top += round_up(size, 16)
        if self.top > len(self.memory):
            raise CceError(
                position, f"variables must fit {len(self.memory)} bytes; they need {self.top}"
            )
        return base

    def load(self, space: str, address: int, type: Type, position: SourcePosition):
        """Return the value at an address."""
        if space == PRIVATE:
            self._check(address, type.size, position)
            return decode(type, bytes(self.memory[address : address + type.size]))
        self.issue(position)
        value = self.sink.load(Address(space, address, _dtype(type, position)), position)
        return int(value != 0) if type is BOOL else value

    def store(self, space: str, address: int, type: Type, value, position: SourcePosition) -> None:
        """Write a value, which has its type already, to an address."""
        if space == PRIVATE:
            self._check(address, type.size, position)
            self.memory[address : address + type.size] = encode(type, value)
        else:
            self.issue(position)
            self.sink.store(Address(space, address, _dtype(type, position)), value, position)

    def _check(self, address: int, size: int, position: SourcePosition) -> None:
        if not 64 <= address <= self.top - size:
            raise CceError(position, f"address {address:#x} is outside the function's variables")


def _dtype(type: Type, position: SourcePosition) -> str:
    if isinstance(type, Pointer):
        return "uint64"
    if not isinstance(type, Scalar):
        raise CceError(position, f"a value in memory must be a number, not {type}")
    return type.dtype
