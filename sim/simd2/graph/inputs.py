"""Conversion of matrices, lists of edges, NetworkX graphs and files to checked, dense graphs."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.matrix_market import MatrixEntries
from vitruvian.common.validate import one_of
from vitruvian.golden.simd2 import Op
from vitruvian.sim.simd2.graph.edges import (
    DUPLICATES,
    EdgeList,
    GraphWarning,
    choice,
    combined,
    frame_edges,
    is_frame,
    is_tuples,
    networkx_edges,
    tuple_edges,
)
from vitruvian.sim.simd2.graph.files import is_edge_file, read_edges, read_matrix
from vitruvian.sim.simd2.graph.memory import PAIR_BYTES, check_memory

#: Formats of operands by name.
FORMATS: dict[str, type[np.floating]] = {"fp16": np.float16, "fp32": np.float32}


#: What to do with a graph that is too large for dense matrices
_SPARSE = (
    "; `vitruvian sparse sssp` and vitruvian.sparse.solve find the paths from one vertex of a "
    "larger graph"
)


class PrecisionWarning(UserWarning):
    """A warning that a format cannot represent the given weights or the values of the paths."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Weighted edges between V vertices.

    Attributes
    ----------
    weights : (V, V) ndarray of float64
        Weight of the edge from the row's vertex to the column's; ``op.no_edge`` if there is no such
        edge.
    edges : (V, V) ndarray of bool
        True for every edge.
    names : tuple
        Names of the vertices. By default they are the nodes of a NetworkX graph, the row numbers
        from 1 for a Matrix Market file, and the row numbers from 0 for an array.
    directed : bool
        True if some edge has no edge of the same weight in the other direction.
    notes : tuple of str
        Sentences about decisions of the reader, such as the rule for repeated edges.
    """

    weights: np.ndarray
    edges: np.ndarray
    names: tuple[Hashable, ...]
    directed: bool
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def size(self) -> int:
        """Number of edges; in an undirected graph, both directions count as one edge."""
        count = int(np.count_nonzero(self.edges))
        loops = int(np.count_nonzero(np.diagonal(self.edges)))
        return count if self.directed else (count + loops) // 2

    def index(self, name: Hashable) -> int:
        """Return the row of a vertex.

        Raises
        ------
        ValueError
            If no vertex has this name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            first = ", ".join(map(repr, self.names[:4])) + (" …" if len(self.names) > 4 else "")
            raise ValueError(f"vertex must be one of {first}, not {name!r}") from None

    def edge(self, i: int, j: int) -> str:
        """Return the edge between two rows as text, for messages."""
        return f"{self.names[i]} → {self.names[j]}"


def as_graph(
    source: Any,
    op: Op,
    *,
    weight: str | None = "weight",
    no_edge: float | None = None,
    names: Sequence[Hashable] | None = None,
    duplicates: str | None = None,
    directed: bool | None = None,
) -> Graph:
    """Return the graph of a source, which may have any of several types.

    Parameters
    ----------
    source : array, sparse matrix, data frame, tuples, NetworkX graph, path or Graph
        In an array every entry is an edge, with two exceptions: infinities that mean "no edge", and
        zeros if the operation is maxmul or orand. A warning says how zeros were read. In a sparse
        matrix or a Matrix Market file every stored entry is an edge, even a stored zero. A list of
        edges is an iterable of tuples, (source, target) or (source, target, weight), a pandas data
        frame with such columns, or a text file with a suffix in ``files.EDGE_SUFFIXES``. A data
        frame with the same labels for rows and columns is a matrix.
    op : Op
        Operation of the problem; it defines the weight of a missing edge.
    weight : str or None
        Attribute or column of the weights in a NetworkX graph or a list of edges. An edge without
        it gets the weight 1, with a warning. If None, every edge gets the weight 1.
    no_edge : float, optional
        An entry of an array that means "no edge" as well, such as 0. Infinity states that zeros are
        edges.
    names : sequence, optional
        Names of the vertices. For a list of edges they also define the vertices and their order.
    duplicates : {"sum", "min", "max", "first"}, optional
        Rule for the weight of an edge that occurs more than once. By default such an edge is an
        error, except in a multigraph, where ⊕ chooses, and for orand, which ignores weights.
    directed : bool, optional
        If False, every edge of a list leads both ways; by default it leads one way.

    Raises
    ------
    ValueError
        If the adjacency matrix is not square or is empty; if a weight is NaN, complex, or infinite
        with the sign that does not mean "no edge"; if an edge is repeated; if a file cannot be
        read; if an option does not apply to the source; or if the vertices do not fit into memory.
    """
    if duplicates is not None:
        one_of("duplicates", duplicates, DUPLICATES)
    if isinstance(source, Graph):
        _unused("a Graph", no_edge=no_edge, duplicates=duplicates, directed=directed)
        return _checked(source.weights, source.edges, source.names, op, source.notes)
    if op is Op.ORAND and duplicates is None:
        duplicates = "first"  # weights do not matter, so any rule gives the same graph
    listed = as_edges(source, weight)
    if listed is not None:
        _unused("a list of edges", no_edge=no_edge)
        return _from_list(
            listed,
            op,
            weight=weight,
            names=names,
            duplicates=duplicates,
            directed=directed is not False,
        )
    _unused("a graph that is not a list of edges", directed=directed)
    if _is_networkx(source):
        _unused("a NetworkX graph", no_edge=no_edge)
        return _from_list(
            networkx_edges(source, weight),
            op,
            weight=weight,
            names=names,
            duplicates=duplicates or choice(op),
            directed=source.is_directed(),
            vertices=tuple(source.nodes),
        )
    matrix, names = _matrix(source, names)
    if isinstance(matrix, MatrixEntries) or hasattr(matrix, "tocoo"):
        _unused("a sparse matrix", no_edge=no_edge)
        return _from_sparse(matrix, op, names=names, duplicates=duplicates)
    # For orand the rule may be the default from above, which the caller did not give.
    _unused("a dense matrix", duplicates=duplicates if op is not Op.ORAND else None)
    return _from_dense(matrix, op, names=names, no_edge=no_edge)


