"""The bytes of a matrix in memory, stored by nonzeros or by blocks (Zhang 2024 §4.4.5)."""

import numpy as np

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.pattern import Pattern


def entry_bytes(pattern: Pattern, architecture: Architecture) -> tuple[int, int]:
    """Return the bytes of a nonzero, and the further bytes of an entry.

    A nonzero of its own has a value and a coordinate. A block has a coordinate and a pointer to its
    nonzeros, each of which has a value and its place in the block. A coordinate within a block
    numbers all 256 places of a block of side 16; a larger block needs one for the row and one for
    the column. Blocks that are not the unit of loads are not entries: see ``index_bytes``.
    """
    if pattern.blocks:
        return entry_bytes(pattern.blocks, architecture)[0], 0
    if pattern.side == 1:
        return architecture.value_bytes, architecture.coordinate_bytes
    coordinates = 1 if pattern.side**2 <= 256**architecture.block_coordinate_bytes else 2
    return (
        architecture.value_bytes + coordinates * architecture.block_coordinate_bytes,
        architecture.coordinate_bytes + architecture.pointer_bytes,
    )


def matrix_bytes(pattern: Pattern, architecture: Architecture) -> int:
    """Return the bytes that one pass over the matrix in one order reads, with its index array."""
    nonzero, entry = entry_bytes(pattern, architecture)
    index = int(index_bytes(pattern, architecture, np.array([0, pattern.indices])).sum())
    return pattern.nonzeros * nonzero + pattern.entries * entry + index


def index_bytes(pattern: Pattern, architecture: Architecture, bounds: np.ndarray) -> np.ndarray:
    """Return the bytes of the index array of the columns from each bound to the next.

    If memory stores the nonzeros in blocks, these bytes contain the blocks' coordinates and
    pointers, which are read with the first column of a block.
    """
    blocks = pattern.blocks
    if blocks is None:
        return architecture.pointer_bytes * np.diff(bounds)
    _, entry = entry_bytes(blocks, architecture)
    before = entry * blocks.col_first + architecture.pointer_bytes * np.arange(blocks.indices + 1)
    return np.diff(before[-(-bounds // blocks.side)])


def dual_bytes(pattern: Pattern, architecture: Architecture) -> int:
    """Return the bytes of the matrix stored in CSC and in CSR.

    Without blocks, all is stored twice. With blocks, coordinates, pointers and index arrays are
    stored twice, and the blocks' nonzeros once.
    """
    both = matrix_bytes(pattern, architecture) + matrix_bytes(pattern.transposed, architecture)
    if pattern.stored_side == 1:
        return both
    nonzero, _ = entry_bytes(pattern, architecture)
    return both - pattern.nonzeros * nonzero
