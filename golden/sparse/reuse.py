"""On-chip storage that the OEI dataflow needs, from the pattern of the matrix alone.

Step s reads column s for the first product and uses row s for the second. Element (r, c) with r ≥ c
is held from step c until step r. An element with r < c is used by both products in step c; it is
held only if the second product loads it eagerly in step r, to use free memory bandwidth.

References
----------
Zhang 2024, Table 4.1 and Figs. 4.9 to 4.11.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import ceil_div, check_int
from vitruvian.golden.sparse.oei_compiled import count_lives
from vitruvian.golden.sparse.storage import Sparse


@dataclass(frozen=True, eq=False)
class Held:
    """Numbers of elements that the buffer holds.

    Attributes
    ----------
    nonzeros : int
        Stored elements of the matrix.
    after_use : (S,) ndarray of int64
        Elements held at the end of each step, after their uses.
    after_load : (S,) ndarray of int64
        Elements held in each step after the loads and before the uses of the step.
    """

    nonzeros: int
    after_use: np.ndarray
    after_load: np.ndarray

    @property
    def maximum(self) -> int:
        """The largest number of elements held between two steps."""
        return int(self.after_use.max(initial=0))

    @property
    def mean(self) -> float:
        """The mean number of elements held between two steps."""
        return float(self.after_use.mean()) if len(self.after_use) else 0.0

    @property
    def peak(self) -> int:
        """The largest number of elements held at any moment."""
        return int(self.after_load.max(initial=0))


def held_elements(matrix: Sparse, *, width: int = 1, eager: bool = False) -> Held:
    """Count the elements that the OEI dataflow holds in each step.

    Parameters
    ----------
    matrix : (N, N) Sparse
        Its values do not matter.
    width : int
        Columns per step.
    eager : bool
        If True, an element above the diagonal is loaded by the second product in the step of its
        row and held until the step of its column.

    Returns
    -------
    Held

    Raises
    ------
    ValueError
        If the matrix is not square.
    """
    check_int("width", width, 1)
    size = matrix.shape[0]
    if size != matrix.shape[1]:
        raise ValueError(f"matrix must be square, not {size} by {matrix.shape[1]}")
    steps = ceil_div(size, width)
    loads, uses = (np.zeros(steps + 1, np.int64) for _ in range(2))
    count_lives(matrix.row_start, matrix.column_index, width, eager, loads, uses)
    # What has been loaded and not yet used at the end of each step.
    after_use = np.cumsum(loads - uses)[:steps]
    return Held(matrix.nonzeros, after_use, after_use + uses[:steps])
