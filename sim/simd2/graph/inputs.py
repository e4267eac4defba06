"""Graphs out of matrices, lists of edges, NetworkX graphs and files, checked and made dense."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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

__all__ = ["FORMATS", "Graph", "PrecisionWarning", "as_edges", "as_graph", "rounded"]

#: Formats of operands by name.
FORMATS = {"fp16": np.float16, "fp32": np.float32}


class PrecisionWarning(UserWarning):
    """Operands are not what was given: the format that was asked for does not have it."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Weighted edges between V vertices.

    Attributes
    ----------
    weights : (V, V) ndarray of float64
        From the row's vertex to the column's; what is not an edge has the operation's "no edge".
    edges : (V, V) ndarray of bool
    names : tuple
        Of the vertices: those of a NetworkX graph, row numbers from 1 in a Matrix Market file, and
        from 0 in an array.
    directed : bool
        Whether some edge has no equal in the other direction.
    notes : tuple of str
        What the reader decided, in words: which of several equal edges counts.
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
        """Edges; of two equal ones in both directions, one."""
        count = int(np.count_nonzero(self.edges))
        loops = int(np.count_nonzero(np.diagonal(self.edges)))
        return count if self.directed else (count + loops) // 2

    def index(self, name: Hashable) -> int:
        """Row of a vertex.

        Raises
        ------
        ValueError
            If there is no such vertex.
        """
        try:
            return self.names.index(name)
        except ValueError:
            first = ", ".join(map(repr, self.names[:4])) + (" …" if len(self.names) > 4 else "")
            raise ValueError(f"vertex must be one of {first}, not {name!r}") from None

    def edge(self, i: int, j: int) -> str:
        """An edge in words."""
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
    """Return a graph from any of the inputs.

    Parameters
    ----------
    source : array, sparse matrix, data frame, tuples, NetworkX graph, path or Graph
        In an array every entry is an edge but infinities that say "no edge", and zeros where the
        operation is maxmul or orand; a warning says how zeros were read. In a sparse matrix or a
        Matrix Market file what is stored is an edge, a stored zero too. A list of edges is an
        iterable of tuples, (source, target) or (source, target, weight), a pandas data frame with
        columns of these names, or a text file whose name ends as in `files.EDGE_SUFFIXES`. A data
        frame with equal labels of rows and columns is a matrix.
    op : Op
    weight : str or None
        Attribute or column of the weights in a NetworkX graph or a list of edges. Where it is
        missing, weights are 1, with a warning; with None, all are 1.
    no_edge : float, optional
        An array's entry that is no edge either, such as 0. Infinity says that zeros are edges.
    names : sequence, optional
        Names of the vertices. For a list of edges, which vertices there are and their order.
    duplicates : {"sum", "min", "max", "first"}, optional
        What counts where an edge is given more than once. By default that is refused, except in a
        multigraph, where ⊕ chooses, and for orand, where weights do not matter.
    directed : bool, optional
        Whether each edge of a list leads one way only, which is the default.

    Raises
    ------
    ValueError
        For an adjacency matrix that is not square or empty, a weight that is NaN, complex, or
        infinite with the sign that no absent edge has; an edge that is given twice; a file that
        cannot be read; options that the source cannot have; or more vertices than there is memory
        for.
    """
    if duplicates is not None and duplicates not in DUPLICATES:
        allowed = ", ".join(DUPLICATES)
        raise ValueError(f"duplicates must be one of {allowed}, not {duplicates!r}")
    if isinstance(source, Graph):
        _unused("a Graph", no_edge=no_edge, duplicates=duplicates, directed=directed)
        return _checked(source.weights, source.edges, source.names, op, source.notes)
    if op is Op.ORAND and duplicates is None:
        duplicates = "first"
    how: dict[str, Any] = {"weight": weight, "names": names, "duplicates": duplicates}
    listed = as_edges(source, weight)
    if listed is not None:
        _unused("a list of edges", no_edge=no_edge)
        return _from_list(listed, op, **how, directed=directed is not False)
    _unused("a graph that is no list of edges", directed=directed)
    if hasattr(source, "adjacency") and hasattr(source, "nodes"):
        _unused("a NetworkX graph", no_edge=no_edge)
        places = tuple(source.nodes)
        how["duplicates"] = duplicates or choice(op)
        found = networkx_edges(source, weight)
        return _from_list(found, op, **how, directed=source.is_directed(), places=places)
    if isinstance(source, str | Path):
        source = read_matrix(Path(source))
        names = names if names is not None else range(1, source.shape[0] + 1)
    if is_frame(source):
        names = names if names is not None else tuple(source.columns)
        source = source.to_numpy()
    if hasattr(source, "tocoo"):
        _unused("a sparse matrix", no_edge=no_edge)
        _square(source.shape)
        names = _names(names, source.shape[0])
        entries = source.tocoo()
        weights, edges, repeated = combined(
            entries.row, entries.col, _real(entries.data), names, duplicates=duplicates
        )
        return _checked(weights, edges, names, op, _note(repeated, duplicates))
    _unused("a matrix with all entries", duplicates=duplicates if op is not Op.ORAND else None)
    array = np.asarray(source)
    _square(array.shape)
    weights = np.array(_real(array))
    edges = np.ones(weights.shape, bool)
    if no_edge is not None:
        edges &= ~(weights == no_edge)
    elif array.dtype != bool:
        _say_zeros(weights, op)
    if op.no_edge == 0:
        edges &= weights != 0
    return _checked(weights, edges, _names(names, len(weights)), op)


