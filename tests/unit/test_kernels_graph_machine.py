"""`sim.kernels.graph.Machine`: instructions, their counts, padding, back ends; the model."""

import math

import networkx as nx
import numpy as np
import pytest

import sim.kernels.graph.machine as machine_module
from golden.simd2 import Op, mmo
from sim.kernels.graph import (
    ALGORITHMS,
    Core,
    Counts,
    Machine,
    estimate,
    most_iterations,
    register_backend,
    solve,
)

INF = math.inf


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


@pytest.mark.parametrize("op", Op, ids=lambda op: op.mnemonic)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_instruction_by_instruction_is_the_same(op, dtype):
    """Bits and counts, of sizes that are not whole tiles, on all kinds of bit patterns."""
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
            one, other = whole.apply(op, a, b, add), tiles.apply(op, a, b, add)
            assert np.array_equal(bits(one), bits(other)), (m, k, n, add is None)
            assert whole.counts == tiles.counts


@pytest.mark.parametrize("op", ["maxmul", "minplus", "mma"])
def test_wrong_padding_is_caught(monkeypatch, op):
    """With ``no_edge`` a negative product, a C that is NaN, or the sign of −0 is lost."""
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


def test_what_the_low_level_refuses():
    machine = Machine()
    a = machine.matrix("matrixa", 16, 16, 16, np.float16)
    c = machine.matrix("accum", 16, 16, 16, np.float32)
    memory = np.zeros(256, np.float16)
    for call, text in (
        (lambda: machine.matrix("matrixc", 16, 16, 16, np.float16), "kind must be one of"),
        (lambda: machine.matrix("accum", 16, 16, 8, np.float32), "shape must be 16×16×16"),
        (lambda: machine.matrix("accum", 16, 16, 16, np.float16), "must be one of float32"),
        (lambda: machine.mmo(c, a, a, c, "minplus"), "accum, matrixa, matrixb, accum, not"),
        (lambda: machine.loadmatrix(a, memory, 15), "ld must be at least 16"),
        (lambda: machine.loadmatrix(a, memory[1:], 16), "memory hold"),
        (lambda: machine.loadmatrix(c, memory, 16), "memory must be float32"),
        (lambda: machine.loadmatrix(a, memory.reshape(16, 16), 16), "contiguous array of one"),
        (lambda: machine.storematrix(memory, a, 16), "must be an accum to be stored"),
        (lambda: Machine(backend="gpu"), "backend must be one of golden"),
        (lambda: register_backend("gpu", 5), "must be a callable"),  # pyright: ignore
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            call()


def test_a_registered_back_end_computes_and_says_its_cycles(monkeypatch):
    class Back:
        def __call__(self, *given, **settings):
            return mmo(*given, **settings)

        def on(self, unit):
            return lambda *given, **settings: (mmo(*given, **settings), 7 * unit.m)

    monkeypatch.setattr(machine_module, "BACKENDS", dict(machine_module.BACKENDS))
    register_backend("counted", Back())
    found = solve("apsp", nx.karate_club_graph(), machine=Machine(backend="counted"))
    assert found.clocks == 28 * found.iterations
    assert np.array_equal(found.values, solve("apsp", nx.karate_club_graph()).values)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("vertices", [1, 30, 150, 256])
def test_the_model_counts_what_a_run_counts(algorithm, vertices):
    graph = nx.path_graph(vertices)
    found = solve("apsp", graph, algorithm=algorithm, check=algorithm == "floyd-warshall", block=64)
    assert found.iterations == most_iterations(algorithm, vertices, block=64)
    expected = estimate("minplus", vertices, algorithm, block=64)
    assert expected.iterations == found.iterations
    if algorithm == "floyd-warshall":  # the run may find blocks closed before the last iteration
        assert found.counts.mmo <= expected.counts.mmo
    else:
        assert expected.counts == found.counts


def test_cycles_by_hand():
    core = Core()
    assert [core.interval(op) for op in Op] == [64] * 9
    assert core.interval("minplus", "fp32") == 128 and core.interval("mma", "fp32") == 256
    counts = Counts.of(32, 32, 32)
    assert counts == Counts(loads=4 * 5, stores=4, mmo=8)
    cycles = core.cycles("minplus", counts, checked=160)
    assert (cycles.compute, cycles.check) == (8 * 64 + 4 * 8, 10)
    assert cycles.memory == (16 * 512 + 8 * 1024) // 32
    assert cycles.overlapped == 544 + 10 and cycles.serial == 544 + 512 + 10
    assert core.vector_cycles("minplus", counts).compute == 8 * 4096 * 2 // 16
    assert core.vector_cycles("mma", counts).compute == 8 * 4096 // 16
    row = estimate("minplus", 4096)
    assert row.iterations == 12 and 7.5 < row.ratio < 8


def test_the_table_of_the_documentation(root):
    text = (root / "docs" / "units" / "simd2.md").read_text()
    lines = text.split("<!-- model -->")[1].split("<!-- /model -->")[0].strip().splitlines()[2:]
    assert len(lines) == 15
    for line in lines:
        vertices, name, *cells = (cell.strip(" `") for cell in line.strip("|").split("|"))
        rows = [
            estimate("minplus", int(vertices.replace(",", "")), name, inputs=inputs)
            for inputs in ("fp16", "fp32")
        ]
        millions = [row.simd2.overlapped for row in rows] + [rows[0].vector.overlapped]
        expected = [f"{x / 1e6:,.0f}" for x in millions] + [f"{row.ratio:.2f}" for row in rows]
        assert cells == expected
