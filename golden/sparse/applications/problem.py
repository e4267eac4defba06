"""The form of an application: a graph and what it is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.sparse.graph import Ewise, Graph, Operand, Reduce
from vitruvian.golden.sparse.storage import Sparse
from vitruvian.validate import check_int

__all__ = ["Problem", "check_square", "check_vector", "check_vertex", "ewise", "reduce"]


@dataclass(frozen=True, eq=False)
class Problem:
    """A dataflow graph with its matrices and tensors, ready for ``execute.run`` or ``oei.run_oei``.

    Attributes
    ----------
    graph : Graph
    matrices : dict of str to Sparse
    given : dict of str to ndarray or float64
    iterations : int
        Largest number of iterations.
    """

    graph: Graph
    matrices: dict[str, Sparse]
    given: Mapping[str, Any]
    iterations: int


def ewise(out: str, function: str, *inputs: Operand) -> Ewise:
    """Return an element-wise node."""
    return Ewise(out, function, inputs)


def reduce(out: str, function: str, *inputs: Operand) -> Reduce:
    """Return a reduction."""
    return Reduce(out, function, inputs)


def check_square(a: Sparse) -> int:
    """Return the number of rows of a square matrix.

    Raises
    ------
    ValueError
        If the matrix is not square.
    """
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"matrix must be square, not {a.shape[0]} by {a.shape[1]}")
    return a.shape[0]


def check_vertex(name: str, vertex: int, count: int) -> np.ndarray:
    """Return the vector that is 1 at a vertex and 0 elsewhere.

    Raises
    ------
    ValueError
        If there is no such vertex.
    """
    vector = np.zeros(count)
    vector[check_int(name, vertex, 0, count - 1)] = 1.0
    return vector


def check_vector(name: str, vector: np.ndarray, count: int) -> np.ndarray:
    """Return a vector of finite numbers as float64.

    Raises
    ------
    ValueError
        If the vector has another length or an element is not finite.
    """
    values = np.asarray(vector, np.float64)
    if values.shape != (count,):
        raise ValueError(f"{name} must have {count} elements, not the shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, not {values[~np.isfinite(values)][0]}")
    return values
