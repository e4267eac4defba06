"""Searches over the edges of reached vertices, against plain execution, SciPy and NetworkX."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph

from vitruvian.golden.sparse import Sparse, applications
from vitruvian.golden.sparse.applications.traversal import NegativeCycle
from vitruvian.golden.sparse.execute import run
from vitruvian.golden.sparse.frontier import has_frontier, run_frontier
from vitruvian.golden.sparse.oei import run_oei


def random_graph(seed: int, *, low: float = 0.0) -> Sparse:
    """Return a directed graph with loops; weights from ``low`` on, zeros among them."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    rows, columns = rng.integers(0, size, (2, int(rng.integers(0, 4 * size))))
    weights = rng.choice([0.0, 0.1, 1e-17, rng.random(), 1e3, low], len(rows))
    return Sparse.from_entries(rows, columns, weights, (size, size), duplicates="min")


def grid(side: int) -> Sparse:
    """Return a square grid with random weights, whose diameter is large."""
    graph: nx.Graph = nx.grid_2d_graph(side, side)
    rng = np.random.default_rng(side)
    for ends in graph.edges:
        graph.edges[ends]["weight"] = rng.random()
    a = scipy.sparse.coo_array(nx.to_scipy_sparse_array(graph))
    return Sparse.from_entries(a.row, a.col, a.data, (side * side, side * side))


def same(problem: applications.Problem, *, steps: bool = True) -> np.ndarray:
    """Return the result, which has the bits of plain execution."""
    ours = run_frontier(problem)
    plain = run(problem.graph, problem.matrices, problem.given, iterations=problem.iterations)
    assert ours.values.keys() == plain.values.keys()
    (name,) = plain.values
    assert ours.values[name].tobytes() == plain.values[name].tobytes()
    assert (ours.converged, ours.failure) == (plain.converged, plain.failure)
    if steps:
        assert (ours.iterations, ours.reads) == (plain.iterations, plain.reads)
    return ours.values[name]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_the_bits_of_plain_execution(seed):
    a = random_graph(seed)
    source = seed % a.shape[0]
    same(applications.bfs(a, source=source))
    # Two paths may round to one distance, and then differ in their hops.
    same(applications.sssp(a, source=source), steps=False)
    eighths = a.with_values(np.random.default_rng(seed).integers(0, 40, a.nonzeros) / 8)
    same(applications.sssp(eighths, source=source))


def test_a_grid_equals_scipy_and_networkx():
    a = grid(30)
    theirs = scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)
    distance = same(applications.sssp(a, source=17))
    assert (distance == csgraph.dijkstra(theirs, indices=17)).all()
    level = same(applications.bfs(a, source=17))
    assert (level == csgraph.dijkstra(theirs, indices=17, unweighted=True)).all()
    graph = nx.from_scipy_sparse_array(theirs)
    assert dict(enumerate(distance.tolist())) == nx.single_source_dijkstra_path_length(graph, 17)
    assert dict(enumerate(level.tolist())) == nx.single_source_shortest_path_length(graph, 17)


@pytest.mark.parametrize("seed", range(20))
def test_negative_weights_equal_scipy(seed):
    """Weights w + p(i) − p(j) with multiples of 1/8 are exact and have no negative cycle."""
    a = random_graph(seed)
    rng = np.random.default_rng(seed)
    height = rng.integers(0, 400, a.shape[0]) / 8
    weights = rng.integers(1, 40, a.nonzeros) / 8 + height[a.rows] - height[a.column_index]
    # SciPy takes a stored 0 for no edge in some of its functions.
    a = a.with_values(np.where(weights == 0, 1 / 8, weights))
    problem = applications.sssp(a)
    distance = same(problem)
    theirs = scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)
    assert (distance == csgraph.bellman_ford(theirs, indices=0)).all()
    both, _ = run_oei(problem.graph, problem.matrices, problem.given, iterations=problem.iterations)
    assert both.values["distance"].tobytes() == distance.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_negative_cycles_are_found_exactly_when_networkx_finds_them(seed):
    a = random_graph(seed, low=-0.2)
    a = a.with_values(np.round(a.row_values * 8) / 8)
    theirs = scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(a.shape[0]))
    graph.add_weighted_edges_from(
        zip(a.rows.tolist(), a.column_index.tolist(), a.row_values.tolist(), strict=True)
    )
    try:
        expected = nx.single_source_bellman_ford_path_length(graph, 0)
    except nx.NetworkXUnbounded:
        with pytest.raises(NegativeCycle, match=r"not \d+ → .* with the weight -") as caught:
            applications.sssp(a)
        cycle = caught.value.cycle
        pairs = list(zip(cycle, cycle[1:] + cycle[:1], strict=True))
        assert len({*cycle}) == len(cycle) and all(graph.has_edge(*ends) for ends in pairs)
        assert sum(theirs[i, j] for i, j in pairs) == caught.value.weight < 0
        assert cycle[0] in nx.descendants(graph, 0) | {0}
    else:
        distance = same(applications.sssp(a))
        assert {i: d for i, d in enumerate(distance) if d < np.inf} == expected


