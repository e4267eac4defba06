"""Bitonic and heap k-selection in NumPy against sorting and a heap of Python."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian.sim.kernels.kselection.golden import (
    NONE,
    bitonic_select,
    check_distances,
    heap_select,
    rows_of,
    start,
)

SELECTIONS = (bitonic_select, heap_select)


def selected(select, values, k, tiles=1):
    best, index = start(k, len(values))
    first = 0
    for part in np.array_split(values, tiles, axis=1):
        best, index = select(best, index, part, first)
        first += part.shape[1]
    return best, index


@pytest.mark.parametrize("select", SELECTIONS)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 20), st.integers(0, 60), st.integers(1, 3), st.integers(2, 2000), st.integers(0)
)
def test_the_k_smallest_distances_with_their_numbers(select, k, more, tiles, levels, seed):
    """Few levels give many equal distances."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, (3, k + more)).astype(np.float16)
    best, index = selected(select, values, k, min(tiles, k + more))
    assert np.array_equal(np.sort(best.T, 1), np.sort(values, 1)[:, :k])
    assert np.array_equal(np.take_along_axis(values, index.T, 1), best.T)
    assert all(len(set(row.tolist())) == k for row in index.T)


def test_the_bitonic_results_ascend_and_missing_neighbours_come_last():
    values = np.array([[3, 1, 2]], np.float16)
    best, index = selected(bitonic_select, values, 5)
    assert best[:3, 0].tolist() == [1, 2, 3] and np.isinf(best[3:]).all()
    assert index[:3, 0].tolist() == [1, 2, 0]


def test_a_heap_has_its_largest_distance_at_the_root_and_missing_neighbours_no_number():
    values = np.array([[3, 1, 2, 0, 5, 4]], np.float16)
    best, _ = selected(heap_select, values, 4)
    assert all(best[i] <= best[(i - 1) // 2] for i in range(1, 4)) and best[0] == 3
    few, numbers = selected(heap_select, values[:, :2], 4)
    assert np.isinf(few).sum() == (numbers == NONE).sum() == 2


def test_which_of_equal_neighbours_wins():
    """The first ones stay in the heap; the network keeps them where they meet the later ones."""
    values = np.zeros((1, 8), np.float16)
    _, index = selected(heap_select, values, 2)
    assert sorted(index[:, 0].tolist()) == [0, 1]
    _, index = selected(bitonic_select, values, 2, tiles=4)
    assert sorted(index[:, 0].tolist()) == [0, 1]
    # Runs of a tile are strided, so a later point may win against an earlier one.
    _, index = selected(bitonic_select, values, 2)
    assert sorted(index[:, 0].tolist()) == [0, 4]


def test_zeros_of_both_signs_are_equal_but_minus_zero_comes_first():
    values = np.array([[0.0, -0.0]], np.float16)
    best, index = selected(bitonic_select, values, 2)
    assert np.signbit(best[:, 0]).tolist() == [True, False]
    assert sorted(index[:, 0].tolist()) == [0, 1]


def test_the_heap_sinks_like_a_heap_of_python():
    """The set of equal length, and the root after every point."""
    rng = np.random.default_rng(3)
    values = rng.random((1, 200)).astype(np.float16)
    best, index = start(7, 1)
    known: list[float] = [-float("inf")] * 7
    for j in range(200):
        best, index = heap_select(best, index, values[:, j : j + 1], j)
        heapq.heappushpop(known, -float(values[0, j]))
        assert best[0, 0] == -known[0]
        assert sorted(best[:, 0].tolist()) == sorted(-x for x in known)


@pytest.mark.parametrize(("k", "rows"), [(1, 1), (2, 2), (3, 4), (16, 16), (17, 32)])
def test_runs_are_powers_of_two(k, rows):
    assert rows_of(k) == rows


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2), np.float32), "queries × train of float16, not 2×2 of float32"),
        (np.zeros(2, np.float16), "queries × train of float16, not 2 of float16"),
        (
            np.array([[0, 1], [2, np.nan]], np.float16),
            "must be finite, not nan at query 1, point 1",
        ),
        (np.array([[np.inf]], np.float16), "must be finite, not inf at query 0, point 0"),
    ],
)
def test_distances_that_have_no_order(values, message):
    with pytest.raises(ValueError, match=message):
        check_distances(values)
