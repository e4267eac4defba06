"""DaVinci cores: programs of instructions, what they compute, when, and why they wait."""

from .chip import Chip, load_chip
from .instruction import Instruction, Kind, Position, Unit, Work
from .operands import DTYPES, Span, View
from .operations import OPERATIONS, Operation
from .program import Core, Program, ProgramError

__all__ = [
    "DTYPES",
    "OPERATIONS",
    "Chip",
    "Core",
    "Instruction",
    "Kind",
    "Operation",
    "Position",
    "Program",
    "ProgramError",
    "Span",
    "Unit",
    "View",
    "Work",
    "load_chip",
]
