"""Measure the time and memory of the analysis of Zhang 2024, Table 4.1, for a large random matrix.

    python benchmarks/sparse_reuse.py [NONZEROS] [ROWS]

By default, the matrix has 50 million nonzeros in 10 million rows. The CPU time and the peak of the
process' memory include the entries in random order, from which ``Sparse`` is made.
"""

import resource
import sys
import time

import numpy as np

from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.reuse import held_elements


def main() -> None:
    """Print the times and the peak of memory."""
    nonzeros, rows = (*map(int, sys.argv[1:]), 50_000_000, 10_000_000)[:2]
    if len(sys.argv) == 2:
        rows = max(1, nonzeros // 5)
    small = Sparse.from_entries([1], [0], 1, (2, 2))
    held_elements(small)  # Numba compiles, or reads its cache
    draw = np.random.default_rng(0)
    row, column = (draw.integers(0, rows, nonzeros, dtype=np.int32) for _ in range(2))
    start = report("entries", time.process_time())
    matrix = Sparse.from_entries(row, column, 1, (rows, rows), duplicates="first")
    del row, column
    begin = start
    start = report("Sparse.from_entries", start)
    held = held_elements(matrix)
    report("held_elements", start)
    print(
        f"{matrix.nonzeros:,} nonzeros, at most {held.maximum / matrix.nonzeros:.1%} on chip, "
        f"{held.mean / matrix.nonzeros:.1%} on average: "
        f"{time.process_time() - begin:.1f} s of CPU, {peak_gib():.2f} GiB"
    )


def report(what: str, start: float) -> float:
    """Print the CPU time since ``start`` and the peak of memory so far; return the time."""
    now = time.process_time()
    print(f"{what:<20} {now - start:6.2f} s, peak {peak_gib():.2f} GiB", flush=True)
    return now


def peak_gib() -> float:
    """Return the largest amount of memory that the process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


if __name__ == "__main__":
    main()
