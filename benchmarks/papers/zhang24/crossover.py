"""Dense and sparse products on one thread of a CPU, by the sparsity of their operands.

References
----------
Zhang 2024, §3.6.5, Fig. 3.14, which compares ``spGemm`` of cuSparse with ``gemmEx`` of cuBlas.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from vitruvian.golden.simd2 import mmo
from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.products import mxm

#: Shares of zeros.
SPARSITIES = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)

#: Pairs of a sparse and a dense product: name, ⊕ and ⊗, the sparse and the dense library.
PAIRS = (
    ("SciPy, BLAS float64", "mma", "scipy", "float64"),
    ("golden.sparse, BLAS float64", "mma", "golden", "float64"),
    ("golden.sparse, golden.simd2", "minplus", "golden", "mmo"),
)


def operands(size: int, sparsity: float) -> list[Any]:
    """Return two random matrices of whole numbers 1 … 8."""
    rng = np.random.default_rng([size, round(1e6 * sparsity)])
    found = []
    for _ in range(2):
        there = rng.random((size, size)) >= sparsity
        values = rng.integers(1, 9, there.shape).astype(np.float64)
        found.append(sparse.csr_array(np.where(there, values, 0.0)))
    return found


def least_seconds(function: Callable[[], object], repeats: int = 5, enough: float = 4.0) -> float:
    """Return the least processor time of some calls, after one that compiles and warms up.

    Parameters
    ----------
    repeats : int
        The most calls.
    enough : float
        No further call starts after so many seconds.
    """
    function()
    best, spent = float("inf"), 0.0
    for _ in range(repeats):
        begin = time.process_time()
        function()
        best = min(best, time.process_time() - begin)
        spent += best
        if spent > enough:
            break
    return best


def dense_seconds(library: str, size: int) -> float:
    """Return the seconds of a dense product, whose time does not depend on the zeros."""
    rng = np.random.default_rng(size)
    a, b = (rng.integers(1, 9, (size, size)) for _ in "ab")
    if library == "mmo":
        x, y = a.astype(np.float32), b.astype(np.float32)
        return least_seconds(lambda: mmo("minplus", x, y))
    x, y = a.astype(library), b.astype(library)
    return least_seconds(lambda: x @ y)


def sparse_seconds(library: str, op: str, size: int, sparsity: float) -> float:
    """Return the seconds of a product of sparse matrices."""
    a, b = operands(size, sparsity)
    if library == "scipy":
        return least_seconds(lambda: a @ b)
    x, y = (_golden(matrix) for matrix in (a, b))
    return least_seconds(lambda: mxm(x, y, op))


def _golden(a: Any) -> Sparse:
    return Sparse(a.shape, a.indptr.astype(np.int64), a.indices, a.data)


def crossover(sparsities: Sequence[float], ratios: Sequence[float]) -> float | None:
    """Return the sparsity above which the sparse product is faster, None if it is nowhere.

    Parameters
    ----------
    sparsities : sequence of float, ascending
    ratios : sequence of float
        Time of the dense product over that of the sparse one.

    Returns
    -------
    float or None
        Between two measurements, the logarithms of density and ratio are joined by a line. The
        first sparsity if the sparse product is always faster.
    """
    if ratios[0] >= 1:
        return sparsities[0]
    density, ratio = np.log(1 - np.array(sparsities)), np.log(ratios)
    for i in range(1, len(ratios)):
        if ratio[i] >= 0:
            share = -ratio[i - 1] / (ratio[i] - ratio[i - 1])
            return 1 - float(np.exp(density[i - 1] + share * (density[i] - density[i - 1])))
    return None
