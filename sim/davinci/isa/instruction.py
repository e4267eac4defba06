"""The record of one instruction: its unit, its operation, the bytes it touches, its work.

Engines, checks, functional execution and reports read these records and nothing else of a program.
A record is data: it computes nothing, depends on no chip, and never changes.

- ``View``: an operand as the program states it: a buffer, a first byte, a dtype, and a shape.
- ``Span``: the exact bytes that an access touches: a run of bytes, repeated in nested levels.
- ``Work``: the amount of work, from which times and statistics are computed.
- ``Instruction``: the record itself. ``OPERATIONS`` names its operands and fields.

References
----------
Tang 2024, §1.1.2 and Fig. 2.1: units, queues, the scalar program queue; §2.1.1: flags.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from vitruvian.sim.davinci.isa.operands import Span, View


class Unit(IntEnum):
    """Execution units of a core. Each has an in-order queue; S is the program queue itself."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6


class Kind(IntEnum):
    """Kinds of instructions that the engines treat differently."""

    NORMAL = 0  # takes time on its unit
    SET = 1  # set_flag, cross_set
    WAIT = 2  # wait_flag, cross_wait
    BARRIER = 3  # pipe_barrier of one unit
    BARRIER_ALL = 4  # pipe_barrier of all units of the core


@dataclass(frozen=True, slots=True)
class Position:
    """Position of an instruction in the kernel's source, for messages."""

    file: str = "?"
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Work:
    """Work of an instruction, from which its time and the statistics are computed.

    Attributes
    ----------
    nbytes : int
        Bytes that a move transfers over its path; 0 for other instructions.
    repeats : int
        Passes of the vector unit; steps of the Cube; fractals of a load; rows of nd2nz.
    operations : int
        Arithmetic operations: 2 for a multiply-accumulate, 1 for each enabled vector lane.
    precision : str
        The dtype under which the operations are counted, or "".
    missed : int
        Bytes that a move from global memory must fetch from the memory behind the second-level
        cache; if several cores fetch the same bytes at a time, this core's part of them.
    sharers : int
        Number of cores that fetch the same bytes from there at a time.
    """

    nbytes: int = 0
    repeats: int = 0
    operations: int = 0
    precision: str = ""
    missed: int = 0
    sharers: int = 1


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction of one core.

    Attributes
    ----------
    unit : Unit
        The queue that the instruction is dispatched to.
    op : str
        A key of ``OPERATIONS``.
    kind : Kind
    operands : mapping of str to View
        The operands by the names that ``OPERATIONS`` gives them.
    fields : mapping of str to Any
        The other fields by the names that ``OPERATIONS`` gives them.
    reads, writes : tuple of Span
        The exact bytes that the instruction reads and writes. An accumulator is in both.
    path : str
        Path of a move, such as "GM->L1"; "" for other instructions.
    work : Work
    position : Position
    """

    unit: Unit
    op: str
    kind: Kind = Kind.NORMAL
    operands: Mapping[str, View] = field(default_factory=_nothing)
    fields: Mapping[str, Any] = field(default_factory=_nothing)
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    path: str = ""
    work: Work = Work()
    position: Position = Position()

    def spans(self) -> Iterator[tuple[str, Span]]:
        """Yield ("read" or "write", span) for everything that the instruction touches."""
        for span in self.reads:
            yield "read", span
        for span in self.writes:
            yield "write", span

    def __str__(self) -> str:
        if self.op in ("set_flag", "wait_flag"):
            f = self.fields
            source, target = Unit(f["source"]).name, Unit(f["target"]).name
            return f"{self.op}({source}, {target}, {f['register']})"
        if self.op == "pipe_barrier":
            unit = self.fields.get("unit")
            return f"pipe_barrier({'ALL' if unit is None else Unit(unit).name})"
        words = [f"{name}={view}" for name, view in self.operands.items()]
        words += [f"{k}={v}" for k, v in self.fields.items() if isinstance(v, int | float | str)]
        return f"{self.op}({', '.join(words)})"
