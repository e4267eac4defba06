"""One function for all sparse applications: its conventions, its outcome, and wrong arguments."""

import dataclasses
import gzip
import subprocess
import sys
import types
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph

from tests.support.sparse_problems import PROBLEMS, matrix, problem
from vitruvian import sparse
from vitruvian.common.errors import UserError
from vitruvian.golden.sparse import Sparse, applications
from vitruvian.golden.sparse.execute import run
from vitruvian.sparse.options import OPTIONS
from vitruvian.sparse.solving import solve

#: The arguments of each application besides the matrix, for 40 vertices
NEEDED: dict[str, dict[str, Any]] = {
    "labelprop": {"labels": [0, 1] + [-1] * 38, "tolerance": 1e-4},
    "gcn": {"features": np.eye(40, 3), "weights": [np.ones((3, 2))]},
    "gmres": {"b": np.ones(40)},
    "cg": {"b": np.ones(40)},
    "bicgstab": {"b": np.ones(40)},
}


def as_scipy(a: Sparse) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_application_gives_the_bits_of_golden_in_both_dataflows(name):
    a = problem(name, 1).matrices["A"] if name in ("cg", "gmres", "bicgstab") else matrix(1)
    state = applications.APPLICATIONS[name](a, **NEEDED.get(name, {}))
    golden = run(state.graph, state.matrices, state.given, iterations=state.iterations)
    for dataflow, width in (("plain", None), ("oei", None), ("oei", 7)):
        result = solve(name, as_scipy(a), dataflow=dataflow, width=width, **NEEDED.get(name, {}))
        assert (result.iterations, result.failure) == (golden.iterations, golden.failure)
        assert (result.converged, result.dataflow) == (golden.converged, dataflow)
        assert result.tensors.keys() == golden.values.keys()
        for key, values in golden.values.items():
            assert result.tensors[key].tobytes() == values.tobytes(), key
    assert result.reads <= golden.reads and result.report is None and name in repr(result)


def test_the_dataflow_is_plain_unless_a_width_is_given():
    a = matrix(1)
    assert solve("pagerank", a).dataflow == solve("pagerank", a, simulate=True).dataflow == "plain"
    shared = solve("pagerank", a, width=5)
    assert shared.dataflow == "oei" and shared.reads < solve("pagerank", a).reads
    assert shared.values.tobytes() == solve("pagerank", a).values.tobytes()


def test_the_types_of_the_values():
    a = matrix(1, symmetric=True)
    kinds = {name: solve(name, a, **NEEDED.get(name, {})).values.dtype.kind for name in PROBLEMS}
    assert kinds == dict.fromkeys(PROBLEMS, "f") | {
        "kcore": "i", "components": "i", "kmeans": "i", "knn": "b", "labelprop": "i"
    }  # fmt: skip


def test_labels_are_the_strongest_beliefs():
    path = nx.disjoint_union(nx.path_graph(4), nx.path_graph(2))
    result = solve("labelprop", path, labels={0: 1, 3: 0}, weight=None)
    assert result.values.tolist() == [1, 1, 0, 0, -1, -1]  # nothing reaches the last two
    assert np.allclose(result.tensors["belief"][:4, 1], [1, 2 / 3, 1 / 3, 0], atol=1e-8)


# NetworkX's conventions


def test_vertices_of_a_networkx_graph_keep_their_names():
    graph = nx.les_miserables_graph()
    result = solve("sssp", graph, source="Valjean")
    theirs = nx.single_source_dijkstra_path_length(graph, "Valjean")
    assert result.by_vertex() == theirs and result.vertices == tuple(graph)
    unweighted = solve("sssp", graph, source="Valjean", weight=None)
    assert unweighted.by_vertex() == nx.single_source_shortest_path_length(graph, "Valjean")


