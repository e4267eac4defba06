"""Energy of a run: counts of accesses times constants of the architecture file.

The counts of the buffer are these. All that crosses the memory's interface is written to the
buffer or read from it once. An operation of a product reads its element of x, and one of the IS
core also reads and writes a partial result. A core reads every nonzero of the matrix once; a pair
of kind "oei" writes each nonzero once more, when it is converted to the other format. The OS core
writes its results. An expression of element-wise operations reads its inputs and writes its output.
A repacking reads and writes all that it moves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import BaselineEstimate, Patterns
from vitruvian.sim.sparse.layout import entry_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.schedule import SparseSchedule, Sweep


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


def sida_energy(
    architecture: Architecture,
    patterns: Patterns,
    sweeps: Iterable[tuple[Sweep, int]],
    memory_bytes: int,
    repacked_bytes: int,
) -> Energy:
    """Return the energy of SIDA.

    Parameters
    ----------
    sweeps : iterable of (Sweep, int)
        Sweeps of a run, and how often each runs.
    memory_bytes, repacked_bytes : int
        Bytes that cross the memory's interface, and that repackings move, in the whole run.
    """
    value = architecture.value_bytes
    touched, operations = memory_bytes + 2 * repacked_bytes, 0
    for sweep, count in sweeps:
        once, work = value * sweep.touched, sweep.operations
        if sweep.view:
            pattern = patterns[sweep.view]
            matrix = _entries(pattern, architecture)
            once += matrix + value * sweep.os_features * (pattern.nonzeros + pattern.columns)
            work += pattern.nonzeros * (sweep.os_features + sweep.is_features)
            if sweep.is_features:
                once += matrix + 3 * value * sweep.is_features * pattern.nonzeros
            if sweep.kind == "oei":
                once += matrix
        touched += count * once
        operations += count * work
    return _energy(architecture, memory_bytes, touched, operations)


def estimate_energy(
    architecture: Architecture,
    patterns: Patterns,
    schedule: SparseSchedule,
    estimate: BaselineEstimate,
    *,
    joined: bool = True,
) -> Energy:
    """Return the energy of the baseline, whose products are all output-stationary."""
    value = architecture.value_bytes
    touched = estimate.memory_bytes
    for each, count in schedule.counted_work(joined=joined):
        if each.product:
            pattern = patterns[each.product.view]
            once = _entries(pattern, architecture)
            once += value * each.product.features * (pattern.nonzeros + pattern.columns)
        else:
            once = value * (each.read + each.written)
        touched += count * once
    return _energy(architecture, estimate.memory_bytes, touched, estimate.operations)


def _entries(pattern: Pattern, architecture: Architecture) -> int:
    # A core reads the coordinates of blocks, too, where memory stores the nonzeros in blocks.
    pattern = pattern.blocks or pattern
    nonzero, entry = entry_bytes(pattern, architecture)
    return pattern.nonzeros * nonzero + pattern.entries * entry


def _energy(architecture: Architecture, memory: int, buffer: int, operations: int) -> Energy:
    return Energy(
        float(architecture.memory_pj_per_byte * memory) * 1e-12,
        float(architecture.buffer_pj_per_byte * buffer) * 1e-12,
        float(architecture.operation_pj * operations) * 1e-12,
    )
