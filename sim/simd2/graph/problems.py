"""Graph problems on a SIMD² unit: the table of problems, and the function that solves them."""

import warnings
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2 import Op
from vitruvian.sim.graph_problems import PATH_PROBLEMS
from vitruvian.sim.simd2 import Machine
from vitruvian.sim.simd2.graph.closures import BLOCK, Operand, closure, default_algorithm
from vitruvian.sim.simd2.graph.inputs import (
    FORMATS,
    Graph,
    PrecisionWarning,
    as_edges,
    as_graph,
    rounded,
)
from vitruvian.sim.simd2.graph.paths import Paths, Problem, Reachability, SpanningForest
from vitruvian.sim.simd2.graph.routes import find_cycle, lost_paths, negative_cycle

_INF = float("inf")

_PROBLEMS = (
    Problem(name="apsp", op=Op.MINPLUS, identity=0.0, called="farthest pair"),
    Problem(name="aplp", op=Op.MAXPLUS, identity=0.0, needs="acyclic", called="critical path"),
    Problem(name="mcp", op=Op.MAXMIN, identity=_INF, extreme="smallest", called="narrowest pair"),
    Problem(
        name="maxrp",
        op=Op.MAXMUL,
        identity=1.0,
        probabilities=True,
        extreme="smallest",
        called="least reliable pair",
    ),
    Problem(
        name="minrp",
        op=Op.MINMUL,
        identity=1.0,
        needs="acyclic",
        probabilities=True,
        extreme="smallest",
        called="least reliable path",
    ),
    Problem(
        name="mst",
        op=Op.MINMAX,
        identity=-_INF,
        needs="undirected",
        called="widest gap",
        result=SpanningForest,
    ),
    Problem(name="gtc", op=Op.ORAND, identity=1.0, extreme="", result=Reachability),
)

#: The path problems by name. A name of ``PATH_PROBLEMS`` without a problem raises KeyError here.
PROBLEMS = {name: {problem.name: problem for problem in _PROBLEMS}[name] for name in PATH_PROBLEMS}


class Options(TypedDict, total=False):
    """Keyword arguments of ``solve``, which describes them."""

    algorithm: str | None
    check: bool
    inputs: str | None
    machine: Machine | None
    reflexive: bool
    block: int
    sparse: bool
    weight: str | None
    no_edge: float | None
    names: Any
    duplicates: str | None
    directed: bool | None


# The overloads let a type checker know that ``solve("mst", …)`` has a tree.
@overload
def solve(problem: Literal["mst"], source: Any, **options: Unpack[Options]) -> SpanningForest:
    """Solve mst; the result has a tree."""


@overload
def solve(problem: str, source: Any, **options: Unpack[Options]) -> Paths:
    """Solve any path problem; see below."""


