"""The check that an iteration changed nothing, on the vector unit of a core.

Tiles of both matrices are compared into bits, and the bits of all tiles are joined by OR. The bits
that are left go to global memory, where the host tests them: all zero if nothing changed.
"""

import numpy as np

from vitruvian.sim.davinci import Chip, Program, Unit, simulate
from vitruvian.sim.kernels.kernel import vector_kind
from vitruvian.sim.kernels.ring import Ring

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Elements of a tile, and the number that the size must be a multiple of: the bits of a repeat.
TILE, _UNIT = 1 << 14, 1 << 11
_LANES = 128


def build(
    elements: int, *, chip: Chip, data: tuple[np.ndarray, np.ndarray] | None = None
) -> Program:
    """Build the comparison of two FP16 arrays on one core.

    Parameters
    ----------
    elements : int
        A multiple of 2048.
    data : (new, old), optional
        float16 arrays; without them, only times can be computed.

    Returns
    -------
    Program
        Its tensor "changed" has a bit that is set for every element that differs, and maybe others
        for elements of the same place in a tile; a NaN differs from everything.

    Raises
    ------
    ValueError
        If the number of elements is not allowed.
    """
    if elements < 1 or elements % _UNIT:
        raise ValueError(f"elements must be a multiple of {_UNIT}, not {elements!r}")
    program = Program(chip, f"convergence of {elements} elements")
    new, old = (None, None) if data is None else data
    x = program.tensor("new", (elements,), "fp16", new)
    y = program.tensor("old", (elements,), "fp16", old)
    changed = program.tensor("changed", (TILE // 16,), "uint16")
    core = program.core(0, vector_kind(chip).name)
    inputs = core.allocate("UB", (2, 2, TILE), "fp16", "tiles")
    bits = core.allocate("UB", (2, TILE // 16), "uint16", "bits")
    tally = core.allocate("UB", (TILE // 16,), "uint16", "changed")
    loads, done = Ring(core, MTE2, V), Ring(core, V, MTE3, 1)
    writing = done.write()
    writing.begin()
    core.vdup(tally, 0)
    for number, at in enumerate(range(0, elements, TILE)):
        size = min(TILE, elements - at)
        with loads.write() as slot:
            core.copy(inputs[slot, 0, :size], x[at : at + size])
            core.copy(inputs[slot, 1, :size], y[at : at + size])
        part = bits[number % 2, : size // 16]
        with loads.read() as slot:
            tiles = inputs[slot, 0, :size], inputs[slot, 1, :size]
            core.vcmpv(part, *tiles, "ne", repeat=size // _LANES)
        core.pipe_barrier(V)
        core.vor(tally[: size // 16], tally[: size // 16], part)
        # The next tile but one writes these bits again, after the barrier of the next one.
    writing.end()
    with done.read():
        core.copy(changed, tally)
    loads.close()
    done.close()
    return program


def seconds(elements: int, *, chip: Chip) -> float:
    """Return the seconds of ``build``'s program, launch included."""
    return float(simulate(build(elements, chip=chip), cube=None, checks=False).total_s)
