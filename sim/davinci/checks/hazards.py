"""The queues whose dependent instructions need a barrier, and the products that need none.

References
----------
Decision 0018 has the public sources.
"""

import numpy as np

from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.timing.lowering import Lowered, Stream

__all__ = ["PIPELINED", "chains", "open_queues"]

#: A product of at least this number of fractals of C may follow another one on the same C without a
#: barrier: the Cube finishes a fractal of C before it needs it again. The public kernel library of
#: the 910B (catlass) has a barrier after smaller products only.
PIPELINED = 10


def open_queues(chip: Chip, streams: list[Stream], strict: bool) -> np.ndarray:
    """Return True for each queue in which dependent instructions need a barrier.

    The scalar unit needs none on any chip: its instructions end before the next one is issued.

    Parameters
    ----------
    chip : Chip
    streams : list of Stream
    strict : bool
        If True, disregard the chip's interlocks.

    Returns
    -------
    (8 · streams,) ndarray of bool
    """
    open_ = np.ones((len(streams), 8), bool)
    open_[:, Unit.S] = False
    if not strict:
        for c, stream in enumerate(streams):
            open_[c, list(chip.kind(stream.kind).interlocks)] = False
    return open_.ravel()


def chains(lowered: Lowered, numbers: Numbers) -> np.ndarray:
    """Return a number for each product that may follow another one of its number without a barrier.

    Such products have the same place and size of C, of at least ``PIPELINED`` fractals. The number
    of all other instructions is 0.

    Returns
    -------
    (n,) ndarray of int32
    """
    chain = np.zeros(len(lowered), np.int32)
    known: dict[tuple, int] = {}
    for i in np.flatnonzero(lowered.unit == Unit.M).tolist():
        instr = numbers.flat[i]
        if instr.op == "mmad":
            m, n = (-(-instr.fields[name] // 16) for name in "mn")
            if m * n >= PIPELINED:
                c = instr.operands["c"]
                chain[i] = known.setdefault((c.buffer, c.offset, m, n), len(known) + 1)
    return chain
