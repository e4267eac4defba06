"""The order of operations of the sparse cores, against NumPy's scalars, SciPy and plain loops."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.names import PLUS, TIMES
from vitruvian.golden.sparse.operators import combine, identity, product

F32 = np.float32


def f32(codes):
    return np.asarray(codes, np.uint32).view(F32)


def tree(lanes):
    """Return the float32 sum of a list with None for lanes that are left out, by halves."""
    if len(lanes) == 1:
        return lanes[0]
    left, right = tree(lanes[: len(lanes) // 2]), tree(lanes[len(lanes) // 2 :])
    if left is None or right is None:
        return right if left is None else left
    return left + right


def names(name, beats):
    return np.full(beats, name)


def test_a_column_is_reduced_by_halves_of_lanes_and_then_from_beat_to_beat():
    """Sums of float32 round differently in every order, so equal bits mean an equal order."""
    rng = np.random.default_rng(1)
    beats, lanes = 200, 8
    a, b = rng.standard_normal((2, beats, lanes)).astype(F32)
    present, last = rng.random((2, beats, lanes)) < [[[0.8]], [[0.15]]]
    plus, times = names("add", beats), names("mul", beats)
    values, at, lane = os_columns(
        a.view(np.uint32), b.view(np.uint32), present, last, plus, times, "fp32"
    )
    expected = []
    total, part = None, list[Any]([None] * lanes)
    plain = []  # the same columns from the first element to the last
    run = F32(0)
    for t in range(beats):
        for k in range(lanes):
            if present[t, k]:
                part[k] = term = a[t, k] * b[t, k]
                run += term
            if last[t, k] or k == lanes - 1:
                total, part = tree([total, tree(part)]), [None] * lanes
            if last[t, k]:
                expected.append(F32(0) if total is None else total)
                plain.append(run)
                total, run = None, F32(0)
    assert (f32(values) == expected).all() and len(values) == last.sum() > 200
    assert (f32(values) != plain).any(), "the order must matter for these numbers"
    assert [at.tolist(), lane.tolist()] == [list(x) for x in np.nonzero(last)]


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_whole_numbers_give_the_product_with_a_sparse_matrix(lanes):
    rng = np.random.default_rng(2)
    matrix = sparse.csc_array(sparse.random_array((90, 70), density=0.05, rng=rng))
    matrix.data = rng.integers(-9, 10, len(matrix.data)).astype(F32)
    vector = rng.integers(-9, 10, 90).astype(F32)
    a, b, present, last = [], [], [], []
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        a += [*matrix.data[start:stop]] or [0]
        b += [*vector[matrix.indices[start:stop]]] or [0]
        present += [True] * (stop - start) or [False]
        last += [False] * (max(stop - start, 1) - 1) + [True]
    pad = -len(a) % lanes
    a, b = (np.array(x + [0] * pad, F32).reshape(-1, lanes) for x in (a, b))
    present, last = (np.array(x + [False] * pad).reshape(-1, lanes) for x in (present, last))
    beats = len(a)
    values, _, _ = os_columns(
        a.view(np.uint32), b.view(np.uint32), present, last,
        names("add", beats), names("mul", beats), "fp32",
    )  # fmt: skip
    assert (f32(values) == vector @ matrix).all() and (np.diff(matrix.indptr) == 0).any()


@pytest.mark.parametrize(
    ("plus", "value"), [("add", 0.0), ("min", np.inf), ("max", -np.inf), ("or", 0.0)]
)
def test_an_empty_column_has_the_identity(plus, value):
    zero, no = np.zeros((1, 2), np.uint32), np.zeros((1, 2), bool)
    values, _, _ = os_columns(zero, zero, no, ~no, names(plus, 1), names("mul", 1), "fp32")
    assert f32(values).tolist() == [value, value] and f32(identity(plus, "fp32")) == value


def test_the_operators_equal_numpy():
    rng = np.random.default_rng(3)
    x, y = rng.integers(-3, 4, (2, 500)).astype(F32)
    expected = {
        "mul": x * y, "add": x + y, "sub": x - y, "min": np.minimum(x, y), "max": np.maximum(x, y),
        "and": (x != 0) & (y != 0), "or": (x != 0) | (y != 0),
    }  # fmt: skip
    for name, value in expected.items():
        assert (f32(combine(name, x.view(np.uint32), y.view(np.uint32), "fp32")) == value).all()
    assert {*PLUS, *TIMES} == {*expected, "aril"}


def test_aril_is_the_right_operand_if_the_left_one_is_true():
    x = np.array([2, 0, -0.0, np.nan, np.inf], F32)
    y = np.array([5, 6, 7, 8, np.nan], F32)
    for plus, empty in (("add", 0), ("min", np.inf), ("max", -np.inf)):
        d = f32(product(plus, "aril", x.view(np.uint32), y.view(np.uint32), "fp32"))
        assert np.array_equal(d, [5, empty, empty, empty, np.nan], equal_nan=True)
    d = f32(product("or", "aril", x.view(np.uint32), y.view(np.uint32), "fp32"))
    assert d.tolist() == [1, 0, 0, 0, 0], "a NaN is no true value"


def test_unknown_names_are_refused():
    x = np.zeros(1, np.uint32)
    with pytest.raises(ValueError, match="plus must be one of add, min, max, or, not 'mul'"):
        identity("mul", "fp32")
    with pytest.raises(ValueError, match=r"times must be one of mul, add, .*, or, not 'div'"):
        product("add", "div", x, x, "fp32")
