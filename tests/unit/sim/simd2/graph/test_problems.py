"""``sim.simd2.graph``: results against NetworkX and SciPy, routes, and errors for bad input."""

import math
import warnings
from functools import cache
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array
from scipy.sparse.csgraph import floyd_warshall
from scipy.spatial import KDTree

import vitruvian.sim.simd2.graph.closures as closure_module
import vitruvian.sim.simd2.graph.routes as routes_module
from vitruvian.golden.simd2 import mmo
from vitruvian.sim.simd2.graph import (
    ALGORITHMS,
    BACKENDS,
    PROBLEMS,
    Counts,
    Machine,
    PrecisionWarning,
    most_iterations,
    nearest_neighbours,
    solve,
)

INF = math.inf


def weighted(graph, seed, low=1, high=20):
    """Set random whole weights, and return the graph."""
    rng = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = int(rng.integers(low, high))
    return graph


def acyclic(graph):
    """Return the graph with its edges directed from the earlier vertex to the later one."""
    where = {node: i for i, node in enumerate(graph.nodes)}
    result = nx.DiGraph()
    result.add_nodes_from(graph.nodes)
    for start, end, data in graph.edges(data=True):
        if where[start] != where[end]:
            pair = (start, end) if where[start] < where[end] else (end, start)
            result.add_edge(*pair, weight=data.get("weight", 1))
    return result


def probable(graph):
    """Return the graph with weights within (0, 1]."""
    result = graph.copy()
    for _, _, data in result.edges(data=True):
        data["weight"] = 8 / (8 + data.get("weight", 1))
    return result


@cache
def graphs():
    """Return ten graphs by name: six undirected, four directed, some weighted or disconnected."""
    return {
        "karate": nx.karate_club_graph(),
        "miserables": nx.les_miserables_graph(),
        "davis": nx.davis_southern_women_graph(),
        "florentine": nx.florentine_families_graph(),
        "grid": weighted(nx.grid_2d_graph(6, 7), 1),
        "small world": weighted(nx.connected_watts_strogatz_graph(60, 4, 0.2, seed=2), 2),
        "dag": weighted(acyclic(nx.gnp_random_graph(50, 0.1, seed=3)), 3),
        "citations": nx.gn_graph(40, seed=4),
        "scale free": nx.DiGraph(weighted(nx.scale_free_graph(45, seed=5), 5)),
        "sparse": weighted(nx.gnp_random_graph(37, 0.04, seed=6, directed=True), 6),
    }


UNDIRECTED = ("karate", "miserables", "davis", "florentine", "grid", "small world")
ALL = (*UNDIRECTED, "dag", "citations", "scale free", "sparse")


def table(graph, rows, absent):
    """Return the matrix of a dict of dicts."""
    where = {node: i for i, node in enumerate(graph.nodes)}
    result = np.full((len(where), len(where)), absent)
    for source, row in rows:
        for target, value in row.items():
            result[where[source], where[target]] = value
    return result


def converted(graph, change):
    result = graph.copy()
    for _, _, data in result.edges(data=True):
        data["weight"] = change(data.get("weight", 1))
    return result


def longest(graph):
    negated = converted(graph, lambda w: -w)
    return -table(graph, nx.all_pairs_bellman_ford_path_length(negated), INF)


def widest(graph):
    """Return the largest capacity whose edges still lead from one vertex to another."""
    result = table(graph, (), -INF)
    where = {node: i for i, node in enumerate(graph.nodes)}
    weights = {data.get("weight", 1) for _, _, data in graph.edges(data=True)}
    for level in sorted(weights):
        kept = nx.DiGraph() if graph.is_directed() else nx.Graph()
        kept.add_nodes_from(graph.nodes)
        edges = graph.edges(data=True)
        kept.add_edges_from((u, v) for u, v, data in edges if data.get("weight", 1) >= level)
        for node in kept:
            result[where[node], [where[n] for n in nx.descendants(kept, node)]] = level
    np.fill_diagonal(result, INF)
    return result