@pytest.mark.parametrize("directed", [False, True])
def test_weights_loops_and_dangling_vertices_count_as_in_networkx(directed):
    rng = np.random.default_rng(3)
    graph: Any = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(rng.permutation(30).tolist())
    for _ in range(60):
        graph.add_edge(*rng.integers(0, 25, 2).tolist(), cost=int(rng.integers(1, 9)))
    graph.add_edge(4, 4, cost=2)
    theirs = nx.pagerank(graph, weight="cost", tol=1e-12, max_iter=500)
    ours = solve("pagerank", graph, weight="cost", tolerance=1e-12, iterations=500).by_vertex()
    assert ours.keys() == theirs.keys() and max(abs(ours[v] - theirs[v]) for v in ours) < 1e-13
    lengths = nx.single_source_dijkstra_path_length(graph, 4, weight="cost")
    ours = solve("sssp", graph, weight="cost", source=4).by_vertex()
    assert {v: d for v, d in ours.items() if d < np.inf} == lengths
    hops = nx.single_source_shortest_path_length(graph, 4)
    assert {v for v, near in solve("knn", graph, source=4, hops=2).by_vertex().items() if near} == {
        v for v in hops if hops[v] <= 2
    }
    ours = solve("bfs", graph, source=4).by_vertex()
    assert {v: d for v, d in ours.items() if d < np.inf} == hops
    graph.remove_edges_from([*nx.selfloop_edges(graph)])
    assert solve("kcore", graph).by_vertex() == nx.core_number(graph)


def test_negative_weights_and_cycles_have_the_names_of_the_vertices():
    edges = [("a", "b", 2.0), ("b", "c", -5.0), ("a", "c", 1.0), ("x", "x", -1.0)]
    for dataflow in ("oei", "plain"):
        result = solve("sssp", edges, source="a", dataflow=dataflow)
        assert result.by_vertex() == {"a": 0.0, "b": 2.0, "c": -3.0, "x": np.inf}
    message = r"^sssp needs .* weight that source reaches, not (.) → . → . → \1 with the weight -1$"
    with pytest.raises(UserError, match=message) as caught:
        solve("sssp", [*edges, ("c", "a", 2.0)], source="a")
    cycles = "a → b → c → a", "b → c → a → b", "c → a → b → c"
    assert any(cycle in str(caught.value) for cycle in cycles)
    ring = [(i, (i + 1) % 20, -1.0) for i in range(20)]
    with pytest.raises(UserError, match=r"(\d+ → ){4}… → (\d+ → ){3}\d+ with the weight -20$"):
        solve("sssp", ring)


def test_core_numbers_of_matrices():
    a = matrix(2)
    graph = nx.from_scipy_sparse_array(as_scipy(a), create_using=nx.DiGraph)
    theirs = list(nx.core_number(graph).values())
    assert solve("kcore", a).values.tolist() == theirs
    undirected = list(nx.core_number(graph.to_undirected()).values())
    assert solve("kcore", a, directed=False).values.tolist() == undirected != theirs
    both = nx.DiGraph(nx.karate_club_graph())  # every edge in both directions counts twice
    assert solve("kcore", both).by_vertex() == nx.core_number(both)
    loops = as_scipy(a) + scipy.sparse.eye_array(40)
    assert solve("kcore", loops).values.tolist() == theirs


def test_parallel_edges():
    graph = nx.MultiDiGraph()
    graph.add_weighted_edges_from([(0, 1, 3.0), (0, 1, 1.0), (0, 2, 5.0), (1, 2, 2.0), (2, 0, 1)])
    assert solve("sssp", graph, source=0).by_vertex() == nx.single_source_dijkstra_path_length(
        graph, 0
    )
    theirs = nx.pagerank(graph, tol=1e-12)
    ours = solve("pagerank", graph, tolerance=1e-12).by_vertex()
    assert max(abs(ours[v] - theirs[v]) for v in theirs) < 1e-14


# What a matrix may be


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_every_format_of_scipy(form, kind):
    a = matrix(3)
    given = kind(as_scipy(a)).asformat(form)
    assert (sparse.as_sparse(given).dense() == a.dense()).all()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16, np.float16, np.float32])
def test_every_real_type_and_both_types_of_indices(dtype):
    dense = np.round(matrix(3).dense() * 3).astype(dtype)
    for index in (np.int32, np.int64)[: 2 * (dtype is not np.float16)]:  # SciPy has no float16
        given = scipy.sparse.csr_array(dense)
        given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
        assert (sparse.as_sparse(given).dense() == dense).all()
    assert (sparse.as_sparse(dense).dense() == dense).all()


