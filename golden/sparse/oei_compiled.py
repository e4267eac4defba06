"""Compiled loops of the OEI dataflow's on-chip buffer: filling it, and counting what it holds."""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np


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
