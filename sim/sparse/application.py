"""The simulation of an application: from its problem to a report."""

from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.sparse.applications import Problem
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.sim.sparse.architecture import Architecture, load_architecture
from vitruvian.sim.sparse.dram import load_dram
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.reordering import ORDERS, order_of
from vitruvian.sim.sparse.report import SparseReport
from vitruvian.sim.sparse.schedule import schedule
from vitruvian.sim.sparse.simulate import simulate


def pattern_of_sparse(matrix: Sparse) -> Pattern:
    """Return the pattern of a matrix of the golden models; stored zeros count as nonzeros.

    Raises
    ------
    ValueError
        If it has no row or no column.
    """
    if not min(matrix.shape):
        shape = " × ".join(map(str, matrix.shape))
        raise ValueError(f"matrix must have at least one row and one column, not {shape}")
    none = np.zeros(1, np.int64)
    return Pattern(
        elements=matrix.shape[0],
        columns=matrix.shape[1],
        nonzeros=matrix.nonzeros,
        side=1,
        col_first=matrix.column_start,
        col_rows=matrix.row_index,
        row_first=matrix.row_start,
        row_cols=matrix.column_index,
        col_work=none,
        row_work=none,
    )


def simulate_application(
    problem: Problem,
    architecture: Architecture | str | Path | None = None,
    *,
    reorder: str = "none",
    block: int = 1,
    iterations: int | None = None,
    confirmations: int = 0,
    memory: str | Path | None = None,
    dram_simulator: str | None = None,
) -> SparseReport:
    """Simulate a run of an application on SIDA.

    The schedule follows from the problem's graph: which products share a pass over the matrix,
    which element-wise operations run with them, and which vectors cross the memory's interface.

    Parameters
    ----------
    architecture : Architecture or path, optional
        The machine, or its TOML file; by default the one of Zhang 2024 §4.5.1.
    reorder : {"none", "triangular", "windowed"}
        Order of rows and columns for SIDA and the oracle; see ``reordering``.
    block : int
        Side of the blocks in which SIDA and the oracle store the matrix, a power of 2 up to 256.
    iterations : int, optional
        Iterations of the run, at most ``problem.iterations``; by default, the golden model runs to
        find out.
    confirmations : int
        Confirmations of the run, if ``iterations`` are given.
    memory : str or path, optional
        A memory with timing: "hbm2", or a TOML file; by default, memory is a bandwidth.
    dram_simulator : str, optional
        Path of DRAMsim3's program ``dramsim3main``, which computes the times of ``memory`` instead
        of our model.

    Returns
    -------
    SparseReport
        The whole run without the graph's setup.

    Raises
    ------
    ArchitectureError
        If the file has a mistake.
    ValueError
        If a matrix has no row or no column, an order is asked for a matrix that is not square, or a
        column or row is larger than a quarter of the buffer.
    """
    machine = architecture
    if not isinstance(machine, Architecture):
        machine = load_architecture(*([] if machine is None else [machine]))
    one_of("reorder", reorder, ORDERS)
    patterns = {name: pattern_of_sparse(each) for name, each in problem.matrices.items()}
    if iterations is None:
        outcome = run(problem.graph, problem.matrices, problem.given, iterations=problem.iterations)
        iterations, confirmations = outcome.iterations, outcome.confirmations
    check_int("iterations", iterations, 0, problem.iterations)
    plan = schedule(
        problem.graph,
        {name: np.shape(each) for name, each in problem.given.items()},
        {name: each.shape for name, each in problem.matrices.items()},
        iterations,
        limit=problem.iterations,
        confirmations=confirmations,
    )
    (pattern,) = patterns.values()
    order = order_of(pattern, reorder)
    if dram_simulator is not None and memory is None:
        raise UserError("a DRAM simulator must come with a memory")
    return simulate(
        plan,
        patterns,
        machine,
        order=order,
        block=block,
        memory=None if memory is None else load_dram(memory),
        dram_simulator=dram_simulator,
    )
