"""The algorithms of SelB-k-NN in NumPy: distances, comparison by ReLU, indexing, k-selection.

Distances are FP16, as the vector unit gets them from the Cube. Arrays of the k-selection have a
row for each neighbour and a column for each query, as the kernel has them in its lanes.

References
----------
Tang 2024, Alg. 4 to 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.kernels.kselection.shape import GROUP
from vitruvian.sim.kernels.matmul import expected

#: The code of −∞ in FP16, which stands for "not here" among indices in Alg. 6.
ABSENT = 0xFC00

#: The largest index that Alg. 6 finds. Above it, codes are NaNs, which lose against −∞.
LARGEST_INDEX = 0x7C00

_SIGN, _ONE = np.uint16(0x8000), np.uint16(1)
_INFINITY = np.float16(np.inf)


def less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the mask of Alg. 5: 0xffff where a − b has a sign bit, else 0.

    This is a < b, except that −0 is less than +0.

    Parameters
    ----------
    a, b : ndarray of float16

    Returns
    -------
    ndarray of uint16
    """
    return _mask(vector.sub(a, b).view(np.uint16))


def unequal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the mask of Alg. 5 with eq. 3.5: 0xffff where a − b or b − a has a sign bit, else 0.

    The thesis calls this mask vecCmpEq, but it is set where the operands differ. The zeros of
    different signs differ, and a NaN does not differ from anything.

    Parameters
    ----------
    a, b : ndarray of float16

    Returns
    -------
    ndarray of uint16
    """
    return _mask(vector.sub(a, b).view(np.uint16) | vector.sub(b, a).view(np.uint16))


def _mask(differences: np.ndarray) -> np.ndarray:
    """Return lines 3 to 6 of Alg. 5 for the codes of differences."""
    signs = ((differences & _SIGN) | _ONE).view(np.float16)
    return (vector.relu(signs).view(np.int16) - np.int16(1)).view(np.uint16)


def select(mask: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the bits of x where a mask of Alg. 5 is set, and those of y elsewhere.

    Parameters
    ----------
    mask : ndarray of uint16
    x, y : ndarray
        Elements of 16 bits of one type.
    """
    chosen = (x.view(np.uint16) & mask) | (y.view(np.uint16) & ~mask)
    return chosen.view(x.dtype)


def index_of(values: np.ndarray, target: np.float16, *, compare: bool = True) -> int:
    """Return the largest index of an element by Alg. 6.

    Parameters
    ----------
    values : (n,) ndarray of float16
        At most ``LARGEST_INDEX`` + 1 of them.
    target : float16
        An element of ``values``.
    compare : bool
        True compares as IEEE 754 does, False by Alg. 5.

    Raises
    ------
    ValueError
        If there are too many values.
    """
    if len(values) > LARGEST_INDEX + 1:
        raise ValueError(f"values must be at most {LARGEST_INDEX + 1}, not {len(values)}")
    numbers = np.arange(len(values), dtype=np.uint16)
    if compare:
        # The index where the element is, and −∞ elsewhere, so that the maximum is the last index.
        found = np.where(vector.compare(values, target, "eq"), numbers, np.uint16(ABSENT))
    else:
        repeated = np.full_like(values, target)
        found = select(unequal(repeated, values), np.full_like(numbers, ABSENT), numbers)
    # The codes are compared as FP16 numbers: −∞ is below the codes of all indices.
    largest, _ = vector.largest(found.view(np.float16))
    return int(np.asarray(largest).view(np.uint16))


