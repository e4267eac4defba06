"""Products of vectors and sparse matrices over a semiring, with a stated order of the sums."""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.golden.simd2.op import Op, Semiring
from vitruvian.golden.sparse.products_compiled import (
    count_product,
    count_triangles,
    gather,
    multiply_rows,
    scatter,
)
from vitruvian.golden.sparse.semirings import PLUS, TIMES, as_semiring
from vitruvian.golden.sparse.storage import Sparse, unsigned

#: The dataflows of a product: one output at a time, or one input at a time
STATIONARY = ("output", "input")


def codes(semiring: Semiring) -> tuple[int, int]:
    """Return the integers of ⊕ and ⊗ that the compiled loops use."""
    return PLUS.index(semiring.plus), TIMES.index(semiring.times)


def vxm(
    x: ArrayLike,
    a: Sparse,
    semiring: Semiring | Op | str = "mma",
    *,
    stationary: str = "output",
    transposed: bool = False,
) -> np.ndarray:
    """Return x·A, the product of a vector or of stacked vectors and a sparse matrix.

    y[j] = identity ⊕ (x[i₀] ⊗ a[i₀, j]) ⊕ (x[i₁] ⊗ a[i₁, j]) …, over the stored elements of the
    column, from left to right with i in ascending order. Both dataflows compute the sums in this
    order, so their results have the same bits.

    Parameters
    ----------
    x : (R,) or (R, F) array_like of float
        With F features per vertex, the result is the product Aᵀ·x (SpMM) of the semiring.
    a : (R, C) Sparse
    semiring : Semiring, Op or str
    stationary : {"output", "input"}
        "output": column after column, by the CSC arrays. "input": row after row, by the CSR arrays.
    transposed : bool
        If True, return x·Aᵀ: the roles of rows and columns change, but x remains the left operand
        of ⊗.

    Returns
    -------
    (C,) or (C, F) ndarray of float64
        An output without any term is the identity of ⊕.

    Raises
    ------
    ValueError
        If the shapes do not fit, or the semiring or the dataflow is unknown.

    References
    ----------
    Zhang 2024, Fig. 4.8.
    """
    semiring = as_semiring(semiring)
    one_of("stationary", stationary, STATIONARY)
    plus, times = codes(semiring)
    matrix = a.transposed if transposed else a
    vector = np.ascontiguousarray(x, np.float64)
    if vector.ndim not in (1, 2) or len(vector) != matrix.shape[0]:
        raise ValueError(
            f"x must have the shape ({matrix.shape[0]},) or ({matrix.shape[0]}, F) "
            f"for a matrix with the shape {matrix.shape}, not {vector.shape}"
        )
    if vector.ndim == 2:
        result = np.empty((matrix.shape[1], vector.shape[1]))
        for f in range(vector.shape[1]):
            result[:, f] = vxm(vector[:, f], matrix, semiring, stationary=stationary)
        return result
    if stationary == "output":
        y = np.empty(matrix.shape[1])
        csc = unsigned(matrix.column_start), unsigned(matrix.row_index), matrix.column_values
        gather(*csc, vector, y, 0, len(y), plus, times, semiring.identity)
    else:
        y = np.full(matrix.shape[1], semiring.identity)
        csr = matrix.row_start, matrix.column_index, matrix.row_values
        scatter(*csr, vector, y, 0, len(vector), plus, times)
    return y


def mxv(
    a: Sparse,
    x: ArrayLike,
    semiring: Semiring | Op | str = "mma",
    *,
    stationary: str = "output",
) -> np.ndarray:
    """Return A·x, which is ``vxm(x, a, transposed=True)``.

    Parameters
    ----------
    a : (R, C) Sparse
    x : (C,) or (C, F) array_like of float
    semiring : Semiring, Op or str
        x is the left operand of ⊗ here too; this matters for ``aril`` only.
    stationary : {"output", "input"}

    Returns
    -------
    (R,) or (R, F) ndarray of float64

    Raises
    ------
    ValueError
        If the shapes do not fit, or the semiring or the dataflow is unknown.
    """
    return vxm(x, a, semiring, stationary=stationary, transposed=True)


def mxm(a: Sparse, b: Sparse, semiring: Semiring | Op | str = "mma") -> Sparse:
    """Return A·B, the product of two sparse matrices (SpGEMM).

    Element (i, j) is identity ⊕ (a[i, k₀] ⊗ b[k₀, j]) ⊕ …, over the k for which both elements are
    stored, in ascending order. It is stored if there is such a k, even if the sum is 0.

    Parameters
    ----------
    a, b : (R, K), (K, C) Sparse
    semiring : Semiring, Op or str

    Returns
    -------
    (R, C) Sparse

    Raises
    ------
    ValueError
        If the shapes do not fit, or the semiring is unknown.
    """
    semiring = as_semiring(semiring)
    if a.shape[1] != b.shape[0]:
        raise UserError(
            f"b must have as many rows as a has columns, {a.shape[1]}, not {b.shape[0]}"
        )
    shape, other = (a.shape[0], b.shape[1]), (b.row_start, b.column_index)
    starts = count_product(a.row_start, a.column_index, *other, shape[1])
    index, values = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    csr = a.row_start, a.column_index, a.row_values
    out = starts, index, values
    multiply_rows(*csr, *other, b.row_values, *out, shape[1], *codes(semiring), semiring.identity)
    return Sparse(shape, starts, index, values)


def neighbours(a: Sparse) -> Sparse:
    """Return the pattern of the edges in either direction, without the diagonal.

    Raises
    ------
    ValueError
        If the matrix is not square.
    """
    if a.shape[0] != a.shape[1]:
        raise UserError(f"matrix must be square, not {a.shape[0]} by {a.shape[1]}")
    off = a.rows != a.column_index
    if a.has_symmetric_pattern and off.all():
        return a.pattern()
    rows, columns = a.rows[off], a.column_index[off]
    both = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    return Sparse.from_entries(*both, 1.0, a.shape, duplicates="first")


def triangles(a: Sparse) -> np.ndarray:
    """Return the number of triangles at each vertex.

    It is half the sum of row i of (S·S) ∘ S, where S is ``neighbours(a)``.

    Parameters
    ----------
    a : (N, N) Sparse
        An element (i, j) is an edge between i and j, whatever its value and direction.

    Returns
    -------
    (N,) ndarray of int64
    """
    s = neighbours(a)
    return count_triangles(s.row_start, s.column_index)
