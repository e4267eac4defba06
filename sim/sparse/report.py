"""The report of a simulated pair of iterations: times, traffic, occupancy and energy."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import Estimate, baseline, oracle
from vitruvian.sim.sparse.energy import Energy, estimate_energy, sida_energy
from vitruvian.sim.sparse.engine_compiled import COLUMNS
from vitruvian.sim.sparse.layout import dual_bytes
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.workload import Workload

__all__ = ["TRAFFIC", "Report"]

#: The kinds of traffic: columns for the OS core, rows loaded again and ahead for the IS core,
#: vectors with the index arrays, and results of the second vxm.
TRAFFIC = ("csc", "reload", "prefetch", "vectors", "results")


@dataclass(frozen=True, eq=False)
class Report:
    """A simulated pair of iterations.

    Attributes
    ----------
    plain : Pattern
        The matrix as the baseline reads it.
    stored : Pattern
        The matrix as SIDA reads it, reordered and in blocks.
    architecture : Architecture
    workload : Workload
    steps : (steps, len(COLUMNS)) ndarray of int64
        What happens in each step; the columns are ``engine_compiled.COLUMNS``.
    """

    plain: Pattern
    stored: Pattern
    architecture: Architecture
    workload: Workload
    steps: np.ndarray

    def of(self, column: str) -> np.ndarray:
        """Return a column of ``steps`` by its name."""
        return self.steps[:, COLUMNS.index(column)]

    @property
    def cycles(self) -> int:
        """Cycles of both iterations."""
        return int(self.of("cycles").sum())

    @property
    def seconds(self) -> float:
        """Seconds of both iterations."""
        return float(self.cycles / self.architecture.clock_hz)

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes that cross the memory's interface, by kind."""
        return {kind: int(self.of(kind).sum()) for kind in TRAFFIC}

    @property
    def memory_bytes(self) -> int:
        """Bytes that cross the memory's interface."""
        return sum(self.traffic.values())

    @cached_property
    def baseline(self) -> Estimate:
        """The accelerator without reuse between operators, on the matrix as it is given."""
        return baseline(self.plain, self.architecture, self.workload)

    @cached_property
    def oracle(self) -> Estimate:
        """The accelerator that misses no reuse, on the matrix as SIDA stores it."""
        return oracle(self.stored, self.architecture, self.workload)

    @property
    def speedup(self) -> float:
        """Time of the baseline over the time of SIDA."""
        return float(self.baseline.cycles / self.cycles)

    @property
    def oracle_share(self) -> float:
        """Performance as a share of the oracle's."""
        return float(self.oracle.cycles / self.cycles)

    @property
    def bandwidth_share(self) -> float:
        """Share of the memory's bandwidth that is in use, on average."""
        return float(Fraction(self.memory_bytes) / (self.cycles * self._rate))

    @property
    def storage_share(self) -> float:
        """Bytes of the matrix as SIDA stores it, over those of CSC and CSR without blocks."""
        stored = dual_bytes(self.stored, self.architecture)
        return stored / dual_bytes(self.plain, self.architecture)

    @property
    def energy(self) -> Energy:
        """The energy of SIDA."""
        return sida_energy(self.architecture, self.stored, self.workload, self)

    @property
    def baseline_energy(self) -> Energy:
        """The energy of the baseline."""
        return estimate_energy(self.architecture, self.plain, self.workload, self.baseline)

    def bandwidth(self, points: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """Return the use of the memory's bandwidth over time.

        Parameters
        ----------
        points : int
            Number of intervals of equal length.

        Returns
        -------
        cycles, share : (points,) ndarray of float64
            Middle of each interval, and the share of the bandwidth in use in it. Within a step, the
            bytes are spread evenly.
        """
        ends = np.concatenate([[0], np.cumsum(self.of("cycles"))]).astype(np.float64)
        moved = np.concatenate([[0], np.cumsum(sum(self.of(kind) for kind in TRAFFIC))])
        edges = np.linspace(0, self.cycles, points + 1)
        there = np.interp(edges, ends, moved)
        share = np.diff(there) / (np.diff(edges) * float(self._rate))
        return (edges[:-1] + edges[1:]) / 2, share

    def occupancy(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bytes of the buffer that are reserved, step by step.

        Returns
        -------
        cycles : (steps,) ndarray of int64
            End of each step.
        csr, csc : (steps,) ndarray of int64
        """
        return np.cumsum(self.of("cycles")), self.of("csr_space"), self.of("csc_space")

    def figures(self) -> dict[str, float | int | str]:
        """Return the figures of the report by name, for tables and JSON."""
        energy, other = self.energy, self.baseline_energy
        return {
            "rows": self.plain.elements,
            "nonzeros": self.plain.nonzeros,
            "architecture": self.architecture.name,
            "workload": self.workload.name,
            "block_side": self.stored.side,
            "steps": len(self.steps),
            "cycles": self.cycles,
            "seconds": self.seconds,
            "speedup": self.speedup,
            "oracle_share": self.oracle_share,
            "bandwidth_share": self.bandwidth_share,
            "storage_share": self.storage_share,
            **{f"{kind}_bytes": nbytes for kind, nbytes in self.traffic.items()},
            "peak_buffer_bytes": int((self.of("csr_space") + self.of("csc_space")).max()),
            "evicted_bytes": int(self.of("evicted").sum()),
            "repacked_bytes": int(self.of("repacked").sum()),
            "energy_joules": energy.joules,
            "baseline_energy_joules": other.joules,
            "energy_saving": 1 - energy.joules / other.joules,
        }

    @property
    def _rate(self) -> Fraction:
        return self.architecture.bytes_per_cycle
