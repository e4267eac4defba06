"""Each application equals NetworkX, SciPy or a direct computation, on small and on real graphs."""

import gzip
from functools import cache
from pathlib import Path
from typing import Any, cast

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from tests.support.sparse_problems import matrix, system
from vitruvian.golden.sparse import Sparse, applications
from vitruvian.golden.sparse.execute import Run, run
from vitruvian.golden.sparse.oei import run_oei

GRAPHS = Path(__file__).parents[5] / "shared" / "data" / "graphs"
SMALL = ("karate", "miserables", "florentine", "women")
REAL = ("ca-GrQc",)  # larger ones would take the suite's time


@cache
def graph(name: str) -> Sparse:
    """Return a real graph without loops, from NetworkX or from a file."""
    if name in SMALL:
        make = {
            "karate": nx.karate_club_graph,
            "miserables": nx.les_miserables_graph,
            "florentine": nx.florentine_families_graph,
            "women": nx.davis_southern_women_graph,
        }[name]
        coo = nx.to_scipy_sparse_array(make(), dtype=np.float64, format="coo")
    else:
        coo = stored(name)
    coo = cast(Any, coo)
    size: int = coo.shape[0]
    kept = coo.row != coo.col
    return Sparse.from_entries(coo.row[kept], coo.col[kept], coo.data[kept], (size, size))


def stored(name: str):
    """Return a matrix from the data that are shared beside the repository."""
    path = GRAPHS / f"{name}.mtx.gz"
    if not path.exists():
        pytest.skip(f"needs {name}.mtx.gz in ../shared/data/graphs")
    with gzip.open(path) as file:
        return scipy.sparse.coo_array(scipy.io.mmread(file)).astype(np.float64)


def as_scipy(a: Sparse) -> scipy.sparse.csr_array:
    """Return a matrix of SciPy with the same elements."""
    return scipy.sparse.csr_array((a.row_values, a.column_index, a.row_start), a.shape)


