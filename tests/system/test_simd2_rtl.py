"""Semirings on compiled RTL: matrices of any size, graph problems, the command."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.io

import sim.rtl.tiles
from golden.simd2 import Op, compress, mmo, mmo_sparse
from sim.cli import main
from sim.kernels.engine import Unit
from sim.kernels.graph import solve
from sim.rtl.simd2 import UNIT, compute
from sim.simd2 import Machine

SMALL = replace(UNIT, m=2, n=2)
SPARSE = replace(SMALL, sparsity=True)


def codes(x):
    return np.ascontiguousarray(x).view(np.uint32)


def draw(rng, shape, kind):
    if kind == "bits":
        return rng.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16)
    return rng.normal(size=shape).astype(np.float16)


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_any_size_equals_golden(op):
    """Also where K does not fill a beat, and without C."""
    rng = np.random.default_rng(op.code)
    sizes = (1, 1, 1), (3, 7, 5), (9, 4, 2), (2, 18, 3)
    for (m, k, n), kind in zip(sizes, ("bits", "values", "bits", "values"), strict=True):
        a, b = draw(rng, (2, m, k), kind), draw(rng, (k, n), kind)
        c = None if k == 7 else rng.normal(size=(2, m, n)).astype(np.float32)
        found = compute(op, a, b, c, config=SMALL, stall_rate=0.1)
        assert np.array_equal(codes(found.d), codes(mmo(op, a, b, c, k=4, squares="products")))


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_two_of_four_equal_golden(op):
    rng = np.random.default_rng(op.code)
    for m, k, n, kind in ((3, 8, 5, "bits"), (2, 24, 3, "values"), (1, 4, 1, "bits")):
        a, b = draw(rng, (m, k), kind), draw(rng, (k, n), kind)
        values, places = compress(op, a)
        places[0, :2] = rng.integers(0, 4, 2)  # any two, and a row of B twice
        c = rng.normal(size=(m, n)).astype(np.float32)
        found = compute(op, values, b, c, places=places, config=SPARSE, stall_rate=0.1)
        expected = mmo_sparse(op, values, places, b, c, k=4, squares="products")
        assert np.array_equal(codes(found.d), codes(expected))


def test_sparsity_doubles_the_rate():
    a = np.ones((8, 16), np.float16)
    values, places = compress("minplus", a)
    dense = compute("minplus", a, a.T, config=SMALL)
    sparse = compute("minplus", values, a.T, places=places, config=SPARSE)
    assert sparse.beats * 2 == dense.beats
    assert dense.cycles - sparse.cycles == sparse.beats


def test_machines_compute_with_a_compressed_operand():
    rng = np.random.default_rng(0)
    values, places = compress("maxmul", draw(rng, (6, 12), "values"))
    b = draw(rng, (12, 5), "values")
    machines = [Machine(Unit(m=2, n=2, k=4), backend) for backend in ("golden", "rtl")]
    first, second = (codes(x.apply_sparse("maxmul", values, places, b)) for x in machines)
    assert np.array_equal(first, second) and machines[1].clocks


def test_a_filler_that_wins_is_caught(monkeypatch):
    monkeypatch.setattr(sim.rtl.tiles, "_fillers", lambda *given: (0, 0))
    a = np.full((1, 3), 5, np.float16)
    assert compute("minplus", a, a.T, config=SMALL).d[0, 0] == 0


def test_semirings_take_a_cycle_a_beat():
    a = np.ones((16, 16), np.float16)
    found = compute("minmax", a, a, config=SMALL)
    assert found.beats == 8 * 8 * 4
    assert found.cycles == found.beats + SMALL.latency_cycles


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": np.ones((2, 2), np.float32)}, "a must be float16 on the RTL, not float32"),
        ({"places": np.zeros((2, 2), int)}, "places must be None on a dense unit"),
        ({"config": SPARSE}, "places must be given on a unit with sparsity"),
        ({"config": SPARSE, "places": np.zeros((2, 2), int)}, r"\(M, K\) and \(2·K, N\)"),
        ({"c": np.ones((2, 2))}, "c must be float32, not float64"),
        ({"op": "addnorm", "config": replace(SMALL, operations=("mma",))}, "operation must be one"),
        ({"c": np.ones((3, 2), np.float32)}, r"c must be \(M, N\) = \(2, 2\)"),
    ],
)
def test_what_it_refuses(given, message):
    one = np.ones((2, 2), np.float16)
    settings = {"op": "minplus", "a": one, "b": one, "config": SMALL, **given}
    with pytest.raises((TypeError, ValueError), match=message):
        compute(**settings)


GRAPHS = {
    "karate club": nx.karate_club_graph(),
    "small world": nx.gn_graph(24, seed=1),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("problem", ["apsp", "mcp", "gtc"])
def test_graph_problems_are_golden_s_bit_for_bit(name, problem):
    machines = [Machine(Unit(m=2, n=2, k=4), backend) for backend in ("golden", "rtl")]
    results = [solve(problem, GRAPHS[name], machine=m, inputs="fp16") for m in machines]
    first, second = (codes(result.values) for result in results)
    assert np.array_equal(first, second)
    assert machines[0].counts == machines[1].counts
    assert machines[1].clocks and not machines[0].clocks


def test_the_command(tmp_path, capsys):
    graph, out = tmp_path / "ring.mtx", tmp_path / "out.json"
    scipy.io.mmwrite(graph, nx.to_scipy_sparse_array(nx.cycle_graph(20, nx.DiGraph), dtype=float))
    given = ["run", "apsp", "--graph", str(graph), "--backend", "rtl", "--unit", "2x2x4"]
    assert main([*given, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["rtl_cycles"] > 0 and found["inputs"] == "fp16"
    assert "RTL cycles" in capsys.readouterr().out
    assert main([*given, "--inputs", "fp32"]) == 2
    assert "--inputs must be fp16 with --backend rtl" in capsys.readouterr().err
