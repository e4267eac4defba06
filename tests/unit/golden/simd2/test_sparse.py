"""``golden.simd2.sparse`` against a scalar loop over the kept pairs, dense ``mmo``, and mutants."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import vitruvian.golden.simd2.sparse as module
from vitruvian.golden.fp import reference
from vitruvian.golden.simd2 import Op, compress, expand, is_two_of_four, mmo, mmo_sparse
from vitruvian.golden.simd2.matrix import OPERANDS, sum_spec

DTYPES = list(OPERANDS)
CHOOSING = [op for op in Op if op.plus in ("min", "max")]
WITH_EDGES = [op for op in Op if op.no_edge is not None]


def bits(x):
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def patterns(rng, shape, dtype, share=0.3):
    """Return random bit patterns, with zeros of both signs, infinities, NaNs and small numbers."""
    width = np.dtype(dtype).itemsize
    x = rng.integers(0, 1 << 8 * width, shape, dtype=np.uint64).astype(f"u{width}").view(dtype)
    kinds = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]).astype(dtype)
    where = rng.random(shape) < share
    x[where] = rng.choice(kinds, int(where.sum()))
    return x


def brute(op, values, indices, b, c, k, preset="ieee"):
    """Compute every element separately, with Python ints and fractions."""
    name = OPERANDS[values.dtype]
    spec = sum_spec(op, name, k=k, preset=preset)
    x, y, z = (bits(part) for part in (values, b, c))
    d = np.empty(c.shape, np.uint32)
    for i, j in np.ndindex(c.shape):
        rows = [4 * (t // 2) + int(index) for t, index in enumerate(indices[i])]
        pairs = [(int(x[i, t]), int(y[row, j])) for t, row in enumerate(rows)]
        d[i, j] = _element(op, pairs, int(z[i, j]), name, spec, k)
    return d


def _element(op, pairs, c, name, spec, k):
    if op.plus == "or":
        return 0x3F800000 * (
            _true(c, "fp32") or any(_true(x, name) & _true(y, name) for x, y in pairs)
        )
    if op.plus == "add":
        if op.times == "sqdiff":
            minus = 1 << (15 if name != "fp32" else 31)
            pairs = [(reference.add(x, y ^ minus, name, "fp32"),) * 2 for x, y in pairs]
        for start in range(0, len(pairs), k):
            x, y = zip(*pairs[start : start + k], strict=True)
            c = reference.fused_dot_reference(x, y, c, spec)
        return c
    better = reference.minimum_number if op.plus == "min" else reference.maximum_number
    d = better(c, c, "fp32")
    for x, y in pairs:
        if op.times in ("add", "mul"):
            term = getattr(reference, op.times)(x, y, name, "fp32")
        else:
            which = reference.minimum_number if op.times == "min" else reference.maximum_number
            term = reference.convert(which(x, y, name), name, "fp32")
        d = better(d, term, "fp32")
    return d


def _true(code, name):
    number = reference.decode(code, name)
    return number.kind == "infinity" or (number.kind == "finite" and number.significand != 0)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_element_equals_a_scalar_loop(op, dtype):
    """Any values, any indices (also equal and descending ones), sums of 2 and of 4 values."""
    rng = np.random.default_rng(op.code)
    for m, k, n, lanes in ((3, 12, 4, 4), (2, 8, 3, 2)):
        values = patterns(rng, (m, k // 2), dtype)
        indices = rng.integers(0, 4, values.shape)
        b, c = patterns(rng, (k, n), dtype), patterns(rng, (m, n), np.float32)
        if lanes == 2:  # so that sums of numbers of similar size are rounded
            values, b = (rng.normal(size=x.shape).astype(dtype) for x in (values, b))
            c = rng.normal(size=c.shape).astype(np.float32)
        result = mmo_sparse(op, values, indices, b, c, k=lanes)
        assert np.array_equal(bits(result), brute(op, values, indices, b, c, lanes)), (m, k, n)


def test_a_preset_rounds_blocks_of_kept_values():
    rng = np.random.default_rng(1)
    values, b = rng.normal(size=(4, 16)), rng.normal(size=(32, 4))
    values, b = values.astype(np.float16), b.astype(np.float16)
    indices = rng.integers(0, 4, values.shape)
    c = rng.normal(size=(4, 4)).astype(np.float32)
    result = mmo_sparse("mma", values, indices, b, c, k=8, preset="a100")
    assert np.array_equal(bits(result), brute(Op.MMA, values, indices, b, c, 8, "a100"))


def test_squares_by_products():
    """The result equals a dense sum over the rows of B that the indices of a row of A select."""
    rng = np.random.default_rng(2)
    values, b = patterns(rng, (3, 8), np.float16), patterns(rng, (16, 5), np.float16)
    indices, c = rng.integers(0, 4, values.shape), rng.normal(size=(3, 5)).astype(np.float32)
    settings: dict[str, Any] = {"k": 8, "squares": "products"}
    result = mmo_sparse("addnorm", values, indices, b, c, **settings)
    for i, places in enumerate(indices + np.arange(8) // 2 * 4):
        part = slice(i, i + 1)
        expected = mmo("addnorm", values[part], b[places], c[part], **settings)
        assert np.array_equal(bits(result[part]), bits(expected))


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
def test_the_kept_elements_matter_most(op):
    """Compare all choices of two: by magnitude for +, else by ⊕ over A and a constant B."""
    rng = np.random.default_rng(10 + op.code)
    a = patterns(rng, (300, 4), np.float16)
    a[op.times == "mul" and op.plus == "max" and (a <= 0)] = np.float16(0.25)
    values, indices = compress(op, a)
    assert (np.diff(indices.astype(int)) > 0).all()
    assert np.array_equal(bits(values), bits(np.take_along_axis(a, indices.astype(int), 1)))
    if op.plus == "add":
        size = np.abs(np.nan_to_num(a.astype(np.float64), nan=1e30, posinf=1e20, neginf=-1e20))
        kept = np.take_along_axis(size, indices.astype(int), 1).sum(axis=1)
        every = [size[:, list(pair)].sum(axis=1) for pair in combinations(range(4), 2)]
        assert np.array_equal(kept, np.max(every, axis=0))
        return
    b = np.full((4, 1), 0.5, np.float16)
    c = np.full((300, 1), np.nan, np.float32)
    assert np.array_equal(bits(mmo_sparse(op, values, indices, b, c)), bits(mmo(op, a, b, c)))


def two_of_four(rng, op, shape, dtype, low=0.1):
    """Return a 2:4 matrix of positive numbers, with two, one or no edge in a group."""
    a = (low + rng.random((*shape[:-1], shape[-1] // 4, 4))).astype(dtype)
    place = rng.permuted(np.broadcast_to(np.arange(4), a.shape), axis=-1)
    a[place >= rng.integers(0, 3, a.shape[:-1])[..., None]] = op.no_edge
    return a.reshape(shape)


@pytest.mark.parametrize("op", WITH_EDGES, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_nothing_is_lost_of_a_matrix_that_is_two_of_four(op, dtype):
    rng = np.random.default_rng(op.code)
    a = two_of_four(rng, op, (2, 9, 40), dtype)
    assert is_two_of_four(op, a)
    values, indices = compress(op, a)
    assert values.shape == indices.shape == (2, 9, 20) and indices.dtype == np.uint8
    assert np.array_equal(bits(expand(op, values, indices)), bits(a))
    b, c = (0.1 + rng.random((40, 7))).astype(dtype), rng.random((2, 9, 7)).astype(np.float32)
    for k in (4, 8):  # if ⊕ is +, dense sums of twice as many terms have the same edges
        result, dense = mmo_sparse(op, values, indices, b, c, k=k), mmo(op, a, b, c, k=2 * k)
        assert np.array_equal(bits(result), bits(dense))
    crowded = a.copy()
    crowded[1, 2, 4:7] = 1
    assert not is_two_of_four(op, crowded)


def test_edges_that_look_like_missing_ones():
    """A NaN is an edge except for orand; for products, zeros of both signs are missing edges."""
    nan = np.nan
    for op, row, kept in (
        ("minplus", [nan, np.inf, np.inf, 5], [nan, 5]),
        ("maxmul", [0, -1, 0, -2], [-1, -2]),
        ("mma", [-0.0, 0, nan, 1], [nan, 1]),
        ("orand", [nan, 0, -0.0, 3], [nan, 3]),
        ("maxmin", [-np.inf, nan, 2, -np.inf], [nan, 2]),
    ):
        a = np.array([row], np.float32)
        assert is_two_of_four(op, a)
        assert np.array_equal(compress(op, a)[0], np.array([kept], np.float32), equal_nan=True)
    assert not is_two_of_four("minplus", np.array([[nan, 1, 2, np.inf]], np.float32))
    assert is_two_of_four("orand", np.array([[nan, 1, 2, 0]], np.float32))
    assert compress("minplus", np.array([[3, -0.0, 0.0, 0.0]], np.float16))[1].tolist() == [[1, 2]]
    assert compress("maxplus", np.array([[3, -0.0, 0.0, -0.0]], np.float16))[1].tolist() == [[0, 2]]
    assert compress("mma", np.array([[1, -1, 1, -1]], np.float16))[1].tolist() == [[0, 1]]


def test_where_sparse_and_dense_differ():
    """A dropped element is in no sum: neither as 0 · ∞ nor as a difference of addnorm."""
    a, b = np.array([[1, 0, 2, 0]], np.float16), np.array([[1], [np.inf], [1], [5]], np.float16)
    values, indices = compress("mma", a)
    assert mmo_sparse("mma", values, indices, b) == 3 and np.isnan(mmo("mma", a, b))
    assert mmo_sparse("addnorm", values, indices, b) == 1
    whole = expand("addnorm", values, indices, fill=0)
    assert np.array_equal(whole, a) and mmo("addnorm", whole, b) == np.inf


def test_matrices_in_stacks():
    rng = np.random.default_rng(3)
    a = two_of_four(rng, Op.MINPLUS, (3, 1, 4, 8), np.float16)
    b = rng.random((2, 8, 5)).astype(np.float16)
    values, indices = compress("minplus", a)
    d = mmo_sparse("minplus", values, indices, b)
    assert d.shape == (3, 2, 4, 5) and np.array_equal(d, mmo("minplus", a, b))
    empty = mmo_sparse("maxplus", values[..., :0], indices[..., :0], b[:, :0])
    assert (empty == -np.inf).all() and empty.shape == (3, 2, 4, 5)


def test_invalid_arguments_are_rejected():
    a, b = np.zeros((2, 8), np.float16), np.zeros((8, 3), np.float16)
    values, indices = compress("minplus", a)
    for call, text in (
        (lambda: compress("minplus", a[:, :6]), "with K a multiple of 4, not"),
        (lambda: compress("minplus", a.astype(float)), "dtype of a must be one of float16"),
        (lambda: compress("plus", a), "op must be one of mma"),
        (lambda: is_two_of_four("addnorm", a), "with a no-edge value, not addnorm"),
        (lambda: expand("addnorm", values, indices), "with a no-edge value, not addnorm"),
        (lambda: expand("mma", values, indices * 0), "indices of a pair must be different"),
        (lambda: mmo_sparse("mma", values, indices + 4, b), "between 0 and 3, not 4"),
        (lambda: mmo_sparse("mma", values, indices[:1], b), "the same shape"),
        (lambda: mmo_sparse("mma", values, indices * 1.0, b), "indices must be integers"),
        (lambda: mmo_sparse("mma", values, indices, b[:6]), "with the same K, not"),
        (lambda: mmo_sparse("mma", values, indices, b, k=3), "k must be even"),
        (lambda: mmo_sparse("mma", values, indices, b, k=0), "k must be at least 1"),
        (
            lambda: mmo_sparse("mma", values, indices, b, np.zeros((3, 3))),
            r"must be \(\.\.\., 2, 3",
        ),
        (
            lambda: mmo_sparse("mma", values, indices, b.astype(np.float32)),
            "the same dtype, one of",
        ),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            call()


@pytest.mark.parametrize("mutant", ["index", "block", "order", "edges"])
def test_a_mutant_is_caught(monkeypatch, mutant):
    """Mutants: swapped rows of B, blocks of half the length, wrong elements kept, edges ignored."""
    rng = np.random.default_rng(4)
    values, b = (rng.normal(size=s).astype(np.float16) for s in ((4, 8), (16, 4)))
    indices, c = rng.integers(0, 4, (4, 8)), np.ones((4, 4), np.float32)
    expected = brute(Op.MMA, values, indices, b, c, 4)
    a = np.array([[0, -1, 0, -2]], np.float16)
    if mutant == "index":
        assert not np.array_equal(bits(mmo_sparse("mma", values, indices ^ 1, b, c)), expected)
    elif mutant == "block":
        monkeypatch.setattr(module, "mmo", lambda *x, k, **more: mmo(*x, k=k // 2, **more))
        assert not np.array_equal(bits(mmo_sparse("mma", values, indices, b, c)), expected)
    elif mutant == "order":
        order = module._order
        monkeypatch.setattr(module, "_order", lambda op, x: -order(op, x))
        assert compress("minplus", a)[0].tolist() == [[0, 0]]
    else:
        monkeypatch.setattr(module, "_dropped", lambda op, x: np.zeros(x.shape, bool))
        assert compress("maxmul", a)[0].tolist() != [[-1, -2]]


@pytest.mark.parametrize("stacked", ["values", "b", "c"])
def test_one_stacked_operand_makes_a_stack(stacked):
    rng = np.random.default_rng(5)
    values, indices = compress("minplus", two_of_four(rng, Op.MINPLUS, (9, 40), np.float16))
    b, c = rng.random((40, 7)).astype(np.float16), rng.random((9, 7)).astype(np.float32)
    operands = {"values": values, "indices": indices, "b": b, "c": c}
    single = mmo_sparse("minplus", **operands)
    for name in (stacked, "indices") if stacked == "values" else (stacked,):
        operands[name] = np.stack([operands[name]] * 3)
    result = mmo_sparse("minplus", **operands)
    assert result.shape == (3, 9, 7) and np.array_equal(result, np.stack([single] * 3))
