"""DaVinci cores: programs of instructions, what they compute, when, and why they wait."""

from .chip import Chip, load_chip
from .instruction import Instruction, Kind, Position, Unit, Work
from .operands import DTYPES, Span, View
from .operations import OPERATIONS, Operation

__all__ = [
    "DTYPES",
    "OPERATIONS",
    "Chip",
    "Instruction",
    "Kind",
    "Operation",
    "Position",
    "Span",
    "Unit",
    "View",
    "Work",
    "load_chip",
]
