"""The barriers that the device's compiler inserts by default.

With ``--cce-auto-sync``, which is the default for kernel launches and custom operators, the BiSheng
compiler inserts ``pipe_barrier(PIPE_V)`` between dependent vector instructions. It also orders S
and the vector unit, MTE2 and MTE3, as ``insert_scalar_flags`` does. Overlapping transfers of MTE2
or MTE3, and everything of the Cube, remain the programmer's.

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

#: Units that the compiler orders against S.
_ORDERED = (Unit.V, Unit.MTE2, Unit.MTE3)


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


def insert_scalar_flags(program: Program, chip: Chip | None = None) -> int:
    """Make scalar accesses wait for the V, MTE2 or MTE3 that they depend on, by flags.

    The other direction needs no flag: an instruction is issued when those of S before it have
    ended. The flags use registers that the core does not use for the same two units.

    Parameters
    ----------
    program, chip
        As ``insert_barriers`` takes them.

    Returns
    -------
    int
        The number of flags.
    """
    lowered, streams = lower(program, chip)
    flat = [instr for stream in streams for instr in stream.instructions]
    core_of = np.repeat(np.arange(len(streams)), [len(s.instructions) for s in streams])
    lines: set[tuple[Position, Unit]] = set()
    for finding in check_lowered(program, lowered, streams, chip=chip):
        if finding.check != "race" or len({int(core_of[i]) for i in finding.instructions}) > 1:
            continue
        earlier, later = (flat[i] for i in sorted(finding.instructions)[:2])
        if later.unit == Unit.S and earlier.unit in _ORDERED:
            lines.add((later.position, earlier.unit))
    registers = (chip or program.chip).event_registers
    return sum(_insert_flags(core.instructions, lines, registers) for core in program)


def _insert_flags(
    instructions: list[Instruction], lines: set[tuple[Position, Unit]], registers: int
) -> int:
    """Insert flags before the scalar accesses of a core, and return their number."""
    used = {
        (instr.fields["source"], instr.fields["register"])
        for instr in instructions
        if instr.op == "set_flag" and instr.fields["target"] == Unit.S
    }
    free = {
        unit: next((r for r in range(registers) if (unit, r) not in used), None)
        for unit in _ORDERED
    }
    made: list[Instruction] = []
    count = 0
    for instr in instructions:
        if instr.op in ("scalar_load", "scalar_store"):
            for unit in _ORDERED:
                if (instr.position, unit) in lines and free[unit] is not None:
                    fields = {"source": unit, "target": Unit.S, "register": free[unit]}
                    for on, op, kind in (
                        (unit, "set_flag", Kind.SET),
                        (Unit.S, "wait_flag", Kind.WAIT),
                    ):
                        made.append(
                            Instruction(on, op, kind, fields=fields, position=instr.position)
                        )
                    count += 1
        made.append(instr)
    instructions[:] = made
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
