"""Compiled loops of the OEI dataflow: the on-chip buffer and the products that read it.

⊕ and ⊗ are passed as the integers of ``semirings.PLUS`` and ``TIMES``. Everything that is compiled
must be in this file, because Numba's cache does not notice a change in another file; so the
operators are written here a second time.
"""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np

__all__ = ["count_lives", "hold", "scatter_between"]


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
def hold(
    column_start: np.ndarray,
    row_index: np.ndarray,
    column_values: np.ndarray,
    begin: int,
    end: int,
    next_slot: np.ndarray,
    held_column: np.ndarray,
    held_value: np.ndarray,
) -> int:
    """Put the elements of columns into the spaces of their rows; return their number.

    Elements above row ``begin`` are left out, because the second product can use them at once.

    Parameters
    ----------
    column_start, row_index, column_values : ndarray
    begin, end : int
        Columns that have just been read.
    next_slot : ndarray of int64
        First free place in the space of each row; it advances.
    held_column, held_value : ndarray
        The buffer. Each row has as many places as elements.
    """
    count = 0
    for column in range(begin, end):
        for e in range(column_start[column], column_start[column + 1]):
            row = row_index[e]
            if row >= begin:
                held_column[next_slot[row]] = column
                held_value[next_slot[row]] = column_values[e]
                next_slot[row] += 1
                count += 1
    return count


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
def count_lives(
    row_start: np.ndarray,
    column_index: np.ndarray,
    width: int,
    eager: bool,
    loads: np.ndarray,
    uses: np.ndarray,
) -> None:
    """Count the elements that are loaded, and those used for the last time, in each step.

    Elements above the diagonal are left out unless ``eager``; see ``reuse.held_elements``.

    Parameters
    ----------
    row_start, column_index : ndarray
    width : int
        Rows and columns of a step.
    eager : bool
    loads, uses : (steps,) ndarray of int64
        They are increased.
    """
    for row in range(len(row_start) - 1):
        own = row // width
        begin = own * width
        for e in range(row_start[row], row_start[row + 1]):
            column = column_index[e]
            step = column // width
            if column < begin + width:
                loads[step] += 1
                uses[own] += 1
            elif eager:
                loads[own] += 1
                uses[step] += 1
