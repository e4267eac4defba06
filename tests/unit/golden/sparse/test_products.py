"""Sparse products equal SciPy on every bit, SIMD²'s dense ones, and sums in the stated order."""

import math

import numpy as np
import pytest
import scipy.sparse

from vitruvian.golden.simd2 import Op, mmo
from vitruvian.golden.sparse import SEMIRINGS, Sparse, as_semiring, mxv, vxm
from vitruvian.golden.sparse.semirings import ARIL


def random_sparse(rng, shape, share=0.2, integers=False):
    """Return a random matrix with empty rows and columns, and full ones."""
    pattern = rng.random(shape) < share
    if min(shape) > 4:
        pattern[1], pattern[:, 2], pattern[3], pattern[:, 4] = False, False, True, True
    rows, columns = np.nonzero(pattern)
    values = rng.integers(1, 9, len(rows)) if integers else rng.standard_normal(len(rows))
    return Sparse.from_entries(rows, columns, values, shape)


def scalar_vxm(x, a, semiring):
    """Return x·A with Python's numbers, from the dense matrix, in ascending order."""
    plus = {
        "add": lambda s, t: s + t,
        "min": lambda s, t: t if t < s else s,
        "max": lambda s, t: t if t > s else s,
        "or": lambda s, t: float(bool(s) or bool(t)),
    }[semiring.plus]
    times = {
        "mul": lambda x, a: x * a,
        "add": lambda x, a: x + a,
        "min": min,
        "max": max,
        "and": lambda x, a: float(bool(x) and bool(a)),
        "right_if": lambda x, a: a if x else 0.0,
    }[semiring.times]
    dense = a.dense(missing=math.nan)
    result = []
    for column in dense.T:
        total = semiring.identity
        for left, right in zip(x, column, strict=True):
            if not math.isnan(right):
                total = plus(total, times(float(left), float(right)))
        result.append(total)
    return np.array(result)


@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("stationary", ["output", "input"])
def test_products_equal_sums_in_ascending_order(name, stationary):
    rng = np.random.default_rng(1)
    for shape in ((1, 1), (9, 13), (40, 17), (0, 3), (3, 0)):
        a = random_sparse(rng, shape)
        x = rng.standard_normal(shape[0]) * (rng.random(shape[0]) < 0.7)
        y = rng.standard_normal(shape[1])
        semiring = SEMIRINGS[name]
        result = vxm(x, a, name, stationary=stationary)
        assert result.tobytes() == scalar_vxm(x, a, semiring).tobytes(), shape
        result = mxv(a, y, semiring, stationary=stationary)
        assert result.tobytes() == scalar_vxm(y, a.transposed, semiring).tobytes(), shape


def test_a_sum_in_another_order_differs():
    """The comparison of bits above would notice a sum from right to left."""
    rng = np.random.default_rng(1)
    a, x = random_sparse(rng, (40, 17)), rng.standard_normal(40)
    turned = Sparse.from_entries(39 - a.rows, a.column_index, a.row_values, a.shape)
    assert (vxm(x, a) != vxm(x[::-1], turned)).any()


def test_products_equal_scipy_on_every_bit():
    rng = np.random.default_rng(2)
    a = random_sparse(rng, (60, 50))
    theirs = scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)
    x, y, h = (rng.standard_normal(shape) for shape in (60, 50, (60, 3)))
    assert (vxm(x, a) == theirs.T @ x).all()
    assert (mxv(a, y) == theirs @ y).all()
    assert (vxm(h, a) == theirs.T @ h).all()


@pytest.mark.parametrize("op", [op for op in Op if op.no_edge is not None])
def test_products_equal_those_of_simd2(op):
    rng = np.random.default_rng(3)
    a = random_sparse(rng, (30, 20), integers=True)
    x = rng.integers(0, 9, (4, 30)).astype(np.float32)
    dense = a.dense(missing=op.no_edge).astype(np.float32)
    ours = vxm(x.T, a, op).T
    theirs = mmo(op, x, dense)
    if op is Op.MAXMUL:  # the annihilator of numbers that are not negative gives 0, not −∞
        ours = np.maximum(ours, 0)
    assert (ours == theirs).all()


def test_a_nan_is_never_the_minimum_or_the_maximum():
    a = Sparse.from_entries([0, 1], [0, 0], [np.nan, 2.0], (2, 1))
    for name in ("minplus", "maxplus", "minmax", "maxmin", "orand"):
        assert not np.isnan(vxm([1.0, 1.0], a, name)).any()
    assert vxm([0.0, np.nan], a, "orand") == 0


@pytest.mark.parametrize(
    ("rule", "expected"), [("sum", 8.0), ("min", 1.0), ("max", 5.0), ("first", 2.0)]
)
def test_duplicates_follow_the_rule(rule, expected):
    entries = [1, 0, 1, 1], [2, 0, 2, 2], [2.0, 7.0, 5.0, 1.0]
    a = Sparse.from_entries(*entries, (2, 3), duplicates=rule)
    assert a.dense()[1, 2] == expected and a.dense()[0, 0] == 7.0 and a.nonzeros == 2


def test_the_two_storages_hold_the_same_matrix():
    a = random_sparse(np.random.default_rng(4), (20, 30))
    b = scipy.sparse.csr_array(a.dense()).tocsc()
    assert (a.column_start == b.indptr).all() and (a.row_index == b.indices).all()
    assert (a.column_values == b.data).all()
    assert a.transposed.transposed is a
    assert (a.transposed.dense() == a.dense().T).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Sparse.from_entries([0], [3], 1, (1, 3)), "column index must be between 0 and 2"),
        (lambda: Sparse.from_entries([-1], [0], 1, (1, 3)), "row index .* not -1"),
        (lambda: Sparse.from_entries([0, 0], [0], 1, (1, 1)), "same length, not 2, 1 and 2"),
        (lambda: Sparse.from_entries([0], [0], 1, (1, 1), duplicates="last"), "duplicates must be"),
        (lambda: vxm([1, 2], Sparse.from_entries([], [], [], (3, 3))), r"x must have the shape"),
        (lambda: vxm([1], Sparse.from_entries([], [], [], (1, 1)), stationary="row"), "stationary"),
        (lambda: as_semiring("addnorm"), "semiring must be"),
        (lambda: as_semiring(Op.ADDNORM), "semiring must be"),
        (lambda: as_semiring(Op.ADDNORM.value), "semiring must have an annihilator"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_aril_sums_the_selected_rows():
    a = random_sparse(np.random.default_rng(5), (12, 8), integers=True)
    chosen = np.zeros(12)
    chosen[[3, 7]] = 5.0  # any true value selects
    assert (vxm(chosen, a, ARIL) == a.dense()[[3, 7]].sum(0)).all()
