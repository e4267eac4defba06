"""Orders are permutations, do what they promise, and equal a direct calculation."""

import io
import threading

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

from vitruvian.common import progress
from vitruvian.sim.sparse import reordering
from vitruvian.sim.sparse.pattern import Pattern, pattern_of, permuted
from vitruvian.sim.sparse.reordering import degree_order, order_of, window_order


def random_pattern(seed: int, n: int = 30) -> tuple[np.ndarray, Pattern]:
    dense = np.random.default_rng(seed).random((n, n)) < 0.1
    return dense, pattern_of(sparse.csr_array(dense))


def dense_of(pattern: Pattern) -> np.ndarray:
    n = pattern.indices
    ones = np.ones(pattern.entries, np.int8)
    return sparse.csr_array((ones, pattern.row_cols, pattern.row_first), shape=(n, n)).toarray()


def test_rows_and_columns_move_together():
    dense, pattern = random_pattern(1)
    order = np.random.default_rng(2).permutation(30)
    np.testing.assert_array_equal(dense_of(permuted(pattern, order)), dense[np.ix_(order, order)])
    with pytest.raises(ValueError, match="order must be a permutation of the 30 rows"):
        permuted(pattern, np.zeros(30, int))


def test_a_hidden_triangle_is_found_by_the_degrees():
    n = 20
    triangle = np.triu(np.ones((n, n)), 1)
    shuffled = np.random.default_rng(5).permutation(n)
    pattern = pattern_of(sparse.csr_array(triangle[np.ix_(shuffled, shuffled)]))
    np.testing.assert_array_equal(dense_of(permuted(pattern, degree_order(pattern))), triangle)


def test_a_symmetric_pattern_is_left_as_it_is():
    dense, _ = random_pattern(3)
    pattern = pattern_of(sparse.csr_array(dense | dense.T))
    np.testing.assert_array_equal(degree_order(pattern), np.arange(30))


def direct(dense: np.ndarray, window: int) -> list[int]:
    """Choose each vertex by scores that are computed afresh from the dense matrix."""
    n, hub = len(dense), max(2.0, len(dense) ** 0.5)
    edges = dense.astype(int)
    small = edges * (edges.sum(axis=1) <= hub)[:, None]
    near = edges + edges.T + small.T @ small
    order = [int(edges.sum(axis=0).argmax())]
    while len(order) < n:
        left = [v for v in range(n) if v not in order]
        order.append(max(left, key=lambda v: (near[v, order[-window:]].sum(), -v)))
    return order


@pytest.mark.parametrize("seed", range(6))
def test_the_window_order_is_the_direct_one(seed):
    dense, pattern = random_pattern(seed)
    for window in (1, 3, 5):
        assert window_order(pattern, window).tolist() == direct(dense, window)


def test_names():
    _, pattern = random_pattern(1)
    assert order_of(pattern, "none") is None
    for name in ("triangular", "windowed"):
        order = order_of(pattern, name)
        assert order is not None and sorted(order.tolist()) == list(range(30))
    with pytest.raises(
        ValueError, match="order must be one of none, triangular, windowed, not 'x'"
    ):
        order_of(pattern, "x")
    with pytest.raises(ValueError, match="window must be at least 1, not 0"):
        window_order(pattern, 0)
    empty = pattern_of(sparse.csr_array((3, 3)))
    assert window_order(empty).tolist() == [0, 1, 2]


def test_the_windowed_order_shows_its_progress(monkeypatch):
    """Regression: it was silent for the 13 s that a large matrix takes."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "SafeConsole", lambda stderr: console)
    shown = threading.Event()

    def slow(*arguments):
        arguments[-1][0] = 17
        while "17/30" not in screen.getvalue() and not shown.wait(0.05):
            pass
        return np.arange(30)

    monkeypatch.setattr(reordering, "windowed", slow)
    timer = threading.Timer(10, shown.set)  # so that a failure ends
    timer.start()
    _, pattern = random_pattern(4)
    np.testing.assert_array_equal(order_of(pattern, "windowed"), np.arange(30))
    timer.cancel()
    assert "order the vertices" in screen.getvalue() and "17/30" in screen.getvalue()

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(reordering, "windowed", fail)
    with pytest.raises(MemoryError):
        order_of(pattern, "windowed")