def test_both_outcomes_occur_among_the_graphs_with_negative_weights():
    outcomes = set()
    for seed in range(40):
        a = random_graph(seed, low=-0.2)
        try:
            applications.sssp(a.with_values(np.round(a.row_values * 8) / 8))
            outcomes.add(bool((a.row_values < 0).any()))
        except NegativeCycle:
            outcomes.add("cycle")
    assert {True, "cycle"} <= outcomes


def test_other_starts_and_limits():
    a = grid(5)
    state = applications.sssp(a)
    given = {"distance": np.where(np.arange(25) % 7 == 3, 0.25, np.inf)}
    same(applications.Problem(state.graph, state.matrices, given, 25))
    for limit in (1, 2, 5):
        same(applications.Problem(state.graph, state.matrices, state.given, limit))
        state_bfs = applications.bfs(a)
        same(applications.Problem(state_bfs.graph, state_bfs.matrices, state_bfs.given, limit))


def test_other_problems_are_refused():
    problem = applications.knn(grid(3))
    assert not has_frontier(problem)
    message = r"^problem must be bfs, sssp, components or kcore, not knn$"
    with pytest.raises(ValueError, match=message):
        run_frontier(problem)


@pytest.mark.parametrize("seed", range(20))
def test_exact_iterations_are_those_of_plain_execution_for_any_weights(seed):
    a = random_graph(seed)
    problem = applications.sssp(a, source=seed % a.shape[0])
    plain = run(problem.graph, problem.matrices, problem.given, iterations=problem.iterations)
    ours = run_frontier(problem, exact=True)
    assert ours.iterations == plain.iterations
    assert ours.values["distance"].tobytes() == plain.values["distance"].tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_labels_of_directed_graphs_and_of_other_starts_are_those_of_plain_execution(seed):
    """The problem that ``components`` states is symmetric; the graph itself takes others too."""
    a = random_graph(seed)
    stated = applications.components(a)
    directed = replace(stated, matrices={"A": a.with_values(0.0)})
    assert same(directed).shape == (a.shape[0],)
    start = np.random.default_rng(seed).permutation(a.shape[0]).astype(float)
    same(replace(directed, given={"label": start}))
    same(replace(directed, iterations=1))


@pytest.mark.parametrize("directed", [None, False, True])
@pytest.mark.parametrize("seed", range(20))
def test_cores_have_the_bits_and_the_iterations_of_plain_execution(seed, directed):
    a = random_graph(seed)
    problem = applications.kcore(a, directed=directed)
    cores = same(problem)
    for limit in (1, 2, 5):
        same(replace(problem, iterations=limit))
    graph = nx.from_scipy_sparse_array(
        scipy.sparse.csr_array((np.ones(a.nonzeros), a.column_index, a.row_start), a.shape),
        create_using=nx.DiGraph if directed else nx.Graph,
    )
    graph.remove_edges_from([*nx.selfloop_edges(graph)])
    if directed is not None:
        assert cores.tolist() == list(nx.core_number(graph).values())
    # Vertices that are gone already, or edges without a positive weight, run node by node.
    alive = np.random.default_rng(seed).integers(0, 2, a.shape[0]).astype(float)
    same(replace(problem, given={**problem.given, "alive": alive}, iterations=9))
