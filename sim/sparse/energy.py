"""Energy of a pair of iterations: counts of accesses times constants of the architecture file.

The counts of the buffer are these. All that crosses the memory's interface is written to the
buffer or read from it once. An operation of a vxm reads its nonzero and its element of x; one of
the IS core also reads and writes a partial result. An element-wise operation reads its inputs and
writes its output. A repacking reads and writes all that it moves.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import Estimate
from vitruvian.sim.sparse.layout import entry_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.workload import Workload

__all__ = ["Energy", "estimate_energy", "sida_energy"]


@dataclass(frozen=True)
class Energy:
    """Joules of the memory, the on-chip buffer, and the processing elements."""

    memory: float
    buffer: float
    compute: float

    @property
    def joules(self) -> float:
        """The sum."""
        return self.memory + self.buffer + self.compute


class Steps(Protocol):
    """The counts of a simulation that the energy needs."""

    @property
    def memory_bytes(self) -> int:
        """Bytes that cross the memory's interface."""
        ...

    def of(self, column: str) -> np.ndarray:
        """Return a column of the steps by its name."""
        ...


def sida_energy(
    architecture: Architecture, pattern: Pattern, workload: Workload, steps: Steps
) -> Energy:
    """Return the energy of SIDA from the counts of its simulation."""
    matrix = _entries(pattern, architecture)
    value, elements = architecture.value_bytes, pattern.elements
    touched = steps.memory_bytes + 2 * int(steps.of("repacked").sum())
    touched += 2 * matrix  # into CSR space or CSC space, by the conversion; from it, by a core
    touched += matrix + value * (2 + 2) * pattern.nonzeros  # OS: x; IS: x and the partial result
    touched += 2 * value * workload.unfused_vectors * elements + value * elements
    operations = 2 * (pattern.nonzeros + workload.operations * elements)
    return _energy(architecture, steps.memory_bytes, touched, operations)


def estimate_energy(
    architecture: Architecture, pattern: Pattern, workload: Workload, estimate: Estimate
) -> Energy:
    """Return the energy of the baseline: its two vxm are both output-stationary."""
    matrix = _entries(pattern, architecture)
    value, elements = architecture.value_bytes, pattern.elements
    touched = estimate.memory_bytes + 2 * (matrix + value * (pattern.nonzeros + elements))
    touched += 2 * value * workload.unfused_vectors * elements
    return _energy(architecture, estimate.memory_bytes, touched, estimate.operations)


def _entries(pattern: Pattern, architecture: Architecture) -> int:
    nonzero, entry = entry_bytes(pattern, architecture)
    return pattern.nonzeros * nonzero + pattern.entries * entry


def _energy(architecture: Architecture, memory: int, buffer: int, operations: int) -> Energy:
    return Energy(
        float(architecture.memory_pj_per_byte * memory) * 1e-12,
        float(architecture.buffer_pj_per_byte * buffer) * 1e-12,
        float(architecture.operation_pj * operations) * 1e-12,
    )
