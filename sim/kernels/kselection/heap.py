"""Heap k-selection on the scalar unit: a heap for each query, whose root is the largest distance.

The scalar unit is the only one that can address an element by a number that it has computed, so it
does everything but the initialisation. The loop over the training points is unrolled: counters and
their branches cost nothing, which favours the heap. Registers hold the root of the heap, the
distance that sinks, and addresses. The program is the trace for given distances, because branches
and addresses depend on them.

For a training point: a load of its distance, and a branch on the comparison with the root. If the
point is closer, for each level that it sinks: an assignment of the child's address and a branch on
the end of the heap; two loads and a branch on the larger child, if there are two, else one load; a
branch on the comparison with the point; the move of the child, a load and two stores, and an
assignment of the hole. In the end, two stores and the load of the new root.

References
----------
Tang 2024, §3.1.1: the dynamic addressing of siblings takes 94.10 % of the time. Williams 1964 for
the heap.
"""

import numpy as np

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.ring import ordered

#: A training point has no number with two such words.
_NOTHING = 0xFFFF


class Heap:
    """The heap method for a group of 16 queries; see ``shape.Selector``.

    Parameters
    ----------
    n : int
        Training points of a tile; the method needs no memory for them.

    Attributes
    ----------
    columns : bool
    best : View
        (k, 16) fp16: element c of column q is node c of the heap of query q.
    index : View
        (words, k, 16) uint16.
    """

    columns = False

    def __init__(self, core: Core, shape: KnnShape, n: int) -> None:
        del n
        self.core, self.shape = core, shape
        self.best = core.allocate("UB", (shape.k, GROUP), "fp16", "heaps")
        self.index = core.allocate("UB", (shape.words, shape.k, GROUP), "uint16", "numbers")
        self._heaps: list[list[float]] = []
        self._numbers: list[list[int]] = []

    @staticmethod
    def scratch_bytes(shape: KnnShape, n: int) -> int:
        """Return the bytes of the Unified Buffer that the method allocates."""
        del n
        return 2 * GROUP * shape.k * (1 + shape.words)

    @staticmethod
    def instructions(shape: KnnShape, n: int) -> int:
        """Return an upper bound of the instructions of a ``select`` on random distances.

        In any order of the points, a query needs n loads and branches. The bound of the points that
        sink is the one of the first tile, which has the most: k · (1 + ln(n / k)) on average, and
        four standard deviations.
        """
        mean = shape.k * (1 + np.log(max(n / shape.k, 1)))
        sinking = min(n, mean + 4 * np.sqrt(mean) + 8)
        levels = shape.k.bit_length()
        queries = min(GROUP, shape.queries)
        return int(queries * (2 * n + sinking * ((7 + 3 * shape.words) * levels + 6))) + 8

    def begin(self, queries: int) -> None:
        """Emit heaps full of +∞ for so many queries; the other ones stay so."""
        self.core.pipe_barrier(Unit.V)
        self.core.vdup(self.best, float("inf"))
        self.core.vdup(self.index, _NOTHING)
        self._heaps = [[float("inf")] * self.shape.k for _ in range(queries)]
        self._numbers = [[-1] * self.shape.k for _ in range(queries)]

    def select(self, distances: View, first: int, values: np.ndarray) -> None:
        """Emit the selection among a tile; see ``shape.Selector``.

        Parameters
        ----------
        distances : (n / 16, 16, 16) View of fp16
        first : int
            Number of the first training point.
        values : (16, n) ndarray of float16
        """
        core = self.core
        ordered(core, Unit.V, Unit.S)
        for q, heap in enumerate(self._heaps):
            core.scalar_load(self.best[0, q], expected=heap[0])
            for j, distance in enumerate(values[q].tolist()):
                core.scalar_load(distances[j // GROUP, q, j % GROUP], expected=distance)
                core.scalar(text="branch")
                if distance < heap[0]:
                    self._sink(q, distance, first + j)
        ordered(core, Unit.S, Unit.V)

    def _sink(self, q: int, distance: float, number: int) -> None:
        """Emit the replacement of a root."""
        core, heap, numbers, k = self.core, self._heaps[q], self._numbers[q], self.shape.k
        hole = 0
        while True:
            child = 2 * hole + 1
            core.scalar(text="assign")
            core.scalar(text="branch")
            if child >= k:
                break
            core.scalar_load(self.best[child, q], expected=heap[child])
            if child + 1 < k:
                core.scalar_load(self.best[child + 1, q], expected=heap[child + 1])
                core.scalar(text="branch")
                if heap[child + 1] > heap[child]:
                    child += 1
            core.scalar(text="branch")
            if not heap[child] > distance:
                break
            core.scalar_store(self.best[hole, q], heap[child])
            for word, part in enumerate(self._words(numbers[child])):
                core.scalar_load(self.index[word, child, q], expected=part)
                core.scalar_store(self.index[word, hole, q], part)
            core.scalar(text="assign")
            heap[hole], numbers[hole], hole = heap[child], numbers[child], child
        core.scalar_store(self.best[hole, q], distance)
        for word, part in enumerate(self._words(number)):
            core.scalar_store(self.index[word, hole, q], part)
        heap[hole], numbers[hole] = distance, number
        core.scalar_load(self.best[0, q], expected=heap[0])

    def _words(self, number: int) -> list[int]:
        """Return the words of a number; those of −1 are all ones."""
        return [number >> 16 * word & 0xFFFF for word in range(self.shape.words)]
