"""One function for all sparse applications: check, convert, run and report."""

import difflib
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.sparse.applications import APPLICATIONS
from vitruvian.golden.sparse.applications.problem import Problem, check_square
from vitruvian.golden.sparse.applications.traversal import NegativeCycle
from vitruvian.golden.sparse.execute import Run, Watch, run
from vitruvian.golden.sparse.frontier import has_frontier, run_frontier
from vitruvian.golden.sparse.oei import run_oei
from vitruvian.golden.sparse.products import triangles, vxm
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.sparse.matrices import Given, given_matrix
from vitruvian.sparse.options import (
    OPTIONS,
    TRIANGLES,
    SolverOptions,
    own_names,
    shows_options,
    unknown,
)
from vitruvian.sparse.result import Result

#: The dataflows of ``solve``; the first one is the default
DATAFLOWS = ("plain", "oei")

#: What ``solve`` takes as ``progress``: a function gets a text after each iteration
Shown = bool | Callable[[str], None]

#: Applications that take an edge as an edge, whatever its weight
_UNWEIGHTED = ("bfs", "knn", "kcore", "components", TRIANGLES)

#: Options that name a vertex
_VERTICES = ("source", "first")

#: The tensor that is the answer, and its conversion
_ANSWERS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "pagerank": ("rank", np.asarray),
    "kcore": ("core", lambda x: x.astype(np.int64)),
    "bfs": ("level", np.asarray),
    "sssp": ("distance", np.asarray),
    "components": ("label", lambda x: x.astype(np.int64)),
    "kmeans": ("chosen", lambda x: x.astype(np.int64)),
    "knn": ("near", lambda x: x != 0),
    "labelprop": ("belief", lambda x: np.where(x.any(1), x.argmax(1), -1)),
    "gcn": ("features", np.asarray),
    "gmres": ("x", np.asarray),
    "cg": ("x", np.asarray),
    "bicgstab": ("x", np.asarray),
}

#: Steps of a pass over the matrix. The golden OEI execution takes some 0.1 ms for each step, and
#: gives the same bits for every number of columns per step.
_STEPS = 16


