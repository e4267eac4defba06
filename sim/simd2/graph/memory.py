"""Whether a problem's matrices fit into memory, said before they are made."""

from math import isqrt
from pathlib import Path

__all__ = ["PAIR_BYTES", "POINT_BYTES", "check_memory", "free_bytes"]

#: Most bytes that a path problem takes for each pair of vertices: weights, edges, operands, values
#: and what an iteration makes of them. Measured: 34 to 57, by problem, algorithm and format.
PAIR_BYTES = 60

#: The same of nearest neighbours, for each query and point: distances, their order. Measured: 12.
POINT_BYTES = 16

_SMALL = 1 << 26  # bytes that are not worth asking for


def free_bytes() -> int | None:
    """Memory that can be had: what the system says is available, or a container's limit.

    None where neither can be read (they are Linux's).
    """
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                found.append(int(value.split()[0]) * 1024)
    except (OSError, ValueError):
        pass
    try:
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # no container, or one without a limit: "max"
    return min(found, default=None)


def check_memory(rows: int, columns: int, *, pair_bytes: int, what: str, name: str) -> None:
    """Refuse a problem whose matrices do not fit.

    Parameters
    ----------
    rows, columns : int
        Of its matrices.
    pair_bytes : int
        For each element.
    what, name : str
        What is too large, and what it has so many of.

    Raises
    ------
    ValueError
        If more is needed than there is.
    """
    needed = rows * columns * pair_bytes
    free = free_bytes() if needed > _SMALL else None
    if free is not None and needed > free:
        most = isqrt(free // pair_bytes) if rows == columns else free // pair_bytes // columns
        raise ValueError(
            f"{what} must have at most {most:,} {name} in the {free / 2**30:.1f} GiB that are "
            f"free, not {rows:,} ({pair_bytes} bytes a pair)"
        )
