"""The simulation of a run of a sparse application on SIDA.

A sweep with a pair of kind "oei" runs in the engine: the OS core computes the first product and the
IS core the second one, while the matrix passes the chip once (Zhang 2024 §4.3 and §4.4). Other
sweeps hold nothing, so their steps follow in closed form. Traffic depends on patterns alone.

What the thesis leaves open is decided as follows.

- Vectors have buffers of their own. In each sweep, a vector crosses the memory's interface once for
  the element-wise operations and once for each product: the input of an output-stationary product
  when a row's first entry arrives.
- The result of an input-stationary product is written to memory, as §4.4.3 states, and the next
  sweep reads it for its element-wise operations.
- The coordinates and pointers of blocks are in buffers of their own, as vectors are, and are read
  once for each order in a sweep.
- One sweep ends before the next begins: no loader runs ahead from one into the other.
- A repacking takes energy but no time.
- §4.4.4 divides by r in P(r). The average over the rows S … r divides by r − S + 1, which is used.
"""

from collections.abc import Mapping

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.dram import Dram, DramMemory
from vitruvian.sim.sparse.pattern import Pattern, permuted, stored_in_blocks
from vitruvian.sim.sparse.report import SparseReport
from vitruvian.sim.sparse.schedule import SparseSchedule, Sweep, View
from vitruvian.sim.sparse.timing import MemoryTiming, sweep_steps


def simulate(
    schedule: SparseSchedule,
    matrices: Mapping[str, Pattern],
    architecture: Architecture,
    *,
    order: np.ndarray | None = None,
    block: int = 1,
    memory: Dram | None = None,
    dram_simulator: str | None = None,
) -> SparseReport:
    """Simulate a run, and compute the baseline and the oracle.

    Parameters
    ----------
    matrices : dict of str to Pattern
        Single nonzeros, as the baseline reads them.
    order : (n,) ndarray of int, optional
        The old number of each new row and column, for SIDA and the oracle; see ``reordering``. The
        matrices must be square.
    block : int
        Side of the blocks in which SIDA and the oracle store the matrices. Blocks decide how many
        bytes a nonzero has; loads and evictions move single nonzeros.
    memory : Dram, optional
        A kind of memory, of which there are as many channels as the bandwidth needs. It slows the
        baseline and the oracle, too. By default, memory is a bandwidth without latency.
    dram_simulator : str, optional
        Path of DRAMsim3's program, which computes the times of ``memory`` instead of ours.

    Raises
    ------
    ValueError
        If a column or row is larger than a quarter of the buffer.
    """
    stored = {
        name: stored_in_blocks(each if order is None else permuted(each, order), block)
        for name, each in matrices.items()
    }
    plain_views, stored_views = _views(matrices, schedule), _views(stored, schedule)
    timing = None
    if memory is not None:
        memory_of = DramMemory.of(memory, architecture, command=dram_simulator)
        timing = MemoryTiming(memory_of, architecture, plain_views, stored_views)
    steps: dict[Sweep, np.ndarray] = {}
    for section, _ in schedule.sections:
        for sweep in section.sweeps:
            if sweep not in steps:
                steps[sweep] = (
                    timing.steps(sweep)
                    if timing
                    else sweep_steps(sweep, stored_views, architecture)[0]
                )
    return SparseReport(schedule, plain_views, stored_views, architecture, steps, timing)


def _views(matrices: Mapping[str, Pattern], schedule: SparseSchedule) -> dict[View, Pattern]:
    """Return the patterns of the matrices, and of their transposes, that products read."""
    views = {each.product.view for each, _ in schedule.counted_work() if each.product}
    return {
        (name, transposed): matrices[name].transposed if transposed else matrices[name]
        for name, transposed in sorted(views)
    }
