"""The work of instructions: bytes by path, and operations by unit and precision."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Instruction


def moved_bytes(instr: Instruction) -> int:
    """Return the bytes that an instruction moves over its path; 0 if it has none.

    A fill writes a constant. It has the time of a path, but nothing moves over that.
    """
    return instr.work.nbytes if instr.path and instr.op != "fill" else 0


def counted(program: Sequence[Instruction]) -> Iterator[tuple[Instruction, int]]:
    """Yield instructions with the number of times that each occurs, in no particular order."""
    # A program that is given by indices into a table is counted without a loop over it.
    table, numbers = getattr(program, "table", None), getattr(program, "numbers", None)
    if table is None or numbers is None:
        return zip(program, repeat(1), strict=False)
    counts = np.bincount(numbers, minlength=len(table)).tolist()
    return ((instr, n) for instr, n in zip(table, counts, strict=True) if n)


def path_bytes(programs: Iterable[Sequence[Instruction]]) -> dict[str, int]:
    """Return the bytes that some cores move over each path, keyed by its name."""
    moved: Counter[str] = Counter()
    for program in programs:
        for instr, times in counted(program):
            if nbytes := moved_bytes(instr):
                moved[instr.path] += times * nbytes
    return dict(sorted(moved.items()))


def operations(programs: Iterable[Sequence[Instruction]]) -> dict[tuple[str, str], int]:
    """Return the arithmetic operations, keyed by unit and precision such as ("M", "fp16")."""
    counts: Counter[tuple[str, str]] = Counter()
    for program in programs:
        for instr, times in counted(program):
            if instr.work.operations:
                counts[instr.unit.name, instr.work.precision] += times * instr.work.operations
    return dict(sorted(counts.items()))
