"""The sizes of a search for nearest neighbours, and the interface of k-selection methods."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vitruvian.common.validate import ceil_div, check_int
from vitruvian.sim.davinci import View

#: Queries of a group, which a core searches for at a time: the FP16 lanes of a block of 32 bytes.
GROUP = 16

#: Distances that the Cube computes.
METRICS = ("l2", "cosine", "cosine-product")

#: Training points whose numbers fit one word of 16 bits.
_WORD = 1 << 16


@dataclass(frozen=True)
class KnnShape:
    """The sizes of a search for the k nearest training points of each query.

    Attributes
    ----------
    queries, train : int
        Numbers of points.
    features : int
        Elements of a point.
    k : int
        Number of neighbours, at most ``train``.
    metric : {"l2", "cosine", "cosine-product"}
        The thesis has the last one, see ``selbknn.operands.prepared``.
    """

    queries: int
    train: int
    features: int
    k: int
    metric: str = "cosine-product"

    def __post_init__(self) -> None:
        for name in ("queries", "train", "features", "k"):
            check_int(name, getattr(self, name), 1, (1 << 31) - 1)
        if self.k > self.train:
            raise ValueError(f"k must be at most the {self.train} training points, not {self.k}")
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, not {self.metric!r}")

    @property
    def groups(self) -> int:
        """Groups of ``GROUP`` queries; the last one may be partly filled."""
        return ceil_div(self.queries, GROUP)

    @property
    def words(self) -> int:
        """Words of 16 bits of the number of a training point."""
        return 1 if self.train <= _WORD else 2


class Selector(Protocol):
    """The k-selection of a group of queries: it emits instructions that keep the k smallest.

    The driver (``build``) computes a tile of distances into the Unified Buffer and then calls
    ``select``. It orders the vector unit against all other units: when ``select`` is called, the
    vector unit may read the distances, and what ``select`` emits last must be done by the vector
    unit or be known to it. The selector may overwrite the distances.

    Attributes
    ----------
    columns : bool
        The layout of the distances of a tile. False: (n / 16, 16, 16), fractal by fractal, in each
        one a row of 16 training points for each query. True: (n, 16), a row of 16 queries for each
        training point.
    best : View
        (k, 16) fp16 in the Unified Buffer: the k smallest distances of each query, in any order.
    index : View
        (words, k, 16) uint16: the low and, if ``words`` is 2, the high word of the number of each
        of these training points.
    """

    columns: bool

    @property
    def best(self) -> View:
        """The k smallest distances of each query."""
        ...

    @property
    def index(self) -> View:
        """The words of the numbers of their training points."""
        ...

    def begin(self, queries: int) -> None:
        """Emit the start of a group with so many queries, 1 … 16: all distances are +∞."""
        ...

    def select(self, distances: View, first: int, values: np.ndarray) -> None:
        """Emit the selection among the training points from number ``first`` on.

        Parameters
        ----------
        distances : View
            The tile in the Unified Buffer, in the layout of ``columns``; +∞ for points that do not
            exist.
        first : int
            Number of the first training point of the tile.
        values : (16, n) ndarray of float16
            The same distances, on which the control flow of a program may depend.
        """
        ...
