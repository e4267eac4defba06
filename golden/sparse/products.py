"""Products of vectors and sparse matrices over a semiring, with a stated order of the sums."""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2.op import Op, Semiring
from vitruvian.golden.sparse.products_compiled import gather, scatter
from vitruvian.golden.sparse.semirings import PLUS, TIMES, as_semiring
from vitruvian.golden.sparse.storage import Sparse

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
        csc = matrix.column_start, matrix.row_index, matrix.column_values
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