@dataclass(frozen=True)
class SelectionVariant:
    """A variant of Alg. 4.

    Attributes
    ----------
    index : bool
        True if the vector unit returns the index of a minimum; else Alg. 6 finds it.
    compare : bool
        True if the vector unit compares and selects; else Alg. 5 does.
    leave : bool
        True if the algorithm returns as soon as it skips all queries (lines 10 to 12). Otherwise
        it runs k steps, in which it still skips queries (line 4).
    """

    index: bool = True
    compare: bool = True
    leave: bool = True

    def less(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return booleans: a < b, as this variant finds it."""
        return vector.compare(a, b, "lt") if self.compare else less(a, b) != 0

    def minimum(self, values: np.ndarray) -> tuple[np.float16, int]:
        """Return the smallest element and its index, as this variant finds them.

        Parameters
        ----------
        values : (n,) ndarray of float16
        """
        minimum, first = vector.smallest(values)
        target = np.float16(minimum)
        if self.index:
            return target, int(first)
        return target, index_of(values, target, compare=self.compare)


#: The variants by name.
VARIANTS: Mapping[str, SelectionVariant] = {
    "selb": SelectionVariant(),
    "selb-soft-index": SelectionVariant(index=False),
    "selb-soft-compare": SelectionVariant(compare=False),
    "selb-soft": SelectionVariant(index=False, compare=False),
    "selb-stay": SelectionVariant(leave=False),
}


@dataclass
class Best:
    """The k smallest distances of some queries up to now, the largest of each query in row 0.

    Attributes
    ----------
    distances : (k, m) ndarray of float16
    index : (k, m) ndarray of int64
        The numbers of the training points; −1 for those that do not exist yet.
    """

    distances: np.ndarray
    index: np.ndarray

    @classmethod
    def empty(cls, k: int, m: int) -> "Best":
        """Return k distances of +∞ for each of m queries."""
        return cls(np.full((k, m), _INFINITY), np.full((k, m), -1, np.int64))


@dataclass(frozen=True)
class SelectionStep:
    """A step of Alg. 4.

    Attributes
    ----------
    found : dict of int to (float16, int)
        The smallest remaining distance of each query that is not skipped, with its column.
    left : bool
        True if the algorithm returned in this step, because it skips every query.
    """

    found: dict[int, tuple[np.float16, int]] = field(default_factory=dict)
    left: bool = False


def levels(k: int) -> list[tuple[int, int]]:
    """Return the levels of the bitonic selection of one of k rows.

    Returns
    -------
    list of (half, pairs)
        A level exchanges row i with row i + half, for i below ``pairs``.
    """
    found = []
    while k > 1:
        half = (k + 1) // 2
        found.append((half, k - half))
        k = half
    return found


def k_selection(
    tile: np.ndarray,
    best: Best,
    *,
    first: int = 0,
    queries: int | None = None,
    variant: SelectionVariant | None = None,
) -> list[SelectionStep]:
    """Carry out Alg. 4 on a tile of distances.

    Parameters
    ----------
    tile : (m, n) ndarray of float16
        The distances; they remain as they are.
    best : Best
        The results of the previous tiles, which this function updates.
    first : int
        Number of the training point of column 0.
    queries : int, optional
        The number of queries that exist, by default all rows.
    variant : SelectionVariant, optional
        By default that with all instructions and the early exit.

    Returns
    -------
    list of SelectionStep
    """
    variant = SelectionVariant() if variant is None else variant
    (m, _), k = tile.shape, len(best.distances)
    rest, steps = tile.copy(), []
    skipped = np.arange(m) >= (m if queries is None else queries)
    minimum, column = np.full(m, _INFINITY), np.zeros(m, np.int64)
    for _ in range(k):
        found = {}
        for q in np.flatnonzero(~skipped).tolist():
            found[q] = minimum[q], column[q] = variant.minimum(rest[q])
            # The element is taken out, so that the next step finds the next smallest one.
            rest[q, column[q]] = _INFINITY
        # Row 0 has the largest of the k: what is not below it cannot be among the results (line 4).
        smaller = variant.less(minimum, best.distances[0])
        # Minima rise from step to step, so that a query that is skipped once stays so.
        skipped |= ~smaller
        left = variant.leave and bool(skipped.all())
        steps.append(SelectionStep(found, left))
        if left:
            break
        best.distances[0] = np.where(smaller, minimum, best.distances[0])
        best.index[0] = np.where(smaller, first + column, best.index[0])
        # The largest of the k must be in row 0 again for the next comparison.
        _raise_largest(best, variant)
    return steps


def _raise_largest(best: Best, variant: SelectionVariant) -> None:
    """Exchange rows until row 0 has the largest distance of each query."""
    for half, pairs in levels(len(best.distances)):
        lower, upper = slice(0, pairs), slice(half, half + pairs)
        swap = variant.less(best.distances[lower], best.distances[upper])
        for rows in (best.distances, best.index):
            low, high = rows[lower].copy(), rows[upper].copy()
            rows[lower] = np.where(swap, high, low)
            rows[upper] = np.where(swap, low, high)


def distances(query: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return the FP16 products of operands (``operands.prepared``) as the Cube computes them.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16

    Returns
    -------
    (m, n) ndarray of float16
    """
    return expected(query, np.ascontiguousarray(train.T))


def knn(
    query: np.ndarray,
    train: np.ndarray,
    k: int,
    *,
    tile: int | None = None,
    variant: SelectionVariant | None = None,
) -> Best:
    """Search the k smallest products of each query, in groups of queries and in mini-batches.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16
    tile : int, optional
        Training points of a mini-batch, by default all.
    variant : SelectionVariant, optional
    """
    tile = len(train) if tile is None else tile
    groups = []
    for start in range(0, len(query), GROUP):
        group = query[start : start + GROUP]
        best = Best.empty(k, len(group))
        for first in range(0, len(train), tile):
            part = distances(group, train[first : first + tile])
            k_selection(part, best, first=first, variant=variant)
        groups.append(best)
    return Best(
        np.concatenate([best.distances for best in groups], axis=1),
        np.concatenate([best.index for best in groups], axis=1),
    )


def in_order(best: Best) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of each query in ascending order of the distance, then of the number.

    Returns
    -------
    index : (m, k) ndarray of int64
    distances : (m, k) ndarray of float16
    """
    order = np.lexsort((best.index.T, best.distances.T))
    index = np.take_along_axis(best.index.T, order, axis=1)
    return index, np.take_along_axis(best.distances.T, order, axis=1)


def smallest(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k smallest elements of each row by sorting; the first of equal ones wins.

    Parameters
    ----------
    values : (m, n) ndarray of float16

    Returns
    -------
    index : (m, k) ndarray of int64
    distances : (m, k) ndarray of float16
    """
    index = np.argsort(values, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(values, index, axis=1)
