"""Schedules of the applications of Zhang 2024, Table 4.2, for a matrix of which one has no values.

A study of traffic needs a pattern only. The graph and the shapes of an application do not depend on
values either, so a problem of a few vertices has them all.

The thesis does not say that GMRES computes its residual anew at a restart, or that kNN ends before
its last hop. So these two have graphs here that do neither; the applications that a user runs do.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.applications import APPLICATIONS, Problem
from vitruvian.golden.sparse.applications.solvers import gmres_graph
from vitruvian.golden.sparse.applications.traversal import KNN
from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.dram import Dram
from vitruvian.sim.sparse.pattern import Pattern
from vitruvian.sim.sparse.report import SparseReport
from vitruvian.sim.sparse.schedule import SparseSchedule, schedule
from vitruvian.sim.sparse.simulate import simulate


def small_problem(
    application: str, *, features: int = 16, layers: int = 2, products: int = 10
) -> Problem:
    """Return a problem on a ring of vertices, more of them than any other size of a tensor.

    Parameters
    ----------
    application : str
        A key of ``golden.sparse.applications.APPLICATIONS``.
    features, layers : int
        Features of each vertex, in every layer, and layers of a graph convolutional network.
    products : int
        Products of an iteration of GMRES, after which it restarts.

    Raises
    ------
    ValueError
        If the application is unknown, there are more than 1000 features, or a number is less than
        1.
    """
    one_of("application", application, APPLICATIONS)
    check_int("features", features, 1, 1000)
    check_int("layers", layers, 1)
    few = 1009
    ring = np.arange(few)
    following = (ring + 1) % few
    matrix = Sparse.from_entries([*ring, *following], [*following, *ring], 1, (few, few))
    options: dict[str, dict[str, Any]] = {
        "labelprop": {"labels": [0] * few},
        "gcn": {
            "features": np.ones((few, features)),
            "weights": [np.ones((features, features))] * layers,
        },
        **{solver: {"b": np.ones(few)} for solver in ("gmres", "cg", "bicgstab")},
    }
    problem = APPLICATIONS[application](matrix, **options.get(application, {}))
    # Graphs without what the thesis does not state
    if application == "gmres":
        check_int("products", products, 1)
        return replace(problem, graph=gmres_graph(products, recompute=False))
    return replace(problem, graph=KNN) if application == "knn" else problem


def plan(
    application: str,
    rows: int,
    *,
    iterations: int = 20,
    features: int = 16,
    layers: int = 2,
    products: int = 10,
) -> SparseSchedule:
    """Return the schedule of an application for a square matrix.

    Parameters
    ----------
    application, features, layers, products
        See ``small_problem``.
    iterations : int
        Iterations of the run. A graph convolutional network has one.

    Raises
    ------
    ValueError
        If the application is unknown or a number is not allowed.
    """
    check_int("rows", rows, 1)
    check_int("iterations", iterations, 1)
    problem = small_problem(application, features=features, layers=layers, products=products)
    (few, _) = problem.matrices["A"].shape
    shapes = {
        name: tuple(rows if size == few else size for size in np.shape(each))
        for name, each in problem.given.items()
    }
    count = 1 if problem.graph.stop is None else iterations
    return schedule(problem.graph, shapes, {"A": (rows, rows)}, count)


def simulate_pattern(
    pattern: Pattern,
    architecture: Architecture,
    application: str,
    *,
    order: np.ndarray | None = None,
    block: int = 1,
    iterations: int = 20,
    features: int = 16,
    products: int = 10,
    memory: Dram | None = None,
) -> SparseReport:
    """Simulate a run of an application on the pattern of a square matrix.

    Parameters
    ----------
    pattern : Pattern
        Single nonzeros.
    application : str
        A key of ``golden.sparse.applications.APPLICATIONS``. The pattern is taken as it is, also
        for an application whose golden model accepts symmetric matrices only.
    order : (n,) ndarray of int, optional
        The old number of each new row and column; see ``reordering``.
    block : int
        Side of the blocks in which SIDA stores the matrix, a power of 2 up to 256.
    iterations : int
        Iterations of the run. A graph convolutional network has one.
    features, products : int
        See ``small_problem``.
    memory : Dram, optional
        The kind of memory; by default a bandwidth.

    Raises
    ------
    ValueError
        If a number is not allowed, or a column or row is larger than a quarter of the buffer.
    """
    planned = plan(
        application,
        pattern.elements,
        iterations=iterations,
        features=features,
        products=products,
    )
    return simulate(planned, {"A": pattern}, architecture, order=order, block=block, memory=memory)
