"""A pass of the OEI pipeline against NumPy and SciPy."""

from itertools import pairwise

import numpy as np
from scipy import sparse

from vitruvian.golden.sparse.pipeline import run_pass

F32 = np.float32
OPTIONS = {"lanes": 4, "width": 8, "format": "fp32"}


def codes(x):
    return np.asarray(x, F32).view(np.uint32)


def columns_of(matrix):
    matrix = sparse.csc_array(matrix)
    bits = codes(matrix.data).tolist()
    starts = np.asarray(matrix.indptr).tolist()
    pairs = list(zip(matrix.indices.tolist(), bits, strict=True))
    return [pairs[a:b] for a, b in pairwise(starts)]


def test_whole_numbers_give_the_products_of_scipy():
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((24, 24), density=0.2, rng=rng, format="csc")
    matrix.data = rng.integers(-9, 10, len(matrix.data)).astype(F32)
    x, t = rng.integers(-9, 10, (2, 24)).astype(F32)
    pair = ("add", "mul")
    z, y = run_pass(
        columns_of(matrix), codes(x), lambda product: codes(F32(3) * product.view(F32) + t),
        first=pair, second=pair, **OPTIONS,
    )  # fmt: skip
    expected = 3 * (x @ matrix) + t
    assert (z.view(F32) == expected).all()
    assert (y.view(F32) == expected @ matrix).all()


def test_shortest_paths_of_two_and_then_one_more_edge():
    rng = np.random.default_rng(2)
    matrix = sparse.random_array((16, 16), density=0.2, rng=rng, format="csc")
    matrix.data = rng.integers(1, 9, len(matrix.data)).astype(F32)
    dense = np.full((16, 16), np.inf, F32)
    entries = matrix.tocoo()
    dense[entries.row, entries.col] = entries.data
    x = np.full(16, np.inf, F32)
    x[3] = 0
    pair = ("min", "add")
    z, y = run_pass(
        columns_of(matrix), codes(x), lambda product: product,
        first=pair, second=pair, **OPTIONS,
    )  # fmt: skip
    one = (x[:, None] + dense).min(0)
    assert (z.view(F32) == one).all()
    assert (y.view(F32) == (one[:, None] + dense).min(0)).all()


def test_the_second_product_adds_the_rows_in_ascending_order():
    rng = np.random.default_rng(3)
    dense = rng.standard_normal((16, 16)).astype(F32)
    x, t = rng.standard_normal((2, 16)).astype(F32)
    pair = ("add", "mul")
    z, y = run_pass(
        columns_of(dense),
        codes(x),
        lambda product: codes(product.view(F32) + t),
        first=pair,
        second=pair,
        **OPTIONS,
    )
    total = np.zeros(16, F32)
    for row, element in zip(dense, z.view(F32), strict=True):
        total = total + row * element
    assert (y.view(F32) == total).all()
