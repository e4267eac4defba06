"""Orders of rows that shorten the time for which entries wait on chip (Zhang 2024 §4.4.5).

Rows and columns take the same order: see ``pattern.permuted``.
"""

import threading
from collections.abc import Callable

import numpy as np

from vitruvian.common.progress import Progress
from vitruvian.common.validate import check_int, one_of
from vitruvian.sim.sparse.pattern import Pattern, check_square
from vitruvian.sim.sparse.reordering_compiled import windowed

#: The names of the orders: as given, towards an upper triangle, and windowed.
ORDERS = ("none", "triangular", "windowed")


def order_of(pattern: Pattern, name: str) -> np.ndarray | None:
    """Return the order of a name in ``ORDERS``: the old number of each new row, or None.

    Raises
    ------
    ValueError
        If the name is unknown, or the matrix is not square.
    """
    one_of("order", name, ORDERS)
    if name == "none":
        return None
    check_square(pattern)
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

    References
    ----------
    Wei et al. 2016: §4, the score and the window. Their queue is another one.
    """
    check_int("window", window, 1)
    if not pattern.entries:
        return np.arange(pattern.indices)
    first = int(np.diff(pattern.col_first).argmax())
    edges = pattern.row_first, pattern.row_cols, pattern.col_first, pattern.col_rows
    hub = max(2.0, pattern.indices**0.5)
    done = np.zeros(1, np.int64)
    return _watched(lambda: windowed(*edges, window, hub, first, done), done, pattern.indices)


def _watched(work: Callable[[], np.ndarray], done: np.ndarray, total: int) -> np.ndarray:
    """Return the result of some work, which counts its steps in ``done``; show its progress.

    The work runs in a thread of its own, which ends with the process, so that Ctrl-C ends both.
    """
    results: list[np.ndarray] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with Progress("order the vertices", total, after_s=1.0) as progress:
        while thread.is_alive():
            thread.join(0.2)
            progress.update(done=int(done[0]))
    if failures:
        raise failures[0]
    return results[0]
