"""SelB-k-NN on whole arrays: the bits of ``golden.knn`` for large data, without instructions."""

from collections.abc import Callable

import numpy as np

from vitruvian.sim.kernels.kselection.shape import GROUP
from vitruvian.sim.kernels.selbknn.golden import Best, distances, levels


def knn(
    query: np.ndarray,
    train: np.ndarray,
    k: int,
    *,
    tile: int,
    progress: Callable[[int, int], object] | None = None,
) -> Best:
    """Search the k smallest products of each query, all groups of queries at once.

    The results are those of ``golden.knn`` with the variant "selb", in the same order: a group of
    queries returns by itself, and its other queries take part in every exchange until then.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16
    tile : int
        Training points of a mini-batch.
    progress : callable, optional
        Called with the number of finished training points, and of all.
    """
    best = Best.empty(k, len(query))
    for first in range(0, len(train), tile):
        values = distances(query, train[first : first + tile])
        _select(values, best, first)
        if progress is not None:
            progress(min(first + tile, len(train)), len(train))
    return best


def _select(values: np.ndarray, best: Best, first: int) -> None:
    """Carry out Alg. 4 on a tile for all groups of queries."""
    minimum, columns = _candidates(values, best.distances[0], len(best.distances))
    m = len(values)
    skipped = np.zeros(m, bool)
    for distance, column in zip(minimum.T, columns.T, strict=True):
        skipped |= ~(distance < best.distances[0])
        groups = np.logical_and.reduceat(skipped, np.arange(0, m, GROUP))
        live = np.flatnonzero(~np.repeat(groups, GROUP)[:m])
        if not len(live):
            return
        update = live[~skipped[live]]
        best.distances[0, update] = distance[update]
        best.index[0, update] = first + column[update]
        _raise_largest(best, live)


def _candidates(values: np.ndarray, tops: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k smallest values of each row that are below the top of the row, else +∞.

    Returns
    -------
    values : (m, k) ndarray of float16
        In ascending order, −0 before +0, and equal ones in the order of their columns.
    columns : (m, k) ndarray of int64
    """
    m = len(values)
    rows, columns = np.nonzero(values < tops[:, None])
    found = values[rows, columns]
    codes = found.view(np.int16)
    # These integers have the order of the numbers, with −0 before +0.
    ranks = np.where(codes < 0, codes ^ np.int16(0x7FFF), codes)
    order = np.lexsort((ranks, rows))
    rows, columns, found = rows[order], columns[order], found[order]
    starts = np.searchsorted(rows, np.arange(m))
    place = np.arange(len(rows)) - starts[rows]
    kept = place < k
    minimum, where = np.full((m, k), np.float16(np.inf)), np.zeros((m, k), np.int64)
    minimum[rows[kept], place[kept]] = found[kept]
    where[rows[kept], place[kept]] = columns[kept]
    return minimum, where


def _raise_largest(best: Best, live: np.ndarray) -> None:
    """Exchange rows of some queries until row 0 has the largest distance of each."""
    values, index = best.distances[:, live], best.index[:, live]
    for half, pairs in levels(len(values)):
        swap = values[:pairs] < values[half : half + pairs]
        for rows in (values, index):
            low, high = rows[:pairs].copy(), rows[half : half + pairs].copy()
            rows[:pairs] = np.where(swap, high, low)
            rows[half : half + pairs] = np.where(swap, low, high)
    best.distances[:, live], best.index[:, live] = values, index
