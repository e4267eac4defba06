"""Sparse matrices from what users have: SciPy, NetworkX, lists of edges, files, dense arrays."""

import difflib
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.sim.sparse.matrix_market import read_matrix

#: Stands for the weight of an edge that has none
_ABSENT = object()


@dataclass(frozen=True, eq=False)
class Given:
    """A matrix and what else its source says.

    Attributes
    ----------
    matrix : Sparse
    vertices : tuple or None
        The vertices of a graph or a list of edges in the order of the rows; None for a matrix.
    is_directed : bool or None
        What a NetworkX graph says; None for other sources.
    """

    matrix: Sparse
    vertices: tuple[Any, ...] | None = None
    is_directed: bool | None = None

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """The number of each vertex of a graph; empty for a matrix."""
        return {vertex: place for place, vertex in enumerate(self.vertices or ())}


def as_sparse(matrix: Any, *, weight: str | None = "weight") -> Sparse:
    """Return a matrix in the form that the golden models use.

    Parameters
    ----------
    matrix : object
        A SciPy sparse matrix or array in any format, a path, a NetworkX graph, a list of edges, a
        dense (R, C) ndarray, or a ``Sparse``. The numbers must be real; they are converted to
        float64. A path names a Matrix Market file (also packed by gzip or bzip2), or a list of
        edges if it ends in .csv, .tsv, .edges, .edgelist or .txt. A list of edges is a pandas data
        frame with columns of sources and targets, or a list of tuples (source, target),
        (source, target, weight) or (source, target, attributes). Its edges lead one way. Its
        vertices are in rising order if all of them are whole numbers, else in the order in which
        they occur. A data frame whose columns are its index is a dense matrix.
    weight : str or None
        Name of the attribute or column with the weights of the edges of a graph or a list. An edge
        without it gets the weight 1, with a ``GraphWarning``. If it is None, every stored element
        of any matrix becomes 1.

    Returns
    -------
    Sparse
        Zeros that are stored explicitly remain, zeros of a dense array do not. Elements that are
        given more than once are added.

    Raises
    ------
    TypeError
        If ``matrix`` is none of these.
    ValueError
        If a file is wrong, or a number is not real.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian import sparse
    >>> sparse.as_sparse(np.eye(3)).shape
    (3, 3)
    """
    return given_matrix(matrix, weight=weight).matrix


def given_matrix(
    matrix: Any,
    *,
    weight: str | None = "weight",
    parallel: str = "sum",
    is_weighted: bool = True,
) -> Given:
    """Return a matrix with the vertices of its graph; see ``as_sparse``.

    Parameters
    ----------
    matrix : object
        What ``as_sparse`` takes, or a ``Given``.
    parallel : {"sum", "min", "max"}
        What parallel edges of a multigraph or of a list become.
    is_weighted : bool
        If False, the weights are not read, since nobody needs them: every stored element is 1.
    """
    weight = weight if is_weighted else None
    if isinstance(matrix, Given):
        given = matrix
    elif isinstance(matrix, Sparse):
        given = Given(matrix)
    elif isinstance(matrix, str | os.PathLike):
        given = _from_file(Path(matrix), weight, parallel)
    elif hasattr(matrix, "tocoo"):
        given = Given(_from_scipy(matrix))
    elif all(hasattr(matrix, name) for name in ("nodes", "edges", "is_directed")):
        given = _from_graph(matrix, weight, parallel)
    elif isinstance(matrix, np.ndarray):
        given = Given(_from_dense(matrix))
    else:
        given = _from_table(matrix, weight, parallel)
    if weight is None:
        return Given(given.matrix.pattern(), given.vertices, given.is_directed)
    return given


def _check_real(dtype: np.dtype[Any]) -> None:
    """Refuse numbers that are not real."""
    if dtype.kind not in "biuf":
        raise UserError(f"matrix must have real numbers, not {dtype}")


def _from_scipy(matrix: Any) -> Sparse:
    """Return a SciPy sparse matrix or array; duplicates are added in their order."""
    if len(matrix.shape) != 2:
        raise UserError(f"matrix must have 2 dimensions, not {len(matrix.shape)}")
    _check_real(matrix.dtype)
    shape = int(matrix.shape[0]), int(matrix.shape[1])
    if matrix.format == "csr":
        return Sparse.from_rows(matrix.indptr, matrix.indices, matrix.data, shape)
    coo = matrix.tocoo()
    return Sparse.from_entries(coo.row, coo.col, coo.data, shape)


