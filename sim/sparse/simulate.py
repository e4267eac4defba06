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

from vitruvian.common.compiling import fitting, tell_on_terminal
from vitruvian.sim.sparse import engine_compiled
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import Patterns
from vitruvian.sim.sparse.lowering import lower, product_steps, vector_steps
from vitruvian.sim.sparse.pattern import Pattern, permuted, stored_in_blocks
from vitruvian.sim.sparse.report import SparseReport
from vitruvian.sim.sparse.schedule import SparseSchedule, Sweep, View


def simulate(
    schedule: SparseSchedule,
    matrices: Mapping[str, Pattern],
    architecture: Architecture,
    *,
    order: np.ndarray | None = None,
    block: int = 1,
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
    steps: dict[Sweep, np.ndarray] = {}
    for section, _ in schedule.sections:
        for sweep in section.sweeps:
            if sweep not in steps:
                steps[sweep] = _steps(sweep, stored_views, architecture)
    return SparseReport(schedule, plain_views, stored_views, architecture, steps)


def _views(matrices: Mapping[str, Pattern], schedule: SparseSchedule) -> dict[View, Pattern]:
    """Return the patterns of the matrices, and of their transposes, that products read."""
    views = {each.product.view for each, _ in schedule.counted_work() if each.product}
    return {
        (name, transposed): matrices[name].transposed if transposed else matrices[name]
        for name, transposed in sorted(views)
    }


def _steps(sweep: Sweep, patterns: Patterns, architecture: Architecture) -> np.ndarray:
    """Return what happens in each step of a sweep, as ``engine_compiled.run`` does."""
    if sweep.view is None:
        return vector_steps(architecture, sweep)
    pattern = patterns[sweep.view]
    if sweep.kind != "oei":
        return product_steps(pattern, architecture, sweep)
    program = lower(pattern, architecture, sweep)
    tell_on_terminal()
    return fitting(engine_compiled.run, pattern.entries + pattern.indices)(program)