def minimax(graph):
    tree = nx.minimum_spanning_tree(graph)
    rows = []
    for source, paths in nx.all_pairs_shortest_path(tree):
        row = {}
        for target, path in paths.items():
            row[target] = max(
                (tree.edges[e].get("weight", 1) for e in pairwise(path)), default=-INF
            )
        rows.append((source, row))
    return table(graph, rows, INF)


def reliable(graph):
    logs = converted(graph, lambda p: -math.log(p))
    rows = nx.all_pairs_dijkstra_path_length(logs)
    return np.exp(-table(graph, rows, INF))


def unreliable(graph):
    logs = converted(graph, math.log)
    return np.exp(table(graph, nx.all_pairs_bellman_ford_path_length(logs), INF))


def closed(graph):
    whole = nx.transitive_closure(graph, reflexive=True)
    return np.sign(nx.to_numpy_array(whole, nodelist=list(graph.nodes)))


#: By problem: a function of the input graph, the expected values, and if they are exact.
EXPECTED = {
    "apsp": (lambda g: g, lambda g: table(g, nx.all_pairs_dijkstra_path_length(g), INF), True),
    "aplp": (acyclic, longest, True),
    "mcp": (lambda g: g, widest, True),
    "maxrp": (probable, reliable, False),
    "minrp": (lambda g: probable(acyclic(g)), unreliable, False),
    "mst": (lambda g: g, minimax, True),
    "gtc": (lambda g: g, closed, True),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_values_and_routes_are_those_of_networkx(name):
    change, expect, exact = EXPECTED[name]
    names = UNDIRECTED if name == "mst" else ALL
    assert len(names) >= 6
    for case in names:
        graph = change(graphs()[case])
        expected = expect(graph)
        for algorithm in ALGORITHMS:
            result = solve(name, graph, algorithm=algorithm, block=16)
            if exact:
                assert np.array_equal(result.values, expected), (case, algorithm)
            else:
                np.testing.assert_allclose(result.values, expected, rtol=1e-5, err_msg=case)
            check_routes(result, graph, exact)


def check_routes(result, graph, exact):
    """Check every third pair: a route follows edges, and has the computed value."""
    names, absent = result.graph.names, result.problem.op.no_edge
    for i in range(0, len(names), 3):
        for j in range(0, len(names), 3):
            route = result.route(names[i], names[j])
            if route is None:
                assert result.values[i, j] == absent
                continue
            assert (route[0], route[-1]) == (names[i], names[j])
            assert len(set(route)) == len(route)
            assert all(graph.has_edge(u, v) for u, v in pairwise(route))
            tolerance = 0 if exact else 1e-5
            assert result.cost(route) == pytest.approx(result.values[i, j], rel=tolerance)


@pytest.mark.parametrize("name", PROBLEMS)
def test_edges_in_two_of_four_form(name):
    """Some graphs need one compressed matrix, others two; 37 vertices are not whole groups."""
    change, expect, exact = EXPECTED[name]
    passes = set()
    for case in ("florentine", "grid") if name == "mst" else ("dag", "sparse", "citations"):
        graph = change(graphs()[case])
        result = solve(name, graph, algorithm="bellman-ford", sparse=True)
        np.testing.assert_allclose(result.values, expect(graph), rtol=0 if exact else 1e-5)
        check_routes(result, graph, exact)
        product = Counts.of(len(graph), len(graph), len(graph), sparse=True)
        assert result.counts.sparse == result.counts.mmo
        passes.add(result.counts.mmo / result.iterations / product.mmo)
    assert passes <= {1, 2} and (2 in passes or name == "mst")
    with pytest.raises(ValueError, match="bellman-ford for sparse edges, not 'leyzorek'"):
        solve(name, graph, algorithm="leyzorek", sparse=True)
    assert solve(name, graph, sparse=True).algorithm == "bellman-ford"


def test_two_of_four_edges_take_half_the_operations():
    path = nx.path_graph(64, create_using=nx.DiGraph)
    result = [solve("apsp", path, algorithm="bellman-ford", sparse=s) for s in (False, True)]
    assert result[0].iterations == result[1].iterations == 63
    assert result[0].counts.mmo == 2 * result[1].counts.mmo
    assert np.array_equal(result[0].values, result[1].values)
    lonely = solve("gtc", nx.empty_graph(5), algorithm="bellman-ford", sparse=True)
    assert lonely.counts == Counts() and np.array_equal(lonely.values, np.eye(5))


@pytest.mark.parametrize("name", UNDIRECTED)
@pytest.mark.parametrize("inputs", ["fp16", "fp32"])
def test_a_minimum_spanning_tree_has_the_weight_of_networkx(name, inputs):
    """This holds in FP16, too: 1/3 and other weights are rounded, but rounding keeps the order."""
    graph = converted(graphs()[name], lambda w: w / 3 + 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        result = solve("mst", graph, inputs=inputs)
    expected = nx.minimum_spanning_tree(graph)
    tree = nx.Graph(result.tree)
    assert nx.is_forest(tree) and len(result.tree) == expected.number_of_edges()
    assert result.tree_weight == pytest.approx(expected.size(weight="weight"), rel=1e-12)
    assert all(graph.has_edge(*edge) for edge in result.tree)


def test_routes_if_rounded_values_leave_no_tight_path(monkeypatch):
    """A distance that is rounded down as an operand improves along a cycle of small weights."""
    again = []
    row = routes_module._row
    monkeypatch.setattr(routes_module, "_row", lambda *given: again.append(1) or row(*given))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        weights = rng.random((24, 24)) * 10.0 ** rng.integers(-4, 1, (24, 24))
        weights[rng.random((24, 24)) < 0.7] = INF
        exact = floyd_warshall(weights)
        for inputs, algorithm in product(("fp16", "fp32"), ALGORITHMS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrecisionWarning)
                result = solve("apsp", weights, inputs=inputs, algorithm=algorithm, block=16)
            for i, j in np.argwhere(np.isfinite(exact)):
                route = result.route(int(i), int(j))
                assert route and len(set(route)) == len(route)
                near = 1e-5 if inputs == "fp32" else 0.02
                assert result.cost(route) == pytest.approx(exact[i, j], rel=near)
    assert again


def test_a_forest_and_equal_weights():
    graph = nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(4))
    result = solve("mst", graph)
    assert len(result.tree) == 4 + 3 and result.tree_weight == 7
    assert np.isinf(result.value(0, 8)) and result.route(0, 8) is None


@pytest.mark.parametrize("case", ALL)
def test_nearest_neighbours_are_those_of_a_tree(case):
    """Vertices are points: the rows of the adjacency matrix, and random coordinates."""
    points = nx.to_numpy_array(graphs()[case])
    for x in (points, np.random.default_rng(7).integers(-99, 99, (len(points), 3)) / 8):
        result = nearest_neighbours(x, 4)
        distance = KDTree(x).query(x, 5)[0]
        np.testing.assert_allclose(np.sqrt(result.squares), np.sort(distance)[:, 1:], rtol=1e-6)
        exact = np.square(x[result.indices] - x[:, None]).sum(axis=-1)
        assert np.array_equal(exact.astype(np.float32), result.squares)
        assert not (result.indices == np.arange(len(x))[:, None]).any()


def test_neighbours_of_queries_and_errors():
    rng = np.random.default_rng(8)
    points, queries = rng.normal(size=(40, 5)), rng.normal(size=(7, 5))
    result = nearest_neighbours(points, 3, queries)
    assert result.inputs == "fp32"
    assert np.array_equal(result.indices, KDTree(points).query(queries, 3)[1])
    assert result.counts == Counts(loads=6, stores=3, fills=3, mmo=3)
    with pytest.warns(PrecisionWarning, match="coordinates are rounded to FP16"):
        nearest_neighbours(points, 3, inputs="fp16")
    for given, text in (
        ((points, 40), "count must be from 1 to 39, not 40"),
        ((points, 3, queries[:, :4]), "5 features like the points, not 4"),
        ((np.array([[1.0, np.nan]]), 1), "points must be finite numbers, not nan"),
        ((points[0], 1), "points must be a matrix of numbers"),
    ):
        with pytest.raises(ValueError, match=text):
            nearest_neighbours(*given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", PROBLEMS)
def test_without_the_check_the_values_are_the_same(name):
    change = EXPECTED[name][0]
    graph = change(graphs()["grid"])
    for algorithm in ("bellman-ford", "leyzorek"):
        result = solve(name, graph, algorithm=algorithm, check=False)
        ended = solve(name, graph, algorithm=algorithm)
        assert result.iterations == most_iterations(algorithm, 42) and not result.converged
        assert ended.iterations <= result.iterations
        assert np.array_equal(result.values, ended.values)
        each = Counts.of(42, 42, 42)
        assert result.counts.mmo == result.iterations * each.mmo == result.iterations * 27
        assert result.counts.loads == result.iterations * (2 * 27 + 9)
        assert result.counts.stores == result.iterations * 9


def test_iterations_of_a_path():
    """Bellman–Ford adds an edge, Leyzorek doubles the edges; one more iteration changes nothing."""
    graph = nx.path_graph(34)
    result = {name: solve("apsp", graph, algorithm=name) for name in ("bellman-ford", "leyzorek")}
    assert result["bellman-ford"].iterations == 33 and result["bellman-ford"].converged
    assert result["leyzorek"].iterations == 6  # 32 edges after five
    graph.add_edge(0, 33)
    assert solve("apsp", graph).iterations == 6  # 16 after four; a fifth and a sixth
    assert solve("apsp", graph).value(0, 17) == 17


def and_or(op, a, b, c=None, **settings):
    """Compute orand with ⊕ and ⊗ exchanged."""
    result = ((a != 0)[:, :, None] | (b != 0)[None]).all(axis=1) & (c != 0)
    return result.astype(np.float32)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("gtc", and_or),
        ("mcp", lambda op, a, b, c=None, **more: mmo("minmax", a, b, c, **more)),
        ("apsp", lambda op, a, b, c=None, **more: mmo("minplus", a, b.T.copy(), c, **more)),
    ],
)
def test_mutants_of_a_back_end_are_caught(monkeypatch, name, mutant):
    monkeypatch.setitem(BACKENDS, "mutant", mutant)
    graph = graphs()["sparse"]
    result = solve(name, graph, machine=Machine(backend="mutant"))
    assert not np.array_equal(result.values, EXPECTED[name][1](graph))