def _from_dense(matrix: np.ndarray) -> Sparse:
    """Return a dense matrix without its zeros."""
    if matrix.ndim != 2:
        raise UserError(f"matrix must have 2 dimensions, not {matrix.ndim}")
    _check_real(matrix.dtype)
    array = np.asarray(matrix)
    rows, columns = np.nonzero(array)
    return Sparse.from_entries(rows, columns, array[rows, columns], array.shape)


def _from_file(path: Path, weight: str | None, parallel: str) -> Given:
    """Return the matrix of a Matrix Market file, or that of a list of edges."""
    if ".mtx" in path.suffixes:
        return Given(read_matrix(path))
    from vitruvian.sim.simd2.graph import is_edge_file
    from vitruvian.sim.simd2.graph.files import read_edges

    if not is_edge_file(path):
        return Given(read_matrix(path))
    try:
        return _from_edges(read_edges(path, weight), weight, parallel)
    except ValueError as error:
        raise UserError(str(error)) from None


def _from_table(table: Any, weight: str | None, parallel: str) -> Given:
    """Return the matrix of a pandas data frame or of tuples."""
    from vitruvian.sim.simd2.graph.edges import frame_edges, is_frame, is_tuples, tuple_edges

    try:
        if is_frame(table) and list(table.columns) == list(table.index):
            return Given(_from_dense(table.to_numpy()), tuple(table.columns))
        if is_frame(table):
            return _from_edges(frame_edges(table, weight), weight, parallel)
        if is_tuples(table):
            return _from_edges(tuple_edges(table, weight), weight, parallel)
    except ValueError as error:
        raise UserError(str(error)) from None
    raise TypeError(
        "matrix must be a SciPy sparse matrix, a path, a NetworkX graph, a data frame or a list of "
        f"tuples with edges, an ndarray or a Sparse, not {type(table).__name__}"
    )


def _from_edges(listed: Any, weight: str | None, parallel: str) -> Given:
    """Return the matrix of a list of edges, each of which leads one way."""
    vertices = listed.vertices()
    rows, columns = listed.indices(vertices)
    if weight is not None and listed.missing:
        _warn_missing(listed.missing, len(rows), weight, ())
    size = len(vertices)
    matrix = Sparse.from_entries(
        rows, columns, np.array(listed.weights), (size, size), duplicates=parallel
    )
    return Given(matrix, vertices)


def _warn_missing(missing: int, count: int, weight: str | None, others: Iterable[Any]) -> None:
    """Warn of edges that got the weight 1; ``others`` are names of attributes that there are."""
    from vitruvian.sim.simd2.graph import GraphWarning

    names = [name for name in others if isinstance(name, str)]
    near = difflib.get_close_matches(str(weight), names, 1)
    hint = f"; the nearest attribute is {near[0]!r}" if near else ""
    warnings.warn(
        f"{missing:,} of {count:,} edges have no weight named {weight!r} and got the weight 1"
        f"{hint}; weight=None gives 1 to all without this warning",
        GraphWarning,
        stacklevel=6,
    )


def _from_graph(graph: Any, weight: str | None, parallel: str) -> Given:
    """Return the adjacency matrix of a NetworkX graph, whose rows are in the order of its nodes."""
    vertices = tuple(graph.nodes)
    number = {vertex: place for place, vertex in enumerate(vertices)}
    if weight is None:
        edges = list(graph.edges())
    else:
        edges = list(graph.edges(data=weight, default=_ABSENT))
        missing = sum(edge[2] is _ABSENT for edge in edges)
        if missing:
            others = {name for edge in graph.edges(data=True) for name in edge[2]}
            _warn_missing(missing, len(edges), weight, sorted(map(str, others)))
    rows = np.array([number[edge[0]] for edge in edges], np.int64)
    columns = np.array([number[edge[1]] for edge in edges], np.int64)
    values = np.ones(len(edges))
    if weight is not None:
        for place, edge in enumerate(edges):
            if edge[2] is _ABSENT:
                continue
            if isinstance(edge[2], complex) or not hasattr(edge[2], "__float__"):
                raise UserError(
                    f"{weight} of the edge ({edge[0]!r}, {edge[1]!r}) must be a number, "
                    f"not {edge[2]!r}"
                )
            values[place] = edge[2]
    directed = bool(graph.is_directed())
    if not directed:
        other = rows != columns
        rows, columns, values = (
            np.concatenate([rows, columns[other]]),
            np.concatenate([columns, rows[other]]),
            np.concatenate([values, values[other]]),
        )
    size = len(vertices)
    matrix = Sparse.from_entries(rows, columns, values, (size, size), duplicates=parallel)
    return Given(matrix, vertices, directed)
