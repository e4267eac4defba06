"""The eight applications of SIMD²: graphs, iterations, and libraries of a CPU.

References
----------
Zhang 2024, §3.5.2, Table 3.4. Its datasets are not published. Here, a graph has each edge with the
probability of §3.6.5, 1 %, and whole weights so small that FP16 holds every distance, or
probabilities near 1 for ``minrp``, whose products FP16 rounds.
"""

import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from vitruvian.golden.simd2 import Op
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.products import vxm
from vitruvian.sim.simd2.graph import PrecisionWarning, most_iterations, solve
from vitruvian.sim.simd2.graph.problems import PROBLEMS

#: The path problems in the order of Table 3.4, and knn.
APPLICATIONS = ("apsp", "aplp", "mcp", "maxrp", "minrp", "mst", "gtc", "knn")

#: Probability of an edge, and features of a point of knn, which the thesis does not state.
DENSITY, FEATURES = 0.01, 128

_ACYCLIC = ("aplp", "minrp")


def operation(name: str) -> Op:
    """Return the operation of an application."""
    return Op.ADDNORM if name == "knn" else PROBLEMS[name].op


@cache
def edges(name: str, vertices: int) -> Any:
    """Return the weights of a random graph."""
    rng = np.random.default_rng([vertices, APPLICATIONS.index(name)])
    there = rng.random((vertices, vertices)) < DENSITY
    weights = rng.integers(1, 9, there.shape).astype(np.float64)
    if name in ("mcp", "mst"):
        weights = rng.integers(1, 1001, there.shape).astype(np.float64)
    if name == "maxrp":
        weights = 2.0 ** -rng.integers(1, 4, there.shape)
    if name == "minrp":
        weights = rng.uniform(0.95, 1, there.shape).astype(np.float16).astype(np.float64)
    np.fill_diagonal(there, False)
    if name in _ACYCLIC or name == "mst":
        there = np.triu(there)
    if name == "mst":
        there, weights = there | there.T, np.triu(weights) + np.triu(weights, 1).T
    return sparse.csr_array(np.where(there, weights, 0))


def points(vertices: int) -> np.ndarray:
    """Return FP16 points of ``FEATURES`` coordinates for knn."""
    return np.random.default_rng(vertices).random((vertices, FEATURES)).astype(np.float16)


@cache
def solution(name: str, vertices: int) -> tuple[np.ndarray, int]:
    """Return the values of a path problem by Leyzorek with FP16 operands, and the iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        paths = solve(
            name,
            edges(name, vertices),
            algorithm="leyzorek",
            inputs="fp16",
        )
    return paths.values, paths.iterations


def leyzorek(name: str, vertices: int) -> int:
    """Return the iterations of Leyzorek's algorithm, with the one that changes nothing."""
    return solution(name, vertices)[1]


def worst(vertices: int) -> int:
    """Return the iterations of Leyzorek's algorithm without the check."""
    return most_iterations("leyzorek", vertices)


@cache
def bellman_ford(name: str, vertices: int) -> int:
    """Return the iterations of D ⊕ (D ⊗ A), with the one that changes nothing.

    The values are float64 and the product is sparse, so the graph alone decides the number.
    """
    op, matrix = operation(name), edges(name, vertices)
    a = Sparse(matrix.shape, matrix.indptr.astype(np.int64), matrix.indices, matrix.data)
    # Column v of D holds the values from v to all vertices.
    d = np.full(matrix.shape, op.identity)
    np.fill_diagonal(d, PROBLEMS[name].identity)
    choose: Callable = np.minimum if op.plus == "min" else np.maximum
    for count in range(1, vertices + 1):
        new = choose(d, vxm(d, a, op))
        if np.array_equal(new, d):
            return count
        d = new
    raise ValueError(f"iterations of {name} must end")


def library(name: str, vertices: int) -> tuple[str, float, np.ndarray]:
    """Run a library of the CPU on one thread.

    Returns
    -------
    method : str
    seconds : float
        Processor time of one run.
    values : ndarray
        The values of all pairs; for ``mst`` the weights of the tree in ascending order, and for
        ``knn`` the squared distances.
    """
    method, function = _LIBRARIES[name]
    source = points(vertices) if name == "knn" else edges(name, vertices)
    begin = time.process_time()
    values = function(source)
    return method, time.process_time() - begin, values


def _shortest(graph: Any) -> np.ndarray:
    return csgraph.dijkstra(graph)


def _reliable(graph: Any) -> np.ndarray:
    logarithms = graph.copy()
    logarithms.data = -np.log(logarithms.data)
    return np.exp(-csgraph.dijkstra(logarithms))


def _topological(graph: Any, op: Op, start: float) -> np.ndarray:
    """Return the values of an acyclic graph whose edges lead to higher vertices."""
    n = graph.shape[0]
    plus = np.minimum if op.plus == "min" else np.maximum
    times = np.add if op.times == "add" else np.multiply
    values = np.full((n, n), op.identity)
    np.fill_diagonal(values, start)
    for vertex in range(n - 1, -1, -1):
        part = slice(graph.indptr[vertex], graph.indptr[vertex + 1])
        for target, weight in zip(graph.indices[part], graph.data[part], strict=True):
            plus(values[vertex], times(weight, values[target]), out=values[vertex])
    return values


def _capacities(graph: Any) -> np.ndarray:
    """Return the widest paths by Floyd and Warshall's algorithm, a vertex at a time."""
    values = np.where(graph.toarray() > 0, graph.toarray(), -np.inf).astype(np.float32)
    np.fill_diagonal(values, np.inf)
    through = np.empty_like(values)
    for vertex in range(len(values)):
        np.minimum(values[:, vertex, None], values[vertex], out=through)
        np.maximum(values, through, out=values)
    return values


def _tree(graph: Any) -> np.ndarray:
    return np.sort(csgraph.minimum_spanning_tree(graph).data)


def _reachable(graph: Any) -> np.ndarray:
    values = np.zeros(graph.shape)
    for vertex in range(len(values)):
        order = csgraph.breadth_first_order(graph, vertex, return_predecessors=False)
        values[vertex, order] = 1
    return values


def _distances(features: np.ndarray) -> np.ndarray:
    x = features.astype(np.float32)
    norms = np.einsum("ij,ij->i", x, x)
    return norms[:, None] + norms - 2 * (x @ x.T)


_LIBRARIES: dict[str, tuple[str, Callable]] = {
    "apsp": ("SciPy dijkstra", _shortest),
    "aplp": ("NumPy, topological", lambda graph: _topological(graph, Op.MAXPLUS, 0.0)),
    "mcp": ("NumPy Floyd–Warshall", _capacities),
    "maxrp": ("SciPy dijkstra of −log", _reliable),
    "minrp": ("NumPy, topological", lambda graph: _topological(graph, Op.MINMUL, 1.0)),
    "mst": ("SciPy minimum_spanning_tree", _tree),
    "gtc": ("SciPy breadth_first_order", _reachable),
    "knn": ("NumPy product and norms", _distances),
}