def solve(
    problem: str,
    source: Any,
    *,
    algorithm: str | None = None,
    check: bool = True,
    inputs: str | None = None,
    machine: Machine | None = None,
    reflexive: bool = True,
    block: int = BLOCK,
    sparse: bool = False,
    **reading: Any,
) -> Paths:
    """Solve a path problem for all pairs of vertices.

    Parameters
    ----------
    problem : str
        A name in ``PROBLEMS``.
    source : array, sparse matrix, NetworkX graph, list of edges, path of a file, or Graph
        See ``as_graph``.
    algorithm : {"bellman-ford", "leyzorek", "floyd-warshall"}, optional
        See ``closure``. By default the algorithm with the fewest operations is used, see
        ``closures.default_algorithm``.
    check : bool
        If True, stop when an iteration changes nothing. Otherwise, run as many iterations as the
        worst graph needs.
    inputs : {"fp16", "fp32"}, optional
        Format of the operands. The values of one iteration are operands of the next: in FP16 they
        are rounded, and a warning states the loss. By default the format is FP16 if it loses
        nothing, that is, if it represents all weights and ⊗ yields no new values (min, max, and).
    machine : Machine, optional
        Machine that computes; the instructions are added to its counts. By default a new machine
        on golden.
    reflexive : bool
        For gtc only: if True, every vertex reaches itself; otherwise, only vertices on cycles do.
    block : int
        Vertices in a block of Floyd–Warshall.
    sparse : bool
        If True, Bellman–Ford uses edges in 2:4 form.
    **reading
        ``weight``, ``no_edge``, ``names``, ``duplicates`` and ``directed`` of ``read_graph``.

    Returns
    -------
    Paths
        For mst a ``SpanningForest``, for gtc a ``Reachability``.

    Raises
    ------
    ValueError
        If a name is unknown; if the matrix is not square; if a weight is not a number, is beyond
        the range of the format, or is not a probability within [0, 1] where it must be one; if the
        graph has a cycle or directed edges where it must not; or if it has a negative cycle. The
        message names the cycle.
    """
    one_of("problem", problem, PROBLEMS)
    spec = PROBLEMS[problem]
    graph = read_graph(spec, source, **reading)
    if algorithm is None:
        algorithm = default_algorithm(len(graph), block=block, sparse=sparse, check=check)
    inputs, operands = _operands(spec, graph, inputs)
    start = operands.copy()
    if reflexive or spec.op is not Op.ORAND:
        _add_empty_paths(spec, start)
    machine = machine or Machine()
    counts_before, cycles_before = machine.counts, machine.measured_cycles
    as_operand = Operand(inputs)
    result = closure(
        machine,
        spec.op,
        start,
        as_operand,
        algorithm=algorithm,
        check=check,
        block=block,
        sparse=sparse,
        stop=_negative(spec, operands),
    )
    if result.stopped:
        cycle = _negative_cycle(graph, operands)
        raise ValueError(f"apsp must have a graph without negative cycles, not one with {cycle}")
    _warn_rounded(as_operand.error)
    _warn_lost(spec.op, lost_paths(spec.op, result.values, operands, graph.edges))
    return spec.result(
        problem=spec,
        graph=graph,
        values=result.values,
        algorithm=algorithm,
        inputs=inputs,
        iterations=result.iterations,
        converged=result.converged,
        counts=machine.counts - counts_before,
        measured_cycles=machine.measured_cycles - cycles_before,
        operands=operands,
    )


def read_graph(problem: Problem, source: Any, **reading: Any) -> Graph:
    """Return the graph of a problem from any source, and check the conditions of the problem.

    Parameters
    ----------
    source : object
        See ``as_graph``.
    **reading
        ``weight``, ``no_edge``, ``names``, ``duplicates`` and ``directed`` of ``as_graph``. If the
        problem needs an undirected graph, the edges of a list are undirected by default.

    Raises
    ------
    ValueError
        See ``solve`` and ``as_graph``.
    """
    if problem.needs == "undirected" and reading.get("directed") is None:
        listed = as_edges(source, reading.get("weight", "weight"))
        if listed is not None:
            source, reading = listed, {**reading, "directed": False}
    graph = as_graph(source, problem.op, **reading)
    _check(problem, graph)
    return graph


def _operands(problem: Problem, graph: Graph, inputs: str | None) -> tuple[str, np.ndarray]:
    """Return the format of the operands, and the weights rounded to it, as float32."""
    op = problem.op
    # orand ignores weights: its operands are 1 for an edge and 0 otherwise.
    weights = graph.edges.astype(np.float64) if op is Op.ORAND else graph.weights
    inputs = inputs or _lossless_format(op, weights)
    one_of("inputs", inputs, FORMATS)
    # The unit reads operands of the format, but a closure starts from C, which is FP32.
    return inputs, rounded(weights, inputs).astype(np.float32)