def as_edges(source: Any, weight: str | None) -> EdgeList | None:
    """Return the edges of a source that lists them, or None for every other source.

    An iterator is used up.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        return read_edges(path, weight) if is_edge_file(path) else None
    if is_tuples(source):
        return tuple_edges(source, weight)
    if is_frame(source) and list(source.columns) != list(source.index):
        return frame_edges(source, weight)
    return source if isinstance(source, EdgeList) else None


def _from_list(listed, op, *, weight, names, duplicates, directed, places=None):
    if op is not Op.ORAND:
        listed.say_missing(weight)
    places = places if places is not None else names
    places = tuple(listed.vertices() if places is None else places)
    _square((len(places), len(places)))
    weights, edges, repeated = combined(
        *listed.indices(places),
        np.array(listed.weights, np.float64),
        places,
        duplicates=duplicates,
        directed=directed,
    )
    names = places if names is None else _names(names, len(places))
    return _checked(weights, edges, names, op, _note(repeated, duplicates))


def _names(names, size):
    names = tuple(range(size) if names is None else names)
    if len(names) != size:
        raise ValueError(f"names must be {size}, not {len(names)}")
    return names


def _unused(what, **given):
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} must not be given for {what}, not {value!r}")


def _note(repeated, duplicates):
    if not repeated:
        return ()
    counted = {
        "sum": "their sum counts",
        "min": "the least counts",
        "max": "the largest counts",
        "first": "the first counts",
    }[duplicates]
    return (f"{repeated:,} edges were given again: {counted}",)


def _say_zeros(weights, op):
    """Warn of zeros off the diagonal of a matrix with all entries: what they were taken for."""
    count = np.count_nonzero(weights == 0) - np.count_nonzero(np.diagonal(weights) == 0)
    if not count:
        return
    if op.no_edge == 0:
        text = "are no edges; no_edge=0 says the same without this warning"
    else:
        endless = "-inf" if op.no_edge == -np.inf else "inf"
        text = (
            "are edges of weight 0; no_edge=0 leaves them out, "
            f"no_edge={endless} keeps them without this warning"
        )
    warnings.warn(f"{count:,} zeros of the matrix {text}", GraphWarning, stacklevel=4)


def _checked(weights, edges, names, op, notes=()):
    def named(where):
        i, j = np.argwhere(where)[0]
        return f"{weights[i, j]:g} (edge {names[i]} → {names[j]})"

    wrong = edges & np.isnan(weights)
    if wrong.any():
        raise ValueError(f"weights must be numbers, not {named(wrong)}")
    absent = op.no_edge
    if op is not Op.ORAND:
        sign = -np.inf if op.plus == "max" and op.times != "mul" else np.inf
        wrong = edges & (weights == -sign)
        if wrong.any():
            raise ValueError(f"weights must be finite, or {sign} for no edge, not {named(wrong)}")
    edges = edges & ~np.isinf(weights)
    if op is Op.MAXMUL:
        edges &= weights != 0  # a path through probability 0 is none
    weights = np.where(edges, weights + 0.0, 0.0 if absent is None else absent)  # −0 becomes +0
    same = np.array_equal(edges, edges.T) and np.array_equal(weights, weights.T)
    return Graph(weights, edges, names, not same, notes)


def _square(shape):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"adjacency matrix must be square, not {'×'.join(map(str, shape))}")
    if not shape[0]:
        raise ValueError("adjacency matrix must have a row at least, not none")
    check_memory(*shape, pair_bytes=PAIR_BYTES, what="graph", name="vertices")


def _real(values):
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"weights must be real numbers, not {array.dtype.name}")
    return array.astype(np.float64)


def rounded(values: np.ndarray, inputs: str, what: str = "weights") -> np.ndarray:
    """Return operands of a format, nearest to the values; a warning says if they differ.

    Parameters
    ----------
    values : ndarray of float64
    inputs : {"fp16", "fp32"}

    Raises
    ------
    ValueError
        If a value is above the largest of the format.
    """
    dtype = FORMATS[inputs]
    with np.errstate(over="ignore", under="ignore"):
        result = values.astype(dtype)
    wrong = np.isinf(result) & np.isfinite(values)
    if wrong.any():
        largest, first = np.finfo(dtype).max, values[wrong].flat[0]
        more = "; inputs='fp32' has more" if inputs == "fp16" else ""
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
    """Largest relative difference of finite values; 0 where all are equal."""
    exact, found = values.astype(np.float64), result.astype(np.float64)
    differ = exact != found
    if not differ.any():
        return 0.0
    exact, found = exact[differ], found[differ]
    return float(np.max(np.abs(found - exact) / np.abs(exact)))