def solved(name: str, *arguments, **options) -> Run:
    """State a problem, run it and return the outcome, which has the same bits in both dataflows."""
    p = applications.APPLICATIONS[name](*arguments, **options)
    plain = run(p.graph, p.matrices, p.given, iterations=p.iterations)
    width = max(1, p.matrices["A"].shape[1] // 10)
    both, _ = run_oei(p.graph, p.matrices, p.given, iterations=p.iterations, width=width)
    assert (both.iterations, both.failure) == (plain.iterations, plain.failure)
    for key, values in plain.values.items():
        assert both.values[key].tobytes() == values.tobytes(), key
    return plain


graphs = pytest.mark.parametrize("name", [*SMALL, *REAL])


@graphs
def test_bfs_equals_scipy(name):
    a = graph(name)
    expected = scipy.sparse.csgraph.dijkstra(as_scipy(a), indices=1, unweighted=True)
    assert (solved("bfs", a, source=1).values["level"] == expected).all()


@graphs
def test_knn_equals_the_distances(name):
    a = graph(name)
    distances = scipy.sparse.csgraph.dijkstra(as_scipy(a), indices=2, unweighted=True)
    for hops in (1, 2, 4):
        assert (solved("knn", a, source=2, hops=hops).values["near"] == (distances <= hops)).all()


@graphs
def test_sssp_equals_scipy(name):
    a = graph(name)
    # Sums of multiples of 1/8 are exact, so that every order of the additions gives the same.
    weights = np.random.default_rng(1).integers(1, 80, a.nonzeros) / 8
    a = a.with_values(weights)
    expected = scipy.sparse.csgraph.dijkstra(as_scipy(a), indices=0)
    assert (solved("sssp", a).values["distance"] == expected).all()


@graphs
def test_pagerank_equals_networkx(name):
    a = graph(name)
    ours = solved("pagerank", a, tolerance=1e-10, iterations=1000)
    theirs = nx.pagerank(nx.from_scipy_sparse_array(as_scipy(a)), tol=1e-10, max_iter=1000)
    assert ours.converged
    # Both stop at a residual of N·1e−10, and differ in the order of their sums.
    assert np.allclose(ours.values["rank"], list(theirs.values()), rtol=0, atol=1e-12)
    assert abs(ours.values["rank"].sum() - 1) < 1e-12


def test_pagerank_of_a_directed_graph_with_dangling_vertices():
    a = matrix(1)
    theirs = nx.pagerank(
        nx.from_scipy_sparse_array(as_scipy(a), create_using=nx.DiGraph), tol=1e-12
    )
    ours = solved("pagerank", a, tolerance=1e-12)
    assert np.allclose(ours.values["rank"], list(theirs.values()), rtol=0, atol=1e-13)


@graphs
def test_core_numbers_equal_networkx(name):
    a = graph(name)
    theirs = nx.core_number(nx.from_scipy_sparse_array(as_scipy(a)))
    assert (solved("kcore", a).values["core"] == list(theirs.values())).all()


@graphs
def test_labels_equal_the_harmonic_solution(name):
    """Labels spread until each belief is the weighted mean of its neighbours' beliefs."""
    a = graph(name)
    theirs = as_scipy(a)
    count, parts = scipy.sparse.csgraph.connected_components(theirs)
    rng = np.random.default_rng(2)
    labels = np.where(rng.random(a.shape[0]) < 0.3, rng.integers(0, 3, a.shape[0]), -1)
    # Every part of the graph needs a label, or its beliefs are not determined.
    labels[[np.flatnonzero(parts == part)[0] for part in range(count)]] = 0
    ours = solved("labelprop", a, labels, tolerance=1e-13, iterations=5000)
    free = labels < 0
    laplacian = scipy.sparse.csr_array(scipy.sparse.diags_array(theirs.sum(0)) - theirs)
    known = (labels[~free, None] == np.arange(3)).astype(float)
    right = -(laplacian[free][:, ~free] @ known)
    expected = np.asarray(scipy.sparse.linalg.spsolve(laplacian[free][:, free].tocsc(), right))
    assert ours.converged
    # If each of at most 5000 iterations reduces the change by ρ, and 1 becomes 1e−13, ρ is < 0.995
    # and the error is below 1e−13/(1 − ρ) = 2e−11, to which the direct solution adds its own.
    assert np.allclose(ours.values["belief"][free], expected, rtol=0, atol=1e-10)


@graphs
def test_gcn_equals_scipy(name):
    a = graph(name)
    rng = np.random.default_rng(3)
    features = rng.standard_normal((a.shape[0], 6))
    weights = [rng.standard_normal(shape) for shape in ((6, 8), (8, 3))]
    whole = as_scipy(a) + scipy.sparse.eye_array(a.shape[0])
    root = scipy.sparse.diags_array(1 / np.sqrt(whole.sum(0)))
    scaled = root @ whole @ root
    expected = scaled @ np.maximum(scaled @ features @ weights[0], 0) @ weights[1]
    ours = solved("gcn", a, features, weights).values["features"]
    # Sums of some hundred terms near 1 differ by their order only.
    assert np.allclose(ours, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["random", *SMALL])
def test_kmeans_equals_a_dense_computation(name):
    """The rows of an adjacency matrix are points, whose squared distances are whole numbers."""
    rng = np.random.default_rng(4)
    points = np.where(rng.random((200, 30)) < 0.2, rng.integers(1, 9, (200, 30)), 0)
    if name != "random":
        points = graph(name).dense()
    rows, columns = np.nonzero(points)
    a = Sparse.from_entries(rows, columns, points[rows, columns], points.shape)
    for seed in range(3):
        ours = solved("kmeans", a, clusters=6, seed=seed).values
        p = applications.kmeans(a, clusters=6, seed=seed)
        chosen = [int(p.given["chosen"][0])]
        for step in range(5):
            distance = ((points[:, None] - points[chosen]) ** 2).sum(2).min(1)
            running = np.cumsum(distance)
            chosen.append(int((running <= p.given["draws"][step] * running[-1]).sum()))
        assert ours["chosen"].tolist() == chosen and len(set(chosen)) == 6
        before_last = ((points[:, None] - points[chosen[:-1]]) ** 2).sum(2).min(1)
        assert (ours["nearest"] == before_last).all()


def laplacian_system(name: str) -> tuple[Sparse, np.ndarray]:
    """Return L + I of a graph, which is positive definite, and a right side."""
    size = graph(name).shape[0]
    theirs = as_scipy(graph(name))
    own = scipy.sparse.eye_array(size)
    coo = scipy.sparse.coo_array(scipy.sparse.diags_array(theirs.sum(0)) - theirs + own)
    a = Sparse.from_entries(coo.row, coo.col, coo.data, (size, size))
    return a, np.random.default_rng(5).standard_normal(a.shape[0])


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
@graphs
def test_solvers_equal_a_direct_solution(solver, name):
    a, b = laplacian_system(name)
    ours = solved(solver, a, b, tolerance=1e-10)
    expected = np.asarray(scipy.sparse.linalg.spsolve(as_scipy(a).tocsc(), b))
    assert ours.converged and ours.failure is None
    # The smallest eigenvalue is 1, so the error is at most the residual, 1e−10·|b|, and the drift
    # of the recurrence for the residual.
    assert np.linalg.norm(ours.values["x"] - expected) <= 2e-10 * np.linalg.norm(b)


@pytest.mark.parametrize("solver", ["bicgstab", "gmres"])
def test_solvers_of_systems_that_are_not_symmetric(solver):
    a, b = system(7)
    ours = solved(solver, a, b, tolerance=1e-11)
    expected = np.asarray(scipy.sparse.linalg.spsolve(as_scipy(a).tocsc(), b))
    assert ours.converged and np.allclose(ours.values["x"], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_solvers_of_a_memory_circuit(solver):
    """Memplus is not symmetric. Scaled by its diagonal, and squared for cg, it can be solved."""
    theirs = scipy.sparse.csr_array(stored("memplus"))
    theirs = scipy.sparse.diags_array(1 / theirs.diagonal()) @ theirs
    if solver == "cg":
        theirs = theirs.T @ theirs
    coo = scipy.sparse.coo_array(theirs)
    size = theirs.shape[0]
    a = Sparse.from_entries(coo.row, coo.col, coo.data, (size, size))
    b = theirs @ np.ones(size)
    p = applications.APPLICATIONS[solver](a, b, tolerance=1e-4, iterations=1000)
    ours = run(p.graph, p.matrices, p.given, iterations=p.iterations)
    assert ours.converged
    assert np.linalg.norm(b - theirs @ ours.values["x"]) <= 2e-4 * np.linalg.norm(b)


def test_cg_takes_as_many_iterations_as_scipy():
    a, b = laplacian_system("karate")
    counted = []
    scipy.sparse.linalg.cg(as_scipy(a), b, rtol=1e-8, callback=counted.append)
    assert solved("cg", a, b, tolerance=1e-8).iterations == len(counted)


def star(size: int, weights: Any = 1.0) -> Sparse:
    """Return L + I of a star: it has three distinct eigenvalues if the weights are equal."""
    ends = np.arange(1, size)
    edges = scipy.sparse.coo_array((np.ones(size - 1) * weights, (ends * 0, ends)), (size, size))
    both = edges + edges.T
    coo = scipy.sparse.coo_array(scipy.sparse.diags_array(both.sum(0) + 1) - both)
    return Sparse.from_entries(coo.row, coo.col, coo.data, (size, size))


def diagonal(values: np.ndarray) -> Sparse:
    """Return a diagonal matrix."""
    own = np.arange(len(values))
    return Sparse.from_entries(own, own, values, (len(values), len(values)))


def residual(a: Sparse, x: np.ndarray, b: np.ndarray) -> float:
    """Return ‖b − A·x‖/‖b‖; SciPy's product has the bits of golden's."""
    return float(np.linalg.norm(b - as_scipy(a) @ x) / np.linalg.norm(b))


#: Systems by name
SYSTEMS = {
    "star": lambda rng: star(100),
    "weighted star": lambda rng: star(100, rng.random(99)),
    "diagonal": lambda rng: diagonal(np.linspace(1, 1e3, 50)),
    "random": lambda rng: system(int(rng.integers(100)), symmetric=True)[0],
}


@pytest.mark.parametrize("tolerance", [1e-8, 1e-14, 1e-16])
@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_run_converges_only_with_the_residual_of_its_solution(name, solver, tolerance):
    """Regression: the residual of a recursion was reported, which drifts from b − A·x."""
    outcomes: list[bool] = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a = SYSTEMS[name](rng)
        b = rng.standard_normal(a.shape[0])
        p = applications.APPLICATIONS[solver](a, b, tolerance=tolerance, iterations=150)
        ours = run(p.graph, p.matrices, p.given, iterations=p.iterations)
        true = residual(a, ours.values["x"], b)
        # The norms of NumPy and of golden add in another order: 100 roundings of 1.1e-16.
        assert true <= tolerance * (1 + 1e-13) or not ours.converged, (seed, true)
        if ours.converged or ours.failure:
            reported = float(np.sqrt(ours.values["rr"])) / np.linalg.norm(b)
            assert reported == pytest.approx(true, rel=1e-12)
        outcomes.append(ours.converged)
    if tolerance == 1e-8 and (name, solver) != ("diagonal", "gmres"):
        assert all(outcomes)
    if tolerance == 1e-16 and name != "diagonal":  # less than a rounding of b; its rows are exact
        assert not all(outcomes)


@pytest.mark.parametrize("solver", ["cg", "bicgstab"])
def test_a_tolerance_out_of_reach_ends_as_stagnation(solver):
    a, b = system(3, symmetric=True)
    outcome = solved(solver, a, b, tolerance=1e-18)
    assert "stagnation: the residual b − A·x did not shrink" in (outcome.failure or "")
    assert not outcome.converged and residual(a, outcome.values["x"], b) < 1e-15
    assert outcome.confirmations >= 2 and outcome.iterations < 200


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
@graphs
def test_solvers_reach_the_residuals_of_scipy(solver, name):
    """Both stop at the same relative residual, and differ from x by at most that over λ = 1."""
    a, b = laplacian_system(name)
    theirs, failed = getattr(scipy.sparse.linalg, solver)(as_scipy(a), b, rtol=1e-9, atol=0)
    ours = solved(solver, a, b, tolerance=1e-9)
    assert ours.converged and not failed
    # SciPy's own recursion may drift by some roundings, so its residual gets a tenth more.
    assert residual(a, ours.values["x"], b) <= 1e-9 * (1 + 1e-13)
    assert residual(a, theirs, b) <= 1.1e-9
    assert np.linalg.norm(ours.values["x"] - theirs) <= 2.1e-9 * np.linalg.norm(b)


def test_failures_are_reported():
    a = Sparse.from_entries([0, 1], [0, 1], [1.0, -1.0], (2, 2))
    outcome = solved("cg", a, [0.0, 1.0])
    assert outcome.failure == "breakdown: the matrix is not positive definite"
    assert not outcome.converged
    turn = Sparse.from_entries([0, 1], [1, 0], [1.0, -1.0], (2, 2))
    assert "breakdown" in (solved("bicgstab", turn, [1.0, 0.0]).failure or "")
    assert "stagnation" in (solved("gmres", turn, [1.0, 0.0], restart=1).failure or "")
    assert solved("gmres", turn, [1.0, 0.0], restart=2).converged


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_a_right_side_of_zeros_needs_no_iteration(solver):
    outcome = solved(solver, system(1, symmetric=True)[0], np.zeros(40))
    assert outcome.iterations == 0 and outcome.converged and not outcome.values["x"].any()


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("pagerank", [matrix(1).with_values(-1.0)], {}, "at least 0, not -1.0 in row"),
        ("sssp", [matrix(1).with_values(np.nan)], {}, "weights must be finite, not nan"),
        ("pagerank", [matrix(1).with_values(-1.0)], {}, "weights must be finite and at least 0"),
        ("pagerank", [matrix(1)], {"damping": 1.5}, "damping must be between 0 and 1, not 1.5"),
        ("bfs", [matrix(1)], {"source": 40}, "source must be between 0 and 39, not 40"),
        ("knn", [matrix(1)], {"hops": 0}, "hops must be at least 1, not 0"),
        ("labelprop", [matrix(1), [-1] * 40], {}, "labels must be -1 or a class"),
        ("labelprop", [matrix(1), [0]], {}, "labels must have 40 elements"),
        ("gcn", [matrix(1), np.ones((40, 2)), [np.ones((3, 2))]], {}, "must have 2 rows"),
        ("gcn", [matrix(1), np.ones((4, 2)), []], {}, "features must have the shape"),
        ("gcn", [matrix(1), np.ones((40, 2)), []], {}, "weights must have at least one matrix"),
        ("kmeans", [matrix(1)], {"clusters": 41}, "clusters must be between 1 and 40, not 41"),
        ("cg", [matrix(1), np.ones(39)], {}, "b must have 40 elements"),
        ("cg", [matrix(1), np.full(40, np.inf)], {}, "b must be finite, not inf"),
        ("cg", [matrix(1).with_values(np.inf), np.ones(40)], {}, "weights must be finite, not inf"),
        (
            "gmres",
            [matrix(1), np.ones(40)],
            {"tolerance": 0},
            "tolerance must be more than 0, not 0",
        ),
        ("cg", [Sparse.from_entries([], [], [], (2, 3)), [1, 1]], {}, "must be square, not 2 by 3"),
    ],
)
def test_wrong_arguments_are_refused(name, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        solved(name, *arguments, **options)
