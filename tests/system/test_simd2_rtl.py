"""Semirings on the compiled RTL: matrices of any size, graph problems, and the command."""

import json
from dataclasses import replace

import ml_dtypes
import networkx as nx
import numpy as np
import pytest
import scipy.io

import vitruvian.sim.rtl.tiles
from vitruvian.cli import main
from vitruvian.golden.simd2 import Op, compress, mmo, mmo_sparse
from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.rtl.simd2 import UNIT, UNIT_FP32, compute
from vitruvian.sim.simd2 import Machine
from vitruvian.sim.simd2.graph import Core, solve

SMALL = replace(UNIT, m=2, n=2)
SPARSE = replace(SMALL, sparsity=True)
SIZE = Unit(m=2, n=2, k=2)
BOTH = "golden", "rtl"
WIDE = replace(UNIT_FP32, m=2, n=2, k=4)


def codes(x):
    return np.ascontiguousarray(x).view(np.uint32)


def draw(rng, shape, kind):
    if kind == "bits":
        return rng.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16)
    return rng.normal(size=shape).astype(np.float16)


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_any_size_equals_golden(op):
    """This holds even if K does not fill a beat, and without C."""
    rng = np.random.default_rng(op.code)
    sizes = (1, 1, 1), (3, 7, 5), (9, 4, 2), (2, 18, 3)
    for (m, k, n), kind in zip(sizes, ("bits", "values", "bits", "values"), strict=True):
        a, b = draw(rng, (2, m, k), kind), draw(rng, (k, n), kind)
        c = None if k == 7 else rng.normal(size=(2, m, n)).astype(np.float32)
        result = compute(op, a, b, c, config=SMALL, stall_rate=0.1)
        assert np.array_equal(codes(result.d), codes(mmo(op, a, b, c, k=4, squares="products")))


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.mnemonic)
def test_two_of_four_equal_golden(op):
    rng = np.random.default_rng(op.code)
    for m, k, n, kind in ((3, 8, 5, "bits"), (2, 24, 3, "values"), (1, 4, 1, "bits")):
        a, b = draw(rng, (m, k), kind), draw(rng, (k, n), kind)
        values, places = compress(op, a)
        places[0, :2] = rng.integers(0, 4, 2)  # arbitrary indices, which may repeat a row of B
        c = rng.normal(size=(m, n)).astype(np.float32)
        result = compute(op, values, b, c, indices=places, config=SPARSE, stall_rate=0.1)
        expected = mmo_sparse(op, values, places, b, c, k=4, squares="products")
        assert np.array_equal(codes(result.d), codes(expected))


def test_matrices_and_places_of_bool_are_refused():
    """Places that are bool were taken as 0 and 1."""
    a, b = np.zeros((2, 4), np.float16), np.zeros((8, 2), np.float16)
    places = np.zeros((2, 4), int)
    with pytest.raises(TypeError, match="indices must be an array of integers, not of bool"):
        compute("mma", a, b, indices=places.astype(bool), config=SPARSE)
    for x, y, name in ((a.astype(bool), b, "a"), (a, b.astype(bool), "b")):
        with pytest.raises(TypeError, match=f"{name} must be .*float16.*, not bool"):
            compute("mma", x, y, indices=places, config=SPARSE)


@pytest.mark.parametrize("op", list(Op)[:-1], ids=lambda op: op.mnemonic)
def test_fp32_operands_equal_golden(op):
    """This holds for any size, with and without C; a machine's unit sets the terms of a sum."""
    rng = np.random.default_rng(op.code)
    for m, k, n in ((1, 1, 1), (3, 7, 5)):
        a, b = (rng.integers(0, 1 << 32, s, "u4").view("f4") for s in ((2, m, k), (k, n)))
        c = None if k == 7 else rng.normal(size=(2, m, n)).astype(np.float32)
        result = compute(op, a, b, c, config=WIDE, stall_rate=0.1)
        assert np.array_equal(codes(result.d), codes(mmo(op, a, b, c, k=2)))
    first, second = [Machine(SIZE, backend).apply(op, a[0], b) for backend in BOTH]
    assert np.array_equal(codes(first), codes(second))


def test_sparsity_doubles_the_rate():
    a = np.ones((8, 16), np.float16)
    values, places = compress("minplus", a)
    dense = compute("minplus", a, a.T, config=SMALL)
    sparse = compute("minplus", values, a.T, indices=places, config=SPARSE)
    assert sparse.beats * 2 == dense.beats
    assert dense.cycles - sparse.cycles == sparse.beats


def test_machines_compute_with_a_compressed_operand():
    rng = np.random.default_rng(0)
    values, places = compress("maxmul", draw(rng, (6, 12), "values"))
    b = draw(rng, (12, 5), "values")
    machines = [Machine(Unit(m=2, n=2, k=4), backend) for backend in ("golden", "rtl")]
    first, second = (codes(x.apply_sparse("maxmul", values, places, b)) for x in machines)
    assert np.array_equal(first, second) and machines[1].measured_cycles


def test_int8_and_bf16_operands_are_exact_in_other_formats():
    rng = np.random.default_rng(3)
    a, b = rng.integers(-128, 128, (2, 5, 5)).astype(np.int8)
    for op in ("minplus", "addnorm"):
        expected = mmo(op, a.astype(np.float16), b.astype(np.float16), k=4, squares="products")
        assert np.array_equal(codes(compute(op, a, b, config=SMALL).d), codes(expected))
    x, y = rng.normal(size=(2, 3, 3)).astype(ml_dtypes.bfloat16)
    result = compute("maxplus", x, y, config=replace(UNIT_FP32, m=2, n=2))
    assert np.array_equal(codes(result.d), codes(mmo("maxplus", x, y)))
    with pytest.raises(TypeError, match="a must be float16 on the RTL, not bfloat16"):
        compute("mma", x, y, config=SMALL)


