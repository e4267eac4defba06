"""The initialisation of k-means++ as a graph."""

import numpy as np

from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.applications.problem import (
    Problem,
    check_finite,
    check_rows,
    check_vertex,
    ewise,
    reduce,
)
from vitruvian.golden.sparse.graph import Graph, Vxm
from vitruvian.golden.sparse.storage import Sparse

KMEANS = Graph(
    name="kmeans",
    given=("choice", "chosen", "norms", "nearest", "points", "places", "draws", "step", "last"),
    body=(
        # The coordinates of the chosen point; then |x − c|² = |x|² − 2·x·c + |c|²
        Vxm("center", "choice", semiring="aril"),
        ewise("squares", "mul", "center", "center"),
        reduce("center_norm", "add", "squares"),
        Vxm("dots", "center", transposed=True),
        ewise("twice", "mul", "dots", 2.0),
        ewise("without", "sub", "norms", "twice"),
        ewise("distance", "add", "without", "center_norm"),
        # Rounding may leave less than 0. A chosen point must never be chosen again.
        ewise("distance", "max", "distance", 0.0),
        ewise("distance", "select", "choice", 0.0, "distance"),
        ewise("nearest", "min", "nearest", "distance"),
        reduce("draw", "at", "draws", "step"),
        reduce("index", "pick", "nearest", "draw"),
        ewise("choice", "equal", "points", "index"),
        ewise("step", "add", "step", 1.0),
        ewise("here", "equal", "places", "step"),
        ewise("chosen", "select", "here", "index", "chosen"),
        ewise("more", "less", "step", "last"),
        ewise("done", "not", "more"),
    ),
    results=("chosen", "nearest"),
    stop="done",
)


def kmeans(a: Sparse, *, clusters: int = 8, first: int | None = None, seed: int = 0) -> Problem:
    """Choose the first centers of k-means by k-means++.

    Each center is a point, chosen with a probability in proportion to the squared distance from the
    nearest center so far.

    Parameters
    ----------
    a : (N, C) Sparse
        One point per row; what is not stored is 0.
    clusters : int
        Number of centers, 1 to N.
    first : int, optional
        The first center; by default it is random.

    Returns
    -------
    Problem
        Results ``chosen``, the centers as numbers of points, and ``nearest``, each point's squared
        distance from the nearest of all centers but the last.

    Raises
    ------
    ValueError
        If a coordinate is not finite, there are fewer points than clusters, or no point ``first``.
    """
    count = check_rows(a)
    check_finite(a)
    check_int("clusters", clusters, 1, count)
    check_int("seed", seed, 0)
    rng = np.random.default_rng(seed)
    start = int(rng.integers(count)) if first is None else first
    chosen = np.zeros(clusters)
    chosen[0] = start
    given = {
        "choice": check_vertex("first", start, count),
        "chosen": chosen,
        "norms": np.bincount(a.rows, a.row_values**2, minlength=count),
        "nearest": np.full(count, np.inf),
        "points": np.arange(count, dtype=np.float64),
        "places": np.arange(clusters, dtype=np.float64),
        "draws": rng.random(clusters),
        "step": np.float64(0),
        "last": np.float64(clusters - 1),
    }
    return Problem(KMEANS, {"A": a}, given, clusters)
