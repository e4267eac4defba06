"""The options of the sparse applications, with their types."""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from numpy.typing import ArrayLike

from vitruvian.golden.sparse.applications import APPLICATIONS

#: Options of each application with their defaults; ``inspect.Parameter.empty`` must be given
OPTIONS: dict[str, dict[str, Any]] = {
    name: {
        key: parameter.default
        for key, parameter in list(inspect.signature(state).parameters.items())[1:]
    }
    for name, state in APPLICATIONS.items()
}


class SolverOptions(TypedDict, total=False):
    """All options; an application takes some of them, see ``OPTIONS``.

    Attributes
    ----------
    source : vertex
        bfs, sssp, knn: the vertex to start from.
    hops : int
        knn.
    damping : float
        pagerank: the probability of following an edge.
    directed : bool or None
        kcore.
    labels : (N,) sequence of int, or dict of some vertices
        labelprop.
    features : (N, F) array_like
        gcn.
    weights : sequence of array_like
        gcn: the dense matrices of its layers.
    clusters, seed : int
        kmeans.
    first : vertex or None
        kmeans: the first center.
    b, x0 : (N,) array_like
        cg, bicgstab, gmres: the right side, and the vector to start from.
    restart : int
        gmres: products between two restarts.
    tolerance : float
        pagerank, labelprop, cg, bicgstab, gmres.
    iterations : int
        pagerank, labelprop, cg, bicgstab, gmres: the largest number of iterations.
    """

    source: Hashable
    hops: int
    damping: float
    directed: bool | None
    labels: Sequence[int] | Mapping[Any, int] | ArrayLike
    features: ArrayLike
    weights: Sequence[ArrayLike]
    clusters: int
    seed: int
    first: Hashable | None
    b: ArrayLike
    x0: ArrayLike | None
    restart: int
    tolerance: float
    iterations: int


F = TypeVar("F", bound=Callable[..., Any])


def shows_options(function: F) -> F:
    """Return a function whose signature lists every option instead of ``**options``.

    Shells and notebooks complete the names of a signature. Editors read the type ``SolverOptions``.
    """
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        for name, kind in SolverOptions.__annotations__.items()
    ]
    # Completion and help() read this attribute; the function still gets its ``**options``.
    function.__dict__["__signature__"] = signature.replace(parameters=[*kept, *options])
    return function
