"""Breadth-first search, shortest paths, k-hop neighbours and k-core decomposition as graphs."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.applications.problem import (
    Problem,
    check_finite,
    check_square,
    check_vertex,
    ewise,
    reduce,
)
from vitruvian.golden.sparse.frontier_compiled import cycle_to
from vitruvian.golden.sparse.graph import Graph, Swap, Vxm
from vitruvian.golden.sparse.products import neighbours
from vitruvian.golden.sparse.storage import Sparse

BFS = Graph(
    name="bfs",
    given=("frontier", "visited", "level", "depth"),
    body=(
        Vxm("reached", "frontier", semiring="orand"),
        ewise("unvisited", "not", "visited"),
        ewise("fresh", "and", "reached", "unvisited"),
        ewise("visited", "or", "visited", "fresh"),
        ewise("depth", "add", "depth", 1.0),
        ewise("level", "select", "fresh", "depth", "level"),
        reduce("any_fresh", "or", "fresh"),
        ewise("done", "not", "any_fresh"),
        Swap("frontier", "fresh"),
    ),
    results=("level",),
    stop="done",
)

SSSP = Graph(
    name="sssp",
    given=("distance",),
    body=(
        Vxm("relaxed", "distance", semiring="minplus"),
        ewise("next", "min", "distance", "relaxed"),
        ewise("shorter", "less", "next", "distance"),
        reduce("any_shorter", "or", "shorter"),
        ewise("done", "not", "any_shorter"),
        Swap("distance", "next"),
    ),
    results=("distance",),
    stop="done",
)

COMPONENTS = Graph(
    name="components",
    given=("label",),
    body=(
        Vxm("offered", "label", semiring="minplus"),
        ewise("next", "min", "label", "offered"),
        ewise("smaller", "less", "next", "label"),
        reduce("any_smaller", "or", "smaller"),
        ewise("done", "not", "any_smaller"),
        Swap("label", "next"),
    ),
    results=("label",),
    stop="done",
)

KNN = Graph(
    name="knn",
    given=("near", "hops", "step"),
    body=(
        Vxm("reached", "near", semiring="orand"),
        ewise("near", "or", "near", "reached"),
        ewise("step", "add", "step", 1.0),
        ewise("more", "less", "step", "hops"),
        ewise("done", "not", "more"),
    ),
    results=("near",),
    stop="done",
)

#: ``KNN`` that also ends when no vertex joins; the reduction joins the sweep that makes ``near``
KNN_ENDING = replace(
    KNN,
    setup=(reduce("size", "add", "near"),),
    body=(
        *KNN.body[:-1],
        ewise("size_last", "copy", "size"),
        reduce("size", "add", "near"),
        ewise("grows", "less", "size_last", "size"),
        ewise("open", "and", "more", "grows"),
        ewise("done", "not", "open"),
    ),
)

KCORE = Graph(
    name="kcore",
    given=("degree", "alive", "core", "k"),
    body=(
        ewise("few", "less", "degree", "k"),
        ewise("low", "and", "alive", "few"),
        Vxm("removed", "low"),
        ewise("last", "sub", "k", 1.0),
        ewise("core", "select", "low", "last", "core"),
        ewise("alive", "sub", "alive", "low"),
        ewise("degree", "sub", "degree", "removed"),
        # k rises as soon as no vertex has fewer than k neighbours.
        reduce("any_low", "or", "low"),
        ewise("stable", "not", "any_low"),
        ewise("k", "add", "k", "stable"),
        reduce("any_alive", "or", "alive"),
        ewise("done", "not", "any_alive"),
    ),
    results=("core",),
    stop="done",
)


class NegativeCycle(UserError):
    """The error of shortest paths with a cycle of negative weight.

    Attributes
    ----------
    cycle : list of int
        Rows of the vertices, in the order of the edges.
    weight : float
        Sum of the weights.
    """

    def __init__(
        self, cycle: Sequence[int], weight: float, names: Sequence[object] | None = None
    ) -> None:
        self.cycle: list[int] = list(cycle)
        self.weight: float = weight
        shown = [str(vertex if names is None else names[vertex]) for vertex in self.cycle]
        if len(shown) > 8:
            shown = [*shown[:4], "…", *shown[-3:]]
        super().__init__(
            "sssp needs a graph without a cycle of negative weight that source reaches, "
            f"not {' → '.join([*shown, shown[0]])} with the weight {weight:g}"
        )


def bfs(a: Sparse, *, source: int = 0) -> Problem:
    """Find the number of hops from a vertex to each other vertex.

    Parameters
    ----------
    a : (N, N) Sparse
        An element (i, j) is an edge from i to j, whatever its value.

    Returns
    -------
    Problem
        The result ``level`` is ∞ for vertices that cannot be reached.
    """
    start = check_vertex("source", source, count := check_square(a))
    level = np.where(start == 1.0, 0.0, np.inf)
    given = {"frontier": start, "visited": start, "level": level, "depth": np.float64(0)}
    return Problem(BFS, {"A": a.pattern()}, given, count)


def sssp(a: Sparse, *, source: int = 0) -> Problem:
    """Find the shortest distance from a vertex to each other vertex (Bellman and Ford).

    Parameters
    ----------
    a : (N, N) Sparse
        Weights of the edges. They may be negative.

    Returns
    -------
    Problem
        The result ``distance`` is ∞ for vertices that cannot be reached.

    Raises
    ------
    ValueError
        If a weight is not finite.
    NegativeCycle
        If a cycle of negative weight can be reached from ``source``.
    """
    start = check_vertex("source", source, count := check_square(a))
    check_finite(a)
    distance = np.where(start == 1.0, 0.0, np.inf)
    if (a.row_values < 0).any():
        csr = a.row_start, a.column_index, a.row_values
        cycle = cycle_to(*csr, distance.copy()).tolist()
        weight = math.fsum(
            _weight(a, *ends) for ends in zip(cycle, cycle[1:] + cycle[:1], strict=True)
        )
        # A cycle of weight 0 may shorten distances by their rounding.
        if weight < 0:
            raise NegativeCycle(cycle, weight)
    return Problem(SSSP, {"A": a}, {"distance": distance}, count)


def components(a: Sparse) -> Problem:
    """Find the connected component of each vertex.

    Each vertex takes the smallest label among its neighbours' and its own.

    Parameters
    ----------
    a : (N, N) Sparse
        An element (i, j) is an edge between i and j, whatever its value and direction.

    Returns
    -------
    Problem
        The result ``label`` is the smallest row of the component.
    """
    count = check_square(a)
    given = {"label": np.arange(count, dtype=np.float64)}
    return Problem(COMPONENTS, {"A": neighbours(a).with_values(0.0)}, given, count)


def _weight(a: Sparse, row: int, column: int) -> float:
    """Return a stored element."""
    begin, end = a.row_start[row], a.row_start[row + 1]
    return float(a.row_values[begin + np.searchsorted(a.column_index[begin:end], column)])


def knn(a: Sparse, *, source: int = 0, hops: int = 4) -> Problem:
    """Find the vertices within some hops of a vertex.

    Zhang 2024, Fig. 4.6, has no operation between two products; here one unites each step with the
    vertices before, so that the result also holds vertices at a smaller distance.

    Parameters
    ----------
    a : (N, N) Sparse
        An element (i, j) is an edge from i to j, whatever its value.
    hops : int
        At least 1. The run ends early when a hop adds no vertex.

    Returns
    -------
    Problem
        The result ``near`` is 1 for the vertices within ``hops`` hops, ``source`` included.
    """
    start = check_vertex("source", source, count := check_square(a))
    # A path visits each vertex once at most, and one more hop shows that none joins.
    most = min(check_int("hops", hops, 1), count)
    given = {"near": start, "hops": np.float64(most), "step": np.float64(0)}
    return Problem(KNN_ENDING, {"A": a.pattern()}, given, most)


def kcore(a: Sparse, *, directed: bool | None = None) -> Problem:
    """Find the core number of each vertex.

    Parameters
    ----------
    a : (N, N) Sparse
        An element (i, j) is an edge from i to j, whatever its value. The diagonal is ignored: a
        vertex is no neighbour of itself.
    directed : bool, optional
        If False, two vertices with an edge in either direction, or in both, are neighbours once.
        If True, a vertex has its incoming and its outgoing edges as neighbours, as in NetworkX; an
        edge in both directions counts twice. By default, a symmetric pattern is taken as a graph
        without directions, and every other one as a directed graph.

    Returns
    -------
    Problem
        The result ``core``: the largest k for which a vertex belongs to a subgraph in which every
        vertex has k neighbours.

    Raises
    ------
    ValueError
        If the matrix is not square.
    """
    count = check_square(a)
    is_symmetric = a.has_symmetric_pattern
    if directed is None:
        directed = not is_symmetric
    off = a.rows != a.column_index
    if is_symmetric and not directed and off.all():
        neighbours = a.pattern()
    else:
        rows, columns = a.rows[off], a.column_index[off]
        if directed or not is_symmetric:
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        neighbours = Sparse.from_entries(rows, columns, 1.0, a.shape)
        if not directed:
            neighbours = neighbours.pattern()
    degree = np.bincount(neighbours.rows, neighbours.row_values, minlength=count)
    given = {
        "degree": degree.astype(np.float64),
        "alive": np.ones(count),
        "core": np.zeros(count),
        "k": np.float64(0),
    }
    # Each iteration removes a vertex or raises k, which is at most the largest degree plus one.
    most = count + int(degree.max(initial=0)) + 2
    return Problem(KCORE, {"A": neighbours}, given, most)
