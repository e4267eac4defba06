"""Iterative solvers of A·x = b as graphs.

The bodies of cg and bicgstab update the residual by recursion, which drifts from b − A·x. So a run
converges only when the residual that is computed from x fulfils the stop condition: the nodes
``confirm`` of the graph compute it when the recursion says so, and start anew from it if it does
not. GMRES computes it at each restart.
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.applications.problem import (
    Problem,
    check_finite,
    check_number,
    check_square,
    check_vector,
    ewise,
    reduce,
)
from vitruvian.golden.sparse.graph import Graph, Node, Swap, Vxm
from vitruvian.golden.sparse.storage import Sparse


def _dot(out: str, first: str, second: str) -> tuple[Node, Node]:
    """Return the nodes of a scalar product."""
    return ewise(f"{out}_terms", "mul", first, second), reduce(out, "add", f"{out}_terms")


def _axpy(out: str, x: str, scale: str, y: str, *, function: str = "add") -> tuple[Node, Node]:
    """Return the nodes of out = x ± scale·y."""
    return ewise(f"{out}_step", "mul", scale, y), ewise(out, function, x, f"{out}_step")


#: The stop condition: the squared norm ``rr`` is at most ``small``. It fails if ``rr`` is a NaN.
_STOP: tuple[Node, ...] = (
    ewise("below", "less", "rr", "small"),
    ewise("at_limit", "equal", "rr", "small"),
    ewise("done", "or", "below", "at_limit"),
)

#: The residual r = b − A·x and its squared norm
_RESIDUAL: tuple[Node, ...] = (
    Vxm("ax", "x", transposed=True),
    ewise("r", "sub", "b", "ax"),
    *_dot("rr", "r", "r"),
)

#: The residual, and the square of the largest norm that counts as solved
_SETUP: tuple[Node, ...] = (
    *_RESIDUAL,
    *_dot("bb", "b", "b"),
    # ‖b‖²·tolerance², as squared norms are compared and no root is needed.
    ewise("small", "mul", "bb", "tolerance"),
    ewise("small", "mul", "small", "tolerance"),
    *_STOP,
    ewise("rr_last", "copy", "rr"),
)

#: The stop condition, and a failure if the squared norm has not shrunk since it was ``rr_last``
_PROGRESS: tuple[Node, ...] = (
    *_STOP,
    ewise("shrinks", "less", "rr", "rr_last"),
    ewise("progress", "or", "shrinks", "done"),
    ewise("stuck", "not", "progress"),
    ewise("rr_last", "copy", "rr"),
)

_STUCK = "stagnation: the residual b − A·x did not shrink between two"

CG = Graph(
    name="cg",
    given=("x", "b", "tolerance"),
    setup=(*_SETUP, ewise("p", "copy", "r")),
    body=(
        Vxm("q", "p", transposed=True),
        *_dot("pq", "p", "q"),
        # A breakdown leaves x as it was.
        ewise("positive", "less", 0.0, "pq"),
        ewise("length", "div", "rr", "pq"),
        ewise("alpha", "select", "positive", "length", 0.0),
        *_axpy("x", "x", "alpha", "p"),
        *_axpy("r", "r", "alpha", "q", function="sub"),
        *_dot("rr_next", "r", "r"),
        ewise("beta", "div", "rr_next", "rr"),
        *_axpy("p", "r", "beta", "p"),
        # The norm of the next residual is that of the next iteration.
        Swap("rr", "rr_next"),
        *_STOP,
        ewise("indefinite", "not", "positive"),
    ),
    results=("x", "rr"),
    stop="done",
    confirm=(*_RESIDUAL, *_PROGRESS, ewise("p", "copy", "r")),
    failures={
        "indefinite": "breakdown: the matrix is not positive definite",
        "stuck": f"{_STUCK} confirmations",
    },
)

BICGSTAB = Graph(
    name="bicgstab",
    given=("x", "b", "tolerance"),
    setup=(
        *_SETUP,
        ewise("shadow", "copy", "r"),
        ewise("p", "copy", "r"),
        *_dot("rho", "shadow", "r"),
    ),
    body=(
        Vxm("v", "p", transposed=True),
        *_dot("sv", "shadow", "v"),
        # A breakdown leaves x finite.
        ewise("flat", "equal", "sv", 0.0),
        ewise("length", "div", "rho", "sv"),
        ewise("alpha", "select", "flat", 0.0, "length"),
        *_axpy("s", "r", "alpha", "v", function="sub"),
        Vxm("t", "s", transposed=True),
        *_dot("ts", "t", "s"),
        *_dot("tt", "t", "t"),
        # If s is 0, so is t: then the first half of the step has reached the solution.
        ewise("exact", "equal", "tt", 0.0),
        ewise("ratio", "div", "ts", "tt"),
        ewise("omega", "select", "exact", 0.0, "ratio"),
        *_axpy("half", "x", "alpha", "p"),
        *_axpy("x", "half", "omega", "s"),
        *_axpy("r", "s", "omega", "t", function="sub"),
        *_dot("rr", "r", "r"),
        *_dot("rho_next", "shadow", "r"),
        ewise("growth", "div", "rho_next", "rho"),
        ewise("speed", "div", "alpha", "omega"),
        ewise("beta", "mul", "growth", "speed"),
        *_axpy("drift", "p", "omega", "v", function="sub"),
        *_axpy("p", "r", "beta", "drift"),
        *_STOP,
        # The next step divides by rho and omega.
        ewise("orthogonal", "equal", "rho_next", 0.0),
        ewise("still", "equal", "omega", 0.0),
        ewise("zero", "or", "orthogonal", "still"),
        ewise("zero", "or", "zero", "flat"),
        # A NaN differs from itself.
        ewise("number", "equal", "rr", "rr"),
        ewise("no_number", "not", "number"),
        ewise("broken", "or", "zero", "no_number"),
        ewise("open", "not", "done"),
        ewise("lost", "and", "broken", "open"),
        Swap("rho", "rho_next"),
    ),
    results=("x", "rr"),
    stop="done",
    confirm=(
        *_RESIDUAL,
        *_PROGRESS,
        ewise("shadow", "copy", "r"),
        ewise("p", "copy", "r"),
        ewise("rho", "copy", "rr"),
    ),
    failures={
        "lost": "breakdown: a scalar product became zero",
        "stuck": f"{_STUCK} confirmations",
    },
)


def gmres_graph(steps: int, *, recompute: bool = True) -> Graph:
    """Return the graph of GMRES, restarted after ``steps`` products, which form one iteration.

    Parameters
    ----------
    recompute : bool
        If True, the residual of each restart is computed from x by one more product, which can
        share its pass over the matrix with the first product of the next iteration. If False, the
        body updates the residual by recursion, and a run may report convergence that it lacks.

    Notes
    -----
    The basis of the Krylov space is r, s·A·r, (s·A)²·r, …, where the number s keeps the powers in
    range. So one product follows another without a reduction, and each can share a pass over the
    matrix with the next one. (Arnoldi's orthogonal basis would need a whole vector between them.)
    A least-squares problem then finds the step that minimises the residual.
    """
    body: list[Node] = [ewise("z_0", "copy", "r")]
    for step in range(steps):
        body.append(Vxm(f"w_{step}", f"z_{step}", transposed=True))
        if step < steps - 1:
            body.append(ewise(f"z_{step + 1}", "mul", f"w_{step}", "scale"))
    images = tuple(f"w_{step}" for step in range(steps))
    body.append(reduce("y", "least_squares", "r", *images))
    for step in range(steps):
        body += [
            reduce("y_step", "at", "y", float(step)),
            *_axpy("x", "x", "y_step", f"z_{step}"),
        ]
        if not recompute:
            body += _axpy("r", "r", "y_step", f"w_{step}", function="sub")
    body += [*(_RESIDUAL if recompute else _dot("rr", "r", "r")), *_PROGRESS]
    return Graph(
        name="gmres",
        given=("x", "b", "tolerance", "scale"),
        setup=_SETUP,
        body=tuple(body),
        results=("x", "rr"),
        stop="done",
        failures={"stuck": f"{_STUCK} restarts"},
    )


def _system(
    a: Sparse, b: ArrayLike, x0: ArrayLike | None, tolerance: float
) -> dict[str, np.ndarray | np.float64]:
    """Check a linear system and return the tensors that every solver is given."""
    count = check_square(a)
    check_finite(a)
    check_number("tolerance", tolerance, 0, strict=True)
    right = check_vector("b", b, count)
    start = np.zeros(count) if x0 is None else check_vector("x0", x0, count)
    # The solvers compute with squares, which must neither overflow nor become subnormal.
    for name, vector, least in (("b", right, 1e-130), ("x0", start, 0.0)):
        norm = float(np.abs(vector).max(initial=0.0))
        if norm and not least <= norm <= 1e150:
            allowed = f"between {least:g} and 1e+150" if least else "at most 1e+150"
            raise UserError(f"largest element of {name} must be {allowed}, not {norm:g}")
    # The solution for b = 0 is known. No residual would be small relative to b.
    if not right.any():
        start = np.zeros(count)
    return {"x": start, "b": right, "tolerance": np.float64(tolerance)}


def cg(
    a: Sparse,
    b: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    tolerance: float = 1e-8,
    iterations: int = 1000,
) -> Problem:
    """Solve a symmetric positive definite system with conjugate gradients.

    Parameters
    ----------
    a : (N, N) Sparse
    b : (N,) array_like of float
    x0 : (N,) array_like of float, optional
        The vector to start from; zeros by default.
    tolerance : float
        The run stops if the norm of the residual b − A·x is at most ``tolerance`` times that of b.

    Returns
    -------
    Problem
        Results ``x`` and ``rr``, the squared norm of the residual: computed from x if the run
        converges, else that of the recursion. A direction p with pᵀ·A·p ≤ 0 ends the run as a
        failure, and so does a residual that no longer shrinks.

    Raises
    ------
    ValueError
        If the system is not one of finite numbers with a square matrix.
    """
    given = _system(a, b, x0, tolerance)
    return Problem(CG, {"A": a}, given, check_int("iterations", iterations, 1))


def bicgstab(
    a: Sparse,
    b: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    tolerance: float = 1e-8,
    iterations: int = 1000,
) -> Problem:
    """Solve a system with stabilised biconjugate gradients; see ``cg`` for the parameters."""
    given = _system(a, b, x0, tolerance)
    return Problem(BICGSTAB, {"A": a}, given, check_int("iterations", iterations, 1))


def gmres(
    a: Sparse,
    b: ArrayLike,
    *,
    x0: ArrayLike | None = None,
    restart: int = 10,
    tolerance: float = 1e-8,
    iterations: int = 1000,
) -> Problem:
    """Solve a system with restarted GMRES; see ``cg`` for the other parameters.

    Parameters
    ----------
    a : (N, N) Sparse
    b : (N,) array_like of float
    x0 : (N,) array_like of float, optional
    restart : int
        Products between two restarts. With more than about 20, the powers of the matrix become
        nearly parallel, and the least-squares problem loses accuracy.
    iterations : int
        Largest number of restarts.
    """
    check_int("restart", restart, 1)
    given = _system(a, b, x0, tolerance)
    sums = np.bincount(a.rows, np.abs(a.row_values), minlength=a.shape[0])
    largest = float(sums.max(initial=0.0))
    given["scale"] = np.float64(1 / largest if largest > 0 else 1.0)
    graph = gmres_graph(restart)
    return Problem(graph, {"A": a}, given, check_int("iterations", iterations, 1))
