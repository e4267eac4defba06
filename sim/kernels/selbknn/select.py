"""The k-selection of SelB-k-NN for a group of queries (Alg. 4), as instructions of a core.

The control flow of Alg. 4 depends on the distances. A program is built for given distances: it
has the instructions that the device would execute, with every scalar load and branch. Each scalar
load states the element for which the program was built, and a run with data checks it.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.ring import ordered
from vitruvian.sim.kernels.selbknn.compare import ROWS, HardCompare, SoftCompare, emit
from vitruvian.sim.kernels.selbknn.golden import (
    Best,
    SelectionStep,
    SelectionVariant,
    k_selection,
    levels,
)
from vitruvian.sim.kernels.selbknn.indexing import HardIndex, SoftIndex


class SelB:
    """The k-selection of Alg. 4; see ``shape.Selector`` for its interface.

    Parameters
    ----------
    n : int
        The largest number of training points of a tile, a multiple of 128.
    variant : SelectionVariant, optional
        By default that with all instructions and the early exit.

    Attributes
    ----------
    steps : list of (int, list of SelectionStep)
        The number of the first training point and the steps of every tile of the last group.
    """

    columns = False

    def __init__(
        self, core: Core, shape: KnnShape, n: int, variant: SelectionVariant | None = None
    ) -> None:
        self.core, self.shape = core, shape
        self.variant = SelectionVariant() if variant is None else variant
        k, words = shape.k, shape.words
        self.best = core.allocate("UB", (k, GROUP), "fp16", "best")
        self.index = core.allocate("UB", (words, k, GROUP), "uint16", "index")
        # The levels of the bitonic selection alternate between these rows and those above.
        upper = (k + 1) // 2
        self._best = core.allocate("UB", (upper, GROUP), "fp16", "best, upper")
        self._index = core.allocate("UB", (words, upper, GROUP), "uint16", "index, upper")
        self._least = core.allocate("UB", (GROUP,), "fp16", "least")
        self._least_index = core.allocate("UB", (words, GROUP), "uint16", "index of the least")
        self._skip = core.allocate("UB", (GROUP,), "fp16", "skip")
        self._ones = core.allocate("UB", (GROUP,), "fp16", "ones")
        self._all = core.allocate("UB", (GROUP,), "fp16", "all skipped")
        self._compare = (HardCompare if self.variant.compare else SoftCompare)(core)
        self._minimum = (
            HardIndex(core, n) if self.variant.index else SoftIndex(core, n, self.variant.compare)
        )
        core.vdup(self._ones, 1)
        core.pipe_barrier(Unit.V)
        self._queries = GROUP
        self._state = Best.empty(k, GROUP)
        self.steps: list[tuple[int, list[SelectionStep]]] = []

    @staticmethod
    def scratch_bytes(shape: KnnShape, n: int, variant: SelectionVariant | None = None) -> int:
        """Return the bytes of the Unified Buffer that the constructor allocates, or a few more."""
        variant = SelectionVariant() if variant is None else variant
        rows = (shape.k + (shape.k + 1) // 2 + 1) * (1 + shape.words) + 3
        compare = HardCompare if variant.compare else SoftCompare
        minimum = HardIndex if variant.index else SoftIndex
        return 32 * rows + compare.scratch_bytes() + minimum.scratch_bytes(n)

    @staticmethod
    def instructions(shape: KnnShape, n: int, variant: SelectionVariant | None = None) -> int:
        """Return the most instructions of ``select`` for a tile, of any number of points."""
        del n
        variant = SelectionVariant() if variant is None else variant
        planes = 1 + shape.words
        less, select = (2, 2) if variant.compare else (12, 6)
        minimum = 11 if variant.index else 19 if variant.compare else 41
        chunks = sum(ceil_div(pairs, ROWS) for _, pairs in levels(shape.k))
        exchanges = chunks * (less + 2 * planes * select) + 2 * planes * len(levels(shape.k))
        step = GROUP * (minimum + 2 * shape.words) + less + (1 + planes) * select + 9 + exchanges
        return shape.k * step + 2 * planes + 8

    @property
    def _top(self) -> View:
        """The row with the largest of the k distances of each query."""
        return self._best[0] if len(levels(self.shape.k)) % 2 else self.best[0]

    @property
    def _top_index(self) -> View:
        # After an odd number of levels, row 0 lies in the upper rows.
        odd = len(levels(self.shape.k)) % 2
        return self._index[:, 0] if odd else self.index[:, 0]

    def begin(self, queries: int) -> None:
        """Emit the start of a group with so many queries."""
        core = self.core
        for view in (self.best, self._best, self._least):
            core.vdup(view.reshape(view.size), np.inf)
        for view in (self.index, self._index):
            core.vdup(view.reshape(view.size), 0xFFFF)
        core.vdup(self._least_index.reshape(self._least_index.size), 0)
        core.pipe_barrier(Unit.V)
        self._queries = queries
        self._state = Best.empty(self.shape.k, GROUP)
        self.steps = []

    def select(self, distances: View, first: int, values: np.ndarray) -> None:
        """Emit the selection among the training points from number ``first`` on.

        Parameters
        ----------
        distances : View
            (n / 16, 16, 16) fp16, fractals.
        values : (16, n) ndarray of float16
        """
        core = self.core
        # The model decides which branches the device takes; the scalar loads below check them.
        steps = k_selection(
            values, self._state, first=first, queries=self._queries, variant=self.variant
        )
        self.steps.append((first, steps))
        core.vdup(self._skip, 0)
        core.pipe_barrier(Unit.V)
        if self._queries < GROUP:
            mask = ((1 << GROUP) - 1) ^ ((1 << self._queries) - 1)
            core.vdup(self._skip, 1, repeat=1, mask=mask)
            core.pipe_barrier(Unit.V)
        ordered(core, Unit.V, Unit.S)
        for step in steps:
            self._step(distances, first, step)
        self._settle()

    def _step(self, distances: View, first: int, step: SelectionStep) -> None:
        """Emit a step of a tile whose first training point has the number ``first``."""
        core = self.core
        for q in range(self._queries):
            skipped = q not in step.found
            # Line 4 of Alg. 4: the scalar unit reads whether query q is skipped, and branches.
            core.scalar_load(self._skip[q : q + 1], expected=float(skipped))
            core.scalar(text="branch")
            if not skipped:
                self._minimum.reduce(distances, q)
        self._minimum.remove(distances, step.found, self._least)
        for q, (_, column) in step.found.items():
            number = first + column
            for word in range(self.shape.words):
                if first or word:
                    core.scalar(text="address")
                part = number >> 16 * word & 0xFFFF
                core.scalar_store(self._least_index[word, q : q + 1], part)
        self._compare.less(self._least, self._top)
        # A query whose minimum is not below its top row is skipped from now on.
        self._compare.select(self._skip, self._skip, self._ones)
        if self.variant.leave:
            # Lines 10 to 12: the minimum of the marks is 1 if all queries are skipped.
            core.vcmin(self._all, self._skip, repeat=1, mask=(1 << GROUP) - 1)
            ordered(core, Unit.V, Unit.S)
            core.scalar_load(self._all[:1], expected=float(step.left))
            core.scalar(text="branch")
        if not step.left:
            self._compare.select(self.best[0], self._least, self._top)
            for word in range(self.shape.words):
                top = self._top_index[word]
                self._compare.select(self.index[word, 0], self._least_index[word], top)
            self._raise_largest()
            if not self.variant.leave:
                ordered(core, Unit.V, Unit.S)

    def _raise_largest(self) -> None:
        """Emit the exchanges that bring the largest distance of each query to the top."""
        mine = [self.best, *(self.index[w] for w in range(self.shape.words))]
        others = [self._best, *(self._index[w] for w in range(self.shape.words))]
        for level, (half, pairs) in enumerate(levels(self.shape.k)):
            sources, targets = (others, mine) if level % 2 else (mine, others)
            for at in range(0, pairs, ROWS):
                low, high = (
                    slice(at, min(at + 8, pairs)),
                    slice(half + at, half + min(at + 8, pairs)),
                )
                self._compare.less(sources[0][low], sources[0][high])
                for source, target, rest in zip(sources, targets, mine, strict=True):
                    # Where the upper half is larger, the rows change places: the larger ones go on
                    # to the next level.
                    self._compare.select(target[low], source[high], source[low])
                    self._compare.select(rest[high], source[low], source[high])
            if pairs < half:
                # The row in the middle has no partner, but the next level needs it beside others.
                for source, target in zip(sources, targets, strict=True):
                    row = source[pairs].astype("uint16")
                    emit(
                        self.core,
                        "vor",
                        {"dst": target[pairs].astype("uint16"), "src0": row, "src1": row},
                    )

    def _settle(self) -> None:
        """Emit copies of the largest distances to row 0 of the results."""
        if len(levels(self.shape.k)) % 2:
            pairs = [(self.best[0], self._top)]
            pairs += [(self.index[w, 0], self._top_index[w]) for w in range(self.shape.words)]
            for dst, src in pairs:
                row = src.astype("uint16")
                emit(self.core, "vor", {"dst": dst.astype("uint16"), "src0": row, "src1": row})
