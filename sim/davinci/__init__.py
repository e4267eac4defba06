"""A simulator of DaVinci cores: results, times, and the reasons for waits.

A ``Program`` is built for a chip (``load_chip``) or read from the text of a kernel; ``simulate``
runs it and returns a ``Report``. The times come from ``timing.engine``, for which
``timing.reference`` is the shortest definition; ``benchmarks.papers.tang24.closed_form`` has the
equations of Tang 2024 as an independent one. ``semantics`` computes the data, and ``checks`` finds
mistakes.
"""

from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position, Unit, Work
from vitruvian.sim.davinci.isa.operands import DTYPES, Span, View
from vitruvian.sim.davinci.isa.operations import OPERATIONS, Operation
from vitruvian.sim.davinci.program.builder import ProgramError
from vitruvian.sim.davinci.program.program import Core, Program
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
