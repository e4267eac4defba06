"""Compiled loops of sparse products over any semiring, and folds with a stated order.

Every sum starts with the identity and adds its terms one by one, in ascending index; a product is
rounded before it is added. ⊕ and ⊗ are passed as the integers of ``semirings.PLUS`` and ``TIMES``.
min and max keep the earlier of two equal numbers, so that −0 and +0 count as equal, and a NaN is
never chosen. Everything that is compiled must be in this file, because Numba's cache does not
notice a change in another file.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

#: Elements up to which an insertion sort is fast
_SHORT = 64


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _times(code, x, a):
    if code == 0:
        z = x * a
    elif code == 1:
        z = x + a
    elif code == 2:
        z = a if a < x or x != x else x
    elif code == 3:
        z = a if a > x or x != x else x
    elif code == 4:
        z = 1.0 if x != 0.0 and x == x and a != 0.0 and a == a else 0.0
    else:
        z = a if x != 0.0 and x == x else 0.0
    return z


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _plus(code, total, term):
    if code == 0:
        z = total + term
    elif code == 1:
        z = term if term < total else total
    elif code == 2:
        z = term if term > total else total
    else:
        z = 1.0 if total != 0.0 or (term != 0.0 and term == term) else 0.0
    return z


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gather(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    begin: int,
    end: int,
    plus: int,
    times: int,
    identity: float,
) -> None:
    """Set y[j] = ⊕ x[i] ⊗ a for j from begin to end, one column (or row) after another.

    The operators of three frequent semirings are constants, so that the compiler knows them.

    Parameters
    ----------
    start, index, values : ndarray
        CSC arrays for x·A, CSR arrays for A·x.
    x, y : ndarray of float64
    """
    if plus == 0 and times == 0:
        for j in range(begin, end):
            total = 0.0
            for e in range(start[j], start[j + 1]):
                total += x[index[e]] * values[e]
            y[j] = total
    elif plus == 1 and times == 1:
        for j in range(begin, end):
            total = identity
            for e in range(start[j], start[j + 1]):
                total = _plus(1, total, _times(1, x[index[e]], values[e]))
            y[j] = total
    elif plus == 3 and times == 4:
        for j in range(begin, end):
            total = identity
            for e in range(start[j], start[j + 1]):
                total = _plus(3, total, _times(4, x[index[e]], values[e]))
                if total != 0.0:  # No further term can change it.
                    break
            y[j] = total
    else:
        for j in range(begin, end):
            total = identity
            for e in range(start[j], start[j + 1]):
                total = _plus(plus, total, _times(times, x[index[e]], values[e]))
            y[j] = total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def scatter(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    begin: int,
    end: int,
    plus: int,
    times: int,
) -> None:
    """Add x[i] ⊗ a to y[j] for all elements of the rows from begin to end.

    Parameters
    ----------
    start, index, values : ndarray
        CSR arrays for x·A, CSC arrays for A·x.
    x, y : ndarray of float64
    """
    if plus == 0 and times == 0:
        for i in range(begin, end):
            for e in range(start[i], start[i + 1]):
                j = index[e]
                y[j] = _plus(0, y[j], _times(0, x[i], values[e]))
    elif plus == 1 and times == 1:
        for i in range(begin, end):
            for e in range(start[i], start[i + 1]):
                j = index[e]
                y[j] = _plus(1, y[j], _times(1, x[i], values[e]))
    elif plus == 3 and times == 4:
        for i in range(begin, end):
            for e in range(start[i], start[i + 1]):
                j = index[e]
                y[j] = _plus(3, y[j], _times(4, x[i], values[e]))
    else:
        for i in range(begin, end):
            for e in range(start[i], start[i + 1]):
                j = index[e]
                y[j] = _plus(plus, y[j], _times(times, x[i], values[e]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def scatter_between(
    column_start: np.ndarray,
    row_index: np.ndarray,
    column_values: np.ndarray,
    row_start: np.ndarray,
    next_slot: np.ndarray,
    held_column: np.ndarray,
    held_value: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    begin: int,
    end: int,
    plus: int,
    times: int,
) -> None:
    """Add to y all products whose later index lies between ``begin`` and ``end``.

    First the columns that have just been read meet the inputs before ``begin``; then the rows from
    ``begin`` to ``end`` meet the elements that the buffer holds. So each y receives its terms in
    ascending order of the rows. The operators of three frequent semirings are constants, so that
    the compiler knows them.
    """
    if plus == 0 and times == 0:
        for column in range(begin, end):
            for e in range(column_start[column], column_start[column + 1]):
                row = row_index[e]
                if row >= begin:
                    break
                y[column] = _plus(0, y[column], _times(0, x[row], column_values[e]))
        for row in range(begin, end):
            for slot in range(row_start[row], next_slot[row]):
                column = held_column[slot]
                y[column] = _plus(0, y[column], _times(0, x[row], held_value[slot]))
    elif plus == 1 and times == 1:
        for column in range(begin, end):
            for e in range(column_start[column], column_start[column + 1]):
                row = row_index[e]
                if row >= begin:
                    break
                y[column] = _plus(1, y[column], _times(1, x[row], column_values[e]))
        for row in range(begin, end):
            for slot in range(row_start[row], next_slot[row]):
                column = held_column[slot]
                y[column] = _plus(1, y[column], _times(1, x[row], held_value[slot]))
    elif plus == 3 and times == 4:
        for column in range(begin, end):
            for e in range(column_start[column], column_start[column + 1]):
                row = row_index[e]
                if row >= begin:
                    break
                y[column] = _plus(3, y[column], _times(4, x[row], column_values[e]))
        for row in range(begin, end):
            for slot in range(row_start[row], next_slot[row]):
                column = held_column[slot]
                y[column] = _plus(3, y[column], _times(4, x[row], held_value[slot]))
    else:
        for column in range(begin, end):
            for e in range(column_start[column], column_start[column + 1]):
                row = row_index[e]
                if row >= begin:
                    break
                y[column] = _plus(plus, y[column], _times(times, x[row], column_values[e]))
        for row in range(begin, end):
            for slot in range(row_start[row], next_slot[row]):
                column = held_column[slot]
                y[column] = _plus(plus, y[column], _times(times, x[row], held_value[slot]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fold(code: int, values: np.ndarray, total: float) -> float:
    """Return total ⊕ values[0] ⊕ values[1] …, from left to right."""
    for value in values:
        total = _plus(code, total, value)
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def dot(x: np.ndarray, y: np.ndarray) -> float:
    """Return 0 + x[0]·y[0] + x[1]·y[1] …, from left to right; each product is rounded."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_scaled(x: np.ndarray, scale: float, y: np.ndarray, out: np.ndarray, subtract: bool) -> None:
    """Set out[i] = x[i] ± scale·y[i]; each product is rounded."""
    if subtract:
        for i in range(len(out)):
            out[i] = x[i] - scale * y[i]
    else:
        for i in range(len(out)):
            out[i] = x[i] + scale * y[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rows_by(h: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Set out = h·w; each element is a sum from left to right.

    Parameters
    ----------
    h, w, out : (N, F), (F, G), (N, G) ndarray of float64
    """
    for i in range(h.shape[0]):
        for g in range(w.shape[1]):
            out[i, g] = 0.0
        for f in range(h.shape[1]):
            for g in range(w.shape[1]):
                out[i, g] += h[i, f] * w[f, g]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def count_product(
    start: np.ndarray,
    index: np.ndarray,
    right_start: np.ndarray,
    right_index: np.ndarray,
    size: int,
) -> np.ndarray:
    """Return where each row of a product of two matrices in CSR form starts.

    Parameters
    ----------
    size : int
        Columns of the right matrix.
    """
    result = np.zeros(len(start), np.int64)
    seen = np.full(size, -1, np.int64)
    for i in range(len(start) - 1):
        found = 0
        for e in range(start[i], start[i + 1]):
            k = index[e]
            for f in range(right_start[k], right_start[k + 1]):
                if seen[right_index[f]] != i:
                    seen[right_index[f]] = i
                    found += 1
        result[i + 1] = result[i] + found
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply_rows(
    start: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    right_start: np.ndarray,
    right_index: np.ndarray,
    right_values: np.ndarray,
    out_start: np.ndarray,
    out_index: np.ndarray,
    out_values: np.ndarray,
    size: int,
    plus: int,
    times: int,
    identity: float,
) -> None:
    """Set the rows of a product; ``out_start`` is the result of ``count_product``."""
    seen = np.full(size, -1, np.int64)
    total = np.empty(size, np.float64)
    for i in range(len(start) - 1):
        place = out_start[i]
        for e in range(start[i], start[i + 1]):
            k, x = index[e], values[e]
            for f in range(right_start[k], right_start[k + 1]):
                j = right_index[f]
                if seen[j] != i:
                    seen[j] = i
                    total[j] = identity
                    out_index[place] = j
                    place += 1
                total[j] = _plus(plus, total[j], _times(times, x, right_values[f]))
        _sort(out_index, out_start[i], place)
        for slot in range(out_start[i], place):
            out_values[slot] = total[out_index[slot]]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sort(index, begin, end):
    """Sort a part of an array; a short part by insertion, which needs no memory of its own."""
    if end - begin > _SHORT:
        index[begin:end].sort()
        return
    for place in range(begin + 1, end):
        x, to = index[place], place
        while to > begin and index[to - 1] > x:
            index[to] = index[to - 1]
            to -= 1
        index[to] = x


@numba.njit(cache=True, nogil=True, error_model="numpy")
def count_triangles(start: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return the number of triangles at each vertex of a symmetric pattern without a diagonal."""
    size = len(start) - 1
    counts = np.zeros(size, np.int64)
    near = np.full(size, -1, np.int64)
    for i in range(size):
        for e in range(start[i], start[i + 1]):
            near[index[e]] = i
        for e in range(start[i], start[i + 1]):
            j = index[e]
            if j <= i:
                continue
            for f in range(start[j + 1] - 1, start[j] - 1, -1):
                k = index[f]
                if k <= j:
                    break
                if near[k] == i:
                    counts[i] += 1
                    counts[j] += 1
                    counts[k] += 1
    return counts
