"""A pass of the OEI pipeline to the bit: two products and an element-wise stage, one by one.

The pipeline interleaves the products, but the second one adds its terms to each result in ascending
order of the rows. So this model computes first y₁, then z, then y₂, and knows no buffer.
"""

from collections.abc import Callable, Sequence

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.buffer import Column, csc_beats
from vitruvian.golden.sparse.cores import os_columns
from vitruvian.golden.sparse.operators import identity
from vitruvian.golden.sparse.rows import is_rows


def run_pass(
    columns: Sequence[Column],
    x: np.ndarray,
    ewise: Callable[[np.ndarray], np.ndarray],
    *,
    first: tuple[str, str],
    second: tuple[str, str],
    lanes: int,
    width: int,
    format: FloatFormat | str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return z = f(x ⊕⊗ A) and y = z ⊕⊗ A.

    Parameters
    ----------
    columns : sequence of Column
        The columns of the square matrix A with M columns.
    x : (M,) ndarray of unsigned int, ``format`` codes
        The vector.
    ewise : callable
        The function f between the products, on codes of M elements, such as a program of
        ``golden.sparse.programs``.
    first, second : (str, str)
        ⊕ and ⊗ of each product.
    lanes, width : int
        Lanes of a beat, and columns of a sub-tensor. The order of the sums of the first product
        depends on them.

    Returns
    -------
    z, y : (M,) ndarray of unsigned int
    """
    f = as_format(format)
    dtype = code_dtype(f)
    beats = csc_beats(columns, lanes, width)
    plus, times = (np.full(len(beats.rows), name) for name in first)
    product, _, _ = os_columns(
        beats.values.astype(dtype), x[beats.rows], beats.present, beats.last, plus, times, f
    )
    z = ewise(product)

    # A row per beat: ``is_rows`` adds the beats in their order, and lanes from the first to the
    # last, so this is the plain order of a matrix in CSR form.
    rows: list[list[tuple[int, int]]] = [[] for _ in columns]
    for c, column in enumerate(columns):
        for row, value in column:
            rows[row].append((c, value))
    longest = max([len(row) for row in rows] + [1])
    shape = (len(rows), longest)
    a, at, present = np.zeros(shape, dtype), np.zeros(shape, int), np.zeros(shape, bool)
    for r, row in enumerate(rows):
        for k, (c, value) in enumerate(row):
            a[r, k], at[r, k], present[r, k] = value, c, True
    start = np.full(len(rows), identity(second[0], f), dtype)
    kinds, plus, times = (np.full(len(rows), name) for name in ("add", *second))
    _, y = is_rows(start, a, z, at, present, kinds, plus, times, f)
    return z, y
