"""The buffer's lists against a closed form, and its space against a count of each element."""

import numpy as np
import pytest

from vitruvian.golden.sparse.buffer import csc_beats, csr_beats, schedule


def random_columns(seed, size, elements):
    rng = np.random.default_rng(seed)
    columns = [[] for _ in range(size)]
    for n in range(elements):
        columns[rng.integers(size)].append((int(rng.integers(size)), n))
    return columns


def test_each_stage_is_a_step_behind_the_one_before():
    assert schedule(1) == [(0, None, None), (None, 0, None), (None, None, 0)]
    assert schedule(3) == [
        (0, None, None), (1, 0, None), (2, 1, 0), (None, 2, 1), (None, None, 2),
    ]  # fmt: skip


def test_a_subtensor_begins_a_new_beat_and_an_empty_column_has_a_lane():
    columns = [[(2, 5)], [], [(0, 6), (1, 7), (3, 8)], [(1, 9)]]
    beats = csc_beats(columns, 4, 2)
    assert beats.values.tolist() == [[5, 0, 0, 0], [6, 7, 8, 9]]
    assert beats.rows.tolist() == [[2, 0, 0, 0], [0, 1, 3, 1]]
    assert beats.present.tolist() == [[True, False, False, False], [True] * 4]
    assert beats.last.tolist() == [[True, True, False, False], [False, False, True, True]]


@pytest.mark.parametrize("width", [1, 2, 8])
def test_each_element_leaves_once_in_its_step(width):
    """An element (r, c) leaves when sub(r) is ready, a step after sub(c) has arrived at least."""
    columns = random_columns(3, 16, 100)
    beats = csr_beats(columns, 2, width, 1000).beats
    got = [
        (int(beats.steps[t]), int(beats.rows[t]), int(beats.columns[t, k]), int(beats.values[t, k]))
        for t, k in zip(*np.nonzero(beats.present), strict=True)
    ]
    expected = [
        (max(r // width + 2, c // width + 1), r, c, value)
        for c, column in enumerate(columns)
        for r, value in column
    ]
    assert got == sorted(expected)
    # The lanes without an element are the last ones of a beat.
    assert (np.diff(beats.present.astype(int), axis=1) <= 0).all() and not beats.present.all()


def test_results_get_their_terms_in_ascending_order_of_rows():
    columns = random_columns(4, 16, 150)
    beats = csr_beats(columns, 4, 4, 1000).beats
    for c in range(16):
        rows = np.repeat(beats.rows, 4)[(beats.present & (beats.columns == c)).ravel()]
        assert (np.diff(rows) >= 0).all()


def test_space_is_reserved_for_whole_rows_and_freed_in_the_order_of_reservations():
    # Row 0 reserves 2 elements in step 0, and its last one comes in step 3. Each of rows 1 to 3
    # has one element, which leaves two steps later, but row 0 keeps the space behind it.
    columns = [[(0, 1)], [(1, 1)], [(2, 1)], [(0, 1), (3, 1)]]
    assert csr_beats(columns, 1, 1, 5).refused_at is None
    assert csr_beats(columns, 1, 1, 4).refused_at == 3
    # On the diagonal, two rows wait at most.
    diagonal = [[(k, 1)] for k in range(8)]
    assert csr_beats(diagonal, 1, 1, 2).refused_at is None
    assert csr_beats(diagonal, 1, 1, 1).refused_at == 1
    # A row that is longer than the space never fits.
    row = [[(0, 1)] for _ in range(8)]
    assert csr_beats(row, 1, 1, 7).refused_at == 0 and csr_beats(row, 1, 1, 8).refused_at is None
