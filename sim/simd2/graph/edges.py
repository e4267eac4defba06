"""Edge lists: edges one by one, from tuples, data frames, NetworkX graphs and text files."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.simd2 import Op

__all__ = [
    "DUPLICATES",
    "EdgeList",
    "GraphWarning",
    "combined",
    "frame_edges",
    "is_frame",
    "is_tuples",
    "networkx_edges",
    "tuple_edges",
]

#: What may become of an edge that is given more than once.
DUPLICATES = ("sum", "min", "max", "first")

#: Pairs of column names that say where an edge begins and ends.
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("start", "end"), ("u", "v"))


class GraphWarning(UserWarning):
    """Something about the graph was taken for granted that its source does not say."""


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges one by one.

    Attributes
    ----------
    starts, ends : list
        Vertices by name.
    weights : list of float
    missing : int
        Edges that came without a weight, and got 1.
    """

    starts: list[Hashable]
    ends: list[Hashable]
    weights: list[float]
    missing: int = 0

    def vertices(self) -> tuple[Hashable, ...]:
        """Return whole numbers in rising order, other names in the order of their appearance."""
        pairs = zip(self.starts, self.ends, strict=True)
        found: dict[Hashable, None] = dict.fromkeys(name for pair in pairs for name in pair)
        whole = [name for name in found if isinstance(name, int) and not isinstance(name, bool)]
        return tuple(sorted(whole)) if len(whole) == len(found) else tuple(found)

    def indices(self, names: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the column of every edge.

        Raises
        ------
        ValueError
            For a vertex that has no place in ``names``.
        """
        where = {name: i for i, name in enumerate(names)}
        for start, end in zip(self.starts, self.ends, strict=True):
            if start not in where or end not in where:
                raise ValueError(f"edges must be between the names given, not {start} → {end}")
        return (
            np.array([where[name] for name in self.starts], np.int64),
            np.array([where[name] for name in self.ends], np.int64),
        )

    def say_missing(self, weight: str | None) -> None:
        """Warn of edges without a weight."""
        if self.missing:
            warnings.warn(
                f"{self.missing:,} of {len(self.weights):,} edges have no weight named {weight!r} "
                "and got the weight 1; weight=None gives 1 to all without this warning",
                GraphWarning,
                stacklevel=4,
            )


def combined(
    rows: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    names: Sequence[Hashable],
    *,
    duplicates: str | None,
    directed: bool = True,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the matrix of the weights, that of the edges, and how many edges were repeated.

    Parameters
    ----------
    rows, columns : (E,) ndarray of int
    weights : (E,) ndarray of float64
    names : sequence
        The vertices.
    duplicates : {"sum", "min", "max", "first"} or None
        What counts where a pair of vertices comes again.
    directed : bool
        Whether an edge leads one way only.

    Raises
    ------
    ValueError
        For a pair that comes again, if ``duplicates`` is None.
    """
    size = len(names)
    if not directed:
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    codes = rows.astype(np.int64) * size + columns
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    begins = np.ones(len(codes), bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    repeated = int(len(codes) - np.count_nonzero(begins))
    if repeated and duplicates is None:
        again = int(order[~begins].min())
        before = int(np.flatnonzero(codes[:again] == codes[again])[0])
        raise ValueError(
            f"edges must be given once, not {repeated:,} of them again, the first "
            f"{names[rows[again]]} → {names[columns[again]]} with {weights[before]:g} and "
            f"{weights[again]:g} (duplicates='min' takes the least; "
            f"allowed are {', '.join(DUPLICATES)})"
        )
    first, values = np.flatnonzero(begins), weights[order]
    if repeated and duplicates != "first":
        reduce = {"sum": np.add, "min": np.minimum, "max": np.maximum}[duplicates or ""]
        values = reduce.reduceat(values, first)
    else:
        values = values[first]
    rows, columns = rows[order][first], columns[order][first]
    matrix, edges = np.zeros((size, size)), np.zeros((size, size), bool)
    matrix[rows, columns], edges[rows, columns] = values, True
    if not directed:
        matrix[columns, rows], edges[columns, rows] = values, True
    return matrix, edges, repeated


def is_tuples(source: Any) -> bool:
    """Whether a source is edges as tuples; lists of lists and arrays are matrices."""
    if isinstance(source, list | tuple | set | frozenset):
        return bool(source) and all(isinstance(edge, tuple) for edge in source)
    return isinstance(source, Iterator)


def is_frame(source: Any) -> bool:
    """Whether a source has the columns and the index of a pandas data frame."""
    return hasattr(source, "columns") and hasattr(source, "index") and hasattr(source, "iloc")


def tuple_edges(source: Iterable[Any], weight: str | None) -> EdgeList:
    """Return edges (source, target), (source, target, weight) or (source, target, attributes).

    Raises
    ------
    ValueError
        For something else.
    """
    starts, ends, weights, missing = [], [], [], 0
    for edge in source:
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise ValueError(
                f"edges must be (source, target) or (source, target, weight), not {edge!r}"
            )
        given = edge[2] if len(edge) == 3 else None
        value = given.get(weight) if isinstance(given, Mapping) else given
        missing += weight is not None and value is None
        starts.append(_plain(edge[0]))
        ends.append(_plain(edge[1]))
        weights.append(_number(1 if weight is None else value, edge[0], edge[1]))
    return EdgeList(starts, ends, weights, missing)


def frame_edges(source: Any, weight: str | None) -> EdgeList:
    """Return the edges of a pandas data frame, one a row.

    The columns are named as in `ENDS`, or the first two count; ``weight`` names another one.

    Raises
    ------
    ValueError
        If there are not two columns, or others but none of the weight's name.
    """
    columns = list(source.columns)
    if len(columns) < 2:
        raise ValueError(f"edges must have a column of sources and one of targets, not {columns}")
    begin, end = named_ends(columns)
    left = [name for name in columns if name not in (columns[begin], columns[end])]
    if weight is not None and left and weight not in left:
        raise ValueError(
            f"weight must be None or one of the columns {', '.join(map(str, left))}, not {weight!r}"
        )
    starts, ends = ([_plain(x) for x in source[columns[i]]] for i in (begin, end))
    values = list(source[weight]) if weight in left else [None if weight else 1] * len(starts)
    missing = sum(value is None for value in values)
    triples = zip(values, starts, ends, strict=True)
    return EdgeList(starts, ends, [_number(*triple) for triple in triples], missing)


def named_ends(columns: Sequence[Any]) -> tuple[int, int]:
    """Return the places of the two columns that name the vertices of an edge."""
    lower = [str(name).strip().lower() for name in columns]
    for begin, end in ENDS:
        if begin in lower and end in lower:
            return lower.index(begin), lower.index(end)
    return 0, 1


def networkx_edges(source: Any, weight: str | None) -> EdgeList:
    """Return the edges of a NetworkX graph."""
    triples = ((start, end, data) for start, end, data in source.edges(data=True))
    return tuple_edges(triples, weight)


def choice(op: Op) -> str:
    """Return what ⊕ takes of two parallel edges."""
    return "max" if op.plus in ("max", "or") else "min"


def _plain(name: Any) -> Any:
    """Return a vertex's name, NumPy's numbers as Python's."""
    return name.item() if isinstance(name, np.generic) else name


def _number(value: Any, start: Any, end: Any) -> float:
    if value is None:
        return 1.0
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"weights must be numbers, not {value!r} (edge {start} → {end})") from None