def test_unsorted_duplicates_are_added_and_zeros_stay():
    given = scipy.sparse.coo_array(
        ([1.0, 2.0, 4.0, 0.0], ([1, 0, 1, 0], [0, 2, 0, 1])), shape=(2, 3)
    )
    a = sparse.as_sparse(given)
    assert a.dense().tolist() == [[0, 0, 2], [5, 0, 0]] and a.nonzeros == 3
    jumbled = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    assert sparse.as_sparse(jumbled).dense().tolist() == [[2, 0, 4], [0, 0, 0]]
    # An edge of weight 0 is an edge, as in SciPy.
    theirs = scipy.sparse.csgraph.dijkstra(scipy.sparse.csr_array(given)[:, :2], indices=0)
    assert (solve("sssp", given.tocsr()[:, :2]).values == theirs).all() and theirs[1] == 0


def test_files_of_both_kinds(tmp_path):
    a = matrix(4)
    scipy.io.mmwrite(tmp_path / "a.mtx", as_scipy(a), precision=17)
    packed = tmp_path / "b.mtx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    for path in (tmp_path / "a.mtx", packed, str(packed)):
        assert (sparse.as_sparse(path).dense() == a.dense()).all()
        assert (solve("bfs", path, source=3).values == solve("bfs", a, source=3).values).all()


def test_small_and_empty_matrices():
    alone = np.zeros((1, 1))
    assert solve("pagerank", alone).values.tolist() == [1.0]
    assert solve("kcore", alone).values.tolist() == [0]
    assert solve("cg", alone, b=np.zeros(1)).converged
    assert solve("gcn", alone, features=np.ones((1, 2)), weights=[np.eye(2)]).converged
    one = np.ones((1, 1))
    assert solve("bfs", one).values.tolist() == [0] and solve("knn", one).values.tolist() == [True]
    assert solve("kmeans", one, clusters=1).values.tolist() == [0]
    assert solve("labelprop", one, labels=[0]).values.tolist() == [0]
    for solver in ("cg", "gmres", "bicgstab"):
        assert abs(solve(solver, 2 * one, b=[3.0]).values[0] - 1.5) <= 1.5e-8  # the tolerance
    for name in OPTIONS:
        needed: dict[str, Any] = {k: np.zeros(0) for k in ("b", "labels") if k in OPTIONS[name]}
        needed |= {"features": np.zeros((0, 1)), "weights": []} if name == "gcn" else {}
        with pytest.raises(UserError, match="matrix must have at least one row, not 0"):
            solve(name, np.zeros((0, 0)), **needed)
    with pytest.raises(UserError, match="matrix must have at least one row, not 0"):
        solve("pagerank", nx.Graph())


def test_neighbours_end_when_no_vertex_joins():
    """Regression: 999 999 999 hops on a graph of four vertices took all of them."""
    line = np.eye(4, k=1)
    for hops in (1, 2, 3, 4, 999_999_999, 10**400):
        result = solve("knn", line, hops=hops)
        assert result.values.tolist() == [each <= hops for each in range(4)]
        assert result.iterations == min(hops, 4) and result.converged
    assert solve("knn", np.zeros((4, 4)), hops=3).iterations == 1


def test_the_residual_is_that_of_the_values():
    state = problem("gmres", 2)
    a, b = state.matrices["A"], np.asarray(state.given["b"])
    for solver, limit in (("gmres", 1), ("gmres", 100), ("bicgstab", 2), ("bicgstab", 100)):
        options: dict[str, Any] = {"restart": 3} if solver == "gmres" else {}
        result = solve(solver, a, b=b, iterations=limit, **options)
        expected = np.linalg.norm(b - a.dense() @ result.values) / np.linalg.norm(b)
        # The product of NumPy adds in another order: some 40 roundings of 1.1e-16.
        assert result.residual == pytest.approx(expected, rel=1e-6, abs=1e-14)
        assert result.converged == ((result.residual or 0) <= 1e-8) and "residual" in repr(result)
    assert solve("gmres", a, b=b * 0).residual == 0
    assert solve("bfs", a).residual is None


