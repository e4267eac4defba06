"""A test of whether reads of uninitialised memory affect the outputs of a program.

Kernels often compute on more than they need: lanes beyond the end of a row, or rows of a fractal
that is not full. That is a mistake only if a result reaches an output. The program is therefore run
three times: with noise in all uninitialised memory, with the complement of that noise, and with
other noise. Its outputs (writes to global memory and scalar loads) are compared byte by byte.
"""

from collections.abc import Iterable

import numpy as np

from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.program.program import Core, Program

#: The seed of the noise of each run, and the byte that is combined with it by exclusive or.
_NOISES = ((0, 0), (0, 255), (1, 0))


def shows_undefined(
    program: Program, order: Iterable[tuple[Core, Instruction]]
) -> Instruction | None:
    """Return the first instruction that outputs an undefined value, or None.

    Parameters
    ----------
    order : iterable of (Core, Instruction)
        All instructions, in an order in which they can be executed.

    Raises
    ------
    FunctionalError
        If an instruction cannot be executed.
    """
    from vitruvian.sim.davinci.semantics import Functional

    runs = [Functional(program, "fast", expected=False) for _ in _NOISES]
    for run, (seed, turned) in zip(runs, _NOISES, strict=True):
        noise = np.random.default_rng(seed)
        for core in program:
            for name, memory in run.memory(core).buffers.items():
                if name != GM:
                    memory[:] = noise.integers(0, 256, len(memory), np.uint8) ^ turned
        for name, view in program.tensors.items():
            if name in program.data:
                continue
            part = run.gm[view.offset : view.offset + view.nbytes]
            if program.data:
                part[:] = noise.integers(0, 256, len(part), np.uint8) ^ turned
            else:  # no tensor has data, so all count as initialised: the same small numbers
                values = np.random.default_rng(view.offset).integers(-4, 5, view.size)
                part[:] = np.frombuffer(values.astype(DTYPES[view.dtype]).tobytes(), np.uint8)
    with np.errstate(all="ignore"):
        for core, instr in order:
            for run in runs:
                run.execute(core, instr)
            shown = instr.reads if instr.op == "scalar_load" else instr.writes
            for span in shown:
                if instr.op != "scalar_load" and span.buffer != GM:
                    continue
                first, *others = (run.memory(core).buffers[span.buffer] for run in runs)
                for lowered, high in span.intervals().tolist():
                    if any(
                        not np.array_equal(first[lowered:high], x[lowered:high]) for x in others
                    ):
                        return instr
    return None
