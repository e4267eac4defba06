"""The form of an application: a graph and what it is given."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.sparse.graph import Ewise, Graph, Operand, Reduce
from vitruvian.golden.sparse.storage import Sparse

#: What applications say about negative weights
_SIGNS = (
    "pagerank, labelprop and gcn need weights from 0 on; bfs, knn, kcore and components ignore "
    "the weights; sssp, kmeans, cg, bicgstab and gmres take negative ones"
)

_REAL = (int, float, np.integer, np.floating)


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
        If the matrix is not square, or has no row.
    """
    if a.shape[0] != a.shape[1]:
        raise UserError(f"matrix must be square, not {a.shape[0]} by {a.shape[1]}")
    return check_rows(a)


def check_rows(a: Sparse) -> int:
    """Return the number of rows, at least 1.

    Raises
    ------
    ValueError
        If there is no row.
    """
    if not a.shape[0]:
        raise UserError("matrix must have at least one row, not 0")
    return a.shape[0]


def check_finite(a: Sparse, *, negative: bool = True) -> None:
    """Refuse a matrix with an element that is not finite, or negative if none may be.

    Parameters
    ----------
    negative : bool
        If False, negative values are refused.

    Raises
    ------
    ValueError
        If there is such an element; the message names the first one.
    """
    good = np.isfinite(a.row_values)
    if not negative:
        good &= a.row_values >= 0
    if not good.all():
        at = int(np.argmin(good))
        allowed = "finite" if negative else "finite and at least 0"
        hint = f" ({_SIGNS})" if a.row_values[at] < 0 and not negative else ""
        raise UserError(
            f"weights must be {allowed}, not {a.row_values[at]} "
            f"in row {a.rows[at]} and column {a.column_index[at]}{hint}"
        )


def check_number(
    thing: str, value: float, low: float, high: float = math.inf, *, strict: bool = False
) -> float:
    """Return a finite number within bounds.

    Parameters
    ----------
    thing : str
        Name of the argument, for the message.
    low, high : float
        The smallest and the largest value that is allowed.
    strict : bool
        If True, ``low`` itself is not allowed.

    Raises
    ------
    TypeError
        If ``value`` is not a real number.
    ValueError
        If it is out of range, infinite or NaN.
    """
    real = isinstance(value, _REAL)  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(value, bool) or not real:
        raise TypeError(f"{thing} must be a number, not {value!r}")
    number = float(value)
    if not (low < number if strict else low <= number) or number > high or math.isinf(number):
        allowed = f"{'more than' if strict else 'at least'} {low:g}"
        if high < math.inf:
            allowed = f"between {low:g} and {high:g}"
        raise UserError(f"{thing} must be {allowed}, not {value!r}")
    return number


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


def check_vector(name: str, vector: ArrayLike, count: int) -> np.ndarray:
    """Return a vector of finite real numbers as float64.

    Raises
    ------
    ValueError
        If the vector has another length, or an element is complex or not finite.
    """
    given = np.asarray(vector)
    if given.dtype.kind not in "biuf":
        raise UserError(f"{name} must have real numbers, not {given.dtype}")
    values = given.astype(np.float64)
    if values.shape != (count,):
        raise UserError(f"{name} must have {count} elements, not the shape {values.shape}")
    if not np.isfinite(values).all():
        raise UserError(f"{name} must be finite, not {values[~np.isfinite(values)][0]}")
    return values