def test_the_simulated_run_has_the_passes_of_its_confirmations():
    state = problem("cg", 2)
    a, b = state.matrices["A"], state.given["b"]
    result = solve("cg", a, b=b, tolerance=1e-18, simulate=True)
    figures = result.report.figures()
    assert figures["product_sweeps"] == result.reads >= result.iterations + 2
    assert figures["product_sweeps"] == figures["iterations"] + result.report.schedule.confirmations


# Linear systems


@pytest.mark.parametrize("solver", ["cg", "gmres", "bicgstab"])
def test_systems_may_start_anywhere_and_a_zero_right_side_gives_zeros(solver):
    state = problem(solver, 2)
    a, b = state.matrices["A"], np.asarray(state.given["b"])
    expected = np.linalg.solve(a.dense(), b)
    near = solve(solver, a, b=b, x0=expected + 1e-3, tolerance=1e-10)
    far = solve(solver, a, b=b, tolerance=1e-10)
    assert near.converged and np.allclose(near.values, expected, rtol=0, atol=1e-8)
    assert near.iterations < far.iterations
    exact = solve(solver, a, b=b, x0=far.values, tolerance=1e-8)
    assert exact.iterations == 0 and exact.converged
    zero = solve(solver, a, b=np.zeros(40), x0=np.ones(40))
    assert zero.converged and not zero.values.any()


def test_breakdowns_are_results_with_finite_values():
    indefinite = np.diag([1.0, -1.0, 2.0])
    result = solve("cg", indefinite, b=[1.0, 1.0, 1.0])
    assert result.failure == "breakdown: the matrix is not positive definite"
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    results = [
        result,
        solve("cg", turn, b=[1.0, 0.0]),
        solve("bicgstab", turn, b=[1.0, 0.0]),
        solve("gmres", turn, b=[1.0, 0.0], restart=1),
        *(solve(name, np.diag([1.0, 0.0]), b=[1.0, 1.0]) for name in ("cg", "gmres", "bicgstab")),
        *(solve(name, np.zeros((2, 2)), b=[1.0, 1.0]) for name in ("cg", "gmres", "bicgstab")),
    ]
    for result in results:
        assert not result.converged and np.isfinite(result.values).all(), result
        assert result.failure and ("breakdown" in result.failure or "stagnation" in result.failure)
    assert (results[1].failure or "").endswith("the matrix is not symmetric")
    assert "breakdown" in repr(results[0])


def test_a_run_that_reaches_the_limit_has_not_converged():
    result = solve("pagerank", matrix(1), iterations=2)
    assert not result.converged and result.failure is None and result.iterations == 2
    assert "not converged after 2 iterations" in repr(result)
    lost = solve("cg", problem("gmres", 1).matrices["A"], b=np.arange(40), iterations=3)
    assert not lost.converged and "not symmetric" in (lost.failure or "")


