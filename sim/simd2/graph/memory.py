"""A check that the matrices of a problem fit into memory, before they are allocated."""

from math import isqrt

from vitruvian.common.memory import free_bytes

#: Upper bound of the memory for each pair of vertices in a path problem, in bytes: weights, edges,
#: operands, values and temporary arrays of an iteration. Measured: 34 to 57, depending on the
#: problem, the algorithm and the format.
PAIR_BYTES = 60

#: Upper bound for each pair of a query and a point: distances and their order. Measured: 12.
POINT_BYTES = 16

_SMALL = 1 << 26  # less memory than this many bytes is not checked


def check_memory(
    rows: int, columns: int, *, pair_bytes: int, what: str, name: str, hint: str = ""
) -> None:
    """Check that the matrices of a problem fit into memory.

    Parameters
    ----------
    rows, columns : int
        Size of the matrices.
    pair_bytes : int
        Memory for each element in bytes, in all matrices together.
    what, name : str
        Name of the input and of its rows, for the message: "graph" and "vertices".
    hint : str
        End of the message: what to do instead.

    Raises
    ------
    ValueError
        If the matrices need more than the free memory.
    """
    needed = rows * columns * pair_bytes
    free = free_bytes() if needed > _SMALL else None
    if free is not None and needed > free:
        limit = isqrt(free // pair_bytes) if rows == columns else free // pair_bytes // columns
        raise ValueError(
            f"{what} must have at most {limit:,} {name} in the {free / 2**30:.1f} GiB that are "
            f"free, not {rows:,} ({pair_bytes} bytes a pair){hint}"
        )
