"""Whether it matters that something is read which nothing has written.

Kernels often compute on more than they need: lanes behind the end of a row, rows of a fractal that
is not full. That is no mistake if it never comes out. So the program is run three times: with noise
in all that is not initialised, with every bit of it turned round, and with other noise. What it
shows (writes to global memory, scalar loads) is compared byte by byte.
"""

from collections.abc import Iterable

import numpy as np

from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import DTYPES
from vitruvian.sim.davinci.program.program import Core, Program

__all__ = ["shows_undefined"]

#: Seeds, and what the noise is combined with by exclusive or.
_NOISES = ((0, 0), (0, 255), (1, 0))


def shows_undefined(
    program: Program, order: Iterable[tuple[Core, Instruction]]
) -> Instruction | None:
    """The first instruction that shows what is not defined; None if none does.

    Parameters
    ----------
    program : Program
    order : iterable of (core, instruction)
        All instructions, in an order in which they can be carried out.

    Raises
    ------
    FunctionalError
        If an instruction cannot be carried out.
    """
    from vitruvian.sim.davinci.semantics import Functional

    runs = [Functional(program, "fast") for _ in _NOISES]
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
            else:  # nothing has data, so all of it counts as initialised: small numbers
                values = np.random.default_rng(view.offset).integers(-4, 5, view.size)
                part[:] = np.frombuffer(values.astype(DTYPES[view.dtype]).tobytes(), np.uint8)
    with np.errstate(all="ignore"):
        for core, one in order:
            for run in runs:
                run.execute(core, one)
            shown = one.reads if one.op == "scalar_load" else one.writes
            for span in shown:
                if one.op != "scalar_load" and span.buffer != GM:
                    continue
                first, *others = (run.memory(core).buffers[span.buffer] for run in runs)
                for low, high in span.intervals().tolist():
                    if any(not np.array_equal(first[low:high], x[low:high]) for x in others):
                        return one
    return None
