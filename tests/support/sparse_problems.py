"""Small random problems for every sparse application."""

import numpy as np

from vitruvian.golden.sparse import Sparse
from vitruvian.golden.sparse.applications import APPLICATIONS, Problem

PROBLEMS = tuple(APPLICATIONS)


def matrix(seed: int, size: int = 40, *, symmetric: bool = False) -> Sparse:
    """Return a random graph with positive weights and no loops; vertex 5 has no edge."""
    rng = np.random.default_rng(seed)
    present = rng.random((size, size)) < 0.08
    present[3, :] |= rng.random(size) < 0.8
    present[:, 9] |= rng.random(size) < 0.8
    present[5, :] = present[:, 5] = False
    np.fill_diagonal(present, False)
    weights = rng.random((size, size)) + 0.1
    if symmetric:
        present, weights = present | present.T, weights + weights.T
    rows, columns = np.nonzero(present)
    return Sparse.from_entries(rows, columns, weights[rows, columns], (size, size))


def system(seed: int, size: int = 40, *, symmetric: bool = False) -> tuple[Sparse, np.ndarray]:
    """Return a system with a dominant diagonal, and its right side."""
    a = matrix(seed, size, symmetric=symmetric)
    own = np.arange(size)
    diagonal = np.bincount(a.rows, a.row_values, minlength=size) + 1
    whole = Sparse.from_entries(
        np.concatenate([a.rows, own]),
        np.concatenate([a.column_index, own]),
        np.concatenate([-a.row_values, diagonal]),
        a.shape,
    )
    return whole, np.random.default_rng(seed).standard_normal(size)


def problem(name: str, seed: int) -> Problem:
    """Return a problem of an application."""
    rng = np.random.default_rng(seed)
    state = APPLICATIONS[name]
    if name in ("cg", "bicgstab", "gmres"):
        return state(*system(seed, symmetric=name == "cg"))
    if name == "kcore":
        return state(matrix(seed, symmetric=True))
    if name == "labelprop":
        labels = np.where(rng.random(40) < 0.2, rng.integers(0, 3, 40), -1)
        return state(matrix(seed, symmetric=True), labels, tolerance=1e-4)
    if name == "gcn":
        weights = [rng.standard_normal(shape) for shape in ((5, 4), (4, 3))]
        return state(matrix(seed, symmetric=True), rng.standard_normal((40, 5)), weights)
    return state(matrix(seed))
