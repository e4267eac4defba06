"""The base class of all program builders: it makes instructions and appends them."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position, Unit, Work
from vitruvian.sim.davinci.isa.operands import Span, View
from vitruvian.sim.davinci.isa.operations import OPERATIONS

#: Frames of files in this folder are the simulator's; the caller is the first one outside of it.
_HERE = str(Path(__file__).parents[1])


class _PassedOn(dict[str, bool]):
    """True for files whose lines are not positions of instructions; looked up by millions."""

    def __missing__(self, path: str) -> bool:
        inside = self[path] = path.startswith(_HERE)
        return inside


_PASSED_ON = _PassedOn()


def pass_on_positions(path: str) -> None:
    """Give instructions that a file of helpers makes the positions of its callers.

    Parameters
    ----------
    path : str
        The ``__file__`` of the module.
    """
    _PASSED_ON[path] = True


_NO_WORK = Work()


def _bare(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.strip("[]") for name in names)


#: Names that an instruction may use for its operands and for its fields, by operation.
_ALLOWED = {op.name: (_bare(op.operands), _bare(op.fields)) for op in OPERATIONS.values()}


class ProgramError(ValueError):
    """A mistake in a kernel; the message begins with the file and the line of the mistake."""


class Builder:
    """A list of instructions that grows.

    Attributes
    ----------
    chip : Chip
    units : tuple of Unit
        Units of the core.
    instructions : list of Instruction
    position : Position or None
        If set, instructions get this position instead of the caller's line. A reader of kernel
        text sets it.
    """

    def __init__(self, chip: Chip, units: tuple[Unit, ...]) -> None:
        self.chip: Chip = chip
        self.units: tuple[Unit, ...] = units
        self.instructions: list[Instruction] = []
        self.position: Position | None = None

    def make(
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
        """Return an instruction with its place in the source, without appending it.

        Parameters
        ----------
        unit, op, kind, operands, fields, reads, writes, path, work
            As ``Instruction`` has them. Nothing but names is checked: the methods of the derived
            classes see to it that the instruction makes sense.

        Raises
        ------
        ProgramError
            If ``OPERATIONS`` lacks the operation, or an operand or a field of this name.
        """
        return self._new(unit, op, kind, operands, fields, reads, writes, path, work)

    def append(self, instr: Instruction) -> Instruction:
        """Append an instruction that ``make`` returned, and return it.

        Parameters
        ----------
        instr : Instruction
            The instruction.
        """
        self.instructions.append(instr)
        return instr

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
        """Make an instruction as ``make`` does, append it, and return it.

        Parameters
        ----------
        unit, op, kind, operands, fields, reads, writes, path, work
            As ``make`` takes them.

        Raises
        ------
        ProgramError
            As for ``make``.
        """
        instr = self._new(unit, op, kind, operands, fields, reads, writes, path, work)
        self.instructions.append(instr)
        return instr

    def _new(
        self,
        unit: Unit,
        op: str,
        kind: Kind,
        operands: Mapping[str, View] | None,
        fields: Mapping[str, Any] | None,
        reads: tuple[Span, ...],
        writes: tuple[Span, ...],
        path: str,
        work: Work | None,
    ) -> Instruction:
        """Make an instruction. Kernels have millions, so this is written for speed."""
        operands = {} if operands is None else operands
        fields = {} if fields is None else fields
        try:
            allowed = _ALLOWED[op]
        except KeyError:
            self.fail(f"op must be a key of OPERATIONS, not {op!r}")
        if not (allowed[0].issuperset(operands) and allowed[1].issuperset(fields)):
            self._refuse(op, operands, fields)
        return Instruction(
            unit,
            op,
            kind,
            operands,
            fields,
            reads,
            writes,
            path,
            _NO_WORK if work is None else work,
            self.position or _caller(),
        )

    def fail(self, message: str) -> NoReturn:
        """Raise a ``ProgramError`` at the line of the kernel that is being built.

        Parameters
        ----------
        message : str
            One line, which follows the file and the line.

        Raises
        ------
        ProgramError
            Always.
        """
        raise ProgramError(f"{self.position or _caller()}: {message}")

    def _refuse(self, op: str, operands: Mapping[str, View], fields: Mapping[str, Any]) -> NoReturn:
        for noun, allowed, names in zip(
            ("operands", "fields"), _ALLOWED[op], (operands, fields), strict=True
        ):
            unknown = ", ".join(sorted(set(names) - allowed))
            if unknown:
                known = ", ".join(sorted(allowed)) or "none"
                self.fail(f"{noun} of {op} must be among {known}, not {unknown}")
        raise AssertionError


def unit_name(unit: Any) -> str:
    """Return the name of a unit, or the text of any other value."""
    return unit.name if isinstance(unit, Unit) else repr(unit)


def _caller() -> Position:
    """Return the line outside the simulator that called into it."""
    frame = sys._getframe(2)  # both functions that call this one are the simulator's
    while frame.f_back is not None and _PASSED_ON[frame.f_code.co_filename]:
        frame = frame.f_back
    return _position(frame.f_code.co_filename, frame.f_lineno)


#: Positions are shared: a loop makes many instructions at one line.
_position = lru_cache(4096)(Position)