@shows_options
def solve(
    app: str,
    matrix: Any,
    *,
    dataflow: str | None = None,
    simulate: bool = False,
    width: int | None = None,
    weight: str | None = "weight",
    architecture: Any = None,
    reorder: str = "none",
    block: int = 1,
    memory: Any = None,
    dram_simulator: str | None = None,
    progress: Shown = False,
    **options: Unpack[SolverOptions],
) -> Result:
    """Run a sparse application on the golden models.

    An element (i, j) of the matrix is an edge from vertex i to vertex j. In a linear system it is
    row i and column j.

    Parameters
    ----------
    app : str
        pagerank, kcore, bfs, sssp, kmeans, knn, labelprop, gcn, gmres, cg, bicgstab, components or
        triangles.
    matrix : object
        A SciPy sparse matrix, a path of a Matrix Market file or of a list of edges, a NetworkX
        graph, a pandas data frame or a list of tuples with edges, a dense ndarray or a ``Sparse``;
        see ``as_sparse``. It must be square, but for kmeans.
    dataflow : {"plain", "oei"}, optional
        "plain" runs one node of the dataflow graph after the other, and bfs, sssp, components and
        kcore over the edges of changed vertices only; "oei" runs pairs of products in one pass over
        the matrix where their dependencies allow it, as SIDA does, and takes longer on a CPU. Both
        give the same bits. By default it is "plain", or "oei" if ``width`` is given.
    simulate : bool
        If True, the result has the report of the whole run on the simulated machine, whose dataflow
        is OEI in either case.
    width : int, optional
        Columns per step of the OEI dataflow; by default a 16th of the columns.
    weight : str or None
        Name of the attribute or column with the weights of a graph's edges; if None, all weights
        are 1. A ``GraphWarning`` counts the edges without it, unless the application needs none.
    architecture : Architecture or path, optional
        The simulated machine; by default that of ``sim/sparse/sida.toml``.
    reorder : str
        Order of the rows and columns on the simulated machine: a name in
        ``vitruvian.sim.sparse.reordering.ORDERS``.
    block : int
        Side of the blocks in which the simulated machine stores the matrix.
    memory : str or path, optional
        A memory with timing for the simulated machine: "hbm2", or a TOML file like
        ``sim/sparse/hbm2.toml``; by default, memory is a bandwidth.
    dram_simulator : str, optional
        Path of DRAMsim3's program, which computes the times of ``memory`` instead of our model.
    progress : bool or callable
        If True, standard error shows the iterations and the residual: a line that is drawn anew on
        a terminal, and elsewhere a line every ten seconds. A function gets each text instead.
    **options
        Those of the application, such as ``damping`` (also ``alpha``) or ``source``; see
        ``options.SolverOptions``
        and the functions in ``vitruvian.golden.sparse.applications``. A vertex of a graph is given
        by its name.

    Returns
    -------
    Result

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the application needs an option that is not given.
    ValueError
        If an argument is not allowed; the message says what is. A system without a solution, or a
        matrix that is not positive definite for cg, is no error but a ``failure`` of the result.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import sparse
    >>> ring = np.roll(np.eye(4), 1, axis=1)
    >>> sparse.solve("bfs", ring, source=0).values.tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    dataflow = _dataflow(app, dataflow, width)
    for name, value in (("simulate", simulate), ("progress", progress)):
        if not isinstance(value, bool) and not (name == "progress" and callable(value)):
            raise TypeError(f"{name} must be a bool, not {value!r}")
    if not simulate:
        machine = {
            "architecture": architecture,
            "reorder": reorder,
            "block": block,
            "memory": memory,
            "dram_simulator": dram_simulator,
        }
        for name, value in machine.items():
            if value != inspect.signature(solve).parameters[name].default:
                raise UserError(f"{name} must be given with simulate=True only, not {value!r}")
    if app == TRIANGLES:
        return _triangles(matrix, weight, options, simulate)
    given, state = _stated(app, matrix, weight, options)
    with _shown(app, progress) as tell:
        watch = None if tell is None else _watch(state, tell)
        outcome = _run(state, dataflow, width, watch, exact=simulate)
        report = None
        if simulate:
            if tell:
                tell(f"simulates {outcome.iterations:,} iterations")
            from vitruvian.sim.sparse.application import simulate_application

            report = simulate_application(
                state,
                architecture,
                reorder=reorder,
                block=block,
                iterations=outcome.iterations,
                confirmations=outcome.confirmations,
                memory=memory,
                dram_simulator=dram_simulator,
            )
    name, convert = _ANSWERS[app]
    failure = outcome.failure
    if app == "cg" and not outcome.converged:
        failure = _asymmetry(failure, given.matrix)
    return Result(
        application=app,
        dataflow=dataflow,
        values=convert(outcome.values[name]),
        iterations=outcome.iterations,
        converged=outcome.converged,
        failure=failure,
        tensors=outcome.values,
        reads=outcome.reads,
        vertices=given.vertices,
        report=report,
        residual=_residual(state, outcome.values[name]) if "b" in state.given else None,
    )


def _dataflow(app: str, dataflow: str | None, width: int | None) -> str:
    """Return the dataflow of a run; refuse one that does not fit the other arguments."""
    if dataflow is None:
        dataflow = "plain" if width is None else "oei"
    one_of("dataflow", dataflow, DATAFLOWS)
    if width is not None:
        check_int("width", width, 1)
        if dataflow != "oei":
            raise UserError(f"dataflow must be oei with a width, not {dataflow}")
    if app == TRIANGLES and dataflow != "plain":
        raise UserError(f"dataflow of triangles must be plain, without a width, not {dataflow}")
    return dataflow


def _run(
    state: Problem, dataflow: str, width: int | None, watch: Watch | None, *, exact: bool
) -> Run:
    """Run a problem; ``exact`` asks for the iterations of the machine, see ``run_frontier``."""
    arguments = state.graph, state.matrices, state.given
    if dataflow == "oei":
        columns = max(next(iter(state.matrices.values())).shape)
        steps = width or max(1, -(-columns // _STEPS))
        return run_oei(*arguments, iterations=state.iterations, width=steps, watch=watch)[0]
    if has_frontier(state):
        return run_frontier(state, exact=exact)
    return run(*arguments, iterations=state.iterations, watch=watch)


@contextmanager
def _shown(app: str, progress: Shown) -> Iterator[Callable[[str], None] | None]:
    """Provide the function that shows a text; None if nothing is to be shown."""
    if callable(progress):
        yield progress
    elif progress:
        from vitruvian.common.progress import Progress

        with Progress(app, bar=False, counts=False) as shown:
            yield lambda text: shown.update(note=text)
    else:
        yield None


def _watch(state: Problem, tell: Callable[[str], None]) -> Watch:
    """Return the function that tells the number of iterations and how near they have come."""

    def watch(done: int, tensors: Mapping[str, Any]) -> None:
        size = ""
        with np.errstate(all="ignore"):
            if "b" in state.given:
                size = f", residual {float(np.sqrt(tensors['rr'] / (tensors['bb'] or 1))):.2g}"
            elif "residual" in tensors:
                size = f", change {float(tensors['residual']):.2g}"
        tell(f"iteration {done:,} of at most {state.iterations:,}{size}")

    return watch


def _triangles(
    matrix: Any, weight: str | None, options: Mapping[str, Any], simulate: bool
) -> Result:
    """Count triangles, which no dataflow graph states."""
    for name in options:
        raise UserError(unknown(f"option of {TRIANGLES}", name, []))
    if simulate:
        raise UserError("simulate must be False for triangles, which no dataflow graph states")
    given = given_matrix(matrix, weight=weight, **conventions(TRIANGLES))
    check_square(given.matrix)
    counts = triangles(given.matrix)
    return Result(
        application=TRIANGLES,
        dataflow="plain",
        values=counts,
        iterations=1,
        converged=True,
        failure=None,
        tensors={TRIANGLES: counts},
        reads=1,
        vertices=given.vertices,
        report=None,
    )


@shows_options
def problem(
    app: str, matrix: Any, *, weight: str | None = "weight", **options: Unpack[SolverOptions]
) -> Problem:
    """Return the dataflow graph of an application with its matrix and its tensors.

    Parameters
    ----------
    **options
        As for ``solve``.

    Returns
    -------
    Problem
        For ``golden.sparse.execute.run`` and for the simulator.

    Raises
    ------
    TypeError, ValueError
        As for ``solve``; triangles have no graph.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import sparse
    >>> sparse.problem("pagerank", np.roll(np.eye(4), 1, axis=1)).graph.name
    'pagerank'
    """
    return _stated(app, matrix, weight, options)[1]


def _stated(
    app: str, matrix: Any, weight: str | None, options: Mapping[str, Any]
) -> tuple[Given, Problem]:
    """Check the options, convert the matrix and state the problem."""
    if not isinstance(app, str):
        raise TypeError(f"application must be a name, not {app!r}")
    if app not in APPLICATIONS:
        # Triangles have no dataflow graph, and are counted before this.
        names = list(APPLICATIONS if app == TRIANGLES else OPTIONS)
        raise UserError(unknown("application", app, names))
    allowed, chosen = OPTIONS[app], own_names(app, options)
    for name in chosen:
        if name not in allowed:
            raise UserError(unknown(f"option of {app}", name, list(allowed)))
    missing = [
        name
        for name, default in allowed.items()
        if default is inspect.Parameter.empty and name not in chosen
    ]
    if missing:
        raise TypeError(f"{app} needs {' and '.join(missing)}, which must be given")
    given = given_matrix(matrix, weight=weight, **conventions(app))
    for name in _VERTICES:
        if name in chosen:
            chosen[name] = _number(name, chosen[name], given)
    if isinstance(chosen.get("labels"), Mapping):
        chosen["labels"] = _labels(chosen["labels"], given)
    if app == "kcore" and chosen.get("directed") is None:
        chosen["directed"] = given.is_directed
    try:
        return given, APPLICATIONS[app](given.matrix, **chosen)
    except NegativeCycle as error:
        raise NegativeCycle(error.cycle, error.weight, given.vertices) from None


def conventions(app: str) -> dict[str, Any]:
    """Return the options of ``given_matrix`` for an application.

    The shortest of parallel edges counts for paths; otherwise their weights add up.
    """
    return {
        "parallel": "min" if app == "sssp" else "sum",
        "is_weighted": app not in _UNWEIGHTED,
    }


def _number(thing: str, vertex: Any, given: Given) -> Any:
    """Return the number of a vertex of a graph; other numbers become plain ints."""
    if given.vertices is None:
        return int(vertex) if isinstance(vertex, np.integer) else vertex
    if isinstance(vertex, Hashable) and vertex in given.numbers:
        return given.numbers[vertex]
    names = [name for name in given.vertices if isinstance(name, str)]
    near = difflib.get_close_matches(vertex, names, 1) if isinstance(vertex, str) else []
    hint = f"; the nearest is {near[0]!r}" if near else ""
    raise UserError(f"{thing} must be a vertex of the graph, not {vertex!r}{hint}")


def _labels(labels: Mapping[Any, Any], given: Given) -> np.ndarray:
    """Return the labels of all vertices from those of some."""
    result = np.full(given.matrix.shape[0], -1, np.int64)
    for vertex, label in labels.items():
        place = _number("labelled vertex", vertex, given)
        check_int("labelled vertex", place, 0, len(result) - 1)
        label = int(label) if isinstance(label, np.integer) else label
        result[place] = check_int(f"label of {vertex!r}", label, -1)
    return result


def _residual(state: Problem, x: np.ndarray) -> float:
    """Return ‖b − A·x‖/‖b‖ of a linear system, or ‖A·x‖ if b is 0."""
    b = state.given["b"]
    with np.errstate(all="ignore"):
        norm = np.linalg.norm(b - vxm(x, state.matrices["A"], transposed=True))
        return float(norm / (np.linalg.norm(b) or 1.0))


def _asymmetry(failure: str | None, matrix: Sparse) -> str | None:
    """Return why cg failed, which is the asymmetry of the matrix if it has one."""
    other = matrix.transposed
    same = np.array_equal(matrix.row_start, other.row_start)
    same = same and np.array_equal(matrix.column_index, other.column_index)
    if same:
        largest = np.abs(matrix.row_values).max(initial=0.0)
        # Symmetric matrices that are computed, such as Aᵀ·A, may differ by roundings.
        same = bool((np.abs(matrix.row_values - other.row_values) <= 1e-10 * largest).all())
    return failure if same else f"{failure or 'no convergence'}; the matrix is not symmetric"
