"""What every method of a program builder ends in: an instruction with its place in the source."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position, Unit, Work
from vitruvian.sim.davinci.isa.operands import Span, View

__all__ = ["Builder", "ProgramError", "unit_name"]

#: Frames of files in this folder are the simulator's; the caller is the first one outside of it.
_HERE = str(Path(__file__).parents[1])

_NO_WORK = Work()


class ProgramError(ValueError):
    """A mistake in a kernel; the message begins with the file and line that made it."""


class Builder:
    """A list of instructions that grows.

    Attributes
    ----------
    chip : Chip
    units : tuple of Unit
        Those of the core.
    instructions : list of Instruction
    position : Position or None
        Stands in for the caller's line if it is set, as a reader of kernel text does.
    """

    def __init__(self, chip: Chip, units: tuple[Unit, ...]) -> None:
        self.chip, self.units = chip, units
        self.instructions: list[Instruction] = []
        self.position: Position | None = None

    def add(
        self,
        unit: Unit,
        op: str,
        kind: Kind = Kind.NORMAL,
        *,
        operands: Mapping[str, View] | None = None,
        fields: Mapping[str, Any] | None = None,
        reads: tuple[Span, ...] = (),
        writes: tuple[Span, ...] = (),
        path: str = "",
        work: Work | None = None,
    ) -> Instruction:
        """Append an instruction as it is given; the other methods make sure it makes sense."""
        instruction = Instruction(
            unit,
            op,
            kind,
            operands if operands is not None else {},
            fields if fields is not None else {},
            reads,
            writes,
            path,
            work if work is not None else _NO_WORK,
            self.position or _caller(),
        )
        self.instructions.append(instruction)
        return instruction

    def fail(self, message: str) -> NoReturn:
        """Raise a `ProgramError` at the line of the kernel that is being built."""
        raise ProgramError(f"{self.position or _caller()}: {message}")


def unit_name(unit: Any) -> str:
    """Name of a unit, or what was given instead of one."""
    return unit.name if isinstance(unit, Unit) else repr(unit)


def _caller() -> Position:
    """The line that called into this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return Position(frame.f_code.co_filename, frame.f_lineno)
