"""Products of integer matrices on a board with an integer unit, tile by tile."""

import numpy as np

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden.simd2.integer import int_identity, int_mmo
from vitruvian.golden.simd2.op import Op, as_op
from vitruvian.hdl.simd2.intconfig import IntConfig


def _filler(op: Op, bits: int) -> tuple[int, int]:
    """Return an element of A and one of B whose product is the identity of ⊕."""
    identity = int_identity(op, bits)
    # a + 0, a · 1, max(a, smallest) and min(a, largest) are a.
    top = (1 << bits - 1) - 1
    neutral = {"mul": 1, "max": -top - 1, "min": top}
    return identity, neutral.get(op.times, 0)


def cut_integers(
    config: IntConfig, a: np.ndarray, b: np.ndarray, operation: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of the fractals of A and of B for each beat.

    Parameters
    ----------
    a : (M, K) ndarray of int
    b : (K, N) ndarray of int

    Returns
    -------
    left : (tile rows, phases, bytes) ndarray of uint8
    right : (tile columns, phases, bytes) ndarray of uint8
        K is padded with elements that do not change the result.
    """
    word = np.dtype(f"<i{config.bits // 8}")
    fillers = _filler(as_op(operation), config.bits)
    cut = []
    for matrix, lines, filler in ((a, config.m, fillers[0]), (b.T, config.n, fillers[1])):
        height, depth = (
            round_up(size, by) for size, by in zip(matrix.shape, (lines, config.k), strict=True)
        )
        padded = np.full((height, depth), filler, word)
        padded[: matrix.shape[0], : matrix.shape[1]] = matrix
        tiles = padded.reshape(height // lines, lines, depth // config.k, config.k)
        octets = np.ascontiguousarray(tiles.swapaxes(1, 2)).view(np.uint8)
        cut.append(octets.reshape(height // lines, depth // config.k, -1))
    return cut[0], cut[1]


def cut_addends(config: IntConfig, c: np.ndarray) -> np.ndarray:
    """Return the fractals of C, (tile rows, tile columns, m, n), padded with 0."""
    rows, columns = ceil_div(c.shape[0], config.m), ceil_div(c.shape[1], config.n)
    padded = np.zeros((rows * config.m, columns * config.n), f"<i{config.bits // 8}")
    padded[: c.shape[0], : c.shape[1]] = c
    return padded.reshape(rows, config.m, columns, config.n).swapaxes(1, 2)


def join_integers(fractals: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the matrix whose fractals are (tile rows, tile columns, m, n)."""
    rows, columns, m, n = fractals.shape
    return fractals.swapaxes(1, 2).reshape(rows * m, columns * n)[:height, :width]


def integer_expected(
    config: IntConfig, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, operation: str
) -> np.ndarray:
    """Return the product that golden computes, as signed integers of the unit's width."""
    return int_mmo(operation, a, b, c, config.bits)