def test_a_filler_that_wins_is_caught(monkeypatch):
    monkeypatch.setattr(vitruvian.sim.rtl.tiles, "_fillers", lambda *given: (0, 0))
    a = np.full((1, 3), 5, np.float16)
    assert compute("minplus", a, a.T, config=SMALL).d[0, 0] == 0


def test_semirings_take_a_cycle_a_beat():
    a = np.ones((16, 16), np.float16)
    result = compute("minmax", a, a, config=SMALL)
    assert result.beats == 8 * 8 * 4
    assert result.cycles == result.beats + SMALL.latency_cycles


def test_the_cycle_model_is_the_rtl_s():
    """A 16×16×16 instruction takes the modelled cycles and the latency of the unit."""
    for config, dtype, unit, inputs in (
        (SMALL, np.float16, Unit(m=2, n=2, k=4), "fp16"),
        (WIDE, np.float32, SIZE, "fp32"),
    ):
        x = np.ones((16, 16), dtype)
        for operation in ("mma", "minplus", "addnorm")[: 3 if inputs == "fp16" else 2]:
            result = compute(operation, x, x, config=config)
            expected = Core(unit=unit).interval(operation, inputs)
            assert result.cycles == expected + config.latency_cycles


def test_the_error_for_addnorm_on_the_rtl_names_alternatives():
    one = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"not FP32; inputs='fp16' rounds .* backend='golden'"):
        Machine(SIZE, "rtl").apply("addnorm", one, one)
    with pytest.raises(ValueError, match="k must be a multiple of 4 for addnorm"):
        Machine(SIZE, "rtl").apply("addnorm", one.astype("f2"), one.astype("f2"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": np.ones((2, 2), np.float32)}, "a must be float16 on the RTL, not float32"),
        ({"config": WIDE}, "a must be float32 on the RTL, not float16"),
        ({"config": WIDE, "a": np.ones((2, 2), "f4")}, "b must be float32 on the RTL, not float16"),
        ({"indices": np.zeros((2, 2), int)}, "indices must be None on a dense unit"),
        ({"config": SPARSE}, "indices must be given on a unit with sparsity"),
        ({"config": SPARSE, "indices": np.zeros((2, 2), int)}, r"\(M, K\) and \(2·K, N\)"),
        ({"c": np.ones((2, 2))}, "c must be float32, not float64"),
        ({"op": "addnorm", "config": replace(SMALL, operations=("mma",))}, "operation must be one"),
        ({"c": np.ones((3, 2), np.float32)}, r"c must be \(M, N\) = \(2, 2\)"),
    ],
)
def test_errors_of_compute(given, message):
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
def test_graph_problems_have_the_bits_of_golden(name, problem):
    machines = [Machine(Unit(m=2, n=2, k=4), backend) for backend in ("golden", "rtl")]
    results = [solve(problem, GRAPHS[name], machine=m, inputs="fp16") for m in machines]
    first, second = (codes(result.values) for result in results)
    assert np.array_equal(first, second)
    assert machines[0].counts == machines[1].counts
    assert machines[1].measured_cycles and not machines[0].measured_cycles


def test_weights_that_fp16_cannot_represent():
    graph = nx.gn_graph(16, seed=1)
    for number, (*_, edge) in enumerate(graph.edges(data=True)):
        edge["weight"] = 0.1 + number / 3
    results = [solve("apsp", graph, machine=Machine(SIZE, x), inputs="fp32") for x in BOTH]
    first, second = (codes(result.values) for result in results)
    assert np.array_equal(first, second)
    expected = nx.floyd_warshall_numpy(graph)
    assert np.allclose(results[1].values, expected, rtol=1e-6)  # a few roundings to 24 bits


def test_errors_of_machines_with_fp32_operands():
    one = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match="preset must be ieee with FP32 operands"):
        Machine(replace(SIZE, preset="a100"), "rtl").apply("mma", one, one)
    with pytest.raises(ValueError, match="k must be at least 2 with FP32 operands"):
        Machine(replace(SIZE, k=1), "rtl").apply("minplus", one, one)


def test_the_command(tmp_path, capsys):
    graph, out = tmp_path / "ring.mtx", tmp_path / "out.json"
    scipy.io.mmwrite(graph, nx.to_scipy_sparse_array(nx.cycle_graph(20, nx.DiGraph), dtype=float))
    given = ["graph", "apsp", "--graph", str(graph), "--backend", "rtl", "--unit", "2x2x4"]
    assert main([*given, "--json", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["rtl_cycles"] > 0 and result["inputs"] == "fp16"
    assert "RTL cycles" in capsys.readouterr().out
    assert main([*given, "--unit", "2x2x2", "--input", "fp32", "--json", str(out)]) == 0
    again = json.loads(out.read_text())
    assert again["inputs"] == "fp32" and again["extreme"] == result["extreme"]
    assert again["rtl_cycles"] > result["rtl_cycles"]  # one pair of operands in two cycles
    capsys.readouterr()
    points = tmp_path / "points.mtx"
    scipy.io.mmwrite(points, np.arange(6.0).reshape(3, 2))
    knn = ["graph", "knn", "--graph", str(points), "--backend", "rtl", "--neighbours", "1"]
    assert main([*knn, "--input", "fp32"]) == 2
    error = capsys.readouterr().err
    assert "must be FP16 on compiled RTL, not FP32; --input fp16 rounds them" in error
    assert "--backend golden takes them unchanged" in error
