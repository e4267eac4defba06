"""Bitonic k-selection on the vector unit: a network of comparisons and selections.

A row holds one training point of 16 queries. The rows of a place of all runs follow each other
(``golden.bitonic_select`` has the order), so every step of the network works on long vectors, and a
partial vector is left at the end only.

For each 128 lanes, a step takes a comparison into the mask register, two selections for the numbers
of the points, and a minimum and a maximum for the distances. The Ascend 310 has no selection by
bits in memory (mode 2 of ``vec_sel`` in the vendor's TIK manual), so a comparison and its
selections are one repeat each.

References
----------
Tang 2024, §3.1.1 and §3.5.1; Batcher 1968; Shanbhag et al. 2018.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.kselection.golden import rows_of
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape

#: The longest sorted run: it divides every tile, whose points are a multiple of 128.
MOST_NEIGHBOURS = 128

#: Lanes of FP16 in a repeat, and rows of 16 queries in them.
_LANES = 128
_ROWS = _LANES // GROUP
#: Bytes of a row.
_ROW_BYTES = 2 * GROUP
_WORD = 1 << 16

#: Distances, and one or two words of the numbers of their points: views of the same shape.
_Planes = list[View]


class Bitonic:
    """The bitonic method for a group of 16 queries; see ``shape.Selector``.

    Parameters
    ----------
    n : int
        Training points of a tile, a multiple of 128 and at most 65536.

    Attributes
    ----------
    columns : bool

    Raises
    ------
    ValueError
        If k is larger than ``MOST_NEIGHBOURS``, or n is not allowed.
    """

    columns = True

    def __init__(self, core: Core, shape: KnnShape, n: int) -> None:
        if shape.k > MOST_NEIGHBOURS:
            raise UserError(
                f"k of a bitonic selection must be at most {MOST_NEIGHBOURS}, not {shape.k}"
            )
        if n % _LANES or not 0 < n <= _WORD:
            raise ValueError(f"n must be a multiple of {_LANES} up to {_WORD}, not {n!r}")
        self.core, self.shape = core, shape
        self.rows = rows_of(shape.k)
        # Numbers are moved as FP16: their bits stay, and the 310 selects nothing else.
        self._map = core.allocate("UB", (n, GROUP), "fp16", "numbers in the tile")
        self._numbers = core.allocate("UB", (2, n, GROUP), "fp16", "numbers")
        self._values = core.allocate("UB", (n, GROUP), "fp16", "distances")
        planes = 1 + shape.words
        # Two sets of neighbours, since a merge reads one and writes the other.
        self._state = core.allocate("UB", (2, planes, self.rows, GROUP), "fp16", "neighbours")
        self._new = core.allocate("UB", (shape.words, self.rows, GROUP), "fp16", "new numbers")
        self._now = 0
        self._fill_map(n)

    def _fill_map(self, n: int) -> None:
        """Emit the numbers 0 … n − 1 of the points of a tile, in all 16 lanes of their rows."""
        numbers = _as(self._map, "int16")
        self.core.vdup(numbers[:1], 0)
        done = 1
        while done < n:
            size = min(done, n - done)
            self.core.pipe_barrier(Unit.V)
            self.core.vadds(numbers[done : done + size], numbers[:size], _signed(done))
            done += size

    @property
    def best(self) -> View:
        """The distances of the neighbours so far: (k, 16) fp16, ascending after ``select``."""
        return self._state[self._now][0][: self.shape.k]

    @property
    def index(self) -> View:
        """The words of their numbers: (words, k, 16) uint16."""
        return _as(self._state[self._now][1:, : self.shape.k], "uint16")

    @staticmethod
    def scratch_bytes(shape: KnnShape, n: int) -> int:
        """Return the bytes of the Unified Buffer that are allocated for tiles of n points."""
        return _ROW_BYTES * (4 * n + (2 + 3 * shape.words) * rows_of(shape.k))

    @staticmethod
    def instructions(shape: KnnShape, n: int) -> int:
        """Return an upper bound of the instructions of a ``select``."""
        rows = rows_of(shape.k)
        depth = rows.bit_length() - 1
        each = 3 + 3 * (1 + shape.words)  # of a step on up to 128 lanes, with its barriers
        vectors = n // (2 * _ROWS) + rows
        sort = depth * (depth + 1) // 2 * vectors
        # The runs are halved until one is left; each time the vectors are halved, too.
        halvings = (n // rows).bit_length() + 1
        merges = (2 * vectors + halvings * rows) * (depth + 1)
        return each * (sort + merges) + 4 * halvings * rows + 16

    def begin(self, queries: int) -> None:
        """Emit distances +∞ and numbers of ones; lanes without a query are like the others."""
        del queries
        state = self._state[self._now]
        self.core.pipe_barrier(Unit.V)
        self.core.vdup(state[0], float("inf"))
        self.core.vdup(_as(state[1:], "uint16"), _WORD - 1)

    def select(self, distances: View, first: int, values: np.ndarray | None = None) -> None:
        """Emit the selection among a tile; see ``shape.Selector``.

        Parameters
        ----------
        distances : (n, 16) View of fp16
            They are overwritten.
        first : int
            Number of the first training point.
        values : ndarray, optional
            Not used: the network does not depend on the data.
        """
        del values
        done, count = 0, distances.shape[0]
        while done < count:
            # The numbers of a piece have one high word.
            piece = min(count - done, _WORD - (first + done) % _WORD)
            self._select(distances[done : done + piece], first + done)
            done += piece

    def _select(self, distances: View, first: int) -> None:
        runs = distances.shape[0] // self.rows
        values, buffer = (self._values, distances), 1

        def other(rows: int) -> _Planes:
            nonlocal buffer
            buffer = 1 - buffer
            return [values[buffer][:rows], self._numbers[buffer][:rows]]

        self.core.pipe_barrier(Unit.V)
        planes = [distances, self._map[: distances.shape[0]]]
        size = 2
        while size <= self.rows:
            planes = self._sort(planes, runs, size, other)
            size *= 2
        while runs > 1:
            planes, runs = self._halve(planes, runs, other)
        self._join(planes, first)

    def _sort(
        self, planes: _Planes, runs: int, size: int, other: Callable[[int], _Planes]
    ) -> _Planes:
        """Emit the steps that sort bitonic sequences of ``size`` places, up and down in turn.

        ``other`` returns the planes that a step writes, of as many rows as it is told.
        """
        distance = size // 2
        while distance:
            target = other(self.rows * runs)
            for begin in range(0, self.rows, 2 * distance):
                small, large = begin * runs, (begin + distance) * runs
                # Every second sequence of ``size`` places is sorted the other way round, so that
                # two of them form a bitonic sequence of the next size.
                if begin & size:
                    small, large = large, small
                self._exchange(target, planes, small, large, distance * runs)
            self.core.pipe_barrier(Unit.V)
            planes = target
            distance //= 2
        return planes

    def _exchange(
        self, target: _Planes, source: _Planes, small: int, large: int, length: int
    ) -> None:
        """Emit the exchange of rows from ``small`` on with those from ``large`` on.

        The first ones get the smaller elements. Equal elements stay where they are.
        """
        core = self.core
        for at, mask in _vectors(length):
            a, b = ([view[start + at :] for view in source] for start in (small, large))
            to_a, to_b = ([view[start + at :] for view in target] for start in (small, large))
            self._compare(b[0], a[0], mask)
            # The numbers follow the comparison; the distances need none, as vmin and vmax order
            # them.
            for x, y, to_x, to_y in zip(a[1:], b[1:], to_a[1:], to_b[1:], strict=True):
                core.vsel(to_x, y, x, repeat=1, mask=mask)
                core.vsel(to_y, x, y, repeat=1, mask=mask)
            core.vmin(to_a[0], a[0], b[0], repeat=1, mask=mask)
            core.vmax(to_b[0], a[0], b[0], repeat=1, mask=mask)

    def _halve(
        self, planes: _Planes, runs: int, other: Callable[[int], _Planes]
    ) -> tuple[_Planes, int]:
        """Emit the merge of pairs of runs; return the runs that are left, sorted."""
        half, rest = divmod(runs, 2)
        left = half + rest
        target = other(self.rows * left)
        for place in range(self.rows):
            # A rising run beside a falling one is bitonic: place p of one run meets place rows − 1
            # − p of the other, and the smaller ones of all pairs are the smaller half.
            a, b = place * runs, (self.rows - place) * runs - half
            self._keep(
                [view[place * left :] for view in target],
                [view[a:] for view in planes],
                [view[b:] for view in planes],
                half,
            )
            if rest:  # the middle run has no partner
                for new, old in zip(target, planes, strict=True):
                    to, row = (
                        _as(view[start : start + 1], "int16")
                        for view, start in ((new, place * left + half), (old, a + half))
                    )
                    self.core.vor(to, row, row)
        self.core.pipe_barrier(Unit.V)
        return self._sort(target, left, self.rows, other), left

    def _keep(self, target: _Planes, a: _Planes, b: _Planes, length: int) -> None:
        """Emit the smaller distances of two sets of rows, and their numbers; equal ones from a."""
        for at, mask in _vectors(length):
            self._compare(b[0][at:], a[0][at:], mask)
            for to, x, y in zip(target[1:], a[1:], b[1:], strict=True):
                self.core.vsel(to[at:], y[at:], x[at:], repeat=1, mask=mask)
            self.core.vmin(target[0][at:], a[0][at:], b[0][at:], repeat=1, mask=mask)

    def _compare(self, a: View, b: View, mask: int) -> None:
        """Emit the comparison a < b into the mask register, for the next selections."""
        self.core.vcmp(a, b, "lt", repeat=1, mask=mask)
        self.core.pipe_barrier(Unit.V)

    def _join(self, planes: _Planes, first: int) -> None:
        """Emit the merge of the neighbours so far with a sorted run."""
        core, rows, k = self.core, self.rows, self.shape.k
        low = _as(planes[1][:rows], "int16")
        core.vadds(_as(self._new[0], "int16"), low, _signed(first % _WORD))
        if self.shape.words == 2:
            core.vdup(_as(self._new[1], "uint16"), first // _WORD)
        old = self._neighbours()
        if k < rows:
            # Rows from k on only fill up a power of two; they must lose against every neighbour.
            core.vdup(old[0][k:], float("inf"))
            for word in old[1:]:
                core.vdup(_as(word[k:], "uint16"), _WORD - 1)
        core.pipe_barrier(Unit.V)
        new = [planes[0], *(self._new[word] for word in range(self.shape.words))]
        target = self._turned(rows)
        for place in range(rows):
            self._keep(
                [view[place:] for view in target],
                [view[place:] for view in old],
                [view[rows - 1 - place :] for view in new],
                1,
            )
        core.pipe_barrier(Unit.V)
        self._sort(target, 1, rows, self._turned)

    def _neighbours(self) -> _Planes:
        return [self._state[self._now][plane] for plane in range(1 + self.shape.words)]

    def _turned(self, rows: int) -> _Planes:
        """Return the other half of the state, which becomes the one that holds the neighbours."""
        self._now = 1 - self._now
        return [view[:rows] for view in self._neighbours()]


def _vectors(length: int) -> Iterator[tuple[int, int]]:
    """Yield the first row and the mask of each vector of up to 128 lanes."""
    for at in range(0, length, _ROWS):
        yield at, (1 << GROUP * min(_ROWS, length - at)) - 1


def _signed(word: int) -> int:
    """Return the int16 that has the bits of a word."""
    return word - _WORD if word >= _WORD // 2 else word


def _as(view: View, dtype: str) -> View:
    """Return a view with the same bits as elements of another dtype of 16 bits."""
    return replace(view, dtype=dtype)
