"""Structured sparsity: the rows of the manual's table, and products by selection from A."""

import numpy as np
import pytest

from vitruvian.golden.cube.structured import compress, expand, pack_places, unpack_places

RNG = np.random.default_rng(4)

#: Four numbers, and the two places that the manual states for them (asc_mmad_sparse, table).
TABLE = [
    ((0, 0, 1, 2), (2, 2)),
    ((0, 1, 0, 2), (1, 2)),
    ((1, 0, 0, 2), (0, 2)),
    ((0, 1, 2, 9), (1, 1)),
    ((1, 0, 2, 9), (0, 1)),
    ((1, 2, 9, 9), (0, 0)),
    ((0, 0, 0, 1), (0, 2)),
    ((0, 0, 1, 0), (2, 0)),
    ((0, 1, 0, 0), (1, 0)),
    ((1, 0, 0, 0), (0, 0)),
    ((0, 0, 0, 0), (0, 0)),
]


def sparse(k, n, most=2):
    """Return (k, n) int8 with at most so many of each four numbers of a column."""
    b = RNG.integers(-128, 128, (k, n)).astype(np.int8)
    order = RNG.random((k // 4, 4, n)).argsort(axis=1).argsort(axis=1)
    return np.where(order.reshape(k, n) < most, b, 0).astype(np.int8)


@pytest.mark.parametrize(("four", "places"), TABLE)
def test_the_rows_of_the_table(four, places):
    b = np.array(four, np.int8)[:, None]
    weights, found = compress(b)
    assert tuple(found.ravel()) == places
    kept = b.ravel().copy()
    kept[np.flatnonzero(kept)[2:]] = 0  # only the first two count
    assert expand(weights, found).ravel().tolist() == kept.tolist()


def test_a_product_selects_two_of_four_numbers_of_a_row():
    """Each weight is multiplied by the number of A that its place selects, as the manual says."""
    a, b = RNG.integers(-128, 128, (5, 64)).astype(np.int8), sparse(64, 7)
    weights, places = compress(b)
    selected = np.zeros((5, 7), np.int64)
    for column in range(7):
        for at in range(32):
            row = 4 * (at // 2) + at % 2 + int(places[at, column])
            selected[:, column] += a[:, row].astype(int) * int(weights[at, column])
    assert np.array_equal(a.astype(int) @ expand(weights, places).astype(int), selected)
    assert np.array_equal(expand(weights, places), b)


def test_two_weights_at_one_place_are_added():
    """With places 1 and 0, both weights belong to the second of four numbers."""
    assert expand(np.array([[3], [4]], np.int8), [[1], [0]]).ravel().tolist() == [0, 7, 0, 0]
    with pytest.raises(ValueError, match="must have a sum of 8 bits"):
        expand(np.array([[100], [100]], np.int8), [[1], [0]])


def test_all_bytes_of_places():
    codes = np.arange(256, dtype=np.uint8)
    places = unpack_places(codes).reshape(256, 4)
    assert np.array_equal(places @ [1, 4, 16, 64], codes)
    allowed = (places < 3).all(axis=1)
    assert np.array_equal(pack_places(places[allowed].ravel()), codes[allowed])
    assert pack_places([1, 2, 0, 1]).tolist() == [0b01_00_10_01]  # the example of the manual


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_places([0, 1, 3, 0]), "places must be 0 to 2, not 3"),
        (lambda: pack_places([0, 1]), r"places must be \(..., 4·N\), not \(2,\)"),
        (lambda: compress(np.zeros((6, 1), np.int8)), r"b must be \(4·K, N\), not \(6, 1\)"),
        (lambda: expand(np.zeros((2, 1), np.int8), [[0], [3]]), "places must be 0 to 2, not 3"),
        (lambda: expand(np.zeros((3, 1), np.int8), np.zeros((3, 1))), r"must be \(2·K, N\)"),
        (lambda: expand(np.zeros((2, 1), np.int8), np.zeros((2, 2))), r"must be \(2·K, N\)"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
