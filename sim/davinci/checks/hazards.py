"""The queues whose dependent instructions need a barrier, and the products that need none.

``checks.memory`` compares the accesses to memory; the dependences through registers are found here.

References
----------
Decision 0018 has the public sources.
"""

from collections.abc import Iterator

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci.checks.compiled import Ordering
from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.isa.registers import (
    REGISTER_OPERATIONS,
    register_read,
    register_written,
)
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered

#: A product of at least this number of fractals of C may follow another one on the same C without a
#: barrier: the Cube finishes a fractal of C before it needs it again. The public kernel library of
#: the 910B (catlass) has a barrier after smaller products only.
PIPELINED = 10


def open_queues(chip: Chip, streams: list[CoreStream], strict: bool) -> np.ndarray:
    """Return True for each queue in which dependent instructions need a barrier.

    The scalar unit needs none on any chip: its instructions end before the next one is issued.

    Parameters
    ----------
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
            m, n = (ceil_div(instr.fields[name], 16) for name in "mn")
            if m * n >= PIPELINED:
                c = instr.operands["c"]
                chain[i] = known.setdefault((c.buffer, c.offset, m, n), len(known) + 1)
    return chain


def register_findings(numbers: Numbers, ordering: Ordering) -> Iterator[Finding]:
    """Find instructions that read a register before the one that writes it is sure to have ended.

    Only a read after a write is a hazard. A queue starts its instructions in order, and they read
    the register when they start and write it when they end, so that a later write cannot come
    before an earlier read.
    """
    latest: dict[tuple[int, str], int] = {}  # the last writer of a queue's register
    seen: set = set()
    for i, instr in enumerate(numbers.flat):
        if instr.op not in REGISTER_OPERATIONS:
            continue
        queue = int(ordering.queue[i])
        read, written = register_read(instr), register_written(instr)
        j = -1 if read is None else latest.get((queue, read), -1)
        # ``settled`` is the last place of the queue that is sure to have ended when i starts.
        if j >= 0 and ordering.open_[queue] and ordering.settled[i] < ordering.place[j]:
            at = (numbers.flat[j].position, instr.position)
            if at not in seen:
                seen.add(at)
                text = f"{numbers.text(j)} writes and {numbers.text(i)} reads {read}"
                lacking = f"pipe_barrier({instr.unit.name}) between them is missing"
                yield Finding("hazard", f"hazard: {text}; {lacking}", (j, i))
        if written is not None:
            latest[queue, written] = i
