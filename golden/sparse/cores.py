"""The cores of a sparse accelerator to the bit: the exact order of their operations.

A floating-point sum depends on its order, so each function states the order that it computes.
"""

import numpy as np

from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import FloatFormat, as_format
from vitruvian.golden.sparse.operators import combine, identity, product


def _each(names: np.ndarray, x: np.ndarray, y: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return x ⊕ y, where ``names`` has the operator of each row."""
    d = np.empty_like(x)
    for name in np.unique(names):
        rows = names == name
        d[rows] = combine(str(name), x[rows], y[rows], format)
    return d


def _joined(
    names: np.ndarray,
    x: tuple[np.ndarray, np.ndarray],
    y: tuple[np.ndarray, np.ndarray],
    format: FloatFormat,
) -> tuple[np.ndarray, np.ndarray]:
    """Return x ⊕ y of pairs (values, exists); a value that does not exist is left out."""
    both = x[1] & y[1]
    values = np.where(x[1], x[0], y[0])
    values[both] = _each(np.broadcast_to(names, both.shape)[both], x[0][both], y[0][both], format)
    return values, x[1] | y[1]


def os_columns(
    a: np.ndarray,
    b: np.ndarray,
    present: np.ndarray,
    last: np.ndarray,
    plus: np.ndarray,
    times: np.ndarray,
    format: FloatFormat | str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the reduced columns of a stream of beats.

    The lanes of all beats, one beat after the other, are the elements of the columns, and a mark
    ends a column. Within a beat, a balanced binary tree over the *lanes* reduces the elements of a
    column: lanes 2i and 2i + 1 first, then pairs of these pairs, and so on. It leaves out lanes
    without an element and lanes of other columns. The results of the beats of a column are then
    reduced from the first beat to the last.

    Parameters
    ----------
    a, b : (T, N) ndarray of unsigned int, ``format`` codes
        Matrix values and vector elements in the N lanes of T beats; N is a power of two.
    present : (T, N) ndarray of bool
        False for a lane without an element.
    last : (T, N) ndarray of bool
        True for the last lane of a column. It need not have an element: a column without any
        element is such a lane.
    plus, times : (T,) ndarray of str
        The operators of each beat. The results of two beats are reduced by ⊕ of the later one.

    Returns
    -------
    values : (C,) ndarray of unsigned int
        The columns in order. An empty column has the identity of ⊕ of its last beat. Lanes after
        the last mark belong to no column.
    beats, lanes : (C,) ndarray of int
        The beat and the lane of the mark of each column.
    """
    f = as_format(format)
    beats, lanes = np.nonzero(last)
    products = np.zeros(a.shape, code_dtype(f))
    for p, q in {*zip(plus.tolist(), times.tolist(), strict=True)}:
        rows = (plus == p) & (times == q)
        products[rows] = product(p, q, a[rows], b[rows], f)
    # The column of each lane is the number of marks before it.
    column = (np.cumsum(last).reshape(last.shape) - last).astype(np.int64)

    # A row for each part: the lanes of one column in one beat.
    first = np.ones(last.shape, bool)
    first[:, 1:] = column[:, 1:] != column[:, :-1]
    beat_of, lane_of = np.nonzero(first)
    column_of = column[beat_of, lane_of]
    names = plus[beat_of]
    values = products[beat_of]
    exists = present[beat_of] & (column[beat_of] == column_of[:, None])
    while values.shape[1] > 1:
        left, right = (values[:, 0::2], exists[:, 0::2]), (values[:, 1::2], exists[:, 1::2])
        values, exists = _joined(names[:, None], left, right, f)

    total = np.zeros(len(beats), code_dtype(f))
    some = np.zeros(len(beats), bool)
    # ``turn`` counts the parts of a column, which are consecutive rows.
    turn = np.arange(len(column_of)) - np.searchsorted(column_of, column_of)
    for n in range(int(turn.max(initial=-1)) + 1):
        rows = np.flatnonzero((turn == n) & (column_of < len(beats)))
        to = column_of[rows]
        part = (values[rows, 0], exists[rows, 0])
        total[to], some[to] = _joined(names[rows], (total[to], some[to]), part, f)
    empty = np.array([identity(str(name), f) for name in plus[beats]], code_dtype(f))
    return np.where(some, total, empty).astype(code_dtype(f)), beats, lanes
