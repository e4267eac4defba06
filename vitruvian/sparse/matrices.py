"""Sparse matrices from what users have: SciPy, NetworkX, files, dense arrays."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vitruvian.errors import UserError
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.sim.sparse.matrix_market import read_matrix

__all__ = ["Given", "as_sparse", "given_matrix"]


@dataclass(frozen=True, eq=False)
class Given:
    """A matrix and what else its source says.

    Attributes
    ----------
    matrix : Sparse
    vertices : tuple or None
        The vertices of a NetworkX graph in the order of the rows.
    is_directed : bool or None
        What a NetworkX graph says; None for other sources.
    """

    matrix: Sparse
    vertices: tuple[Any, ...] | None = None
    is_directed: bool | None = None

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """The number of each vertex of a NetworkX graph; empty for other sources."""
        return {vertex: place for place, vertex in enumerate(self.vertices or ())}


def as_sparse(matrix: Any, *, weight: str | None = "weight") -> Sparse:
    """Return a matrix in the form that the golden models use.

    Parameters
    ----------
    matrix : object
        A SciPy sparse matrix or array in any format, a path of a Matrix Market file (also packed by
        gzip or bzip2), a NetworkX graph, a dense (R, C) ndarray, or a ``Sparse``. The numbers must
        be real; they are converted to float64.
    weight : str or None
        Name of the attribute of a NetworkX graph with the weights of the edges, 1 by default. If it
        is None, every stored element of any matrix becomes 1.

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
    """
    return given_matrix(matrix, weight=weight).matrix


def given_matrix(matrix: Any, *, weight: str | None = "weight", parallel: str = "sum") -> Given:
    """Return a matrix with the vertices of its graph; see ``as_sparse``.

    Parameters
    ----------
    matrix : object
    weight : str or None
    parallel : {"sum", "min"}
        What parallel edges of a NetworkX multigraph become.
    """
    if isinstance(matrix, Sparse):
        given = Given(matrix)
    elif isinstance(matrix, str | os.PathLike):
        given = Given(read_matrix(matrix))
    elif hasattr(matrix, "tocoo"):
        given = Given(_from_scipy(matrix))
    elif all(hasattr(matrix, name) for name in ("nodes", "edges", "is_directed")):
        given = _from_graph(matrix, weight, parallel)
    elif isinstance(matrix, np.ndarray):
        given = Given(_from_dense(matrix))
    else:
        raise TypeError(
            "matrix must be a SciPy sparse matrix, a path, a NetworkX graph, an ndarray or a "
            f"Sparse, not {type(matrix).__name__}"
        )
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
    coo = matrix.tocoo()
    shape = int(matrix.shape[0]), int(matrix.shape[1])
    return Sparse.from_entries(coo.row, coo.col, coo.data, shape)


def _from_dense(matrix: np.ndarray) -> Sparse:
    """Return a dense matrix without its zeros."""
    if matrix.ndim != 2:
        raise UserError(f"matrix must have 2 dimensions, not {matrix.ndim}")
    _check_real(matrix.dtype)
    array = np.asarray(matrix)
    rows, columns = np.nonzero(array)
    return Sparse.from_entries(rows, columns, array[rows, columns], array.shape)


def _from_graph(graph: Any, weight: str | None, parallel: str) -> Given:
    """Return the adjacency matrix of a NetworkX graph, whose rows are in the order of its nodes."""
    vertices = tuple(graph.nodes)
    number = {vertex: place for place, vertex in enumerate(vertices)}
    edges = list(graph.edges(data=weight, default=1)) if weight is not None else list(graph.edges())
    rows = np.array([number[edge[0]] for edge in edges], np.int64)
    columns = np.array([number[edge[1]] for edge in edges], np.int64)
    values = np.ones(len(edges))
    if weight is not None:
        for place, edge in enumerate(edges):
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
