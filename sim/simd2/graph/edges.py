"""Lists of edges, from tuples, data frames, NetworkX graphs and text files."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.validate import listed
from vitruvian.golden.simd2 import Op

#: Rules for the weight of an edge that occurs more than once.
DUPLICATES = ("sum", "min", "max", "first")

#: Pairs of column names for the source and the target of an edge.
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("start", "end"), ("u", "v"))


class GraphWarning(UserWarning):
    """A warning that the reader of a graph assumed something that the source does not state."""


@dataclass(frozen=True, eq=False)
class EdgeList:
    """A list of edges.

    Attributes
    ----------
    starts, ends : list
        Names of the source and the target of each edge.
    weights : list of float
    missing : int
        Number of edges without a weight, which got the weight 1.
    """

    starts: list[Hashable]
    ends: list[Hashable]
    weights: list[float]
    missing: int = 0

    def vertices(self) -> tuple[Hashable, ...]:
        """Return the names of the vertices.

        If all names are whole numbers, they are in rising order; otherwise in the order of their
        first appearance.
        """
        pairs = zip(self.starts, self.ends, strict=True)
        names: dict[Hashable, None] = dict.fromkeys(name for pair in pairs for name in pair)
        whole = [name for name in names if isinstance(name, int) and not isinstance(name, bool)]
        return tuple(sorted(whole)) if len(whole) == len(names) else tuple(names)

    def indices(self, names: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the column of every edge as two (E,) ndarrays of int64.

        Raises
        ------
        ValueError
            If a vertex is not in ``names``.
        """
        index = {name: i for i, name in enumerate(names)}
        for start, end in zip(self.starts, self.ends, strict=True):
            if start not in index or end not in index:
                raise ValueError(
                    f"edges must be between the vertices in names, not {start} → {end}"
                )
        return (
            np.array([index[name] for name in self.starts], np.int64),
            np.array([index[name] for name in self.ends], np.int64),
        )

    def warn_missing(self, weight: str | None) -> None:
        """Warn if edges had no weight; ``weight`` is the name that was looked for."""
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
    """Return a list of edges as matrices.

    Parameters
    ----------
    rows, columns : (E,) ndarray of int
        Indices of the source and the target of each edge.
    weights : (E,) ndarray of float64
    names : sequence
        Names of the V vertices.
    duplicates : {"sum", "min", "max", "first"} or None
        Rule for the weight of an edge that occurs more than once.
    directed : bool
        If False, every edge leads both ways.

    Returns
    -------
    weights : (V, V) ndarray of float64
    edges : (V, V) ndarray of bool
    repeated : int
        Number of edges that were repetitions of others.

    Raises
    ------
    ValueError
        If an edge occurs more than once and ``duplicates`` is None.
    """
    size = len(names)
    if not directed:
        # Both directions of an edge get the same code, so that one repeats the other.
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    # A stable sort by the pair of vertices puts the repetitions of an edge next to each other.
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
            f"edges must not be repeated, but {repeated:,} are, the first "
            f"{names[rows[again]]} → {names[columns[again]]} with {weights[before]:g} and "
            f"{weights[again]:g} (duplicates='min' takes the smallest weight; "
            f"the choices are {', '.join(DUPLICATES)})"
        )
    # ``first`` has the start of each group of repetitions, which ``reduceat`` combines.
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
    """Return True if a source is a collection of tuples; lists of lists and arrays are matrices."""
    if isinstance(source, list | tuple | set | frozenset):
        return bool(source) and all(isinstance(edge, tuple) for edge in source)
    return isinstance(source, Iterator)


def is_frame(source: Any) -> bool:
    """Return True if a source has the columns and the index of a pandas data frame."""
    return hasattr(source, "columns") and hasattr(source, "index") and hasattr(source, "iloc")


def tuple_edges(source: Iterable[Any], weight: str | None) -> EdgeList:
    """Return the list of edges of a collection of tuples.

    Parameters
    ----------
    source : iterable of tuple
        (source, target), (source, target, weight) or (source, target, attributes).
    weight : str or None
        Name of the weight among the attributes. If None, every edge gets the weight 1.

    Raises
    ------
    ValueError
        If an element is not such a tuple, or a weight is not a number.
    """
    starts, ends, weights, missing = [], [], [], 0
    for edge in source:
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise ValueError(
                f"edges must be (source, target) or (source, target, weight), not {edge!r}"
            )
        third = edge[2] if len(edge) == 3 else None
        value = third.get(weight) if isinstance(third, Mapping) else third
        missing += weight is not None and value is None
        starts.append(_plain(edge[0]))
        ends.append(_plain(edge[1]))
        weights.append(_number(1 if weight is None else value, edge[0], edge[1]))
    return EdgeList(starts, ends, weights, missing)


def frame_edges(source: Any, weight: str | None) -> EdgeList:
    """Return the list of edges of a pandas data frame, which has one edge in each row.

    The source and the target are in the columns that are named as in ``ENDS``, or else in the first
    two columns.

    Parameters
    ----------
    weight : str or None
        Name of the column of the weights. If None, every edge gets the weight 1.

    Raises
    ------
    ValueError
        If the frame has less than two columns, or if it has other columns but none of this name.
    """
    columns = list(source.columns)
    if len(columns) < 2:
        raise ValueError(
            f"edges must have a column of sources and one of targets, not {listed(columns)}"
        )
    begin, end = end_columns(columns)
    others = [name for name in columns if name not in (columns[begin], columns[end])]
    if weight is not None and others and weight not in others:
        raise ValueError(
            f"weight must be None or one of the columns {listed(others)}, not {weight!r}"
        )
    starts, ends = ([_plain(x) for x in source[columns[i]]] for i in (begin, end))
    values = list(source[weight]) if weight in others else [None if weight else 1] * len(starts)
    missing = sum(value is None for value in values)
    triples = zip(values, starts, ends, strict=True)
    return EdgeList(starts, ends, [_number(*triple) for triple in triples], missing)


def end_columns(columns: Sequence[Any]) -> tuple[int, int]:
    """Return the indices of the two columns that contain the source and the target of an edge."""
    lower = [str(name).strip().lower() for name in columns]
    for begin, end in ENDS:
        if begin in lower and end in lower:
            return lower.index(begin), lower.index(end)
    return 0, 1


def networkx_edges(source: Any, weight: str | None) -> EdgeList:
    """Return the list of edges of a NetworkX graph; ``weight`` names the attribute."""
    triples = ((start, end, data) for start, end, data in source.edges(data=True))
    return tuple_edges(triples, weight)


def choice(op: Op) -> str:
    """Return the rule for duplicates by which ⊕ chooses between parallel edges."""
    return "max" if op.plus in ("max", "or") else "min"


def _plain(name: Any) -> Any:
    """Return the name of a vertex; a NumPy number becomes a Python number."""
    return name.item() if isinstance(name, np.generic) else name


def _number(value: Any, start: Any, end: Any) -> float:
    """Return the weight of an edge, or 1 if the value is None."""
    if value is None:
        return 1.0
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"weights must be numbers, not {value!r} (edge {start} → {end})") from None
