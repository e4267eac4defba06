"""The simulation of one pair of iterations of a sparse application on SIDA.

The OS core computes the first iteration's vxm and the IS core the second one's, while the matrix
passes the chip once (Zhang 2024 §4.3 and §4.4). The traffic depends on the pattern alone.

What the thesis leaves open is decided as follows.

- Vectors have buffers of their own and cross the memory's interface once per operator: the input of
  the first vxm when a row's first entry arrives, the result of the second when it is complete.
- The result of the second vxm is written to memory, as §4.4.3 states. A pass at the end reads it
  again for the element-wise operations of the second iteration.
- A repacking takes energy but no time.
- §4.4.4 divides by r in P(r). The average over the rows S … r divides by r − S + 1, which is used.
"""

from fractions import Fraction

import numpy as np

from vitruvian.sim.davinci.timing.compiling import fitting, tell_on_terminal
from vitruvian.sim.sparse import engine_compiled
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.engine_compiled import COLUMNS, Program
from vitruvian.sim.sparse.layout import entry_bytes
from vitruvian.sim.sparse.pattern import Pattern, blocked, permuted
from vitruvian.sim.sparse.report import Report
from vitruvian.sim.sparse.workload import PAGERANK, Workload

__all__ = ["lower", "simulate"]


def simulate(
    pattern: Pattern,
    architecture: Architecture,
    workload: Workload = PAGERANK,
    *,
    order: np.ndarray | None = None,
    block: int = 1,
) -> Report:
    """Simulate one pair of iterations, and compute the baseline and the oracle.

    Parameters
    ----------
    pattern : Pattern
        Single nonzeros, as the baseline reads them.
    architecture : Architecture
    workload : Workload
    order : (n,) ndarray of int, optional
        The old number of each new row and column, for SIDA and the oracle; see ``reordering``.
    block : int
        Side of the blocks in which SIDA and the oracle store the matrix.

    Raises
    ------
    ValueError
        If a column or row is larger than a quarter of the buffer.
    """
    stored = blocked(pattern if order is None else permuted(pattern, order), block)
    program = lower(stored, architecture, workload)
    tell_on_terminal()
    steps = fitting(engine_compiled.run, stored.entries + stored.indices)(program)
    tail = _tail(stored, architecture, workload)
    return Report(pattern, stored, architecture, workload, np.concatenate([steps, tail]))


def lower(pattern: Pattern, architecture: Architecture, workload: Workload) -> Program:
    """Return the matrix and the machine as the engine needs them.

    Raises
    ------
    ValueError
        If a column or row is larger than a quarter of the buffer.
    """
    nonzero, entry = entry_bytes(pattern, architecture)
    capacity, value = architecture.buffer_bytes, architecture.value_bytes
    col_bytes = _prefix(pattern.col_first, pattern.col_work, nonzero, entry)
    row_bytes = _prefix(pattern.row_first, pattern.row_work, nonzero, entry)
    for kind, sizes in (("column", np.diff(col_bytes)), ("row", np.diff(row_bytes))):
        largest = int(sizes.argmax())
        if sizes[largest] > capacity // 4:
            raise ValueError(
                f"buffer must be at least four times as large as {kind} {largest} of "
                f"{sizes[largest]:,} bytes, not {capacity:,} bytes"
            )
    bounds = _bounds(col_bytes, max(1, architecture.sub_tensor // pattern.side), capacity // 4)
    edges = np.minimum(bounds * pattern.side, pattern.elements)
    widths = np.concatenate([np.diff(edges), np.zeros(3, np.int64)])
    indices = np.concatenate([np.diff(bounds), np.zeros(3, np.int64)])
    # Step s loads columns and index arrays of sub-tensor s, and the vectors of sub-tensor s − 1 for
    # the e-wise core, which processes sub-tensor s − 2.
    vectors = 2 * architecture.pointer_bytes * indices + value * _first_uses(pattern, bounds)
    vectors[1:] += value * len(workload.external) * widths[:-1]
    vectors[2:] += value * workload.handed_over * widths[:-2]
    ewise_cycles = np.zeros(len(vectors), np.int64)
    ewise_cycles[2:] = -(-widths[:-2] * workload.operations // architecture.pes)
    rate = architecture.bytes_per_cycle
    return Program(
        pattern.col_first,
        pattern.col_rows,
        pattern.row_first,
        pattern.row_cols,
        pattern.col_work,
        pattern.row_work,
        bounds,
        vectors,
        ewise_cycles,
        nonzero,
        entry,
        capacity,
        int(architecture.repack_share * capacity),
        architecture.pes,
        rate.numerator,
        rate.denominator,
        value * pattern.side,
        value * (pattern.elements - (pattern.indices - 1) * pattern.side),
    )


def _prefix(first: np.ndarray, work: np.ndarray, nonzero: int, entry: int) -> np.ndarray:
    """Return the bytes of all columns (or rows) before each one."""
    return (first if len(work) == 1 else work[first]) * nonzero + first * entry


def _bounds(col_bytes: np.ndarray, most: int, limit: int) -> np.ndarray:
    """Return the bounds of the sub-tensors: at most ``most`` columns and ``limit`` bytes each."""
    bounds, n = [0], len(col_bytes) - 1
    while bounds[-1] < n:
        first = bounds[-1]
        last = int(np.searchsorted(col_bytes, col_bytes[first] + limit, "right")) - 1
        bounds.append(min(last, first + most, n))
    return np.array(bounds, np.int64)


def _first_uses(pattern: Pattern, bounds: np.ndarray) -> np.ndarray:
    """Return the elements of x that each step loads, because it brings a row's first entry."""
    rows = np.flatnonzero(np.diff(pattern.row_first))
    steps = np.searchsorted(bounds, pattern.row_cols[pattern.row_first[rows]], "right") - 1
    widths = np.minimum(pattern.side, pattern.elements - rows * pattern.side)
    return np.bincount(steps, widths, len(bounds) + 2).astype(np.int64)


def _tail(pattern: Pattern, architecture: Architecture, workload: Workload) -> np.ndarray:
    """Return the last step: the element-wise operations of the second iteration."""
    tail = np.zeros((1, len(COLUMNS)), np.int64)
    if workload.elementwise:
        elements, rate = pattern.elements, architecture.bytes_per_cycle
        vectors = 1 + len(workload.external) + len(workload.carried)
        tail[0, COLUMNS.index("vectors")] = nbytes = architecture.value_bytes * vectors * elements
        cycles = max(
            -(-Fraction(nbytes) // rate), -(-elements * workload.operations // architecture.pes)
        )
        tail[0, COLUMNS.index("cycles")] = int(cycles)
    return tail
