"""Global placement: the places of all cells before they are legal, and those of the ports.

The cells follow their nets alone at first. Once they have spread over the block, the ports take the
slots at the border that suit them, and later the cells widen where many wires run (see ``room``).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout import room
from vitruvian.flows.asic.layout.analytic import AnalyticPlacer
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.floorplan import Floorplan
from vitruvian.flows.asic.layout.wires import Wires, wires

#: Most steps of the placement in total.
STEPS = 700
#: Shares of the cells that overlap: when the ports join, when they keep their slots, when cells
#: become wider, and at the end.
_JOIN, _KEEP, _WIDEN, _END = 0.6, 0.2, 0.15, 0.08
#: Steps between two assignments of the ports, and times that cells become wider.
_BETWEEN, _TIMES = 30, 3


@dataclass
class GlobalPlacement:
    """Places before they are legal.

    Attributes
    ----------
    middles : (instances, 2) ndarray of float
        In database units; the cells overlap a little.
    ports : (ports, 3) ndarray of int
        Column, line and layer of each port.
    padding : (instances,) ndarray of int
        Free sites that each cell wants for the wires.
    """

    middles: np.ndarray
    ports: np.ndarray
    padding: np.ndarray


def slots(plan: Floorplan, count: int) -> np.ndarray:
    """Return at least ``count`` places (column, line, layer) for ports, at all four sides.

    Ports at the left and the right are on metal 3 (layer 1), the others on metal 2 (layer 0).
    """
    columns, lines = plan.columns, plan.lines
    across = 2 * (columns + lines)
    # Ports keep a free track between them, and stay away from the corners.
    step = max(2, int(across / (1.25 * count + 16)))
    found = [(c, e, 0) for c in range(4, columns - 4, step) for e in (0, lines - 1)]
    found += [(e, n, 1) for n in range(4, lines - 4, step) for e in (0, columns - 1)]
    if len(found) < count:
        step = 1
        found = [(c, e, 0) for c in range(1, columns - 1) for e in (0, lines - 1)]
        found += [(e, n, 1) for n in range(1, lines - 1) for e in (0, columns - 1)]
    return np.array(found, np.int64)


def place(
    design: LayoutDesign,
    plan: Floorplan,
    *,
    steps: int = STEPS,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> GlobalPlacement:
    """Return the places of cells and ports, and the free sites that the cells want."""
    site, height = plan.technology.site
    net = wires(design, site)
    count = len(design.names)
    free = slots(plan, len(design.ports))
    corner = np.array([plan.left + plan.tap * site, plan.bottom], float)
    box = (float((plan.sites - 2 * plan.tap) * site), float(plan.rows * height))
    at = np.stack([[plan.x(c) for c in free[:, 0]], [plan.y(n) for n in free[:, 1]]], 1) - corner
    chosen = np.linspace(0, len(free) - 1, len(design.ports)).astype(np.int64)
    sizes = np.stack([net.widths * float(site), np.full(count, float(height))], 1)
    placer = AnalyticPlacer(net.inner(), at[chosen], box, sizes.reshape(-1, 2))

    def run(overflow: float, most: int) -> None:
        placer.run(overflow, min(most, steps - placer.steps))
        tell(min(placer.steps, steps), steps)

    run(_JOIN, steps // 2)
    while len(design.ports):
        chosen = _assign(net, np.concatenate([placer.middles, placer.ports]), at, count)
        placer.ports = at[chosen]
        placer.use(net)
        if placer.overflow < _KEEP or placer.steps > 0.6 * steps:
            break
        run(_KEEP, _BETWEEN)
    wide = np.ones(count)
    for _ in range(_TIMES if count else 0):
        run(_WIDEN, steps // 10)
        wide = _widen(placer, net, plan, wide)
    run(_END, steps)
    tell(steps, steps)
    middles = placer.middles + corner
    return GlobalPlacement(middles, free[chosen], room.padding(wide, net.widths, middles, height))


def _widen(placer: AnalyticPlacer, net: Wires, plan: Floorplan, wide: np.ndarray) -> np.ndarray:
    """Make the cells wider where many wires run, the fillers narrower, and return by how much."""
    count, box = placer.count, placer.box
    micron = plan.technology.per_micron
    wires_ = room.demand(net, placer.pin_places(placer.at), box, placer.bins, micron)
    spot = np.clip((placer.middles / box * placer.bins).astype(np.int64), 0, placer.bins - 1)
    areas = placer.cells.prod(1)
    whole = float(box.prod())
    wide = room.widths(areas, wide, wires_[spot[:, 0], spot[:, 1]], whole, room.easy(plan))
    sizes = placer.sizes.copy()
    sizes[:count, 0] = placer.cells[:, 0] * wide
    left = max(placer.filled * whole - float(sizes[:count].prod(1).sum()), 0.0)
    if len(sizes) > count:
        sizes[count:, 0] = max(left / (len(sizes) - count) / sizes[count, 1], 1.0)
    placer.resize(sizes)
    return wide


def _assign(net: Wires, where: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """Return the slot of each port, so that the ports are near the other pins of their nets."""
    ports = len(where) - count
    wish = np.full((ports, 2), np.nan)
    for n in range(len(net.first) - 1):
        members = net.cell[net.first[n] : net.first[n + 1]]
        inside, outside = members[members < count], members[members >= count]
        if len(inside) and len(outside):
            wish[outside - count] = where[inside].mean(0)
    lost = np.isnan(wish[:, 0])
    wish[lost] = where[count:][lost]
    cost = np.abs(wish[:, None] - at[None]).sum(2)
    _, chosen = need("scipy.optimize", "layout").linear_sum_assignment(cost)
    return chosen
