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
    pairs : bool
        If False, a thread adds its registers in their order, as Triton 3.6 does (measured). If
        True, it adds neighbours, then neighbouring sums, and so on, as the code does that the
        compiler of Triton 3.8 writes.
    """

    each: int
    lanes: int
    warps: int = 1
    pairs: bool = False

    def __post_init__(self) -> None:
        for name in ("each", "lanes", "warps"):
            value = getattr(self, name)
            check_int(name, value, 1)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")


def add_tile(x: np.ndarray, order: TileOrder) -> np.ndarray:
    """Return the sums along the last axis as ``tl.sum`` of float32 adds them on an NVIDIA GPU.

    A thread adds its registers; then the lanes of a warp halve, and then the warps.

    Parameters
    ----------
    x : (..., N) ndarray of float32 or float64
        N is a power of two, as in Triton, and at least each · lanes · warps.
    order : TileOrder
        The layout, from the compiler's TTGIR.

    Returns
    -------
    (...) ndarray of the type of x

    Raises
    ------
    TypeError, ValueError
        If x has another type, or if N is not a power of two that fits the layout.

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
    terms = x.shape[-1]
    if terms < size or terms & (terms - 1):
        raise ValueError(f"N must be a power of two from {size} on for this layout, not {terms}")
    held = x.reshape(-1, x.shape[-1] // size, order.warps, order.lanes, order.each)
    held = held.transpose(0, 2, 3, 1, 4).reshape(len(held), order.warps, order.lanes, -1)
    with np.errstate(all="ignore"):
        while order.pairs and held.shape[-1] > 1:
            held = held[..., 0::2] + held[..., 1::2]
        total = held[..., 0].copy()
        for i in range(1, held.shape[-1]):
            total += held[..., i]
        return halved(halved(total, 2), 1).reshape(x.shape[:-1])