def as_edges(source: Any, weight: str | None) -> EdgeList | None:
    """Return the edges of a source that is a list of edges, or None for every other source.

    Parameters
    ----------
    source : object
        An iterator is consumed.
    weight : str or None
        See ``as_graph``.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        return read_edges(path, weight) if is_edge_file(path) else None
    if is_tuples(source):
        return tuple_edges(source, weight)
    if is_frame(source) and list(source.columns) != list(source.index):
        return frame_edges(source, weight)
    return source if isinstance(source, EdgeList) else None


def _from_list(listed, op, *, weight, names, duplicates, directed, vertices=None):
    """Return the graph of an ``EdgeList``.

    ``vertices`` are the names that the edges use, if the source states them; ``names`` are the
    names that the caller wants.
    """
    if op is not Op.ORAND:
        listed.warn_missing(weight)
    vertices = vertices if vertices is not None else names
    vertices = tuple(listed.vertices() if vertices is None else vertices)
    _square((len(vertices), len(vertices)))
    weights, edges, repeated = combined(
        *listed.indices(vertices),
        np.array(listed.weights, np.float64),
        vertices,
        duplicates=duplicates,
        directed=directed,
    )
    names = vertices if names is None else _names(names, len(vertices))
    return _checked(weights, edges, names, op, _note(repeated, duplicates))


def _is_networkx(source: Any) -> bool:
    # NetworkX, pandas and SciPy are recognised by their methods, so none of them is imported.
    return hasattr(source, "adjacency") and hasattr(source, "nodes")


def _matrix(source, names):
    """Return the matrix of a file, data frame or matrix, and the names of its vertices.

    The names are the caller's, or else those of the source; None if there are neither.
    """
    if isinstance(source, str | Path):
        matrix = read_matrix(Path(source))
        # A Matrix Market file counts its rows from 1.
        return matrix, range(1, matrix.shape[0] + 1) if names is None else names
    if is_frame(source):
        return source.to_numpy(), tuple(source.columns) if names is None else names
    return source, names


def _from_sparse(matrix, op, *, names, duplicates):
    """Return the graph of a sparse matrix, whose stored entries are the edges."""
    _square(matrix.shape)
    names = _names(names, matrix.shape[0])
    if isinstance(matrix, MatrixEntries):
        rows, columns, values = matrix.rows, matrix.columns, matrix.values
    else:
        entries = matrix.tocoo()
        rows, columns, values = entries.row, entries.col, _real(entries.data)
    weights, edges, repeated = combined(rows, columns, values, names, duplicates=duplicates)
    return _checked(weights, edges, names, op, _note(repeated, duplicates))


def _from_dense(matrix, op, *, names, no_edge):
    """Return the graph of a dense matrix, whose entries are edges with the exceptions below."""
    array = np.asarray(matrix)
    _square(array.shape)
    weights = np.array(_real(array))
    # ``_checked`` removes the infinities that mean "no edge".
    edges = np.ones(weights.shape, bool)
    if no_edge is not None:
        edges &= ~(weights == no_edge)
    elif array.dtype != bool:
        _warn_zeros(weights, op)
    if op.no_edge == 0:
        edges &= weights != 0
    return _checked(weights, edges, _names(names, len(weights)), op)


def _names(names, size):
    """Return the names of ``size`` vertices, by default the numbers from 0."""
    names = tuple(range(size) if names is None else names)
    if len(names) != size:
        raise ValueError(f"names must be a sequence of {size}, not of {len(names)}")
    return names


def _unused(source, **options):
    """Raise ValueError for an option that does not apply to this kind of source."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} must not be given for {source}, not {value!r}")


