"""DaVinci cores: programs of instructions, what they compute, when, and why they wait."""

from .instruction import Instruction, Kind, Position, Unit, Work
from .operands import DTYPES, Span, View
from .operations import OPERATIONS, Operation

__all__ = [
    "DTYPES",
    "OPERATIONS",
    "Instruction",
    "Kind",
    "Operation",
    "Position",
    "Span",
    "Unit",
    "View",
    "Work",
]
