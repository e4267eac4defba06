"""Path problems and their results: values between all pairs of vertices, routes, and trees."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op
from vitruvian.sim.graph_problems import PATH_PROBLEMS
from vitruvian.sim.simd2 import Counts
from vitruvian.sim.simd2.graph.closures import Operand
from vitruvian.sim.simd2.graph.inputs import Graph
from vitruvian.sim.simd2.graph.routes import parents, spanning_tree, times

#: Lines of a printed table: a label and a text each.
Rows = list[tuple[str, str]]

#: Vertices of a route, or edges of a tree, that are printed.
_SHOWN = 12

_INF = float("inf")


@dataclass(frozen=True, eq=False)
class Paths:
    """The best values between all pairs of vertices, and the routes that have these values.

    Attributes
    ----------
    problem : Problem
    graph : Graph
    values : (V, V) ndarray of float32
        Value of the best path from the row's vertex to the column's. It is ``problem.op.no_edge``
        if there is no path, and the identity of ⊗ on the diagonal.
    algorithm, inputs : str
        Algorithm that was used, and format of the operands.
    iterations : int
    converged : bool
        True if the last iteration changed nothing; False if that was not checked.
    counts : Counts
        Instructions of this problem.
    measured_cycles : int
        Clock cycles that hardware took; 0 if no hardware computed.
    operands : (V, V) ndarray of float32
        The weights as the unit used them, after rounding to the format.
    """

    problem: "Problem"
    graph: Graph
    values: np.ndarray
    algorithm: str
    inputs: str
    iterations: int
    converged: bool
    counts: Counts
    measured_cycles: int
    operands: np.ndarray
    _parents: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def value(self, source: Hashable, target: Hashable) -> float:
        """Return the value of the best path between two vertices, which are given by name."""
        return float(self.values[self.graph.index(source), self.graph.index(target)])

    def route(self, source: Hashable, target: Hashable) -> list[Hashable] | None:
        """Return the vertices of a best path, or None if there is no path.

        Parameters
        ----------
        source, target : hashable
            Names of the vertices.

        Raises
        ------
        ValueError
            If a vertex is unknown.
        """
        i, j = self.graph.index(source), self.graph.index(target)
        if i == j:
            return [source]
        if self.values[i, j] == np.float32(self.problem.op.no_edge or 0.0):
            return None
        # One search yields the routes from i to all vertices, so its result is kept.
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
        # Follow the predecessors from the target back to the source.
        before, walk = self._parents[i], [j]
        while walk[-1] != i:
            walk.append(int(before[walk[-1]]))
            if walk[-1] < 0:
                return None
        return [self.graph.names[v] for v in reversed(walk)]

    def cost(self, route: list[Hashable]) -> float:
        """Return the value of a route, computed in float64 from the exact weights."""
        op, walk = self.problem.op, [self.graph.index(name) for name in route]
        total = np.array(self.problem.identity)
        for i, j in pairwise(walk):
            total = times(op, total, self.graph.weights[i, j])
        return float(total)

    @cached_property
    def extreme(self) -> tuple[Hashable, Hashable, float] | None:
        """Source, target and value of the pair with the largest or smallest value.

        ``problem.extreme`` chooses between the two. None if no vertex reaches another, or if the
        problem has no such pair.
        """
        if not self.problem.extreme:
            return None
        # Pairs of different vertices with a path.
        candidates = self.values != np.float32(self.problem.op.no_edge or 0.0)
        np.fill_diagonal(candidates, False)
        if not candidates.any():
            return None
        largest = self.problem.extreme == "largest"
        compared = np.where(candidates, self.values, -_INF if largest else _INF)
        best = compared.argmax() if largest else compared.argmin()
        i, j = np.unravel_index(best, compared.shape)
        return self.graph.names[i], self.graph.names[j], float(self.values[i, j])

    def describe(self) -> tuple[Rows, dict[str, Any]]:
        """Return the lines that summarise the result, and the same figures for JSON."""
        called = self.problem.called
        if self.extreme is None:
            return [(called, "none: no vertex reaches another")], {"extreme": None}
        source, target, value = self.extreme
        route = self.route(source, target) or []
        rows = [(called, f"{source} to {target}: {value:g}"), ("its route", arrows(route))]
        figures = {
            "called": called,
            "source": source,
            "target": target,
            "value": value if math.isfinite(value) else None,
            "route": route,
        }
        return rows, {"extreme": figures}


class Reachability(Paths):
    """The transitive closure: 1 for every pair with a path."""

    def describe(self) -> tuple[Rows, dict[str, Any]]:
        """Return the number of reachable pairs."""
        pairs = int((self.values != 0).sum())
        rows = [("reachable pairs", f"{pairs:,} of {len(self.graph) ** 2:,}")]
        return rows, {"reachable_pairs": pairs}


class SpanningForest(Paths):
    """Minimax paths, and the minimum spanning forest that contains them."""

    @cached_property
    def tree(self) -> list[tuple[Hashable, Hashable]]:
        """Edges of a minimum spanning forest, as pairs of names."""
        names = self.graph.names
        edges = spanning_tree(self.graph.weights, self.operands, self.graph.edges, self.values)
        return [(names[i], names[j]) for i, j in edges]

    @cached_property
    def tree_weight(self) -> float:
        """Sum of the exact weights of the tree."""
        index = {name: i for i, name in enumerate(self.graph.names)}
        return float(sum(self.graph.weights[index[i], index[j]] for i, j in self.tree))

    def describe(self) -> tuple[Rows, dict[str, Any]]:
        """Return the tree, and the widest gap that it cannot avoid."""
        first = ", ".join("–".join(map(str, edge)) for edge in self.tree[:_SHOWN])
        rows = [
            ("tree", f"{len(self.tree):,} edges of {self.tree_weight:g} in all"),
            ("its edges", first + (" …" if len(self.tree) > _SHOWN else "")),
        ]
        tree = {"edges": [list(edge) for edge in self.tree], "weight": self.tree_weight}
        more_rows, figures = super().describe()
        return rows + more_rows, {"tree": tree, **figures}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A path problem.

    Attributes
    ----------
    name : str
        A key of ``PATH_PROBLEMS``.
    op : Op
    identity : float
        Identity of ⊗: the value of a path without edges.
    needs : {"acyclic", "undirected", ""}
        Condition on the graph.
    probabilities : bool
        If True, the weights must be within [0, 1].
    extreme : {"largest", "smallest", ""}
        The pair of vertices that a summary shows; empty for no pair.
    called : str
        Title of that pair in a summary.
    result : type
        ``Paths`` or the subclass that holds the results.
    """

    name: str
    op: Op
    identity: float
    needs: str = ""
    probabilities: bool = False
    extreme: str = "largest"
    called: str = ""
    result: type[Paths] = Paths

    @property
    def title(self) -> str:
        """Description of the problem in a few words."""
        return PATH_PROBLEMS[self.name]


def arrows(route: list[Hashable]) -> str:
    """Return the vertices of a route as text; the middle of a long route is left out."""
    names = [str(name) for name in route]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN // 2], f"… ({len(names) - _SHOWN} more) …", *names[-_SHOWN // 2 :]]
    return " → ".join(names)