# Wrong arguments


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pagerang", {}, "application must be one of pagerank, .*'pagerang'; the nearest is p"),
        ("PageRank", {}, "not 'PageRank'; the nearest is pagerank"),
        ("xyz", {}, "application must be one of .*, not 'xyz'$"),
        ("pagerank", {"dampening": 1}, "damping, tolerance, iterations, not 'dampening'; the n"),
        ("kcore", {"k": 1}, "option of kcore must be directed, not 'k'"),
        ("pagerank", {"dataflow": "both"}, "dataflow must be one of plain, oei, not 'both'"),
        ("pagerank", {"width": 3, "dataflow": "plain"}, "dataflow must be oei with a width, not p"),
        ("triangles", {"dataflow": "oei"}, "dataflow of triangles must be plain, without a width"),
        ("triangles", {"width": 3}, "dataflow of triangles must be plain, without a width"),
        ("triangles", {"simulate": True}, "simulate must be False for triangles, which no dataf"),
        ("triangles", {"source": 1}, "option of triangles must be left out, not 'source'"),
        ("components", {"source": 1}, "option of components must be left out, not 'source'"),
        ("pagerank", {"width": 0}, "width must be at least 1, not 0"),
        ("pagerank", {"block": 4}, "block must be given with simulate=True only, not 4"),
        ("pagerank", {"reorder": "x"}, "reorder must be given with simulate=True only, not 'x'"),
        ("bfs", {"memory": "hbm2"}, "memory must be given with simulate=True only, not 'hbm2'"),
        ("pagerank", {"damping": np.nan}, "damping must be between 0 and 1, not nan"),
        ("pagerank", {"tolerance": -1}, "tolerance must be at least 0, not -1"),
        ("pagerank", {"iterations": 0}, "iterations must be at least 1, not 0"),
        ("bfs", {"source": 40}, "source must be between 0 and 39, not 40"),
        ("bfs", {"source": -1}, "source must be between 0 and 39, not -1"),
        ("knn", {"hops": 0}, "hops must be at least 1, not 0"),
        ("kmeans", {"clusters": 41}, "clusters must be between 1 and 40, not 41"),
        ("kmeans", {"seed": -1}, "seed must be at least 0, not -1"),
        ("labelprop", {"labels": {50: 1}}, "vertex must be between 0 and 39, not 50"),
        ("labelprop", {"labels": {5: -2}}, "label of 5 must be at least -1, not -2"),
        ("labelprop", {"labels": [0.5] * 40}, "labels must be whole numbers, not float64"),
        ("labelprop", {"labels": [99] * 40}, "labels must be -1 or a class"),
        ("cg", {"b": np.ones(40) * 1j}, "b must have real numbers, not complex128"),
        ("cg", {"b": np.ones((40, 2))}, r"b must have 40 elements, not the shape \(40, 2\)"),
        ("cg", {"b": np.ones(40), "x0": [np.nan] * 40}, "x0 must be finite, not nan"),
        ("cg", {"b": np.full(40, 1e200)}, r"element of b must be between 1e-130 and 1e\+150"),
        ("cg", {"b": np.ones(40), "x0": [1e200] * 40}, r"of x0 must be at most 1e\+150, not 1e"),
        ("gcn", NEEDED["gcn"] | {"features": [["a"]] * 40}, "features must be real numbers"),
        ("gcn", NEEDED["gcn"] | {"weights": [np.full((3, 1), np.inf)]}, "be finite, not inf"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused(name, options, message):
    with pytest.raises(UserError, match=message):
        solve(name, matrix(1), **options)


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        (
            "pagerank",
            -2.0,
            r"weights must be finite and at least 0, not -2.0 in row \d+ and column \d+ "
            r"\(pagerank, labelprop and gcn need weights from 0 on; bfs, knn, kcore and comp",
        ),
        ("sssp", np.nan, "weights must be finite, not nan in row"),
        ("pagerank", np.inf, "at least 0, not inf in row"),
        ("labelprop", -1.0, "at least 0, not -1.0"),
        ("gcn", -1.0, "at least 0, not -1.0"),
        ("kmeans", np.nan, "weights must be finite, not nan"),
        ("cg", np.inf, "weights must be finite, not inf"),
    ],
)
def test_a_wrong_weight_is_named(name, bad, message):
    a = matrix(1)
    values = a.row_values.copy()
    values[17] = bad
    with pytest.raises(UserError, match=message) as caught:
        solve(name, a.with_values(values), **NEEDED.get(name, {}))
    assert f"row {a.rows[17]} and column {a.column_index[17]}" in str(caught.value)


def test_values_do_not_matter_where_only_edges_count():
    a = matrix(1)
    for name in ("bfs", "knn", "kcore"):
        assert (solve(name, a.with_values(np.nan)).values == solve(name, a).values).all()


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "kmeans"])
def test_a_matrix_that_is_not_square_is_refused(name):
    with pytest.raises(UserError, match="matrix must be square, not 3 by 4"):
        solve(name, np.ones((3, 4)), **NEEDED.get(name, {}))


