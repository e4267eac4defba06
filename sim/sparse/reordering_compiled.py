"""The compiled loop of the windowed order of ``reordering``.

The queue is a heap of integers. An entry is −score·n + vertex, so that the smallest entry has the
highest score and, among equals, the lowest vertex. A score that rises adds an entry; one that falls
leaves the entry, which is then too good. Such an entry is replaced when it comes out. So every
vertex that is not placed always has an entry that is at least as good as its score.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import heapq

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _count(row_first, row_cols, col_first, col_rows, hub, v, step, score, changed):
    """Add ``step`` to the score of each vertex near v; return how often a score has changed."""
    number = 0
    for e in range(row_first[v], row_first[v + 1]):
        number = _change(row_cols[e], step, score, changed, number)
    for e in range(col_first[v], col_first[v + 1]):
        source = col_rows[e]
        number = _change(source, step, score, changed, number)
        if row_first[source + 1] - row_first[source] <= hub:
            for f in range(row_first[source], row_first[source + 1]):
                number = _change(row_cols[f], step, score, changed, number)
    return number


@numba.njit(cache=True, nogil=True, inline="always")
def _change(u, step, score, changed, number):
    score[u] += step
    changed[number] = u
    return number + 1


@numba.njit(cache=True, nogil=True)
def windowed(
    row_first: np.ndarray,
    row_cols: np.ndarray,
    col_first: np.ndarray,
    col_rows: np.ndarray,
    window: int,
    hub: float,
    first: int,
    done: np.ndarray,
) -> np.ndarray:
    """Return the order of ``reordering.window_order``.

    Parameters
    ----------
    row_first, row_cols, col_first, col_rows : ndarray of int64 or int32
        The edges by source and by target.
    hub : float
        Sources with more edges are not counted as shared.
    first : int
        The first vertex.
    done : (1,) ndarray of int64
        Receives the number of vertices that are placed, for other threads to read.

    Returns
    -------
    (n,) ndarray of int64
    """
    n = len(row_first) - 1
    largest = 0
    for v in range(n):
        near = row_first[v + 1] - row_first[v]
        for e in range(col_first[v], col_first[v + 1]):
            edges = row_first[col_rows[e] + 1] - row_first[col_rows[e]]
            near += 1 + (edges if edges <= hub else 0)
        largest = max(largest, near)
    changed = np.empty(largest, np.int64)
    score, placed = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    seen = np.full(n, -1)
    order = np.empty(n, np.int64)
    heap = [np.int64(v) for v in range(n)]  # in order, so it is a heap
    v = np.int64(first)
    for position in range(n):
        order[position] = v
        done[0] = position + 1
        placed[v] = True
        if position == n - 1:
            break
        if position >= window:
            left = order[position - window]
            _count(row_first, row_cols, col_first, col_rows, hub, left, -1, score, changed)
        number = _count(row_first, row_cols, col_first, col_rows, hub, v, 1, score, changed)
        for k in range(number):
            u = changed[k]
            # A vertex may occur several times; one entry with its last score suffices.
            if not placed[u] and seen[u] != position:
                seen[u] = position
                heapq.heappush(heap, u - score[u] * n)
        while True:
            entry = heapq.heappop(heap)
            v = entry % n
            if placed[v]:
                continue
            if v - score[v] * n == entry:
                break
            heapq.heappush(heap, v - score[v] * n)
    return order
