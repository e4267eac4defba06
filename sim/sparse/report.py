"""The report of a simulated run: times, traffic, occupancy and energy."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.baselines import BaselineEstimate, Patterns, baseline, oracle
from vitruvian.sim.sparse.energy import Energy, estimate_energy, sida_energy
from vitruvian.sim.sparse.engine_compiled import COLUMNS
from vitruvian.sim.sparse.layout import dual_bytes
from vitruvian.sim.sparse.schedule import ScheduleSection, SparseSchedule, Sweep
from vitruvian.sim.sparse.timing import MemoryTiming

#: The kinds of traffic: columns for the OS core, rows loaded again and ahead for the IS core,
#: vectors with the index arrays, and results of input-stationary products.
TRAFFIC = ("csc", "reload", "prefetch", "vectors", "results")


@dataclass(frozen=True, eq=False)
class SparseReport:
    """A simulated run, without the graph's setup.

    A run of no iterations takes no time, and its ratios are NaN.

    Attributes
    ----------
    schedule : SparseSchedule
    plain : dict of View to Pattern
        The matrices as the baseline reads them.
    stored : dict of View to Pattern
        The matrices as SIDA reads them, reordered and in blocks.
    architecture : Architecture
    steps : dict of Sweep to (steps, len(COLUMNS)) ndarray of int64
        What happens in each step of a sweep; the columns are ``engine_compiled.COLUMNS``.
    timing : MemoryTiming or None
        The memory, if it is more than a bandwidth; it slows all three machines.
    """

    schedule: SparseSchedule
    plain: Patterns
    stored: Patterns
    architecture: Architecture
    steps: Mapping[Sweep, np.ndarray]
    timing: MemoryTiming | None = None

    @property
    def iterations(self) -> int:
        """Iterations of the run."""
        return self.schedule.iterations

    @cached_property
    def sweeps(self) -> dict[Sweep, int]:
        """The number of runs of each sweep."""
        counts: Counter[Sweep] = Counter()
        for section, count in self.schedule.sections:
            for sweep in section.sweeps:
                counts[sweep] += count
        return dict(counts)

    def total(self, column: str) -> int:
        """Return the sum of a column of ``steps`` over the whole run."""
        place = COLUMNS.index(column)
        return sum(
            count * int(self.steps[sweep][:, place].sum()) for sweep, count in self.sweeps.items()
        )

    @cached_property
    def cycles(self) -> int:
        """Cycles of the run."""
        return self.total("cycles")

    @property
    def seconds(self) -> float:
        """Seconds of the run."""
        return float(self.cycles / self.architecture.clock_hz)

    @cached_property
    def traffic(self) -> dict[str, int]:
        """Bytes that cross the memory's interface, by kind."""
        return {kind: self.total(kind) for kind in TRAFFIC}

    @property
    def memory_bytes(self) -> int:
        """Bytes that cross the memory's interface."""
        return sum(self.traffic.values())

    @cached_property
    def baseline(self) -> BaselineEstimate:
        """The accelerator without reuse between operators, on the matrices as they are given."""
        slowdown = self.timing and self.timing.of_work
        return baseline(self.plain, self.architecture, self.schedule, slowdown=slowdown)

    @cached_property
    def single_baseline(self) -> BaselineEstimate:
        """The baseline if it does not join element-wise nodes to expressions."""
        slowdown = self.timing and self.timing.of_work
        return baseline(
            self.plain, self.architecture, self.schedule, joined=False, slowdown=slowdown
        )

    @cached_property
    def oracle(self) -> BaselineEstimate:
        """The accelerator that misses no reuse, on the matrices as SIDA stores them."""
        slowdown = self.timing and self.timing.of_section
        return oracle(self.stored, self.architecture, self.schedule, slowdown=slowdown)

    @property
    def speedup(self) -> float:
        """Time of the baseline over the time of SIDA."""
        return _ratio(self.baseline.cycles, self.cycles)

    @property
    def single_speedup(self) -> float:
        """Time of the baseline of single nodes over the time of SIDA."""
        return _ratio(self.single_baseline.cycles, self.cycles)

    @property
    def oracle_share(self) -> float:
        """Performance as a share of the oracle's."""
        return _ratio(self.oracle.cycles, self.cycles)

    @property
    def bandwidth_share(self) -> float:
        """Share of the memory's bandwidth that is in use, on average."""
        return _ratio(self.memory_bytes, self.cycles * self._rate)

    @property
    def useful_bandwidth_share(self) -> float:
        """The same share without the bytes that were evicted before their use and loaded again."""
        return _ratio(self.memory_bytes - self.traffic["reload"], self.cycles * self._rate)

    @property
    def moved_share(self) -> float:
        """Bytes that bursts move over those that are asked for; 1 if the memory has no bursts."""
        if self.timing is None:
            return 1.0
        runs = [(self.timing.sweeps[sweep], count) for sweep, count in self.sweeps.items()]
        return _ratio(sum(r.moved * n for r, n in runs), sum(r.asked * n for r, n in runs))

    @property
    def storage_share(self) -> float:
        """Bytes of the matrices as SIDA stores them, over those of CSC and CSR without blocks."""
        names = {view[0]: view for view in self.stored}
        stored = sum(dual_bytes(self.stored[view], self.architecture) for view in names.values())
        plain = sum(dual_bytes(self.plain[view], self.architecture) for view in names.values())
        return stored / plain

    @property
    def peak_buffer_bytes(self) -> int:
        """The most bytes of the buffer that are reserved at once."""
        csr, csc = COLUMNS.index("csr_space"), COLUMNS.index("csc_space")
        return max((int((t[:, csr] + t[:, csc]).max()) for t in self.steps.values()), default=0)

    @cached_property
    def energy(self) -> Energy:
        """The energy of SIDA."""
        return sida_energy(
            self.architecture,
            self.stored,
            self.sweeps.items(),
            self.memory_bytes,
            self.total("repacked"),
        )

    @cached_property
    def baseline_energy(self) -> Energy:
        """The energy of the baseline."""
        return estimate_energy(self.architecture, self.plain, self.schedule, self.baseline)

    @cached_property
    def single_baseline_energy(self) -> Energy:
        """The energy of the baseline of single nodes."""
        return estimate_energy(
            self.architecture, self.plain, self.schedule, self.single_baseline, joined=False
        )

    @cached_property
    def section(self) -> ScheduleSection:
        """The section of the run that takes the longest time in all; the plots show it.

        Raises
        ------
        ValueError
            If the run has no iteration.
        """
        if not self.schedule.sections:
            raise ValueError("run must have an iteration to show, not 0 iterations")
        place = COLUMNS.index("cycles")
        return max(
            self.schedule.sections,
            key=lambda item: item[1] * sum(self.steps[s][:, place].sum() for s in item[0].sweeps),
        )[0]

    def of(self, column: str) -> np.ndarray:
        """Return a column of ``steps`` by its name, for the sweeps of ``section``."""
        place = COLUMNS.index(column)
        return np.concatenate([self.steps[sweep][:, place] for sweep in self.section.sweeps])

    def bandwidth(self, points: int = 100) -> tuple[np.ndarray, np.ndarray]:
        """Return the use of the memory's bandwidth over the time of ``section``.

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
        edges = np.linspace(0, ends[-1], points + 1)
        there = np.interp(edges, ends, moved)
        share = np.diff(there) / (np.diff(edges) * float(self._rate))
        return (edges[:-1] + edges[1:]) / 2, share

    def occupancy(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the bytes of the buffer that are reserved, for each step of ``section``.

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
        plain = next(iter(self.plain.values()))
        kinds = Counter({"oei": 0, "stream": 0, "product": 0, "vectors": 0})
        for sweep, count in self.sweeps.items():
            kinds[sweep.kind] += count
        return {
            "application": self.schedule.name,
            "architecture": self.architecture.name,
            "rows": max(plain.elements, plain.columns),
            "nonzeros": plain.nonzeros,
            "block_side": next(iter(self.stored.values())).stored_side,
            "memory": self.timing.memory.dram.name if self.timing else "none",
            "iterations": self.iterations,
            **{f"{kind}_sweeps": count for kind, count in kinds.items()},
            "cycles": self.cycles,
            "seconds": self.seconds,
            "baseline_seconds": float(self.baseline.cycles / self.architecture.clock_hz),
            "oracle_seconds": float(self.oracle.cycles / self.architecture.clock_hz),
            "speedup": self.speedup,
            "single_speedup": self.single_speedup,
            "oracle_share": self.oracle_share,
            "bandwidth_share": self.bandwidth_share,
            "useful_bandwidth_share": self.useful_bandwidth_share,
            "moved_share": self.moved_share,
            "storage_share": self.storage_share,
            **{f"{kind}_bytes": nbytes for kind, nbytes in self.traffic.items()},
            "memory_bytes": self.memory_bytes,
            "baseline_memory_bytes": self.baseline.memory_bytes,
            "oracle_memory_bytes": self.oracle.memory_bytes,
            "peak_buffer_bytes": self.peak_buffer_bytes,
            "buffer_bytes": self.architecture.buffer_bytes,
            "evicted_bytes": self.total("evicted"),
            "repacked_bytes": self.total("repacked"),
            "memory_joules": energy.memory,
            "buffer_joules": energy.buffer,
            "compute_joules": energy.compute,
            "energy_joules": energy.joules,
            "baseline_energy_joules": other.joules,
            "energy_saving": 1 - _ratio(energy.joules, other.joules),
            "single_energy_saving": 1 - _ratio(energy.joules, self.single_baseline_energy.joules),
        }

    @property
    def _rate(self) -> Fraction:
        return self.architecture.bytes_per_cycle


def _ratio(part: Fraction | float, whole: Fraction | float) -> float:
    """Return a quotient, or NaN if the run takes nothing."""
    return float(part / whole) if whole else float("nan")
