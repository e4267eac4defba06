"""Graph problems on a SIMD² unit: what each asks of its input, and what comes back."""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op
from vitruvian.sim.simd2 import Counts, Machine
from vitruvian.sim.simd2.graph.closures import BLOCK, Operand, closure, default_algorithm
from vitruvian.sim.simd2.graph.inputs import (
    FORMATS,
    Graph,
    PrecisionWarning,
    as_edges,
    as_graph,
    rounded,
)
from vitruvian.sim.simd2.graph.routes import (
    find_cycle,
    lost_paths,
    negative_cycle,
    parents,
    spanning_tree,
    times,
)
from vitruvian.validate import one_of

__all__ = ["PROBLEMS", "Paths", "Problem", "read_graph", "solve"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A path problem.

    Attributes
    ----------
    name, title : str
        The name is the abbreviation of Zhang 2024 (Table 3.4).
    op : Op
    identity : float
        Of ⊗: the value of a path without edges.
    needs : str
        ``"acyclic"``, ``"undirected"`` or nothing.
    probabilities : bool
        Whether weights must be within [0, 1].
    extreme : {"largest", "smallest", ""}
        Which pair the command line shows, and ``called`` what.
    """

    name: str
    title: str
    op: Op
    identity: float
    needs: str = ""
    probabilities: bool = False
    extreme: str = "largest"
    called: str = ""


_INF = float("inf")

#: The path problems by name.
PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            name="apsp",
            title="all-pairs shortest paths",
            op=Op.MINPLUS,
            identity=0.0,
            called="farthest pair",
        ),
        Problem(
            name="aplp",
            title="critical (longest) paths of an acyclic graph",
            op=Op.MAXPLUS,
            identity=0.0,
            needs="acyclic",
            called="critical path",
        ),
        Problem(
            name="mcp",
            title="maximum capacity paths",
            op=Op.MAXMIN,
            identity=_INF,
            extreme="smallest",
            called="narrowest pair",
        ),
        Problem(
            name="maxrp",
            title="maximum reliability paths",
            op=Op.MAXMUL,
            identity=1.0,
            probabilities=True,
            extreme="smallest",
            called="least reliable pair",
        ),
        Problem(
            name="minrp",
            title="minimum reliability paths of an acyclic graph",
            op=Op.MINMUL,
            identity=1.0,
            needs="acyclic",
            probabilities=True,
            extreme="smallest",
            called="least reliable path",
        ),
        Problem(
            name="mst",
            title="minimum spanning tree or forest, by minimax paths",
            op=Op.MINMAX,
            identity=-_INF,
            needs="undirected",
            called="widest gap",
        ),
        Problem(
            name="gtc",
            title="transitive closure",
            op=Op.ORAND,
            identity=1.0,
            extreme="",
        ),
    )
}


@dataclass(frozen=True, eq=False)
class Paths:
    """The best values between all pairs, and how to get there.

    Attributes
    ----------
    problem : Problem
    graph : Graph
    values : (V, V) ndarray of float32
        From the row's vertex to the column's; ``problem.op.no_edge`` where there is no path, and
        the identity of ⊗ on the diagonal.
    algorithm, inputs : str
    iterations : int
    converged : bool
        Whether an iteration was seen to change nothing.
    counts : Counts
    clocks : int
        Clock cycles of the hardware, if it computed.
    operands : (V, V) ndarray of float32
        The weights as the unit saw them.
    """

    problem: Problem
    graph: Graph
    values: np.ndarray
    algorithm: str
    inputs: str
    iterations: int
    converged: bool
    counts: Counts
    clocks: int
    operands: np.ndarray
    _parents: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def value(self, source: Hashable, target: Hashable) -> float:
        """Value of the best path between two vertices, by name."""
        return float(self.values[self.graph.index(source), self.graph.index(target)])

    def route(self, source: Hashable, target: Hashable) -> list[Hashable] | None:
        """Vertices of a best path, or None if there is none; by name.

        Raises
        ------
        ValueError
            For a vertex that is not there.
        """
        i, j = self.graph.index(source), self.graph.index(target)
        if i == j:
            return [source]
        if self.values[i, j] == np.float32(self.problem.op.no_edge or 0.0):
            return None
        if i not in self._parents:
            self._parents[i] = parents(
                self.problem.op,
                i,
                self.values[i],
                self.graph.edges,
                self.operands,
                Operand(self.inputs),
                self.problem.identity,
            )
        before, walk = self._parents[i], [j]
        while walk[-1] != i:
            walk.append(int(before[walk[-1]]))
            if walk[-1] < 0:
                return None
        return [self.graph.names[v] for v in reversed(walk)]

    def cost(self, route: list[Hashable]) -> float:
        """Value of a route in float64, of the exact weights."""
        op, walk = self.problem.op, [self.graph.index(name) for name in route]
        total = np.array(self.problem.identity)
        for i, j in pairwise(walk):
            total = times(op, total, self.graph.weights[i, j])
        return float(total)

    @cached_property
    def extreme(self) -> tuple[Hashable, Hashable, float] | None:
        """The farthest pair, or what takes its place: source, target, value."""
        if not self.problem.extreme:
            return None
        sought = self.values != np.float32(self.problem.op.no_edge or 0.0)
        np.fill_diagonal(sought, False)
        if not sought.any():
            return None
        largest = self.problem.extreme == "largest"
        shown = np.where(sought, self.values, -_INF if largest else _INF)
        i, j = np.unravel_index(shown.argmax() if largest else shown.argmin(), shown.shape)
        return self.graph.names[i], self.graph.names[j], float(self.values[i, j])

    @cached_property
    def tree(self) -> list[tuple[Hashable, Hashable]]:
        """Edges of a minimum spanning forest.

        Raises
        ------
        ValueError
            If the problem is another one.
        """
        if self.problem.op is not Op.MINMAX:
            raise ValueError(f"tree must be asked of mst, not of {self.problem.name}")
        graph = self.graph
        found = spanning_tree(graph.weights, self.operands, graph.edges, self.values)
        return [(graph.names[i], graph.names[j]) for i, j in found]

    @cached_property
    def tree_weight(self) -> float:
        """Sum of the tree's exact weights."""
        where = {name: i for i, name in enumerate(self.graph.names)}
        return float(sum(self.graph.weights[where[i], where[j]] for i, j in self.tree))


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
        A name in `PROBLEMS`.
    source : array, sparse matrix, NetworkX graph, list of edges, path of a file, or Graph
    algorithm : {"bellman-ford", "leyzorek", "floyd-warshall"}, optional
        See `closure`; ``block`` is the last one's, ``sparse`` the first one's. By default the one
        with the fewest operations, see `closures.default_algorithm`.
    check : bool
        End when an iteration changes nothing, instead of after as many as any graph may need.
    inputs : {"fp16", "fp32"}, optional
        Format of the operands. The values found are operands of the next iteration: in FP16 they
        are rounded, and a warning says how much was lost. By default FP16 where that loses
        nothing: its weights are representable, and ⊗ makes no new values (min, max, and).
    machine : Machine, optional
        On golden by default; its counts go on.
    reflexive : bool
        Of gtc: whether every vertex reaches itself, or only those on cycles.
    **reading
        ``weight``, ``no_edge``, ``names``, ``duplicates`` and ``directed`` of `read_graph`.

    Raises
    ------
    ValueError
        For weights that are no numbers or beyond the format, a matrix that is not square, a cycle
        where there must be none (it is named), a negative cycle (named, too), a direction where
        there must be none, a probability outside [0, 1], an unknown name.
    """
    one_of("problem", problem, PROBLEMS)
    what = PROBLEMS[problem]
    op = what.op
    graph = read_graph(what, source, **reading)
    if algorithm is None:
        algorithm = default_algorithm(len(graph), block=block, sparse=sparse, check=check)
    weights = graph.weights
    if op is Op.ORAND:
        weights = graph.edges.astype(np.float64)
    inputs = inputs or _format(op, weights)
    one_of("inputs", inputs, FORMATS)
    start = rounded(weights, inputs).astype(np.float32)
    operands = start.copy()
    if reflexive or op is not Op.ORAND:
        loops = np.diagonal(start).copy()
        np.fill_diagonal(start, what.identity)
        if op is Op.MINPLUS:
            np.fill_diagonal(start, np.minimum(loops, np.float32(0)))
    machine = machine or Machine()
    counts, clocks = machine.counts, machine.clocks
    machine.counts, machine.clocks = Counts(), 0
    operand = Operand(inputs)
    settings = {"algorithm": algorithm, "check": check, "block": block, "sparse": sparse}
    try:
        found = closure(machine, op, start, operand, **settings, stop=_negative(what, operands))
        own, taken = machine.counts, machine.clocks
    finally:
        machine.counts, machine.clocks = counts + machine.counts, clocks + machine.clocks
    if found.stopped:
        named = _negative_one(graph, operands)
        raise ValueError(f"apsp must have no cycle of negative weight, not {named}")
    if operand.error:
        _warn(operand.error)
    lost = lost_paths(op, found.values, operands, graph.edges)
    if lost:
        as_what = "have the value 0" if op is Op.MINMUL else "count as without a path"
        warnings.warn(
            f"at least {lost:,} pairs of vertices {as_what}: FP32 cannot hold a path's value",
            PrecisionWarning,
            stacklevel=2,
        )
    return Paths(
        problem=what,
        graph=graph,
        values=found.values,
        algorithm=algorithm,
        inputs=inputs,
        iterations=found.iterations,
        converged=found.converged,
        counts=own,
        clocks=taken,
        operands=operands,
    )


def read_graph(problem: Problem, source: Any, **reading: Any) -> Graph:
    """Return the graph of a problem from any source, checked for what the problem needs.

    Parameters
    ----------
    **reading
        ``weight``, ``no_edge``, ``names``, ``duplicates`` and ``directed`` of `as_graph`. Edges of
        a list lead both ways by default where the problem needs a graph without directions.

    Raises
    ------
    ValueError
        As `solve`, and `as_graph`.
    """
    if problem.needs == "undirected" and reading.get("directed") is None:
        listed = as_edges(source, reading.get("weight", "weight"))
        if listed is not None:
            source, reading = listed, {**reading, "directed": False}
    graph = as_graph(source, problem.op, **reading)
    _check(problem, graph)
    return graph


def _format(op, weights):
    if op.times not in ("min", "max", "and"):
        return "fp32"
    with np.errstate(over="ignore"):
        same = weights.astype(np.float16) == weights
    return "fp16" if same.all() else "fp32"


def _check(what: Problem, graph: Graph) -> None:
    if what.probabilities:
        wrong = graph.edges & ~((graph.weights >= 0) & (graph.weights <= 1))
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            value = graph.weights[i, j]
            raise ValueError(
                f"probabilities must be within [0, 1], not {value:g} (edge {graph.edge(i, j)})"
            )
    if what.needs == "undirected" and graph.directed:
        raise ValueError(f"{what.name} must have a graph without directions, not a directed one")
    if what.needs == "acyclic":
        cycle = find_cycle(graph.edges)
        if cycle:
            raise ValueError(
                f"{what.name} must have a graph without cycles, not one with {_named(graph, cycle)}"
            )


def _named(graph: Graph, cycle: list[int]) -> str:
    names = [str(graph.names[v]) for v in [*cycle, cycle[0]]]
    if len(names) > 12:
        names = [*names[:6], "…", *names[-5:]]
        return f"{' → '.join(names)} ({len(cycle)} edges)"
    return " → ".join(names)


def _negative(what: Problem, operands: np.ndarray):
    """Looks at the diagonal for negative cycles, where there can be some."""
    if what.op is not Op.MINPLUS or not (operands < 0).any():
        return None
    known = []

    def stop(d):
        if known or not (np.diagonal(d) < 0).any():
            return False
        if negative_cycle(operands.astype(np.float64)) is not None:
            return True
        known.append(True)  # negative by rounding only
        return False

    return stop


def _negative_one(graph: Graph, operands: np.ndarray) -> str:
    """A negative cycle; rounded operands can have one that the exact weights do not."""
    weights = operands.astype(np.float64)
    cycle = negative_cycle(weights) or []
    ends = list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    total, exact = (sum(x[i, j] for i, j in ends) for x in (weights, graph.weights))
    rounded_only = "" if exact < 0 else " (by rounding its weights)"
    return f"{_named(graph, cycle)} of {total:g}{rounded_only}"


def _warn(error: float) -> None:
    lost = "some do not fit and were lost" if error == _INF else f"by up to {error:.2g} of them"
    warnings.warn(
        f"values were rounded to FP16 operands between iterations, {lost}; "
        "inputs='fp32' keeps them",
        PrecisionWarning,
        stacklevel=3,
    )
