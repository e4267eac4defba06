"""Which thread holds which element of a fragment, as data and as a NumPy emulation.

An operand of a warp's matrix instruction is spread over the registers of its threads. A layout
says, for each thread, register and element in a register, which row and column of the matrix it
is. The programs compute the same numbers; tests compare both and check that a matrix that is
taken apart and put together again is the same.

References
----------
NVIDIA PTX ISA, sections "Matrix Fragments for mma.m8n8k4" to "mma.m16n8k64", "Register Fragments
for wgmma.mma_async"; AMD matrix instruction calculator (layouts of MFMA).
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Fragment", "mfma", "mma", "mma_fp64", "volta"]


@dataclass(frozen=True)
class Fragment:
    """Rows and columns of the elements of an operand.

    Attributes
    ----------
    row, column : (threads, elements) ndarray of int
        Elements are numbered from the lowest bits of the first register on.
    """

    row: np.ndarray
    column: np.ndarray

    def spread(self, matrix: np.ndarray) -> np.ndarray:
        """Return what each thread holds of a matrix."""
        return matrix[self.row, self.column]

    def gather(self, held: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """Return the matrix of which the threads hold these elements."""
        matrix = np.zeros(shape, held.dtype)
        matrix[self.row, self.column] = held
        return matrix


def _grid(threads: int, elements: int) -> tuple[np.ndarray, np.ndarray]:
    lane, element = np.meshgrid(np.arange(threads), np.arange(elements), indexing="ij")
    return lane, element


def mma(terms: int, bits: int) -> tuple[Fragment, Fragment, Fragment]:
    """Return the fragments of A (16 × K), B (K × 8) and C of ``mma.sync.m16n8k<terms>``.

    A register has 32 / ``bits`` neighbours in k. Eight rows of A take one register and the other
    eight the next one; then follow the columns of the next four threads' registers.
    """
    per = 32 // bits
    count = terms // (4 * per)  # registers along k
    lane, e = _grid(32, 2 * count * per)
    register, within = e // per, e % per
    k = (lane % 4) * per + within + 4 * per * (register // 2)
    a = Fragment(lane // 4 + 8 * (register % 2), k)
    lane, e = _grid(32, count * per)
    b = Fragment((lane % 4) * per + e % per + 4 * per * (e // per), lane // 4)
    lane, e = _grid(32, 4)
    return a, b, Fragment(lane // 4 + 8 * (e // 2), 2 * (lane % 4) + e % 2)


def mma_fp64() -> tuple[Fragment, Fragment, Fragment]:
    """Return the fragments of ``mma.sync.m8n8k4`` with fp64, where a thread holds one element."""
    lane, _ = _grid(32, 1)
    a, b = Fragment(lane // 4, lane % 4), Fragment(lane % 4, lane // 4)
    lane, e = _grid(32, 2)
    return a, b, Fragment(lane // 4, 2 * (lane % 4) + e)


def volta(output_bits: int) -> tuple[Fragment, Fragment, Fragment]:
    """Return the fragments of the first of the four products of ``mma.sync.m8n8k4`` with fp16.

    The threads 0 to 3 and 16 to 19 take part in it; here these are threads 0 to 7.
    """
    lane, e = _grid(8, 4)
    own = lane % 4 + 4 * (lane // 4)
    a, b = Fragment(own, e), Fragment(e, own)
    lane, e = _grid(8, 8)
    if output_bits == 16:
        return a, b, Fragment(lane % 4 + 4 * (lane // 4), e)
    row = lane % 2 + e // 2 % 2 * 2 + 4 * (lane // 4)
    return a, b, Fragment(row, e // 4 * 4 + lane // 2 % 2 * 2 + e % 2)


def mfma(terms: int, fp64: bool = False) -> tuple[Fragment, Fragment, Fragment]:
    """Return the fragments of A (16 × K), B (K × 16) and C of a 16 × 16 MFMA of 64 threads."""
    each = terms // 4
    lane, e = _grid(64, each)
    k = each * (lane // 16) + e
    a, b = Fragment(lane % 16, k), Fragment(k, lane % 16)
    lane, e = _grid(64, 4)
    row = 4 * e + lane // 16 if fp64 else 4 * (lane // 16) + e
    return a, b, Fragment(row, lane % 16)
