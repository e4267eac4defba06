"""The selection of the nearest neighbours from distances."""

import numpy as np


def nearest(distances, count: int) -> np.ndarray:
    """Return the indices of the ``count`` smallest distances in each row, smallest first.

    A NaN counts as larger than every number.

    Raises
    ------
    ValueError
        If ``count`` is below 1 or above the number of columns.
    """
    if not 1 <= count <= np.shape(distances)[1]:
        raise ValueError(f"count must be from 1 to {np.shape(distances)[1]}, not {count}")
    return np.argsort(distances, axis=1, kind="stable")[:, :count]
