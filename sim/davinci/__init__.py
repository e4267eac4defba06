"""DaVinci cores: programs of instructions, what they compute, when, and why they wait.

A `Program` is built for a chip (`load_chip`), or read from kernel text; `simulate` runs it and
gives a `Report`. Times are of `engine` (`reference` is the same in its shortest form, `closed_form`
what the thesis' equations say), data of `semantics`, mistakes of `checks`.
"""

from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position, Unit, Work
from vitruvian.sim.davinci.isa.operands import DTYPES, Span, View
from vitruvian.sim.davinci.isa.operations import OPERATIONS, Operation
from vitruvian.sim.davinci.program.program import Core, Program, ProgramError
from vitruvian.sim.davinci.report.report import Finding, Report
from vitruvian.sim.davinci.timing.deadlock import Deadlock

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
