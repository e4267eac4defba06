"""The barriers that the device's compiler inserts by default.

With ``--cce-auto-sync``, which is the default for kernel launches and custom operators, the BiSheng
compiler inserts ``pipe_barrier(PIPE_V)`` between dependent vector instructions. It also orders S
and the vector unit, MTE2 and MTE3, which is not modelled here. Overlapping transfers of MTE2 or
MTE3, and everything of the Cube, remain the programmer's.

References
----------
BiSheng compiler, "Automatic Synchronization" (hiascend.com, atlas_bisheng_10_0008); Ascend C API,
``PipeBarrier`` (atlasascendc_api_07_0271).
"""

import numpy as np

from vitruvian.sim.davinci.checks.check import check_lowered
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Position, Unit
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.timing.lowering import lower


def insert_barriers(program: Program, chip: Chip | None = None) -> int:
    """Insert barriers of the vector unit before its instructions that depend on earlier ones.

    As a compiler does, a barrier is inserted at a line of the source, for each time that the line
    is executed.

    Parameters
    ----------
    program : Program
        The program, which is changed.
    chip : Chip, optional
        The chip whose interlocks count, by default that of the program.

    Returns
    -------
    int
        The number of barriers.
    """
    count = 0
    while lines := _dependent(program, chip):
        inserted = sum(_insert(core.instructions, lines) for core in program)
        if not inserted:
            # A barrier stands before each such instruction, so others are to blame.
            break
        count += inserted
    return count


def _dependent(program: Program, chip: Chip | None) -> set[Position]:
    """Return the lines of vector instructions that need a barrier before them."""
    lowered, streams = lower(program, chip)
    flat = [instr for stream in streams for instr in stream.instructions]
    found = set()
    for finding in check_lowered(program, lowered, streams, chip=chip):
        if finding.check == "hazard":
            later = flat[int(np.max(finding.instructions))]
            if later.unit == Unit.V:
                found.add(later.position)
    return found


def _insert(instructions: list[Instruction], lines: set[Position]) -> int:
    """Insert barriers into the instructions of a core, and return their number."""
    made: list[Instruction] = []
    fresh = False  # True if no vector instruction came since the last barrier
    before = len(instructions)
    for instr in instructions:
        if instr.kind in (Kind.BARRIER, Kind.BARRIER_ALL):
            fresh = fresh or instr.kind == Kind.BARRIER_ALL or instr.unit == Unit.V
        elif instr.unit == Unit.V and instr.kind == Kind.NORMAL:
            if instr.position in lines and not fresh:
                made.append(
                    Instruction(
                        Unit.V,
                        "pipe_barrier",
                        Kind.BARRIER,
                        fields={"unit": Unit.V},
                        position=instr.position,
                    )
                )
            fresh = False
        made.append(instr)
    instructions[:] = made
    return len(made) - before