def _note(repeated, duplicates):
    """Return the note about repeated edges as a tuple of none or one."""
    if not repeated:
        return ()
    rule = {
        "sum": "their sum counts",
        "min": "the smallest counts",
        "max": "the largest counts",
        "first": "the first counts",
    }[duplicates]
    return (f"{repeated:,} edges were repeated: {rule}",)


def _warn_zeros(weights, op):
    """Warn if a dense matrix has zeros off the diagonal, and state how they were read."""
    count = np.count_nonzero(weights == 0) - np.count_nonzero(np.diagonal(weights) == 0)
    if not count:
        return
    if op.no_edge == 0:
        text = "are not edges; no_edge=0 means the same without this warning"
    else:
        infinity = "-inf" if op.no_edge == -np.inf else "inf"
        text = (
            "are edges of weight 0; no_edge=0 leaves them out, "
            f"no_edge={infinity} keeps them without this warning"
        )
    warnings.warn(f"{count:,} zeros of the matrix {text}", GraphWarning, stacklevel=5)


def _checked(weights, edges, names, op, notes=()):
    """Return the graph of valid weights; absent edges get the operation's "no edge"."""

    def first(wrong):
        i, j = np.argwhere(wrong)[0]
        return f"{weights[i, j]:g} (edge {names[i]} → {names[j]})"

    wrong = edges & np.isnan(weights)
    if wrong.any():
        raise ValueError(f"weights must be numbers, not {first(wrong)}")
    absent = op.no_edge
    if op is not Op.ORAND:
        # The infinity that ⊕ never chooses means "no edge". Weights of maxmul are probabilities,
        # so there both could; +∞ does.
        infinity = -np.inf if op.plus == "max" and op.times != "mul" else np.inf
        wrong = edges & (weights == -infinity)
        if wrong.any():
            raise ValueError(
                f"weights must be finite, or {infinity} for no edge, not {first(wrong)}"
            )
    edges = edges & ~np.isinf(weights)
    if op is Op.MAXMUL:
        edges &= weights != 0  # an edge of probability 0 is the same as no edge
    weights = np.where(edges, weights + 0.0, 0.0 if absent is None else absent)  # −0 becomes +0
    same = np.array_equal(edges, edges.T) and np.array_equal(weights, weights.T)
    return Graph(weights, edges, names, not same, notes)


def _square(shape):
    """Raise ValueError if an adjacency matrix is not square, is empty, or does not fit."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"adjacency matrix must be square, not {'×'.join(map(str, shape))}")
    if not shape[0]:
        raise ValueError("adjacency matrix must have at least one row, not 0")
    check_memory(*shape, pair_bytes=PAIR_BYTES, what="graph", name="vertices", hint=_SPARSE)


def _real(values):
    """Return values as float64; raise ValueError if they are not real numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"weights must be real numbers, not {array.dtype.name}")
    return array.astype(np.float64)


def rounded(values: np.ndarray, inputs: str, what: str = "weights") -> np.ndarray:
    """Return the nearest operands of a format, and warn if they differ from the values.

    Parameters
    ----------
    values : ndarray of float64
    inputs : {"fp16", "fp32"}
        The format.
    what : str
        Name of the values in messages.

    Returns
    -------
    ndarray of float16 or float32

    Raises
    ------
    ValueError
        If the magnitude of a value is beyond the range of the format.
    """
    dtype = FORMATS[inputs]
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype)
    wrong = np.isinf(result) & np.isfinite(values)  # overflow, not a given infinity
    if wrong.any():
        largest, first = np.finfo(dtype).max, values[wrong].flat[0]
        more = "; inputs='fp32' has a wider range" if inputs == "fp16" else ""
        raise ValueError(f"{what} must be within ±{largest:.7g} in {inputs}, not {first:g}{more}")
    error = largest_error(values, result)
    if error:
        lost = int(np.count_nonzero((result == 0) & (values != 0)))
        text = f", and {lost:,} of them became 0" if lost else ""
        more = "; inputs='fp32' has more digits" if inputs == "fp16" else ""
        warnings.warn(
            f"{what} are rounded to {inputs.upper()}, with a relative error of up to "
            f"{error:.2g}{text}{more}",
            PrecisionWarning,
            stacklevel=2,
        )
    return result


def largest_error(values: np.ndarray, result: np.ndarray) -> float:
    """Return the largest relative error of the finite values; 0 if all are equal."""
    exact, rounded_values = values.astype(np.float64), result.astype(np.float64)
    differ = exact != rounded_values
    if not differ.any():
        return 0.0
    exact, rounded_values = exact[differ], rounded_values[differ]
    return float(np.max(np.abs(rounded_values - exact) / np.abs(exact)))
