"""The record of one instruction: who runs it, what it does, which bytes it touches, how much work.

Everything that looks at a program (engines, checks, functional execution, reports) looks at these
records and at nothing else. A record is data: it computes nothing and knows no chip.

- `View`: an operand as the program means it: a buffer, a first byte, a dtype, a shape.
- `Span`: the bytes that are touched, exactly: a run of bytes, repeated in nested levels.
- `Work`: the amount that time and statistics are made of.
- `Instruction`: the record itself. `OPERATIONS` says what the operands and fields of each are.

References
----------
Tang 2024, §1.1.2 and Fig. 2.1: units, queues, the scalar program queue; §2.1.1: flags.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from vitruvian.sim.davinci.isa.operands import Span, View

__all__ = ["Instruction", "Kind", "Position", "Unit", "Work"]


class Unit(IntEnum):
    """Execution units of a core; each has an in-order queue, S is the program queue itself."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6


class Kind(IntEnum):
    """What the engines do with an instruction."""

    NORMAL = 0  # takes time on its unit
    SET = 1  # set_flag, cross_set
    WAIT = 2  # wait_flag, cross_wait
    BARRIER = 3  # pipe_barrier of one unit
    BARRIER_ALL = 4  # pipe_barrier of all units of the core


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the kernel's source an instruction stands, for messages."""

    file: str = "?"
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Work:
    """How much an instruction does; what periods and statistics are made of.

    Attributes
    ----------
    nbytes : int
        Bytes moved over the path, of a move.
    repeats : int
        Passes of the vector unit; steps of the Cube; fractals of a load.
    operations : int
        Arithmetic operations: 2 for a multiply-accumulate, 1 for each enabled vector lane.
    precision : str
        The dtype they are counted under, "" if none.
    """

    nbytes: int = 0
    repeats: int = 0
    operations: int = 0
    precision: str = ""


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction of one core.

    Attributes
    ----------
    unit : Unit
        The queue it is dispatched to.
    op : str
        A key of `OPERATIONS`.
    kind : Kind
    operands : mapping of str to View
        By the names of the operation.
    fields : mapping of str to anything
        By the names of the operation.
    reads, writes : tuple of Span
        Exactly the bytes that are touched. An accumulator is in both.
    path : str
        "GM->L1" and so on of a move, "" otherwise.
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
        """("read" or "write", span) of everything it touches."""
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
