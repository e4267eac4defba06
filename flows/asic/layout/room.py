"""Room for wires: cells in places with many wires take more of the free sites.

The wires of a net are spread evenly over the box around its pins (RUDY). A cell whose place has
more wires than the tracks there carry with ease becomes wider for placement, so that free sites
come to lie beside it.

References
----------
P. Spindler and F. M. Johannes, "Fast and accurate routing demand estimation for efficient
routability-driven placement", DATE 2007 (RUDY).
"""

import numpy as np

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.floorplan import Floorplan
from vitruvian.flows.asic.layout.wires import Wires, bounds

#: Share of the tracks that the estimated wires may fill before cells need more room.
EASY = 0.45
#: Share of the rows that cells and their room may fill together, and the most room of a cell.
_FULL, _WIDEST = 0.95, 2.5
#: Length of a shortest tree through some pins, as a multiple of the half perimeter (0 to 10 pins).
_TREES = np.array([0, 0, 1, 1, 1.08, 1.15, 1.22, 1.28, 1.34, 1.4, 1.45])
#: Wire at each pin beyond the tree, in µm.
_PIN_UM = 0.5
#: Radius of the average over bins.
_RADIUS = 1.5


def easy(plan: Floorplan) -> float:
    """Return the length of wires that an area carries with ease, per area, in 1/database unit."""
    site, pitch = plan.technology.site[0], plan.technology.metals[2].pitch
    tracks = sum(
        1 / (pitch * lines if metal.horizontal else site * columns)
        for metal, (columns, lines) in zip(plan.layers, plan.step, strict=True)
    )
    return EASY * tracks


def demand(
    net: Wires, places: tuple[np.ndarray, np.ndarray], box: np.ndarray, bins: int, micron: int
) -> np.ndarray:
    """Return the length of wires per area in every bin.

    Parameters
    ----------
    places : two (pins,) ndarrays of float
        Positions of all pins along both axes, from the corner of the box.
    box : (2,) ndarray of float
        Width and height of the box.
    """
    found = np.zeros((bins + 1, bins + 1))
    if not len(net.first) - 1:
        return found[:-1, :-1]
    sizes = np.diff(net.first)
    both = bounds(net, *places)
    length = sum(high - low for low, high in both) * _TREES[np.minimum(sizes, 10)]
    length = length + _PIN_UM * micron * sizes
    first, last = [], []
    for (low, high), step in zip(both, box / bins, strict=True):
        # The wires of a short net may take a bin at either side.
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, step)
        begin = np.clip(np.round((middle - half) / step).astype(np.int64), 0, bins - 1)
        first.append(begin)
        last.append(np.clip(np.round((middle + half) / step).astype(np.int64), begin + 1, bins))
    area = (last[0] - first[0]) * (last[1] - first[1]) * (box / bins).prod()
    for x, y, sign in ((0, 0, 1), (1, 0, -1), (0, 1, -1), (1, 1, 1)):
        corner = ((first, last)[x][0], (first, last)[y][1])
        np.add.at(found, corner, sign * length / area)
    found = found.cumsum(0).cumsum(1)[:-1, :-1]
    return need("scipy.ndimage", "layout").gaussian_filter(found, _RADIUS)


def widths(
    areas: np.ndarray, wide: np.ndarray, need_: np.ndarray, room: float, limit: float
) -> np.ndarray:
    """Return how many times wider each cell becomes, from 1 to ``_WIDEST``.

    Parameters
    ----------
    areas : (cells,) ndarray of float
    wide : (cells,) ndarray of float
        How many times wider the cells are already.
    need_ : (cells,) ndarray of float
        Length of wires per area at each cell.
    room : float
        Area that cells may take together.
    limit : float
        Length of wires per area that needs no room.
    """
    room *= _FULL

    def result(scale: float) -> np.ndarray:
        return np.clip(wide * need_ * scale, 1.0, _WIDEST)

    low, high = 0.0, 1 / limit
    if (result(high) * areas).sum() <= room:
        return result(high)
    # Less room than wished: all cells with many wires get the same share of their wish.
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if (result(middle) * areas).sum() > room else (middle, high)
    return result(low)


def padding(wide: np.ndarray, widths_: np.ndarray, middles: np.ndarray, height: int) -> np.ndarray:
    """Return the free sites of each cell; the rounding of a cell passes on to its right neighbour.

    Parameters
    ----------
    wide : (cells,) ndarray of float
        How many times wider the cells become.
    widths_ : (cells,) ndarray of int
        Widths in sites.
    middles : (cells, 2) ndarray of float
    """
    order = np.lexsort((middles[:, 0], np.round(middles[:, 1] / height)))
    total = np.floor(np.cumsum(((wide - 1) * widths_)[order]) + 1e-9)
    sites = np.zeros(len(wide), np.int64)
    sites[order] = np.diff(total, prepend=0).astype(np.int64)
    return sites