def _add_empty_paths(problem: Problem, start: np.ndarray) -> None:
    """Put the value of the path without edges, which is the identity of ⊗, on the diagonal."""
    loops = np.diagonal(start).copy()
    np.fill_diagonal(start, problem.identity)
    if problem.op is Op.MINPLUS:
        # A loop of negative weight must stay: it is a negative cycle.
        np.fill_diagonal(start, np.minimum(loops, np.float32(0)))


def _lossless_format(op: Op, weights: np.ndarray) -> str:
    """Return the smallest format of operands that loses nothing."""
    if op.times not in ("min", "max", "and"):
        return "fp32"
    with np.errstate(over="ignore"):
        same = weights.astype(np.float16) == weights
    return "fp16" if same.all() else "fp32"


def _check(problem: Problem, graph: Graph) -> None:
    """Raise ValueError if the graph does not meet the conditions of the problem."""
    if problem.probabilities:
        wrong = graph.edges & ~((graph.weights >= 0) & (graph.weights <= 1))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            value = graph.weights[i, j]
            raise ValueError(
                f"probabilities must be within [0, 1], not {value:g} (edge {graph.edge(i, j)})"
            )
    if problem.needs == "undirected" and graph.directed:
        raise ValueError(f"{problem.name} must have an undirected graph, not a directed one")
    if problem.needs == "acyclic":
        cycle = find_cycle(graph.edges)
        if cycle:
            names = _named(graph, cycle)
            raise ValueError(
                f"{problem.name} must have a graph without cycles, not one with {names}"
            )


def _named(graph: Graph, cycle: list[int]) -> str:
    """Return the names of the vertices of a cycle as text; a long cycle is shortened."""
    names = [str(graph.names[v]) for v in [*cycle, cycle[0]]]
    if len(names) > 12:
        names = [*names[:6], "…", *names[-5:]]
        return f"{' → '.join(names)} ({len(cycle)} edges)"
    return " → ".join(names)


def _negative(problem: Problem, operands: np.ndarray):
    """Return a function that detects negative cycles in the values, or None if none can exist."""
    if problem.op is not Op.MINPLUS or not (operands < 0).any():
        return None
    harmless = False

    def stop(d):
        nonlocal harmless
        if harmless or not (np.diagonal(d) < 0).any():
            return False
        # The values are rounded, so the operands decide, in float64.
        if negative_cycle(operands.astype(np.float64)) is not None:
            return True
        harmless = True  # the diagonal became negative by rounding; no cycle is negative
        return False

    return stop


def _negative_cycle(graph: Graph, operands: np.ndarray) -> str:
    """Return a negative cycle as text.

    Rounded operands can have a negative cycle although the exact weights have none; the text then
    says so.
    """
    weights = operands.astype(np.float64)
    cycle = negative_cycle(weights) or []
    ends = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    total, exact = (sum(x[i, j] for i, j in ends) for x in (weights, graph.weights))
    by_rounding = "" if exact < 0 else " (because its weights were rounded)"
    return f"{_named(graph, cycle)} of weight {total:g}{by_rounding}"


def _warn_rounded(error: float) -> None:
    """Warn if values lost digits when they became operands; ``error`` is the largest, relative."""
    if not error:
        return
    loss = "and some overflowed" if error == _INF else f"with a relative error of up to {error:.2g}"
    _warn(
        f"values were rounded to FP16 operands between iterations, {loss}; "
        "inputs='fp32' does not round them"
    )


def _warn_lost(op: Op, pairs: int) -> None:
    """Warn if the values of paths between some pairs of vertices are beyond the range of FP32."""
    if not pairs:
        return
    effect = "have the value 0" if op is Op.MINMUL else "seem to have no path"
    _warn(f"at least {pairs:,} pairs of vertices {effect}, as FP32 cannot hold the path's value")


def _warn(text: str) -> None:
    """Warn of a loss; the warning names the line that called ``solve``."""
    # This function, the one that states the loss, and ``solve`` are the three inner levels.
    warnings.warn(text, PrecisionWarning, stacklevel=4)
