"""The matrices of Cube-fx as they are stored in memory, and the results in the users' order."""

import numpy as np

from vitruvian.sim.kernels.cubefx.mapping import SIDE, Mapping
from vitruvian.sim.kernels.layout import pack_b


def window(mapping: Mapping, values: np.ndarray) -> np.ndarray:
    """Return the storage of all sequence matrices: a window of 16 rows slides over it.

    The window of loop step l begins at row (L − 1 − l)·t. So there are 16 + (L − 1)·t rows, 31 for
    the naive mapping, instead of 16·L (Tang 2024, §4.2.2 and Fig. 4.3).

    Parameters
    ----------
    values : (k,) array_like
        The row of a sequence matrix: its exponents, or a factor for each power.

    Returns
    -------
    (⌈k·t/16⌉, 16 + (L − 1)·t, 16) ndarray of float16
        Columns of fractals; each holds the rows of 16 columns.
    """
    order, merged = mapping.order, mapping.merged
    rows = SIDE + (mapping.loops - 1) * merged
    whole = np.zeros((rows, mapping.power_columns * SIDE), np.float16)
    for u in range(merged):
        whole[rows - SIDE + u, u * order : (u + 1) * order] = values
    return np.ascontiguousarray(whole.reshape(rows, -1, SIDE).transpose(1, 0, 2))


def packed_coefficients(mapping: Mapping, coefficients: np.ndarray) -> np.ndarray:
    """Return the block-diagonal coefficient matrix as fractals for L0B.

    Parameters
    ----------
    coefficients : (j, k) ndarray of float16

    Returns
    -------
    (⌈k·t/16⌉, ⌈j·t/16⌉, 16, 16) ndarray of float16
    """
    shape = (mapping.power_columns * SIDE, mapping.result_columns * SIDE)
    matrix = np.zeros(shape, np.float16)
    functions, order = coefficients.shape
    for u in range(mapping.merged):
        matrix[u * order :, u * functions :][:order, :functions] = coefficients.T
    return pack_b(matrix)


def unpacked_results(mapping: Mapping, results: np.ndarray, count: int) -> np.ndarray:
    """Return the results of the functions in the order of the inputs.

    Parameters
    ----------
    results : (tiles, L, ⌈j·t/16⌉, rows, 16) ndarray
        Columns of fractals for each tile of 16·rows inputs and each loop step. Input
        16·row + l·t + u of a tile has its function f in column u·j + f of step l.
    count : int
        Number of inputs.

    Returns
    -------
    (j, count) ndarray
    """
    tiles, loops, across, rows, _ = results.shape
    j, t = mapping.functions, mapping.merged
    wide = results.transpose(0, 3, 1, 2, 4).reshape(tiles, rows, loops, across * SIDE)
    wide = wide[..., : t * j].reshape(tiles * rows, loops * t, j)[:, :SIDE]
    return np.ascontiguousarray(wide.reshape(-1, j)[:count].T)