@pytest.mark.parametrize("part", ["rows", "check"])
def test_mutants_of_the_algorithms_are_caught(monkeypatch, part):
    """One mutant omits the paths through a block, the other runs too few iterations."""
    graph = graphs()["grid"]
    expected = solve("apsp", graph).values
    if part == "rows":
        machine = Machine()
        apply = machine.apply
        monkeypatch.setattr(
            machine,
            "apply",
            lambda op, a, b, c: c if len(c) == 42 == c.shape[1] else apply(op, a, b, c),
        )
        result = solve("apsp", graph, algorithm="floyd-warshall", block=16, machine=machine)
    else:
        monkeypatch.setattr(closure_module, "most_iterations", lambda *given, **more: 3)
        result = solve("apsp", graph, check=False)
    assert not np.array_equal(result.values, expected)


def test_all_inputs_give_the_same(tmp_path):
    graph = graphs()["dag"]
    sparse = csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    mmwrite(tmp_path / "dag.mtx", sparse)
    dense = nx.to_numpy_array(graph, nonedge=INF)
    expected = solve("apsp", graph)
    reference = floyd_warshall(sparse)
    for source in (sparse, dense, tmp_path / "dag.mtx", str(tmp_path / "dag.mtx")):
        assert np.array_equal(solve("apsp", source).values, expected.values)
    zeros = nx.to_numpy_array(graph)
    assert np.array_equal(solve("apsp", zeros, no_edge=0).values, reference)
    result = solve("apsp", tmp_path / "dag.mtx")
    assert result.graph.names[0] == 1 and result.graph.size == graph.number_of_edges()
    widest_paths = solve("mcp", expected.graph).values
    assert np.array_equal(widest_paths, solve("mcp", graph).values)
    assert np.array_equal(solve("mcp", dense, no_edge=INF).values, widest_paths)
    names = solve("apsp", dense, names=list("ab") * 25).graph.names
    assert names[:2] == ("a", "b")


