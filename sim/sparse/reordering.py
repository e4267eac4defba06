"""Orders of rows that shorten the time for which entries wait on chip (Zhang 2024 §4.4.5).

Rows and columns take the same order: see ``pattern.permuted``.
"""

import heapq

import numpy as np

from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.validate import check_int, one_of

__all__ = ["ORDERS", "degree_order", "order_of", "window_order"]

#: The names of the orders: as given, towards an upper triangle, and windowed.
ORDERS = ("none", "triangular", "windowed")


def order_of(pattern: Pattern, name: str) -> np.ndarray | None:
    """Return the order of a name in ``ORDERS``: the old number of each new row, or None.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    one_of("order", name, ORDERS)
    if name == "none":
        return None
    return degree_order(pattern) if name == "triangular" else window_order(pattern)


def degree_order(pattern: Pattern) -> np.ndarray:
    """Return an order that moves nonzeros into the upper triangle.

    Rows with more nonzeros than their column has come first, by the difference. The thesis calls
    its heuristic simple and does not state it: this one is ours. It leaves a matrix with a
    symmetric pattern as it is, since every order has half of its nonzeros above the diagonal.
    """
    difference = np.diff(pattern.row_first) - np.diff(pattern.col_first)
    return np.argsort(-difference, kind="stable")


def window_order(pattern: Pattern, window: int = 5) -> np.ndarray:
    """Return a greedy order that places a vertex near those that share edges and sources with it.

    The score of a vertex is the number of its edges to the last ``window`` vertices, plus the
    number of sources that it shares with them. The vertex with the highest score follows; among
    equals, the one with the lowest number. The first has the most incoming edges. Sources with
    more than the square root of the number of rows are not counted as shared, as in the work that
    proposed the score.

    Parameters
    ----------
    pattern : Pattern
        Single nonzeros; entry (r, c) is an edge from r to c.
    window : int

    References
    ----------
    Wei et al. 2016: §4, the score and the window. The queue here is a heap with stale entries.
    """
    check_int("window", window, 1)
    n = pattern.indices
    if not pattern.entries:
        return np.arange(n)
    col_first, col_rows = pattern.col_first.tolist(), pattern.col_rows.tolist()
    row_first, row_cols = pattern.row_first.tolist(), pattern.row_cols.tolist()
    hub = max(2.0, n**0.5)
    score, placed = [0] * n, [False] * n
    heap = [(0, v) for v in range(n)]

    def count(v: int, step: int) -> None:
        targets = row_cols[row_first[v] : row_first[v + 1]]
        sources = col_rows[col_first[v] : col_first[v + 1]]
        changed = [*targets, *sources]
        for u in sources:
            if row_first[u + 1] - row_first[u] <= hub:
                changed += row_cols[row_first[u] : row_first[u + 1]]
        for u in changed:
            score[u] += step
        for u in set(changed):
            if not placed[u]:
                heapq.heappush(heap, (-score[u], u))

    order = [int(np.diff(pattern.col_first).argmax())]
    while True:
        placed[order[-1]] = True
        if len(order) == n:
            return np.array(order)
        count(order[-1], 1)
        if len(order) > window:
            count(order[-1 - window], -1)
        while True:
            negative, v = heapq.heappop(heap)
            if not placed[v] and -negative == score[v]:
                break
        order.append(v)
