"""The order of ``tl.sum`` in a layout of Triton's compiler."""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import check_int
from vitruvian.golden.reductions.order import halved


@dataclass(frozen=True, kw_only=True)
class TileOrder:
    """A blocked layout along the axis of a sum.

    Parameters
    ----------
    each, lanes, warps : int
        ``sizePerThread``, ``threadsPerWarp`` and ``warpsPerCTA`` along the axis; powers of two.
    """

    each: int
    lanes: int
    warps: int = 1

    def __post_init__(self) -> None:
        for name in ("each", "lanes", "warps"):
            value = getattr(self, name)
            check_int(name, value, 1)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")


def add_tile(x: np.ndarray, order: TileOrder) -> np.ndarray:
    """Return the sums along the last axis as ``tl.sum`` of float32 adds them on an NVIDIA GPU.

    A thread adds its registers in their order; then the lanes of a warp halve, and then the warps.

    Parameters
    ----------
    x : (..., N) ndarray of float32 or float64
        N is a multiple of each · lanes · warps.
    order : TileOrder
        The layout, from the compiler's TTGIR.

    Returns
    -------
    (...) ndarray of the type of x

    Raises
    ------
    TypeError, ValueError
        If x has another type, or if N does not fit the layout.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.reductions import TileOrder, add_tile
    >>> x = np.array([2**24, 1, -(2**24), 1], np.float32)
    >>> [float(add_tile(x, TileOrder(each=n, lanes=4 // n))) for n in (1, 2)]
    [2.0, 1.0]
    """
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"x must be of float32 or float64, not {x.dtype}")
    size = order.each * order.lanes * order.warps
    if not x.shape[-1] or x.shape[-1] % size:
        raise ValueError(f"N must be a multiple of {size} for this layout, not {x.shape[-1]}")
    held = x.reshape(-1, x.shape[-1] // size, order.warps, order.lanes, order.each)
    held = held.transpose(0, 2, 3, 1, 4).reshape(len(held), order.warps, order.lanes, -1)
    with np.errstate(all="ignore"):
        total = held[..., 0].copy()
        for i in range(1, held.shape[-1]):
            total += held[..., i]
        return halved(halved(total, 2), 1).reshape(x.shape[:-1])
