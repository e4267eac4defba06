"""``sim.simd2``: instructions, their counts, padding, 2:4 sparsity, back ends."""

import math

import networkx as nx
import numpy as np
import pytest

import vitruvian.sim.simd2 as simd2
import vitruvian.sim.simd2.machine as machine_module
from vitruvian.golden.simd2 import Op, compress, expand, mmo, mmo_sparse
from vitruvian.sim.simd2 import BACKENDS, Counts, Machine, register_backend
from vitruvian.sim.simd2.graph import solve
from vitruvian.sim.studies import Unit

INF = math.inf


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_instruction_by_instruction_is_the_same(op, dtype):
    """Bits and counts agree for sizes that are not whole tiles, and for all bit patterns."""
    rng = np.random.default_rng(op.code)
    width = np.dtype(dtype).itemsize
    for m, k, n in ((16, 16, 16), (5, 33, 18), (20, 3, 40), (1, 1, 1)):
        codes = [rng.integers(0, 1 << 8 * width, s, dtype=np.uint64) for s in ((m, k), (k, n))]
        a, b = (x.astype(f"u{width}").view(dtype) for x in codes)
        c = rng.integers(0, 1 << 32, (m, n), dtype=np.uint64).astype(np.uint32).view(np.float32)
        special = np.array([np.nan, -np.nan, INF, -INF, 0.0, -0.0, -1.0], dtype)
        for x in (a, b, c):
            where = rng.random(x.shape) < 0.5
            x[where] = rng.choice(special, int(where.sum())).astype(x.dtype)
        a[0], c[0] = np.nan, np.nan
        for add in (c, None):
            whole, tiles = Machine(), Machine(tilewise=True)
            result, other = whole.apply(op, a, b, add), tiles.apply(op, a, b, add)
            assert np.array_equal(bits(result), bits(other)), (m, k, n, add is None)
            assert whole.counts == tiles.counts


@pytest.mark.parametrize("op", ["maxmul", "minplus", "mma"])
def test_wrong_padding_is_caught(monkeypatch, op):
    """Padding with ``no_edge`` loses a negative product, a C that is NaN, or the sign of −0."""
    a = np.array([[np.nan if op == "minplus" else -1.0 if op == "maxmul" else -0.0]], np.float16)
    c = np.array([[np.nan if op == "minplus" else -7.0 if op == "maxmul" else -0.0]], np.float32)
    b = np.ones((1, 1), np.float16)
    right = Machine(tilewise=True).apply(op, a, b, c)
    assert np.array_equal(bits(right), bits(mmo(op, a, b, c)))
    monkeypatch.setattr(machine_module, "padding", lambda op: (op.no_edge, op.no_edge))
    wrong = Machine(tilewise=True).apply(op, a, b, c)
    assert not np.array_equal(bits(wrong), bits(right))


def test_the_low_level_as_in_figure_3_6():
    machine = Machine()
    a = machine.matrix("matrixa", 16, 16, 16, np.float16)
    b = machine.matrix("matrixb", 16, 16, 16, np.float16)
    c = machine.matrix("accum", 16, 16, 16, np.float32)
    rng = np.random.default_rng(9)
    x, y = rng.integers(0, 99, (2, 16, 40)).astype(np.float16)
    machine.loadmatrix(a, x.reshape(-1)[5:], 40)
    machine.loadmatrix(b, y.reshape(-1), 40)
    machine.fillmatrix(c, np.inf)
    machine.mmo(c, a, b, c, "minplus")
    target = np.full((16, 20), -1, np.float32)
    machine.storematrix(target.reshape(-1), c, 20)
    assert np.array_equal(target[:, :16], mmo("minplus", x[:, 5:21], y[:, :16]))
    assert (target[:, 16:] == -1).all()
    assert machine.counts == Counts(loads=2, stores=1, fills=1, mmo=1)


