"""The options of the sparse applications, with their types."""

import difflib
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import shortened
from vitruvian.golden.sparse.applications import APPLICATIONS

#: The application without a dataflow graph: it counts triangles, and has no machine
TRIANGLES = "triangles"

#: Options of each application with their defaults; ``inspect.Parameter.empty`` must be given
OPTIONS: dict[str, dict[str, Any]] = {
    name: {
        key: parameter.default
        for key, parameter in list(inspect.signature(state).parameters.items())[1:]
    }
    for name, state in APPLICATIONS.items()
} | {TRIANGLES: {}}

#: Names of options in other libraries, and what they are called here
_ELSEWHERE = {
    "alpha": ("damping",),
    "d": ("damping",),
    "rtol": ("tolerance",),
    "tol": ("tolerance",),
    "atol": ("tolerance",),
    "eps": ("tolerance",),
    "epsilon": ("tolerance",),
    "maxiter": ("iterations",),
    "max_iter": ("iterations",),
    "max_iters": ("iterations",),
    "max_iterations": ("iterations",),
    "niter": ("iterations",),
    "n_iter": ("iterations",),
    "k": ("clusters", "hops"),
    "n_clusters": ("clusters",),
    "cutoff": ("hops",),
    "depth_limit": ("hops",),
    "random_state": ("seed",),
    "root": ("source",),
    "start": ("source", "first"),
    "indices": ("source",),
    "rhs": ("b",),
    "right_side": ("b",),
    "x": ("features", "x0"),
    "initial": ("x0",),
    "y": ("labels",),
}

_KRYLOV = {"rtol": "tolerance", "maxiter": "iterations", "max_iter": "iterations"}

#: Names in NetworkX, SciPy and scikit-learn that mean the same as an option of an application
SYNONYMS: dict[str, dict[str, str]] = {
    "pagerank": {"alpha": "damping", "tol": "tolerance", "max_iter": "iterations"},
    "labelprop": {"tol": "tolerance", "max_iter": "iterations"},
    "gmres": _KRYLOV,
    "cg": _KRYLOV,
    "bicgstab": _KRYLOV,
}


def own_names(app: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an application by their names in ``OPTIONS``.

    Raises
    ------
    ValueError
        If an option is given by two names.
    """
    synonyms, named, found = SYNONYMS.get(app, {}), dict[str, Any](), dict[str, str]()
    for name, value in options.items():
        own = synonyms.get(name, name)
        if own in named:
            raise UserError(f"{own} must be given once, not as {found[own]} and as {name}")
        named[own], found[own] = value, name
    return named


def unknown(thing: str, name: str, allowed: list[str]) -> str:
    """Return the message for a name that does not exist, with the one that may be meant."""
    same = [each for each in _ELSEWHERE.get(name.lower(), ()) if each in allowed]
    near = difflib.get_close_matches(name.lower(), allowed, 1, 0.5)
    hint = f"; the nearest is {near[0]}" if near else ""
    hint = f"; did you mean {same[0]}?" if same else hint
    names = f"one of {', '.join(allowed)}" if len(allowed) > 1 else ", ".join(allowed) or "left out"
    return f"{thing} must be {names}, not {shortened(name)}{hint}"


class SolverOptions(TypedDict, total=False):
    """All options; an application takes some of them, see ``OPTIONS`` and ``SYNONYMS``.

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
    alpha : float
        pagerank: ``damping``, as in NetworkX.
    tol : float
        pagerank, labelprop: ``tolerance``.
    rtol : float
        cg, bicgstab, gmres: ``tolerance``, as in SciPy.
    max_iter, maxiter : int
        ``iterations``; the second name is for cg, bicgstab and gmres only.
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
    alpha: float
    tol: float
    rtol: float
    max_iter: int
    maxiter: int


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
