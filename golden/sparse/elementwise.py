"""The element-wise operations and the reductions of dataflow graphs, on float64 arrays.

An element-wise operation computes row i of its output from row i of its vector operands and from
whole scalars and small matrices. So a part of a vector has the same bits whether it is computed
alone or with the rest. A reduction folds from left to right, in the order of the vertices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.sparse.products_compiled import fold, rows_by
from vitruvian.golden.sparse.semirings import PLUS


@dataclass(frozen=True)
class ElementFunction:
    """A function of a dataflow graph.

    Attributes
    ----------
    compute : callable
        Takes arrays of float64 and returns one.
    arity : int or None
        Number of operands; None if any number is allowed.
    whole : tuple of int
        Operands that an element-wise operation needs as a whole for every row, by position.
    """

    compute: Callable[..., Any]
    arity: int | None
    whole: tuple[int, ...] = ()


def _truth(x: np.ndarray) -> np.ndarray:
    return (x != 0) & (x == x)


def _real(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Return the function with a float64 result."""
    return lambda *operands: np.asarray(function(*operands), np.float64)


def _rows_by(h: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Multiply each row of h by the matrix w, or by the vector w; each sum runs left to right."""
    matrix = w.reshape(len(w), -1)
    result = np.empty((len(h), matrix.shape[1]))
    rows_by(np.ascontiguousarray(h), np.ascontiguousarray(matrix), result)
    return result[:, 0] if w.ndim == 1 else result


def _put(h: np.ndarray, column: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return h with column k replaced."""
    result = h.copy()
    result[:, int(k)] = column
    return result


def _not(x: np.ndarray) -> np.ndarray:
    return ~_truth(x)


def _and(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _truth(x) & _truth(y)


def _or(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _truth(x) | _truth(y)


def _select(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(_truth(condition), x, y)


#: Element-wise operations by name
FUNCTIONS: dict[str, ElementFunction] = {
    "copy": ElementFunction(_real(np.copy), 1),
    "abs": ElementFunction(_real(np.abs), 1),
    "sqrt": ElementFunction(_real(np.sqrt), 1),
    "not": ElementFunction(_real(_not), 1),
    "add": ElementFunction(_real(np.add), 2),
    "sub": ElementFunction(_real(np.subtract), 2),
    "mul": ElementFunction(_real(np.multiply), 2),
    "div": ElementFunction(_real(np.divide), 2),
    "min": ElementFunction(_real(np.minimum), 2),
    "max": ElementFunction(_real(np.maximum), 2),
    "less": ElementFunction(_real(np.less), 2),
    "equal": ElementFunction(_real(np.equal), 2),
    "and": ElementFunction(_real(_and), 2),
    "or": ElementFunction(_real(_or), 2),
    # select(condition, if true, if false)
    "select": ElementFunction(_real(_select), 3),
    # rows_by(H, W): row i is H[i]·W
    "rows_by": ElementFunction(_rows_by, 2, whole=(1,)),
    # put(H, v, k): column k of H becomes v
    "put": ElementFunction(_put, 3, whole=(2,)),
}


def _folded(name: str, identity: float) -> ElementFunction:
    code = PLUS.index(name)

    def folded(x: np.ndarray) -> np.float64:
        return np.float64(fold(code, np.ascontiguousarray(x).ravel(), identity))

    return ElementFunction(folded, 1)


def _gram(h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Hᵀ·x; each element is a sum from left to right."""
    columns = np.ascontiguousarray((h * x[:, None]).T)
    return np.array([fold(0, column, 0.0) for column in columns])


def _at(x: np.ndarray, k: np.ndarray) -> np.float64:
    return np.float64(x[int(k)])


def _pick(weights: np.ndarray, share: np.ndarray) -> np.float64:
    """Return the first index at which the running sum exceeds ``share`` of the whole sum."""
    running = np.cumsum(weights)
    index = int(np.searchsorted(running, np.multiply(share, running[-1]), side="right"))
    return np.float64(min(index, len(weights) - 1))


#: Rows of a block of ``_triangle``: with some ten columns, it remains in a second-level cache.
_BLOCK_ROWS = 1024


def _triangle(matrix: np.ndarray) -> np.ndarray:
    """Return the factor R of the QR decomposition of a tall matrix, block by block.

    The blocks' own factors take the place of the blocks until they are one block. Householder's
    reflections make each of them, so the result is as accurate as that of the whole matrix at once.

    References
    ----------
    Demmel, Grigori, Hoemmen, Langou: Communication-optimal parallel and sequential QR and LU
    factorizations, SIAM J. Sci. Comput. 34 (2012), §3 (TSQR).
    """
    columns = matrix.shape[1]
    # A block must have more rows than its factor, or the matrix would not become shorter.
    rows = max(_BLOCK_ROWS, 2 * columns)
    while len(matrix) >= 2 * rows:
        whole = len(matrix) // rows * rows
        blocks = matrix[:whole].reshape(-1, rows, columns)
        factors = np.asarray(np.linalg.qr(blocks, mode="r"))
        matrix = np.concatenate([factors.reshape(-1, columns), matrix[whole:]])
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _least_squares(right: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Return the coefficients with which the columns come nearest to ``right``.

    Each column is first divided by its norm, so that a short one is not taken for a rounding error.
    A QR decomposition of the columns with ``right`` leaves a small problem with the same singular
    values, which is solved by SVD: of several solutions, it gives the shortest.
    """
    if not (np.isfinite(right).all() and all(np.isfinite(column).all() for column in columns)):
        return np.full(len(columns), np.nan)
    norms = np.array([np.linalg.norm(column) or 1.0 for column in columns])
    scaled = np.empty((len(right), len(columns) + 1))
    for place, (column, norm) in enumerate(zip(columns, norms, strict=True)):
        np.divide(column, norm, out=scaled[:, place])
    scaled[:, -1] = right
    small = _triangle(scaled)
    # NumPy's limit of a singular value that counts as zero, for the tall matrix
    limit = np.finfo(np.float64).eps * max(len(right), len(columns))
    return np.linalg.lstsq(small[:, :-1], small[:, -1], rcond=limit)[0] / norms


#: Reductions by name. The result of an empty fold is the identity: 0, ∞, −∞ or false.
REDUCTIONS: dict[str, ElementFunction] = {
    "add": _folded("add", 0.0),
    "min": _folded("min", np.inf),
    "max": _folded("max", -np.inf),
    "or": _folded("or", 0.0),
    "gram": ElementFunction(_gram, 2),
    # at(x, k): element k of x
    "at": ElementFunction(_at, 2),
    "pick": ElementFunction(_pick, 2),
    "least_squares": ElementFunction(_least_squares, None),
}


def apply(function: ElementFunction, operands: tuple[Any, ...]) -> Any:
    """Compute a function of tensors and numbers.

    Divisions by zero and invalid operations give infinities and NaNs without a warning. In an
    element-wise operation, a vector with one number per vertex applies to each feature.
    """
    arrays = [np.asarray(each, np.float64) for each in operands]
    if function in _BROADCAST and max(each.ndim for each in arrays) == 2:
        arrays = [each[:, None] if each.ndim == 1 else each for each in arrays]
    with np.errstate(all="ignore"):
        return function.compute(*arrays)


_BROADCAST = [function for function in FUNCTIONS.values() if not function.whole]
