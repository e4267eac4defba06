"""The compiled loop that sorts the elements of sparse matrices."""

# Numba infers the types of what it compiles; inner functions need no annotations.
# pyright: basic

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, error_model="numpy")
def place(
    keys: np.ndarray, order: np.ndarray, next_place: np.ndarray, sorted_order: np.ndarray
) -> None:
    """Sort the positions ``order`` by their keys; equal keys keep their order.

    Parameters
    ----------
    keys : (Z,) ndarray of int32
        Keys from 0.
    order, sorted_order : (Z,) ndarray of int64
        Positions in ``keys`` before and after.
    next_place : (K,) ndarray of int64
        The first place of each key in ``sorted_order``; they advance.
    """
    for position in order:
        key = keys[position]
        sorted_order[next_place[key]] = position
        next_place[key] += 1
