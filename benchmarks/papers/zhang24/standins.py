"""Synthetic stand-ins for the nine matrices of Zhang 2024, Table 4.1.

The matrices are in the SuiteSparse Matrix Collection and are not part of this project. A stand-in
has the rows and the nonzeros of the table, and a pattern of the same kind as the original. Nothing
else is taken from the original, and nothing is fitted to a result of the thesis. So the numbering
of the vertices, on which the on-chip share of Table 4.1 depends most, is an assumption:

========= ======================================================= ===============================
kind      pattern                                                 numbering
========= ======================================================= ===============================
power-law random edges between vertices whose expected degrees    random
          follow a power law with exponent 2.5 and the structural
          cutoff, the square root of the sum of all degrees
fem       box of nodes, 27 neighbours, three unknowns for each    row by row
          node of which each meets the same one of the neighbours
circuit   distances between connected numbers with the density    along the hierarchy
          d^(p − 2), so that a part of m elements has
          about m^p connections (Rent's rule), p = 0.6
bundle    3 × 3 blocks of points, 6 × 6 blocks of cameras, and a  points before cameras
          6 × 3 block for each observation; 400 points a camera
mesh      rectangle of cells with four neighbours; scaled down,   row by row
          some diagonal ones for those that the border lacks
road      the same, with random edges removed                     row by row
========= ======================================================= ===============================

The exponents 2.5 and 0.6 and the 400 points are typical values, assumed. Patterns other than that
of the directed graph "wi" are lower triangles, as the nonzeros of the table say.

References
----------
Chung & Lu 2002 (random graphs with expected degrees), Landman & Russo 1971 (Rent's rule).
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from vitruvian.common.validate import check_int, one_of
from vitruvian.sim.sparse.originals import ORIGINALS

_DEGREE_EXPONENT = 2.5
_RENT_EXPONENT = 0.6
_POINTS_PER_CAMERA = 400


def stand_in(name: str, *, scale: int = 1, seed: int = 0) -> sparse.csr_array:
    """Return the synthetic stand-in for a matrix of Table 4.1.

    Parameters
    ----------
    name : str
        A key of ``ORIGINALS``.
    scale : int
        Rows and nonzeros are divided by this number. The mean number of nonzeros of a row stays.

    Returns
    -------
    (rows, rows) csr_array of int8
        Ones in ascending order, without duplicates.

    Raises
    ------
    ValueError
        If the name is unknown, or less than 64 rows remain.
    """
    one_of("name", name, ORIGINALS)
    original = ORIGINALS[name]
    check_int("scale", scale, 1, original.rows // 64)
    rng = np.random.default_rng([seed, *name.encode()])
    rows, nonzeros = original.rows // scale, original.nonzeros // scale
    return _KINDS[original.kind](rows, nonzeros, rng)


def _matrix(keys: np.ndarray, n: int) -> sparse.csr_array:
    """Return the matrix with ones at the places ``keys``: row times n plus column, ascending."""
    rows = keys // n
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    columns = (keys - rows * n).astype(np.int32)
    return _csr(starts, columns, n)


def _csr(starts: np.ndarray, columns: np.ndarray, n: int) -> sparse.csr_array:
    index = np.int32 if len(columns) < 1 << 31 else np.int64
    ones = np.ones(len(columns), np.int8)
    return sparse.csr_array((ones, columns, starts.astype(index)), shape=(n, n))


def _distinct(draw: Callable[[int], np.ndarray], count: int, rng: np.random.Generator):
    """Draw keys until ``count`` different ones are there; return them in ascending order."""
    keys = np.empty(0, np.int64)
    while len(keys) < count:
        missing = count - len(keys)
        # Some of the new keys are there already.
        keys = np.unique(np.concatenate([keys, draw(missing + missing // 8 + 16)]))
    return np.delete(keys, rng.choice(len(keys), len(keys) - count, replace=False))


def _ranks(n: int, edges: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw ranks of vertices whose expected degrees fall with the rank i as (i + i₀)^−a."""
    a = 1 / (_DEGREE_EXPONENT - 1)
    low, high = 1e-6, float(n)
    for _ in range(60):  # i₀ limits the largest expected degree to the structural cutoff
        start = (low * high) ** 0.5
        whole = (n + start) ** (1 - a) - start ** (1 - a)
        largest = 2 * edges * (1 - a) * start**-a / whole
        low, high = (start, high) if largest > (2 * edges) ** 0.5 else (low, start)
    whole = (n + high) ** (1 - a) - high ** (1 - a)
    rank = (high ** (1 - a) + rng.random(count) * whole) ** (1 / (1 - a)) - high
    return np.minimum(rank.astype(np.int64), n - 1)


