"""The cycles of a product on a core in hardware: the schedule of ``hdl.core.MatrixFeeder``."""

from dataclasses import dataclass
from functools import lru_cache

from vitruvian.common.validate import ceil_div


@dataclass(frozen=True, kw_only=True)
class TileTiming:
    """The matrix unit of a core.

    Attributes
    ----------
    m, n : int
        Rows and columns of a tile.
    slots : int
        Tiles of C whose sums are open at a time.
    latency : int
        Cycles from the last cycle of a beat to its result.
    occupied : int
        Cycles from the last cycle of a beat whose result is taken at once to the next beat in its
        slot.
    results : int
        Cycles from one result to the next.
    turned_a, turned_b : int
        Rows of a fractal that a transposed load writes in a cycle, in L0A and L0B.
    """

    m: int
    n: int
    slots: int
    latency: int
    occupied: int
    results: int
    turned_a: int
    turned_b: int


@dataclass(frozen=True, kw_only=True)
class BeatTiming:
    """The beats of a dtype and an operation.

    Attributes
    ----------
    k : int
        Elements of a row of A in a beat.
    cycles : int
        Cycles of a beat.
    again : int
        Cycles from the last cycle of a beat to the first one of the next beat that accumulates in
        the same slot.
    slots : int
        Slots of a sum: 2 if it is complex, else 1.
    """

    k: int
    cycles: int
    again: int
    slots: int


@lru_cache(4096)
def product_cycles(tile: TileTiming, beat: BeatTiming, m: int, k: int, n: int) -> int:
    """Return the cycles from the first beat of a product to the last result.

    Parameters
    ----------
    beat : BeatTiming
        That of the product's dtype and operation.
    m, k, n : int
        Sizes in elements.

    Notes
    -----
    Groups of as many tiles of C as there are slots follow each other; all tiles of a group take a
    step of K before the next step.
    """
    count = ceil_div(m, tile.m) * ceil_div(n, tile.n)
    steps = ceil_div(k, beat.k)
    more = beat.cycles - 1
    slots = tile.slots // beat.slots
    free = [0] * slots  # when a slot can take the first beat of a tile
    now = 0  # when the next beat can begin
    result = -tile.results
    while count:
        group = min(count, slots)
        count -= group
        first = []
        for slot in range(group):
            first.append(max(now, free[slot]) + more)  # its last cycle
            now = first[-1] + 1
        last = first
        if steps > 1:
            last = []
            for at in first:
                last.append(max(now, at + beat.again) + more)
                now = last[-1] + 1
            period = max(group * beat.cycles, beat.again + more)
            last = [at + (steps - 2) * period for at in last]
            now = last[-1] + 1
        for slot, at in enumerate(last):
            result = max(at + tile.latency, result + tile.results)
            free[slot] = result - tile.latency + tile.occupied
    return result
