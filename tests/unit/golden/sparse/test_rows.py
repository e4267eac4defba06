"""The accumulation of rows in the order of a stream, against a loop and SciPy."""

import numpy as np
from scipy import sparse

from vitruvian.golden.sparse.rows import is_rows

F32 = np.float32


def test_each_result_gets_its_products_in_the_order_of_the_stream():
    """Sums of float32 round differently in every order, so equal bits mean an equal order."""
    rng = np.random.default_rng(1)
    beats, lanes, size = 150, 4, 8
    a, x = rng.standard_normal((beats, lanes)).astype(F32), rng.standard_normal(beats).astype(F32)
    columns = rng.integers(0, size, (beats, lanes))
    present = rng.random((beats, lanes)) < 0.8
    kinds = rng.choice(["add", "add", "add", "write", "read"], beats)
    y = rng.standard_normal(size).astype(F32)
    reads, end = is_rows(
        y.view(np.uint32), a.view(np.uint32), x.view(np.uint32), columns, present, kinds,
        np.full(beats, "add"), np.full(beats, "mul"), "fp32",
    )  # fmt: skip
    expected = []
    for t in range(beats):
        if kinds[t] == "read":
            start = columns[t, 0] - columns[t, 0] % lanes
            expected.append(y[start : start + lanes].copy())
            continue
        for k in np.flatnonzero(present[t]):
            value = a[t, k] if kinds[t] == "write" else y[columns[t, k]] + a[t, k] * x[t]
            y[columns[t, k]] = value
    assert (reads.view(F32) == expected).all() and len(reads) > 15
    assert (end.view(F32) == y).all()


def test_rows_give_the_product_with_a_sparse_matrix():
    rng = np.random.default_rng(2)
    matrix = sparse.csr_array(sparse.random_array((40, 32), density=0.1, rng=rng))
    matrix.data = rng.integers(-9, 10, len(matrix.data)).astype(F32)
    vector = rng.integers(-9, 10, 40).astype(F32)
    beats = []
    for row, (start, stop) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
        beats += [(row, at, min(at + 4, stop)) for at in range(start, stop, 4)]
    shape = (len(beats), 4)
    a, columns, present = np.zeros(shape, F32), np.zeros(shape, int), np.zeros(shape, bool)
    for t, (_, start, stop) in enumerate(beats):
        n = slice(0, stop - start)
        a[t, n], columns[t, n] = matrix.data[start:stop], matrix.indices[start:stop]
        present[t, n] = True
    x = vector[[row for row, _, _ in beats]]
    _, y = is_rows(
        np.zeros(32, np.uint32), a.view(np.uint32), x.view(np.uint32), columns, present,
        np.full(len(a), "add"), np.full(len(a), "add"), np.full(len(a), "mul"), "fp32",
    )  # fmt: skip
    assert (y.view(F32) == vector @ matrix).all()