def test_parallel_edges_loops_and_a_stored_zero():
    graph = nx.MultiDiGraph([("a", "b", {"weight": 5}), ("a", "b", {"weight": 3})])
    graph.add_edge("b", "b", weight=9)
    assert solve("apsp", graph).value("a", "b") == 3
    assert solve("mcp", graph).value("a", "b") == 5
    stored = csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), shape=(3, 3))
    assert solve("apsp", stored).value(0, 2) == 2 and np.isinf(solve("apsp", stored).value(2, 0))
    assert solve("apsp", [[0.0]]).values.tolist() == [[0.0]]


def test_the_closure_without_reflexion():
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 1), (3, 3)])
    expected = nx.to_numpy_array(nx.transitive_closure(graph, reflexive=False))
    for algorithm in ALGORITHMS:
        result = solve("gtc", graph, reflexive=False, algorithm=algorithm, block=16)
        assert np.array_equal(result.values, expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_negative_weights_and_a_negative_cycle(algorithm):
    graph = weighted(acyclic(nx.gnp_random_graph(40, 0.2, seed=8)), 8, low=-9)
    expected = table(graph, nx.all_pairs_bellman_ford_path_length(graph), INF)
    result = solve("apsp", graph, algorithm=algorithm, block=16)
    assert np.array_equal(result.values, expected)
    check_routes(result, graph, True)
    graph.add_edge(30, 4, weight=-500)
    with pytest.raises(
        ValueError, match=r"without negative cycles, not one with \d+ → .* of weight -\d+$"
    ):
        solve("apsp", graph, algorithm=algorithm, block=16)


def test_bad_input_gets_a_clear_error(tmp_path):
    directed = nx.DiGraph
    cycle = directed([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])
    single_edge = directed([("a", "b", {"weight": 1.5})])
    (tmp_path / "bad.mtx").write_text("no matrix\n")
    for name, source, text in (
        ("apsp", directed([("a", "b", {"weight": np.nan})]), r"not nan \(edge a → b\)"),
        ("apsp", np.ones((3, 4)), "adjacency matrix must be square, not 3×4"),
        ("apsp", np.ones(3), "must be square, not 3"),
        ("apsp", np.zeros((0, 0)), "must have at least one row"),
        ("apsp", np.array([[0, 1j], [1j, 0]]), "weights must be real numbers, not complex128"),
        ("apsp", np.array([[0, -INF], [1, 0]]), r"finite, or inf for no edge, not -inf"),
        ("apsp", directed([("a", "b", {"weight": "x"})]), "weights must be numbers, not 'x'"),
        (
            "apsp",
            nx.Graph([("a", "b", {"weight": -1})]),
            "cycles, not one with a → b → a of weight -2",
        ),
        ("apsp", nx.Graph([("a", "a", {"weight": -1})]), "cycles, not one with a → a of weight -1"),
        (
            "apsp",
            [[INF, 0.1, INF], [INF, INF, 0.2], [-0.3, INF, INF]],
            r"with 0 → 1 → 2 → 0 of weight -7.\d+e-09 \(because its weights were rounded\)",
        ),
        ("apsp", tmp_path / "bad.mtx", "graph must be a Matrix Market file, not .*bad.mtx"),
        ("apsp", tmp_path / "none.mtx", "must be a Matrix Market file"),
        ("maxrp", np.array([[0, -INF], [1, 0]]), r"finite, or inf for no edge, not -inf"),
        ("mcp", np.array([[0, INF], [1, 0]]), r"finite, or -inf for no edge, not inf"),
        ("maxrp", single_edge, r"within \[0, 1\], not 1.5 \(edge a → b\)"),
        ("minrp", directed([("a", "b", {"weight": -0.5})]), r"within \[0, 1\], not -0.5"),
        ("minrp", cycle, "without cycles, not one with b → c → d → b"),
        ("aplp", cycle, "without cycles, not one with b → c → d → b"),
        ("aplp", nx.path_graph(3), "without cycles, not one with 0 → 1 → 0"),
        ("aplp", nx.cycle_graph(30, directed), r"4 → 5 → … → .* → 0 \(30 edges\)"),
        ("mst", cycle, "must have an undirected graph"),
        ("sssp", cycle, "problem must be one of apsp"),
    ):
        with pytest.raises(ValueError, match=text):
            solve(name, source)
    with pytest.raises(ValueError, match="algorithm must be one of bellman-ford"):
        solve("apsp", cycle, algorithm="dijkstra")
    with pytest.raises(ValueError, match="inputs must be one of fp16, fp32"):
        solve("apsp", cycle, inputs="fp64")
    with pytest.raises(ValueError, match=r"within ±65504 in fp16, not 100000; inputs='fp32'"):
        solve("apsp", directed([("a", "b", {"weight": 1e5})]), inputs="fp16")
    with pytest.raises(ValueError, match="vertex must be one of 'a', 'b', 'c', 'd', not 'e'"):
        solve("apsp", cycle).route("a", "e")
    assert not hasattr(solve("apsp", cycle), "tree")


def test_disconnected_pairs_stay_infinite():
    graph = nx.disjoint_union(nx.path_graph(20), nx.path_graph(15))
    for algorithm in ALGORITHMS:
        values = solve("apsp", graph, algorithm=algorithm, block=16).values
        assert np.isinf(values[:20, 20:]).all() and np.isfinite(values[:20, :20]).all()


def test_rounded_weights_and_values_cause_warnings():
    graph = converted(graphs()["grid"], lambda w: w + 0.1)
    with pytest.warns(PrecisionWarning) as heard:
        result = solve("apsp", graph, inputs="fp16")
    assert [str(w.message).split(",")[0] for w in heard] == [
        "weights are rounded to FP16",
        "values were rounded to FP16 operands between iterations",
    ]
    with pytest.warns(PrecisionWarning, match="rounded to FP32"):
        exact = solve("apsp", graph)
        assert solve("mcp", graph).inputs == exact.inputs == "fp32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve("apsp", converted(graphs()["grid"], lambda w: w + 0.125))
        whole = solve("apsp", graphs()["grid"], inputs="fp16")  # sums below 2048
        assert solve("mcp", graphs()["grid"]).inputs == "fp16"
    assert np.array_equal(whole.values, solve("apsp", graphs()["grid"]).values)
    np.testing.assert_allclose(result.values, exact.values, rtol=2e-3)
    assert not np.array_equal(result.values, exact.values)
    route = result.route((0, 0), (5, 6))
    assert route and result.cost(route) == pytest.approx(exact.value((0, 0), (5, 6)), rel=2e-3)
    far = nx.path_graph(20)
    with pytest.warns(PrecisionWarning, match="between iterations, and some overflowed"):
        solve("apsp", converted(far, lambda w: 60000 * w), inputs="fp16")
