"""DaVinci cores: programs of instructions, what they compute, when, and why they wait.

A `Program` is built for a chip (`load_chip`), or read from kernel text; `simulate` runs it and
gives a `Report`. Times are of `engine` (`reference` is the same in its shortest form, `closed_form`
what the thesis' equations say), data of `semantics`, mistakes of `checks`.
"""

from .checks import check
from .chip import Chip
from .chip_file import load_chip
from .deadlock import Deadlock
from .instruction import Instruction, Kind, Position, Unit, Work
from .operands import DTYPES, Span, View
from .operations import OPERATIONS, Operation
from .program import Core, Program, ProgramError
from .report import Finding, Report
from .simulate import simulate

__all__ = [
    "DTYPES",
    "OPERATIONS",
    "Chip",
    "Core",
    "Deadlock",
    "Finding",
    "Instruction",
    "Kind",
    "Operation",
    "Position",
    "Program",
    "ProgramError",
    "Report",
    "Span",
    "Unit",
    "View",
    "Work",
    "check",
    "load_chip",
    "simulate",
]
