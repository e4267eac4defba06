"""Checks of the shapes of matrices that are multiplied; all products of golden share them."""

import numpy as np


def check_factors(a: np.ndarray, b: np.ndarray, *, least: int = 0) -> tuple[int, int]:
    """Return (M, N), the shape of A·B.

    Parameters
    ----------
    a, b : (..., M, K) and (..., K, N) ndarray
    least : int
        The smallest K that is allowed, 0 or 1.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2] or a.shape[-1] < least:
        depth = f"the same K of at least {least}" if least else "the same K"
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N) with {depth}, not {a.shape} and {b.shape}"
        )
    return a.shape[-2], b.shape[-1]


def check_addend(c: np.ndarray, shape: tuple[int, int]) -> None:
    """Raise ValueError if C is not (..., M, N) for the given (M, N)."""
    if c.shape[-2:] != shape:
        raise ValueError(f"c must be (..., {shape[0]}, {shape[1]}), not {c.shape}")
