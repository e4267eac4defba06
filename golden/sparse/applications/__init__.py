"""The applications of Zhang 2024, Table 4.2, and components, as tensor dataflow graphs."""

from collections.abc import Callable

from vitruvian.golden.sparse.applications.clustering import kmeans
from vitruvian.golden.sparse.applications.problem import Problem
from vitruvian.golden.sparse.applications.ranking import gcn, labelprop, pagerank
from vitruvian.golden.sparse.applications.solvers import bicgstab, cg, gmres
from vitruvian.golden.sparse.applications.traversal import bfs, components, kcore, knn, sssp

__all__ = [
    "APPLICATIONS",
    "Problem",
    "bfs",
    "bicgstab",
    "cg",
    "components",
    "gcn",
    "gmres",
    "kcore",
    "kmeans",
    "knn",
    "labelprop",
    "pagerank",
    "sssp",
]

#: The functions that state a problem, by the application's name. Each takes the matrix first.
APPLICATIONS: dict[str, Callable[..., Problem]] = {
    each.__name__: each
    for each in (
        *(pagerank, kcore, bfs, sssp, kmeans, knn, labelprop, gcn, gmres, cg, bicgstab),
        components,
    )
}
