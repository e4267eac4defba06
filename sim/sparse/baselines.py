"""The two machines that SIDA is compared with, in closed form.

Both have SIDA's memory and processing elements. The baseline always reaches the roofline of each
operator, but keeps nothing from one operator to the next. The oracle has every element on chip that
an operator has already loaded or produced, whatever the buffer's size.

References
----------
Zhang 2024: §4.5.2 (baseline), §4.6.3 (oracle).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.layout import matrix_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.schedule import (
    Gathered,
    ScheduledWork,
    ScheduleSection,
    SparseSchedule,
    View,
)

#: Cores of the machine; the baseline's one operator at a time uses all of them.
CORES = 3

#: Patterns by the view of a product: the matrix, or its transpose
Patterns = Mapping[View, Pattern]


@dataclass(frozen=True)
class BaselineEstimate:
    """Cycles, bytes that cross the memory's interface, and operations of a run."""

    cycles: Fraction
    memory_bytes: int
    operations: int


def baseline(
    patterns: Patterns,
    architecture: Architecture,
    schedule: SparseSchedule,
    *,
    joined: bool = True,
    slowdown: Callable[[ScheduledWork], Fraction] | None = None,
) -> BaselineEstimate:
    """Return the time of the idealised accelerator without reuse between operators.

    A product reads the matrix in one order and each element of x that it needs once, and writes y;
    an expression of element-wise operations reads its inputs and writes its output. With
    ``joined`` false, each element-wise node does. ``slowdown`` is by how much the memory is slower
    than its peak rate for an operator, by default 1.
    """
    value, pes = architecture.value_bytes, CORES * architecture.pes
    cycles, total, operations = Fraction(0), 0, 0
    for each, count in schedule.counted_work(joined=joined):
        nbytes, work = value * (each.read + each.written), each.operations
        if each.product:
            pattern = patterns[each.product.view]
            nbytes += matrix_bytes(pattern, architecture)
            nbytes += value * gathered_values(each.product, patterns)
            work *= pattern.nonzeros
        memory = nbytes / architecture.bytes_per_cycle * (slowdown(each) if slowdown else 1)
        cycles += count * max(memory, Fraction(work, pes))
        total += count * nbytes
        operations += count * work
    return BaselineEstimate(cycles, total, operations)


def oracle(
    patterns: Patterns,
    architecture: Architecture,
    schedule: SparseSchedule,
    *,
    slowdown: Callable[[ScheduleSection], Fraction] | None = None,
) -> BaselineEstimate:
    """Return the time of the accelerator that misses no reuse between operators.

    It has SIDA's schedule. In each section, the matrix crosses the memory's interface once per
    sweep, and every vector that enters or leaves the section crosses it once. The three cores never
    wait for each other. ``slowdown`` is as in ``baseline``, for a section.
    """
    cycles, total, operations = Fraction(0), 0, 0
    for section, count in schedule.sections:
        slower = slowdown(section) if slowdown else Fraction(1)
        time, nbytes, work = _perfect(section, patterns, architecture, slower)
        cycles += count * time
        total += count * nbytes
        operations += count * work
    return BaselineEstimate(cycles, total, operations)


def _perfect(
    section: ScheduleSection, patterns: Patterns, architecture: Architecture, slowdown: Fraction
) -> tuple[Fraction, int, int]:
    """Return the oracle's cycles, bytes and operations of a section."""
    values = section.read + section.written
    values += sum(gathered_values(each, patterns) for each in section.gathered)
    nbytes = architecture.value_bytes * values
    cores = [0, 0, 0]
    for sweep in section.sweeps:
        cores[2] += sweep.operations
        if sweep.view:
            pattern = patterns[sweep.view]
            nbytes += matrix_bytes(pattern, architecture)
            cores[0] += pattern.nonzeros * sweep.os_features
            cores[1] += pattern.nonzeros * sweep.is_features
    memory = nbytes / architecture.bytes_per_cycle * slowdown
    cycles = max(memory, Fraction(max(cores), architecture.pes))
    return Fraction(cycles), nbytes, sum(cores)


def gathered_values(gathered: Gathered, patterns: Patterns) -> int:
    """Return the values of a product's input in (block) rows with nonzeros."""
    pattern = patterns[gathered.view]
    rows = np.flatnonzero(np.diff(pattern.row_first))
    used = np.minimum(pattern.side, pattern.elements - rows * pattern.side)
    return int(used.sum()) * gathered.features
