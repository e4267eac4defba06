"""The two machines that SIDA is compared with, in closed form.

Both have SIDA's memory and processing elements. The baseline always reaches the roofline of each
operator, but keeps nothing from one operator to the next. The oracle has every element on chip that
an operator has already loaded or produced, whatever the buffer's size.

References
----------
Zhang 2024: §4.5.2 (baseline), §4.6.3 (oracle).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.layout import matrix_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.workload import Workload

__all__ = ["Estimate", "baseline", "oracle"]

#: Cores of the machine; the baseline's one operator at a time uses all of them.
CORES = 3


@dataclass(frozen=True)
class Estimate:
    """Cycles, bytes that cross the memory's interface, and operations for a pair of iterations."""

    cycles: Fraction
    memory_bytes: int
    operations: int


def baseline(pattern: Pattern, architecture: Architecture, workload: Workload) -> Estimate:
    """Return the time of the idealised accelerator without reuse between operators.

    The vxm reads the matrix in one order, each element of x that it needs once, and writes y; each
    element-wise operation reads its inputs and writes its output.
    """
    value, elements = architecture.value_bytes, pattern.elements
    vxm = matrix_bytes(pattern, architecture) + value * (_used(pattern) + elements)
    parts = [(vxm, pattern.nonzeros)]
    for each in workload.elementwise:
        vectors = len(set(each.inputs)) + bool(each.output)
        parts.append((value * vectors * elements, each.operations * elements))
    pes = CORES * architecture.pes
    cycles = sum(max(n / architecture.bytes_per_cycle, Fraction(w, pes)) for n, w in parts)
    return Estimate(
        Fraction(2 * cycles), 2 * sum(n for n, _ in parts), 2 * sum(w for _, w in parts)
    )


def oracle(pattern: Pattern, architecture: Architecture, workload: Workload) -> Estimate:
    """Return the time of the accelerator that misses no reuse between operators.

    The matrix and every vector cross the memory's interface once for both iterations, and the three
    cores never wait for each other.
    """
    value, elements, pes = architecture.value_bytes, pattern.elements, architecture.pes
    nbytes = matrix_bytes(pattern, architecture) + value * _used(pattern)
    nbytes += value * workload.oracle_vectors * elements
    elementwise = 2 * workload.operations * elements
    cycles = max(
        nbytes / architecture.bytes_per_cycle,
        Fraction(pattern.nonzeros, pes),
        Fraction(elementwise, pes),
    )
    return Estimate(cycles, nbytes, 2 * pattern.nonzeros + elementwise)


def _used(pattern: Pattern) -> int:
    """Return the elements of x in (block) rows with nonzeros."""
    rows = np.flatnonzero(np.diff(pattern.row_first))
    return int(np.minimum(pattern.side, pattern.elements - rows * pattern.side).sum())
