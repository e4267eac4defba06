"""Static checks of a program: mistakes that hold for all possible times, not for one run only.

The checks use the happens-before order of the instructions. It follows from the order in each
queue, from flags, from barriers, and from the program queue (an instruction is issued only when all
earlier ones on the scalar unit have ended). Two accesses to the same byte are a race if at least
one of them is a write and the order does not relate them.

The simulated queues execute one instruction at a time. The queues of a device only start their
instructions in order, so that an instruction may use memory before an earlier one of the same queue
has ended. Two dependent instructions of a queue are therefore a hazard unless a barrier or a flag
separates them, or the hardware interlocks the queue (decision 0018).

Every finding is one line that quotes the instructions with file and line. A mistake that repeats at
the same lines is reported once.
"""

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.sim.davinci.checks.compiled import Ordering, clocks
from vitruvian.sim.davinci.checks.flags import cross_flag_findings, flag_findings
from vitruvian.sim.davinci.checks.hazards import chains, open_queues, register_findings
from vitruvian.sim.davinci.checks.memory import memory_findings
from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.checks.operands import operand_findings
from vitruvian.sim.davinci.checks.unsupported import unsupported_findings
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.deadlock import explain
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered, lower

#: Names of the checks, the values of ``Finding.check``.
CHECKS = (
    "bounds",
    "alignment",
    "overlap",
    "unsupported",
    "deadlock",
    "flag",
    "race",
    "hazard",
    "nondeterministic",
    "uninitialised",
)


def check(program: Program, *, strict: bool = False) -> list[Finding]:
    """Return the findings of all checks, without running the program.

    Parameters
    ----------
    strict : bool
        If True, report hazards also in queues that the chip interlocks, and flags that are set
        again before the wait in between has come.
    """
    lowered, streams = lower(program)
    return check_lowered(program, lowered, streams, strict=strict)


def check_lowered(
    program: Program,
    lowered: Lowered,
    streams: list[CoreStream],
    *,
    chip: Chip | None = None,
    strict: bool = False,
) -> list[Finding]:
    """Return the findings of all checks for a program that has been lowered.

    Parameters
    ----------
    streams : list of CoreStream
        Both as ``lower`` returns them for the program.
    chip : Chip, optional
        The chip whose interlocks count, by default the one that the program was built for.
    strict : bool
        If True, report hazards also in queues that the chip interlocks, and flags that are set
        again before the wait in between has come.
    """
    numbers = Numbers(lowered, streams)
    findings = list(operand_findings(program, streams, numbers))
    findings += unsupported_findings(program.chip if chip is None else chip, numbers)
    if not len(lowered):
        return findings
    across = bool(lowered.lag.any()) or any(
        instr.op == "cross_wait" for stream in streams for instr in stream.instructions
    )
    clock, place, order, settled = fitting(clocks, len(lowered))(
        lowered.first, lowered.unit, lowered.kind, lowered.need_first, lowered.need, across
    )
    # In a deadlock the instructions after it have no order, so the checks end here.
    if len(order) < len(lowered):
        ended = np.full(len(lowered), -1, np.int64)
        # Only which instructions end matters to the explanation, and not when.
        ended[order] = 0
        issued = _issued(lowered, ended)
        findings.append(Finding("deadlock", explain(lowered, ended, ended, issued, streams)))
        return findings
    core_of = np.repeat(np.arange(len(streams)), np.diff(lowered.first))
    ordering = Ordering(
        queue=core_of * 8 + lowered.unit,
        clock=clock,
        place=place,
        across=across,
        settled=settled,
        open_=open_queues(program.chip if chip is None else chip, streams, strict),
        chain=chains(lowered, numbers),
    )
    # The public sources for this rule are of chips with Cube cores of their own.
    keeps = not strict and any(Unit.FIX in kind.units for kind in program.chip.kinds.values())
    findings += flag_findings(lowered, numbers, ordering, keeps=keeps)
    findings += cross_flag_findings(numbers, program.chip)
    findings += register_findings(numbers, ordering)
    findings += memory_findings(program, streams, numbers, ordering, order)
    return findings


def _issued(lowered: Lowered, ended: np.ndarray) -> np.ndarray:
    """Return 0 for each instruction that the program queue issues, and −1 for the others.

    The queue stops at the first instruction of unit S whose ``ended`` is −1: it never ends.
    """
    issued = np.full(len(lowered), -1, np.int64)
    for c in range(len(lowered.begin)):
        for i in range(lowered.first[c], lowered.first[c + 1]):
            issued[i] = 0
            if lowered.unit[i] == Unit.S and ended[i] < 0:
                break
    return issued