def _power_law(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    number = rng.permutation(n)

    def draw(count: int) -> np.ndarray:
        one, other = (number[_ranks(n, nonzeros, count, rng)] for _ in range(2))
        keys = np.maximum(one, other) * n + np.minimum(one, other)
        return keys[one != other]

    return _matrix(_distinct(draw, nonzeros, rng), n)


def _directed(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    sources, targets = rng.permutation(n), rng.permutation(n)

    def draw(count: int) -> np.ndarray:
        rows = sources[_ranks(n, nonzeros, count, rng)]
        return rows * n + targets[_ranks(n, nonzeros, count, rng)]

    return _matrix(_distinct(draw, nonzeros, rng), n)


def _circuit(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    p = _RENT_EXPONENT

    def draw(count: int) -> np.ndarray:
        # The density d^(p − 2) from 1 to n has the distribution 1 − d^(p − 1), up to a factor.
        share = rng.random(count) * (1 - float(n) ** (p - 1))
        distance = np.minimum((1 - share) ** (1 / (p - 1)), n - 1).astype(np.int64)
        rows = (distance + rng.random(count) * (n - distance)).astype(np.int64)
        return rows * n + rows - distance

    keys = np.concatenate([_distinct(draw, nonzeros - n, rng), np.arange(n) * (n + 1)])
    return _matrix(np.sort(keys), n)


def _bundle(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    cameras = max(1, n // (3 * _POINTS_PER_CAMERA + 6))
    points = (n - 6 * cameras) // 3
    first = 3 * points  # the first row of the cameras; up to two single rows are the last ones

    def blocks(count: int, size: int, start: int) -> np.ndarray:
        one, other = np.tril_indices(size, -1)
        corner = start + size * np.arange(count)[:, None]
        return ((corner + one) * n + corner + other).ravel()

    fixed = np.concatenate(
        [np.arange(n) * (n + 1), blocks(points, 3, 0), blocks(cameras, 6, first)]
    )
    missing = nonzeros - len(fixed)
    observations = _distinct(
        lambda count: rng.integers(0, cameras * points, count), -(-missing // 18), rng
    )
    corner = (first + 6 * (observations // points)) * n + 3 * (observations % points)
    places = np.arange(6)[:, None] * n + np.arange(3)
    observed = (corner[:, None] + places.ravel()).ravel()
    observed = np.delete(
        observed, rng.choice(len(observed), len(observed) - missing, replace=False)
    )
    return _matrix(np.sort(np.concatenate([fixed, observed])), n)


def _fem(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    nodes = -(-n // 3)
    side = max(2, round(nodes ** (1 / 3)))
    node = np.arange(n) // 3
    x, y = node % side, node // side % side
    steps = [(i, j, k) for k in (-1, 0) for j in (-1, 0, 1) for i in (-1, 0, 1)]
    steps = [step for step in steps if step[::-1] < (0, 0, 0)]
    there = np.empty((n, len(steps) + 1), bool)
    for place, (i, j, k) in enumerate(steps):
        inside = (0 <= x + i) & (x + i < side) & (0 <= y + j) & (y + j < side)
        there[:, place] = inside & (node + i + side * (j + side * k) >= 0)
    there[:, -1] = False
    _thin(there, nonzeros - n, rng)
    there[:, -1] = True
    offsets = [3 * (i + side * (j + side * k)) for i, j, k in steps] + [0]
    return _stencil(there, offsets)


def _mesh(n: int, nonzeros: int, rng: np.random.Generator) -> sparse.csr_array:
    side = max(2, round(n**0.5))
    there = np.ones((n, 3), bool)
    there[:side, 1] = False
    there[::side, 2] = False
    there[:, 0] = there[:, 1] & there[:, 2]
    # A small rectangle has a larger share of cells at its border; some diagonal neighbours take
    # the place of those that the border lacks.
    diagonal = there[:, 0].copy()
    there[:, 0] = False
    missing = max(0, nonzeros - int(np.count_nonzero(there)))
    there[rng.choice(np.flatnonzero(diagonal), missing, replace=False), 0] = True
    _thin(there, nonzeros, rng)
    return _stencil(there, [-side - 1, -side, -1])


def _stencil(there: np.ndarray, offsets: list[int]) -> sparse.csr_array:
    """Return the matrix in which element (r, r + offsets[i]) is a one if there[r, i] is true."""
    n, width = there.shape
    starts = np.concatenate([[0], np.cumsum(there.sum(1))])
    places = np.flatnonzero(there)
    rows = places // width
    columns = rows + np.asarray(offsets)[places - rows * width]
    return _csr(starts, columns.astype(np.int32), n)


def _thin(there: np.ndarray, count: int, rng: np.random.Generator) -> None:
    """Keep ``count`` random ones of the true elements."""
    flat = there.reshape(-1)
    total = int(np.count_nonzero(flat))
    if count > total:
        raise ValueError(f"nonzeros must be at most {total} for this kind of matrix, not {count}")
    # A threshold removes nearly all that must go; a second draw removes the rest exactly.
    share = min(1.0, count / total + 8 / total**0.5)
    flat &= rng.random(len(flat), np.float32) < share
    left = np.flatnonzero(flat)
    flat[rng.choice(left, len(left) - count, replace=False)] = False


_KINDS = {
    "power-law": _power_law,
    "directed": _directed,
    "circuit": _circuit,
    "bundle": _bundle,
    "fem": _fem,
    "mesh": _mesh,
    "road": _mesh,
}
