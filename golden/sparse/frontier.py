"""Searches, paths, components and cores by sparse vectors, with the bits of plain execution.

Plain execution multiplies the whole matrix in every iteration. A product with the vertices that the
last iteration changed gives the same minima and the same truth values, since all other vertices
have offered their terms before. So a graph with a large diameter, such as a grid, takes time in
proportion to its edges, and not to their product with the diameter.
"""

import numpy as np

from vitruvian.golden.sparse.applications.problem import Problem
from vitruvian.golden.sparse.applications.traversal import BFS, COMPONENTS, KCORE, SSSP
from vitruvian.golden.sparse.execute import Run, begin, run
from vitruvian.golden.sparse.frontier_compiled import peel, relax, search, settle, spread
from vitruvian.golden.sparse.storage import unsigned


def has_frontier(problem: Problem) -> bool:
    """Return whether ``run_frontier`` can run a problem."""
    return any(problem.graph is each for each in (BFS, SSSP, COMPONENTS, KCORE))


def run_frontier(problem: Problem, *, exact: bool = False) -> Run:
    """Run bfs, sssp, components or kcore over the edges of changed vertices only.

    Parameters
    ----------
    exact : bool
        If True, ``iterations`` is that of plain execution too where several shortest paths have
        lengths that differ before they are rounded. Without negative weights, sssp then takes
        longer.

    Returns
    -------
    Run
        The result of ``execute.run`` to the bit. ``reads`` counts the passes of plain execution;
        here each of them reads a few rows.

    Raises
    ------
    ValueError
        If the problem is another one.
    """
    graph = problem.graph
    if not has_frontier(problem):
        raise ValueError(f"problem must be bfs, sssp, components or kcore, not {graph.name}")
    tensors = begin(graph, problem.matrices, problem.given)
    a = problem.matrices["A"]
    csr = unsigned(a.row_start), unsigned(a.column_index), a.row_values
    if graph is BFS:
        result = tensors["level"].copy()
        frontier = np.flatnonzero(_truth(tensors["frontier"])).astype(np.uint32)
        depth = float(tensors["depth"])
        visited = _truth(tensors["visited"])
        done, stopped = search(*csr, frontier, visited, result, depth, problem.iterations)
    elif graph is KCORE:
        result = tensors["core"].copy()
        if not ((a.row_values > 0).all() and (tensors["alive"] == 1).all()):
            return run(graph, problem.matrices, problem.given, iterations=problem.iterations)
        k = float(tensors["k"])
        done, stopped = peel(*csr, tensors["degree"].copy(), result, k, problem.iterations)
    else:
        result = tensors[graph.results[0]].copy()
        enough = problem.iterations >= len(result)
        if graph is COMPONENTS and enough and _is_unlabelled(a.row_values, result):
            done, stopped = spread(*csr[:2], result) + 1, True
        elif not exact and enough and (a.row_values >= 0).all():
            done, stopped = settle(*csr, result) + 1, True
        else:
            done, stopped = relax(*csr, result, problem.iterations)
    return Run({graph.results[0]: result}, done, stopped, None, done)


def _is_unlabelled(weights: np.ndarray, label: np.ndarray) -> bool:
    """Return whether each vertex still has its own number, and labels pass edges unchanged."""
    return not weights.any() and np.array_equal(label, np.arange(len(label)))


def _truth(x: np.ndarray) -> np.ndarray:
    return (x != 0) & (x == x)
