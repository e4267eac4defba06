"""Matrices from CSR arrays: the same as from their entries, and refused if the arrays are wrong."""

import numpy as np
import pytest
import scipy.sparse

from vitruvian.golden.sparse.storage import Sparse


def arrays(a: Sparse) -> tuple[np.ndarray, ...]:
    return a.row_start, a.column_index, a.row_values, a.column_start, a.row_index, a.column_values


@pytest.mark.parametrize("seed", range(30))
def test_csr_arrays_in_any_order_give_the_matrix_of_their_entries(seed):
    """Rows may be empty and columns unsorted or given twice, with indices of 32 or 64 bits."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(0, 9)), int(rng.integers(1, 9))
    count = int(rng.integers(0, 30)) if shape[0] else 0
    rows = np.sort(rng.integers(0, max(shape[0], 1), count))
    columns, values = rng.integers(0, shape[1], count), rng.standard_normal(count)
    if seed % 2:  # in order, without duplicates
        rows, columns = np.unique(np.stack([rows, columns]), axis=1)
        values = values[: len(rows)]
    start = np.searchsorted(rows, np.arange(shape[0] + 1))
    kind = (np.int32, np.int64)[seed % 3 % 2]
    ours = Sparse.from_rows(start.astype(kind), columns.astype(kind), values, shape)
    expected = Sparse.from_entries(rows, columns, values, shape)
    assert ours.shape == expected.shape
    for mine, other in zip(arrays(ours), arrays(expected), strict=True):
        assert mine.dtype == other.dtype and mine.tobytes() == other.tobytes()
    theirs = scipy.sparse.csr_array((values, columns, start), shape).toarray()
    np.testing.assert_allclose(ours.dense(), theirs, rtol=1e-15, atol=1e-15)
    before = ours.row_values.tobytes()
    values[:] = 0  # the matrix has its own copy
    assert ours.row_values.tobytes() == before


@pytest.mark.parametrize(
    ("start", "columns", "message"),
    [
        ([0, 1], [0, 1], "row_start must rise from 0 to the number of elements, 2, in 2 steps"),
        ([0, 1, 3], [0, 1], "row_start must rise from 0"),
        ([1, 1, 2], [0, 1], "row_start must rise from 0"),
        ([0, 3, 2], [0, 1], "row_start must rise from 0"),
        ([0, 1, 2], [0, 3], "column index must be between 0 and 2, not 3"),
        ([0, 1, 2], [-1, 0], "column index must be between 0 and 2, not -1"),
    ],
)
def test_csr_arrays_that_do_not_fit_are_refused(start, columns, message):
    with pytest.raises(ValueError, match=message):
        Sparse.from_rows(start, columns, np.ones(2), (2, 3))


def test_a_pattern_is_symmetric_whatever_its_values():
    a = Sparse.from_entries([0, 1, 2], [1, 0, 2], [1.0, 2.0, 3.0], (3, 3))
    assert a.has_symmetric_pattern
    assert not Sparse.from_entries([0, 1], [1, 2], 1.0, (3, 3)).has_symmetric_pattern
    assert not Sparse.from_entries([0, 1], [1, 0], 1.0, (2, 3)).has_symmetric_pattern
