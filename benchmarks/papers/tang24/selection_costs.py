"""Costs of selections that are too long to simulate: heaps by counting, the host by a formula.

A heap's program is one long chain on the scalar unit, so its time is a sum. ``heap_seconds`` runs
the program's own emitter on a counter in place of a core. ``HostSort`` states the cost of a
quicksort on the host; nothing of it is simulated or measured.

References
----------
Sedgewick 1977 for the comparisons of quicksort; Tang 2024, §3.5, for the processor and its clock.
"""

from collections import Counter
from dataclasses import dataclass
from math import log
from typing import Any, cast

import numpy as np

from vitruvian.common.validate import check_int
from vitruvian.sim.davinci import Chip, Core, View
from vitruvian.sim.kernels.kselection.heap import Heap
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape


class _Anything:
    """A view whose parts are itself."""

    def __getitem__(self, key: object) -> "_Anything":
        return self


class _Tally:
    """A core that counts the instructions of the scalar unit and forgets the others."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def scalar(self, *, text: str) -> None:
        self.counts[text] += 1

    def scalar_load(self, _src: _Anything, **_expected: Any) -> None:
        self.counts["scalar_load"] += 1

    def scalar_store(self, _dst: _Anything, _value: Any) -> None:
        self.counts["scalar_store"] += 1

    def allocate(self, *_what: Any) -> _Anything:
        return _Anything()

    def nothing(self, *_what: Any) -> None:
        """Accept an instruction of another unit, or a flag."""

    vdup = pipe_barrier = set_flag = wait_flag = nothing


def heap_counts(distances: np.ndarray, k: int) -> Counter[str]:
    """Return the scalar instructions of the heap method by name: loads, stores and texts.

    Parameters
    ----------
    distances : (m, n) ndarray of float16
        Distances of any number of queries, in the order of the points.
    """
    m, n = distances.shape
    tally = _Tally()
    for first in range(0, m, GROUP):
        part = distances[first : first + GROUP]
        heap = Heap(cast(Core, tally), KnnShape(len(part), n, 1, k), n)
        heap.begin(len(part))
        heap.select(cast(View, _Anything()), 0, part)
    return tally.counts


def heap_seconds(distances: np.ndarray, k: int, chip: Chip) -> float:
    """Return the time of the scalar unit of one core for the heap method.

    Parameters
    ----------
    distances, k
        As ``heap_counts`` takes them.
    """
    times = chip.scalar
    counts = heap_counts(distances, k)
    return float(sum(number * times.get(op, times[""]) for op, number in counts.items()))


@dataclass(frozen=True)
class HostSort:
    """The stated cost of a quicksort of the distances of each query on the host.

    Attributes
    ----------
    clock_hz : float
        The clock of the processor of Tang 2024, §3.5.
    threads : int
        Threads that sort different queries. Assumed: one, as the C++ library has it.
    comparison_cycles : float
        Cycles of a comparison with its share of the moves. Assumed.
    misprediction_cycles : float
        Cycles of a wrong prediction. Assumed; half of the comparisons with random pivots are
        predicted wrongly at most.
    """

    clock_hz: float = 2.6e9
    threads: int = 1
    comparison_cycles: float = 4
    misprediction_cycles: float = 16

    def comparisons(self, n: int) -> float:
        """Return the expected comparisons of a quicksort of n elements: 2 (n + 1) Hₙ − 4 n."""
        check_int("n", n, 1)
        harmonic = log(n) + 0.57721566490153286 + 1 / (2 * n) if n > 64 else _harmonic(n)
        return 2 * (n + 1) * harmonic - 4 * n

    def seconds(self, queries: int, n: int) -> float:
        """Return the time of all queries, without the move of the distances to the host."""
        check_int("queries", queries, 1)
        each = self.comparison_cycles + self.misprediction_cycles / 2
        return queries * self.comparisons(n) * each / self.clock_hz / self.threads


def _harmonic(n: int) -> float:
    return sum(1 / i for i in range(1, n + 1))
