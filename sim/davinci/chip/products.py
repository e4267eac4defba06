"""The cycles of a product on a core in hardware: the schedule of ``hdl.core.MatrixFeeder``."""

from dataclasses import dataclass
from functools import lru_cache

from vitruvian.common.validate import ceil_div


@dataclass(frozen=True, kw_only=True)
class TileTiming:
    """The matrix unit of a core.

    Attributes
    ----------
    m, n, k : int
        Sizes of a tile.
    slots : int
        Tiles of C whose sums are open at a time.
    again : int
        Cycles from a beat to the next one that accumulates in the same slot.
    latency : int
        Cycles from a beat to its result.
    occupied : int
        Cycles from a beat whose result is taken at once to the next beat in its slot.
    results : int
        Cycles from one result to the next.
    """

    m: int
    n: int
    k: int
    slots: int
    again: int
    latency: int
    occupied: int
    results: int


@lru_cache(4096)
def product_cycles(tile: TileTiming, m: int, k: int, n: int) -> int:
    """Return the cycles from the first beat of a product to the last result.

    Parameters
    ----------
    m, k, n : int
        Sizes in elements.

    Notes
    -----
    Groups of as many tiles of C as there are slots follow each other; all tiles of a group take a
    step of K before the next step.
    """
    count = ceil_div(m, tile.m) * ceil_div(n, tile.n)
    steps = ceil_div(k, tile.k)
    free = [0] * tile.slots  # when a slot can take the first beat of a tile
    now = 0  # when the next beat can be taken
    result = -tile.results
    while count:
        group = min(count, tile.slots)
        count -= group
        first = []
        for slot in range(group):
            first.append(max(now, free[slot]))
            now = first[-1] + 1
        last = first
        if steps > 1:
            last = []
            for at in first:
                last.append(max(now, at + tile.again))
                now = last[-1] + 1
            period = max(group, tile.again)
            last = [at + (steps - 2) * period for at in last]
            now = last[-1] + 1
        for slot, at in enumerate(last):
            result = max(at + tile.latency, result + tile.results)
            free[slot] = result - tile.latency + tile.occupied
    return result
