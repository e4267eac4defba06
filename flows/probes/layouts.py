"""The layouts of fragments in the threads of a warp, as data and as a NumPy emulation.

An operand of a warp's matrix instruction is spread over the registers of its threads. A layout
says, for each thread, register and element in a register, which row and column of the matrix it
is. The programs compute the same numbers; tests compare both and check that a matrix that is
taken apart and put together again is the same.

The instructions of data-centre Blackwell (``tcgen05.mma``) take A and B from shared memory and the
rest from tensor memory; ``Shared`` and ``tensor_scales`` say where.

References
----------
NVIDIA PTX ISA, sections "Matrix Fragments for mma.m8n8k4" to "mma.m16n8k64", "Register Fragments
for wgmma.mma_async", "Canonical Layouts", "Packing formats of elements in Tensor and Shared
memory" and "Block Scaling" of tcgen05; AMD matrix instruction calculator (layouts of MFMA).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ProbedFragment:
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


def mma(terms: int, bits: int) -> tuple[ProbedFragment, ProbedFragment, ProbedFragment]:
    """Return the fragments of A (16 × K), B (K × 8) and C of ``mma.sync.m16n8k<terms>``.

    A register has 32 / ``bits`` neighbours in k. Eight rows of A take one register and the other
    eight the next one; then follow the columns of the next four threads' registers.
    """
    per = 32 // bits
    count = terms // (4 * per)  # registers along k
    lane, e = _grid(32, 2 * count * per)
    register, within = e // per, e % per
    k = (lane % 4) * per + within + 4 * per * (register // 2)
    a = ProbedFragment(lane // 4 + 8 * (register % 2), k)
    lane, e = _grid(32, count * per)
    b = ProbedFragment((lane % 4) * per + e % per + 4 * per * (e // per), lane // 4)
    lane, e = _grid(32, 4)
    return a, b, ProbedFragment(lane // 4 + 8 * (e // 2), 2 * (lane % 4) + e % 2)


def mma_fp64() -> tuple[ProbedFragment, ProbedFragment, ProbedFragment]:
    """Return the fragments of ``mma.sync.m8n8k4`` with fp64, where a thread holds one element."""
    lane, _ = _grid(32, 1)
    a, b = ProbedFragment(lane // 4, lane % 4), ProbedFragment(lane % 4, lane // 4)
    lane, e = _grid(32, 2)
    return a, b, ProbedFragment(lane // 4, 2 * (lane % 4) + e)


def volta(output_bits: int) -> tuple[ProbedFragment, ProbedFragment, ProbedFragment]:
    """Return the fragments of the first of the four products of ``mma.sync.m8n8k4`` with fp16.

    The threads 0 to 3 and 16 to 19 take part in it; here these are threads 0 to 7.
    """
    lane, e = _grid(8, 4)
    own = lane % 4 + 4 * (lane // 4)
    a, b = ProbedFragment(own, e), ProbedFragment(e, own)
    lane, e = _grid(8, 8)
    if output_bits == 16:
        return a, b, ProbedFragment(lane % 4 + 4 * (lane // 4), e)
    # The layouts of FP16 and FP32 accumulators of m8n8k4 differ (PTX ISA, matrix fragments).
    row = lane % 2 + e // 2 % 2 * 2 + 4 * (lane // 4)
    return a, b, ProbedFragment(row, e // 4 * 4 + lane // 2 % 2 * 2 + e % 2)


def mfma(terms: int, fp64: bool = False) -> tuple[ProbedFragment, ProbedFragment, ProbedFragment]:
    """Return the fragments of A (16 × K), B (K × 16) and C of a 16 × 16 MFMA of 64 threads."""
    each = terms // 4
    lane, e = _grid(64, each)
    k = each * (lane // 16) + e
    a, b = ProbedFragment(lane % 16, k), ProbedFragment(k, lane % 16)
    lane, e = _grid(64, 4)
    row = 4 * e + lane // 16 if fp64 else 4 * (lane // 16) + e
    return a, b, ProbedFragment(row, lane % 16)


# ------------------------------------------------------------------ shared and tensor memory


@dataclass(frozen=True)
class Shared:
    """The places of an operand's elements in shared memory.

    Attributes
    ----------
    first : (rows, K) ndarray of int
        The first bit of each element.
    bits : int
        Width of an element.
    size : int
        Bytes that the operand takes, padding included.
    """

    first: np.ndarray
    bits: int
    size: int

    def pack(self, matrix: np.ndarray) -> np.ndarray:
        """Return the bytes that hold a (rows, K) matrix of codes; padding is zero."""
        memory = np.zeros(8 * self.size, np.uint8)
        for bit in range(self.bits):
            memory[self.first + bit] = matrix >> bit & 1
        return np.packbits(memory, bitorder="little")

    def unpack(self, memory: np.ndarray) -> np.ndarray:
        """Return the matrix that these bytes hold."""
        bits = np.unpackbits(memory, bitorder="little")
        parts = [
            bits[self.first + bit].astype(np.uint64) << np.uint64(bit) for bit in range(self.bits)
        ]
        return np.bitwise_or.reduce(parts)


def shared(rows: int, terms: int, bits: int, per: int) -> Shared:
    """Return the places of A, or of the transposed B, of ``tcgen05.mma`` without a swizzle.

    Eight rows of 16 bytes follow each other. Then come the same rows' next 16 bytes of k, and then
    the next eight rows. Sixteen bytes hold ``per`` elements, which may leave padding.

    Parameters
    ----------
    rows : int
        A multiple of 8.
    terms, bits, per : int
        Terms K; width of an element; elements in 16 bytes.
    """
    row, k = np.meshgrid(np.arange(rows), np.arange(terms), indexing="ij")
    chunks = terms // per
    # In bytes; eight rows of 16 bytes are a core matrix of 128.
    start = 128 * (k // per) + 128 * chunks * (row // 8) + 16 * (row % 8)
    return Shared(8 * start + k % per * bits, bits, rows * 16 * chunks)


def tensor_scales(scales: np.ndarray) -> np.ndarray:
    """Return the words of tensor memory that hold the scales of 128 rows of A.

    Row r lies in lane r mod 32 of a column for 32 rows, and again in the other quarters of the
    lanes. A word holds four scales of a row; fewer ones are repeated.

    Parameters
    ----------
    scales : (128, count) ndarray of uint8

    Returns
    -------
    (128, 4) ndarray of uint32, one row for each lane
    """
    rows, count = scales.shape
    # Bytes of a word, in the order of the columns of scales.
    four = np.ascontiguousarray(scales[:, np.arange(4) % count])
    words = four.view("<u4").reshape(rows // 32, 32).T
    return np.tile(words, (4, 1))
