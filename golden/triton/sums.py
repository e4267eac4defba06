"""The layout that Triton's compiler gives to a tile which a sum adds."""

import math

from vitruvian.common.validate import check_int
from vitruvian.golden.reductions.order import WARP
from vitruvian.golden.reductions.tiles import TileOrder

_LOAD = 128  # bits that a thread loads at once


def sum_order(
    shape: tuple[int, ...], axis: int, *, loaded: int = 32, warps: int = 4, pairs: bool = True
) -> TileOrder:
    """Return the order of ``tl.sum`` along an axis of a tile that was loaded row by row.

    This is the layout of a load of neighbours from an aligned address, which the compiler keeps
    for what is computed of it, the sum included, unless a dot or another load asks for another.

    Parameters
    ----------
    shape : tuple of int
        Powers of two.
    axis : int
    loaded : int
        Bits of an element in memory.
    warps : int
        ``num_warps`` of the launch.
    pairs : bool
        As that of ``TileOrder``: True for Triton 3.8, and False before.

    Examples
    --------
    >>> from vitruvian.golden.triton import sum_order
    >>> sum_order((16, 32), 1)
    TileOrder(each=4, lanes=8, warps=1, pairs=True)
    """
    check_int("warps", warps, 1)
    threads = WARP * warps
    each = [1] * len(shape)
    each[-1] = max(1, min(_LOAD // loaded, shape[-1], math.prod(shape) // threads))
    lanes, held = [1] * len(shape), [1] * len(shape)
    free_lanes, free_warps = WARP, warps
    for i in reversed(range(len(shape))):  # neighbours along the last axis first
        there = max(1, shape[i] // each[i])
        lanes[i] = min(there, free_lanes)
        held[i] = min(max(there // lanes[i], 1), free_warps)
        free_lanes, free_warps = free_lanes // lanes[i], free_warps // held[i]
    return TileOrder(each=each[axis], lanes=lanes[axis], warps=held[axis], pairs=pairs)
