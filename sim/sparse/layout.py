"""The bytes of a matrix in memory, stored by nonzeros or by blocks (Zhang 2024 §4.4.5)."""

from vitruvian.sim.sparse.architecture import Architecture
from vitruvian.sim.sparse.pattern import Pattern


def entry_bytes(pattern: Pattern, architecture: Architecture) -> tuple[int, int]:
    """Return the bytes of a nonzero, and the further bytes of an entry.

    A nonzero of its own has a value and a coordinate. A block has a coordinate and a pointer to its
    nonzeros, each of which has a value and its place in the block.
    """
    if pattern.side == 1:
        return architecture.value_bytes, architecture.coordinate_bytes
    return (
        architecture.value_bytes + architecture.block_coordinate_bytes,
        architecture.coordinate_bytes + architecture.pointer_bytes,
    )


def matrix_bytes(pattern: Pattern, architecture: Architecture) -> int:
    """Return the bytes that one pass over the matrix in one order reads, with its index array."""
    nonzero, entry = entry_bytes(pattern, architecture)
    index = architecture.pointer_bytes * pattern.indices
    return pattern.nonzeros * nonzero + pattern.entries * entry + index


def dual_bytes(pattern: Pattern, architecture: Architecture) -> int:
    """Return the bytes of the matrix stored in CSC and in CSR.

    Without blocks, all is stored twice. With blocks, coordinates, pointers and index arrays are
    stored twice, and the blocks' nonzeros once.
    """
    both = matrix_bytes(pattern, architecture) + matrix_bytes(pattern.transposed, architecture)
    if pattern.side == 1:
        return both
    nonzero, _ = entry_bytes(pattern, architecture)
    return both - pattern.nonzeros * nonzero
