"""The input-stationary core to the bit: products of rows, accumulated in the order of a stream."""

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.operators import combine, product


def is_rows(
    y: np.ndarray,
    a: np.ndarray,
    x: np.ndarray,
    columns: np.ndarray,
    present: np.ndarray,
    kinds: np.ndarray,
    plus: np.ndarray,
    times: np.ndarray,
    format: FloatFormat | str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a stream of beats reads, and the results after it.

    The beats take effect one after the other, and the lanes of a beat from the first to the last.
    So a result is ``((y ⊕ p₀) ⊕ p₁) ⊕ …`` with its products in the order of the stream.

    Parameters
    ----------
    y : (M,) ndarray of unsigned int, ``format`` codes
        Results before the stream; M is a multiple of N.
    a : (T, N) ndarray of unsigned int, ``format`` codes
        Elements of rows in the N lanes of T beats, or values to write.
    x : (T,) ndarray of unsigned int, ``format`` codes
        The element of the vector of each beat.
    columns : (T, N) ndarray of int
        Column of each lane. A beat that reads takes the N columns of the group, aligned to N, in
        which its first column is.
    present : (T, N) ndarray of bool
        False for a lane without an element.
    kinds, plus, times : (T,) ndarray of str
        ``KINDS`` and the operators of each beat.

    Returns
    -------
    reads : (R, N) ndarray of unsigned int
        The columns that each beat of kind "read" has read.
    y : (M,) ndarray of unsigned int
    """
    f = as_format(format)
    y, lanes = y.copy(), a.shape[1]
    products = a.astype(code_dtype(f))
    for p, q in {*zip(plus.tolist(), times.tolist(), strict=True)}:
        rows = (plus == p) & (times == q) & (kinds == "add")
        elements = np.broadcast_to(x[rows, None], (int(rows.sum()), lanes))
        products[rows] = product(p, q, a[rows], elements, f)
    reads: list[np.ndarray] = []
    for t, kind in enumerate(kinds):
        if kind == "read":
            start = columns[t, 0] // lanes * lanes
            reads.append(y[start : start + lanes].copy())
            continue
        left = np.flatnonzero(present[t])
        while len(left):
            # The first lane of each column; a column that occurs twice takes another round.
            to, first = np.unique(columns[t, left], return_index=True)
            value = products[t, left[first]]
            y[to] = value if kind == "write" else combine(str(plus[t]), y[to], value, f)
            left = np.delete(left, first)
    return np.array(reads, code_dtype(f)).reshape(-1, lanes), y