def test_kmeans_takes_points_in_a_matrix_that_is_not_square():
    assert solve("kmeans", np.eye(3, 4), clusters=3).values.shape == (3,)
    with pytest.raises(UserError, match="one value per cluster"):
        solve("kmeans", np.eye(3, 4), clusters=2).by_vertex()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, TypeError, "matrix must be a SciPy sparse matrix, .* not int"),
        ([[1, 2]], TypeError, "not list"),
        (np.ones(3), UserError, "matrix must have 2 dimensions, not 1"),
        (np.eye(2) * 1j, UserError, "matrix must have real numbers, not complex128"),
        (scipy.sparse.eye_array(2) * 1j, UserError, "real numbers, not complex128"),
        (np.array([["a"]]), UserError, "real numbers, not <U1"),
        (np.array([[None]]), UserError, "real numbers, not object"),
        (scipy.sparse.coo_array([1.0, 2.0]), UserError, "matrix must have 2 dimensions, not 1"),
        ("absent.mtx", UserError, "absent.mtx: No such file"),
        (
            nx.Graph([(1, 2, {"weight": "a"})]),
            UserError,
            r"weight of the edge \(1, 2\) must be a n",
        ),
        (nx.Graph([(1, 2, {"weight": None})]), UserError, "must be a number, not None"),
    ],
)
def test_what_is_no_matrix_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        solve("pagerank", given)


def test_names_and_numbers_of_vertices():
    graph = nx.les_miserables_graph()
    with pytest.raises(UserError, match="a vertex of the graph, not 'Vajean'; the nearest is 'Val"):
        solve("bfs", graph, source="Vajean")
    with pytest.raises(UserError, match=r"a vertex of the graph, not 0$"):
        solve("bfs", graph, source=0)
    with pytest.raises(UserError, match=r"a vertex of the graph, not \[1\]"):
        solve("bfs", graph, source=[1])  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="labelled vertex must be a vertex of the graph, not 1"):
        solve("labelprop", graph, labels={1: 0})
    with pytest.raises(TypeError, match="source must be an int, not 'a'"):
        solve("bfs", matrix(1), source="a")
    assert solve("bfs", matrix(1), source=np.int64(3)).values[3] == 0


def test_options_that_must_be_given():
    with pytest.raises(TypeError, match="gcn needs features and weights, which must be given"):
        solve("gcn", matrix(1))
    with pytest.raises(TypeError, match="application must be a name, not 3"):
        solve(3, matrix(1))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="simulate must be a bool, not 1"):
        solve("bfs", matrix(1), simulate=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="damping must be a number, not '1'"):
        solve("pagerank", matrix(1), damping="1")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="progress must be a bool, not 1"):
        solve("bfs", matrix(1), progress=1)  # pyright: ignore[reportArgumentType]
    assert set(OPTIONS) == {*PROBLEMS, "triangles"} and OPTIONS["sssp"] == {"source": 0}


def test_scipy_and_networkx_are_imported_when_they_are_needed(root):
    code = (
        "import sys, numpy; from vitruvian import sparse; assert 'numba' not in sys.modules; "
        "sparse.solve('bfs', numpy.eye(3)); "
        "sys.exit(bool({'scipy.sparse', 'networkx', 'amaranth'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
    assert set(sparse.__all__) <= set(dir(sparse))
    assert all(getattr(sparse, name) for name in sparse.__all__)
    with pytest.raises(AttributeError, match=r"module 'vitruvian\.sparse' has no attribute 'solv'"):
        sparse.solv  # noqa: B018  # pyright: ignore


def test_a_problem_can_be_stated_without_being_run():
    state = sparse.problem("sssp", nx.path_graph(3), source=1, weight=None)
    assert isinstance(state, sparse.Problem) and state.graph.name == "sssp"
    assert [field.name for field in dataclasses.fields(state)][:2] == ["graph", "matrices"]


def test_the_simulator_gets_the_problem_and_its_report_is_returned(monkeypatch):
    """The simulator has tests of its own; here a stand-in shows what it is called with."""
    calls: list[Any] = []

    def simulate_application(state, architecture=None, **options):
        calls.append((state, architecture, options))
        return "report"

    module = types.ModuleType("vitruvian.sim.sparse.application")
    module.__dict__["simulate_application"] = simulate_application
    monkeypatch.setitem(sys.modules, module.__name__, module)
    result = solve(
        "pagerank", matrix(1), simulate=True, architecture="a.toml", reorder="x", block=4
    )
    ((state, architecture, options),) = calls
    assert result.report == "report" and state.graph.name == "pagerank"
    assert (architecture, options.pop("iterations")) == ("a.toml", result.iterations)
    memory = {"memory": None, "dram_simulator": None}
    assert options == {"reorder": "x", "block": 4, "confirmations": 0, **memory}
