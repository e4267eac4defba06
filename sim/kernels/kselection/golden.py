"""Bitonic and heap k-selection in NumPy: values and the order of the results to the bit.

Each function updates the k smallest distances of m queries with those of n further training points.
It never exchanges two distances that compare as equal, so a distance that is there first stays
first when the two meet. Which of more than k equal neighbours remain depends on where they meet, so
it is neither always the first nor always the last one.

References
----------
Batcher 1968 for bitonic sorting; Shanbhag et al. 2018 for the selection from sorted runs; Williams
1964 for the heap.
"""

import numpy as np

from vitruvian.common.validate import ceil_div

#: The number of a neighbour that has not been found yet.
NONE = -1


def rows_of(k: int) -> int:
    """Return the smallest power of two that is k or more: the length of the sorted runs."""
    return 1 << (k - 1).bit_length()


def check_distances(values: np.ndarray) -> None:
    """Refuse distances that have no order or that equal the value of a missing neighbour.

    Parameters
    ----------
    values : ndarray
        Distances.

    Raises
    ------
    ValueError
        If the array has another type or shape, or an element is NaN or infinite.
    """
    if values.ndim != 2 or values.dtype != np.float16:
        shown = f"{'×'.join(map(str, values.shape))} of {values.dtype}"
        raise ValueError(f"distances must be queries × train of float16, not {shown}")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        q, j = bad[0].tolist()
        raise ValueError(f"distances must be finite, not {values[q, j]!s} at query {q}, point {j}")


def start(k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the state before the first training point: distances +∞ of no neighbour."""
    return np.full((k, m), np.inf, np.float16), np.full((k, m), NONE, np.int64)


def bitonic_select(
    best: np.ndarray, index: np.ndarray, values: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Update the k smallest distances by a bitonic network; the results are in ascending order.

    The points are cut into R = ⌈n / rows⌉ runs, where rows is ``rows_of(k)``. Point j is in place
    p = ⌊j / R⌋ of run j mod R. All runs are sorted. Then pairs of runs are merged: the smaller one
    of element p of a run and element rows − 1 − p of the other one, for all p, are the smallest
    ``rows`` elements of both, and sorting them takes log₂ rows steps.

    Parameters
    ----------
    best : (k, m) ndarray of float16
    index : (k, m) ndarray of int64
        The numbers of the training points.
    values : (m, n) ndarray of float16
        Distances of n further training points; +∞ for those that do not exist.
    first : int
        Number of the first one.

    Returns
    -------
    best, index : ndarray
        As the arguments, in ascending order of the distances. Zeros of both signs are equal in
        comparisons, but −0 comes first; their numbers stay where they are.
    """
    k, m = best.shape
    rows, n = rows_of(k), values.shape[1]
    runs = ceil_div(n, rows)
    x = np.full((runs * rows, m), np.inf, np.float16)
    x[:n] = values.T
    number = np.broadcast_to(np.arange(runs * rows)[:, None] + first, x.shape)
    pair = x.reshape(rows, runs, m), number.reshape(rows, runs, m).copy()
    size = 2
    while size <= rows:
        pair = _sort_steps(*pair, size)
        size *= 2
    while pair[0].shape[1] > 1:
        pair = _merge_halves(*pair)
    # The neighbours so far are one more run.
    old, old_index = start(rows, m)
    old[:k], old_index[:k] = best, index
    x, number = (np.stack([a, b[:, 0]], 1) for a, b in zip((old, old_index), pair, strict=True))
    x, number = _merge_halves(x, number)
    return x[:k, 0], number[:k, 0]


def _sort_steps(x: np.ndarray, number: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort bitonic sequences of ``size`` places, up and down in turn."""
    x, number = x.copy(), number.copy()
    places = np.arange(len(x))
    distance = size // 2
    while distance:
        low = places[(places & distance) == 0]
        up = (low & size) == 0
        # Of each pair of places, one gets the smaller element and one the larger one.
        small = np.where(up, low, low + distance)
        large = np.where(up, low + distance, low)
        a, b, ia, ib = x[small], x[large], number[small], number[large]
        x[small], x[large] = _smaller(a, b), _larger(a, b)
        number[small], number[large] = np.where(b < a, ib, ia), np.where(b < a, ia, ib)
        distance //= 2
    return x, number


def _merge_halves(x: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep the smaller half of each pair of runs; of an odd number, the middle run stays."""
    half, runs = x.shape[1] // 2, x.shape[1]
    a, b = x[:, :half], x[::-1, runs - half :]
    ia, ib = number[:, :half], number[::-1, runs - half :]
    middle = slice(half, runs - half)
    kept = np.concatenate([_smaller(a, b), x[:, middle]], 1)
    numbers = np.concatenate([np.where(b < a, ib, ia), number[:, middle]], 1)
    return _sort_steps(kept, numbers, len(x)) if len(x) > 1 else (kept, numbers)


def _smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((b < a) | ((a == b) & np.signbit(b)), b, a)


def _larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where((b > a) | ((a == b) & ~np.signbit(b)), b, a)


def heap_select(
    best: np.ndarray, index: np.ndarray, values: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Update heaps whose root is the largest distance; the results are in the order of the heap.

    A training point that is closer than the root replaces it and sinks: while a child is larger,
    the larger child moves up. The left one moves if both are equal.

    Parameters
    ----------
    best, index, values, first
        As ``bitonic_select`` takes them; ``best`` is a heap for each query.
    """
    best, index = best.copy(), index.copy()
    k = len(best)
    for j, column in enumerate(values.T):
        # All queries whose root is replaced go down their heaps together, each on its own path.
        queries = np.flatnonzero(column < best[0])
        hole = np.zeros(len(queries), int)
        while len(queries):
            child = 2 * hole + 1
            inside = np.minimum(child, k - 1)
            right = np.minimum(child + 1, k - 1)
            child = np.where(best[right, queries] > best[inside, queries], child + 1, child)
            inside = np.minimum(child, k - 1)
            sinks = (child < k) & (best[inside, queries] > column[queries])
            rests = ~sinks
            best[hole[rests], queries[rests]] = column[queries[rests]]
            index[hole[rests], queries[rests]] = first + j
            queries, hole, child = queries[sinks], hole[sinks], child[sinks]
            best[hole, queries], index[hole, queries] = best[child, queries], index[child, queries]
            hole = child
    return best, index