def test_errors_of_the_low_level():
    machine = Machine()
    a = machine.matrix("matrixa", 16, 16, 16, np.float16)
    c = machine.matrix("accum", 16, 16, 16, np.float32)
    memory = np.zeros(256, np.float16)
    for call, text in (
        (lambda: machine.matrix("matrixc", 16, 16, 16, np.float16), "kind must be one of"),
        (lambda: machine.matrix("accum", 16, 16, 8, np.float32), "shape must be 16×16×16 or"),
        (lambda: machine.matrix("accum", 16, 16, 16, np.float16), "must be one of float32"),
        (lambda: machine.mmo(c, a, a, c, "minplus"), "accum, matrixa, matrixb, accum, not"),
        (lambda: machine.loadmatrix(a, memory, 15), "ld must be at least 16"),
        (lambda: machine.loadmatrix(a, memory[1:], 16), "memory must hold"),
        (lambda: machine.loadmatrix(c, memory, 16), "memory must be float32"),
        (lambda: machine.loadmatrix(a, memory.reshape(16, 16), 16), "contiguous array of one"),
        (lambda: machine.storematrix(memory, a, 16), "must be an accum to be stored"),
        (lambda: Machine(backend="gpu"), "backend must be one of golden"),
        (lambda: Machine(squares="x"), "squares must be one of differences, products, not 'x'"),
        (lambda: register_backend("gpu", 5), "mmo must be a callable"),  # pyright: ignore
        (lambda: register_backend("gpu", mmo, 5), "mmo_sparse must be"),  # pyright: ignore
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            call()


def test_a_registered_back_end_computes_and_returns_its_cycles(monkeypatch):
    class Back:
        def __call__(self, *given, **settings):
            return mmo(*given, **settings)

        def on(self, unit):
            return lambda *given, **settings: (mmo(*given, **settings), 7 * unit.m)

    monkeypatch.setitem(BACKENDS, "counted", mmo)  # removes the back end after the test
    register_backend("counted", Back())
    result = solve("apsp", nx.karate_club_graph(), machine=Machine(backend="counted"))
    assert result.measured_cycles == 28 * result.iterations
    assert np.array_equal(result.values, solve("apsp", nx.karate_club_graph()).values)


def operands(rng, m, k, n, dtype):
    """Return a compressed A, its indices, B and C with all kinds of bit patterns."""
    width = np.dtype(dtype).itemsize
    shapes = (m, k // 2), (k, n)
    codes = [rng.integers(0, 1 << 8 * width, shape, dtype=np.uint64) for shape in shapes]
    values, b = (x.astype(f"u{width}").view(dtype) for x in codes)
    c = rng.integers(0, 1 << 32, (m, n), dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([np.nan, INF, -INF, 0.0, -0.0, -1.0], dtype)
    for x in (values, b, c):
        where = rng.random(x.shape) < 0.5
        x[where] = rng.choice(special, int(where.sum())).astype(x.dtype)
    return values, rng.integers(0, 4, values.shape), b, c


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_compressed_operand_instruction_by_instruction(op, dtype):
    rng = np.random.default_rng(20 + op.code)
    for m, k, n in ((16, 32, 16), (5, 36, 18), (17, 4, 3), (2, 72, 33)):
        values, indices, b, c = operands(rng, m, k, n, dtype)
        for add in (c, None):
            whole, tiles = Machine(), Machine(tilewise=True)
            result = whole.apply_sparse(op, values, indices, b, add)
            other = tiles.apply_sparse(op, values, indices, b, add)
            assert np.array_equal(bits(result), bits(mmo_sparse(op, values, indices, b, add)))
            assert np.array_equal(bits(result), bits(other)), (m, k, n, add is None)
            assert whole.counts == tiles.counts and whole.counts.sparse == whole.counts.mmo


def test_a_compressed_operand_takes_half_the_operations():
    rng = np.random.default_rng(3)
    a = np.where(rng.random((40, 128)) < 0.1, 1.0, INF).astype(np.float16)
    values, indices = compress("minplus", a)
    b = rng.random((128, 24)).astype(np.float16)
    dense, sparse = Machine(), Machine(tilewise=True)
    expected = dense.apply("minplus", expand("minplus", values, indices), b)
    assert np.array_equal(sparse.apply_sparse("minplus", values, indices, b), expected)
    assert dense.counts == Counts(loads=96, stores=6, fills=6, mmo=48)
    assert sparse.counts == Counts(loads=72, stores=6, fills=6, mmo=24, sparse=24)
    assert dense.counts - dense.counts == Counts()


def test_a_compressed_operand_at_the_low_level():
    machine = Machine()
    a = machine.matrix("matrixa", 16, 16, 32, np.float16)
    b = machine.matrix("matrixb", 16, 16, 32, np.float16)
    c = machine.matrix("accum", 16, 16, 32, np.float32)
    rng = np.random.default_rng(4)
    values, indices = compress("maxplus", rng.random((16, 32)).astype(np.float16))
    memory = rng.random(32 * 20).astype(np.float16)
    machine.loadmatrix(a, values.reshape(-1), 16, indices.reshape(-1))
    machine.loadmatrix(b, memory, 20)
    machine.fillmatrix(c, -INF)
    machine.mmo(c, a, b, c, "maxplus")
    expected = mmo_sparse("maxplus", values, indices, memory.reshape(32, 20)[:, :16])
    assert np.array_equal(c.values, expected)
    assert machine.counts == Counts(loads=3, fills=1, mmo=1, sparse=1)
    shallow = machine.matrix("matrixb", 16, 16, 16, np.float16)
    for call, text in (
        (
            lambda: machine.mmo(c, a, shallow, c, "mma"),
            "a and b must have the same k, not 32 and 16",
        ),
        (lambda: machine.loadmatrix(a, values.reshape(-1), 16), "must be given for a matrixa of k"),
        (lambda: machine.loadmatrix(b, memory, 20, indices.reshape(-1)), "must be None for a mat"),
        (lambda: machine.loadmatrix(b, memory[:600], 20), r"hold 31·ld \+ 16 elements"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_squares_by_products():
    rng = np.random.default_rng(6)
    a, b = (rng.normal(size=s).astype(np.float16) for s in ((17, 40), (40, 3)))
    values, indices = compress("addnorm", a)
    unit, settings = Unit(m=4, n=4, k=8), {"k": 8, "squares": "products"}
    for tilewise in (False, True):
        machine = Machine(unit, squares="products", tilewise=tilewise)
        expected = mmo("addnorm", a, b, **settings)
        assert np.array_equal(machine.apply("addnorm", a, b), expected)
        sparse = mmo_sparse("addnorm", values, indices, b, **settings)
        assert np.array_equal(machine.apply_sparse("addnorm", values, indices, b), sparse)
    other = Machine(unit).apply("addnorm", a, b)
    assert not np.array_equal(expected, other)
    assert np.array_equal(other, Machine(unit, squares="differences").apply("addnorm", a, b))
    with pytest.raises(ValueError, match="squares must be products on compiled RTL, not 'diff"):
        Machine(backend="rtl", squares="differences").apply("addnorm", a, b)


def test_a_back_end_without_sparsity(monkeypatch):
    monkeypatch.setitem(BACKENDS, "dense", mmo)
    values, indices = compress("mma", np.ones((4, 8), np.float16))
    b = np.ones((8, 4), np.float16)
    with pytest.raises(ValueError, match="backend must be one of golden, rtl for 2:4, not 'dense'"):
        Machine(backend="dense").apply_sparse("mma", values, indices, b)
    register_backend("dense", mmo, lambda *x, **more: -mmo_sparse(*x, **more))
    assert (Machine(backend="dense").apply_sparse("mma", values, indices, b) == -4).all()
    register_backend("dense", mmo)
    assert "dense" not in simd2.SPARSE_BACKENDS


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
def test_calls_by_name(op):
    rng = np.random.default_rng(5)
    a, b = rng.random((7, 20)).astype(np.float16), rng.random((20, 3)).astype(np.float16)
    c = rng.random((7, 3)).astype(np.float32)
    call, machine = getattr(simd2, op.mnemonic), Machine()
    assert call.__name__ == op.mnemonic
    assert np.array_equal(call(a, b), mmo(op, a, b))
    assert np.array_equal(call(a, b, c, machine=machine), mmo(op, a, b, c))
    assert machine.counts == Counts(loads=5, stores=1, mmo=2)


@pytest.mark.parametrize("tilewise", [False, True])
def test_errors_of_apply(tilewise):
    a, b = np.zeros((4, 8), np.float16), np.zeros((8, 4), np.float16)
    values, indices = compress("mma", a)
    machine = Machine(tilewise=tilewise)
    for call, text in (
        (lambda: machine.apply("mma", a[0], b), "a and b must be matrices"),
        (lambda: machine.apply("mma", a, a), "with the same K"),
        (lambda: machine.apply("mma", a, b.astype(np.float32)), "the same dtype"),
        (lambda: machine.apply("mma", a, b, np.zeros((4, 3), np.float32)), "c must be"),
        (lambda: machine.apply("mma", a, b, np.zeros((4, 4))), "c must be float32"),
        (lambda: machine.apply("plus", a, b), "op must be one of"),
        (lambda: machine.apply_sparse("mma", values, indices + 9, b), "between 0 and 3, not 9"),
        (lambda: machine.apply_sparse("mma", values, indices[:2], b), "the same shape"),
        (lambda: machine.apply_sparse("mma", values, indices, b[:4]), "with the same K"),
        (lambda: machine.apply_sparse("mma", values, indices, b, np.zeros((4, 4))), "c must be fl"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            call()
