"""Terminals of nets on the grid: where vias reach the pins of cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import hypot
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.floorplan import Floorplan, offsets
from vitruvian.flows.asic.layout.lef import CellMacro, Rect, RoutingLayer, Technology, ViaShape
from vitruvian.flows.asic.layout.route import Router
from vitruvian.flows.asic.layout.vias import LOWEST, fitting

#: Column and line of a crossing of tracks, counted from the corner of a cell.
Place = tuple[int, int]


def covered(rect: Rect, by: tuple[Rect, ...]) -> bool:
    """Return whether rectangles, which may overlap, cover ``rect`` together."""
    left, bottom, right, top = rect
    near = [r for r in by if r[0] < right and r[2] > left and r[1] < top and r[3] > bottom]
    # Between neighbouring edges, every place is like the others there.
    xs = sorted({left, right} | {x for r in near for x in (r[0], r[2]) if left < x < right})
    ys = sorted({bottom, top} | {y for r in near for y in (r[1], r[3]) if bottom < y < top})
    return all(
        any(r[0] <= x0 and x1 <= r[2] and r[1] <= y0 and y1 <= r[3] for r in near)
        for x0, x1 in pairwise(xs)
        for y0, y1 in pairwise(ys)
    )


@dataclass(frozen=True)
class PinVia:
    """How a wire reaches a pin: the via, and how far it lies above the crossing of the tracks."""

    via: ViaShape
    shift: int = 0


def pin_access(macro: CellMacro, pin: str, technology: Technology) -> dict[Place, PinVia]:
    """Return the crossings (column, line) in an upright cell where a via joins a pin.

    A via that lies inside of the pin comes first, because it changes nothing on the pin's metal. If
    there is none at a crossing, it may lie beside it on the column, so near that the wire there
    keeps its spacing. If none of these is inside, it may stick out of the pin where it keeps its
    spacing to all other shapes of the cell.
    """
    vias = fitting(technology, LOWEST - 1, (LOWEST,))
    if not vias:
        return {}
    metal, above = (technology.metals[n] for n in (LOWEST - 1, LOWEST))
    own = macro.pins[pin].shapes.get(metal.name, ())
    others = list(macro.obstructions.get(metal.name, ()))
    for name, each in macro.pins.items():
        others += each.shapes.get(metal.name, ()) if name != pin else ()

    def inside(rect: Rect) -> bool:
        return covered(rect, own)

    def apart(rect: Rect) -> bool:
        edge = (metal.spacing + 1) // 2
        return (
            edge <= rect[0]
            and rect[2] <= macro.width - edge
            and any(_gap(rect, r) == 0 for r in own)
            and all(_gap(rect, r) >= metal.spacing for r in others)
            and _sound((*own, rect), metal)
        )

    reach = max(r[3] for via in vias[:1] for r in via.shapes[above.name])
    most = technology.metals[LOWEST + 1].pitch - (above.spacing + 1) // 2 - reach
    beside = range(technology.grid, most + 1, technology.grid)
    shifts = [sign * shift for shift in beside for sign in (1, -1)]
    for allowed, near in ((inside, [0]), (inside, [0, *shifts]), (apart, [0, *shifts])):
        found = {}
        for (column, line), (x, y) in _crossings(macro, technology):
            for shift, via in product(near, vias):
                rects = via.shapes[metal.name]
                if all(allowed(_moved(rect, x, y + shift)) for rect in rects):
                    found[column, line] = PinVia(via, shift)
                    break
        if found:
            return found
    return {}


def _crossings(macro: CellMacro, technology: Technology) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Yield the crossings of tracks in an upright cell: column and line, and the position."""
    right, up = offsets(technology)
    pitch, height = technology.site[0], technology.metals[LOWEST + 1].pitch
    for column, x in enumerate(range(right, macro.width, pitch)):
        for line, y in enumerate(range(up, macro.height, height)):
            yield (column, line), (x, y)


def _moved(rect: Rect, x: int, y: int) -> Rect:
    return (rect[0] + x, rect[1] + y, rect[2] + x, rect[3] + y)


def _gap(a: Rect, b: Rect) -> float:
    """Return the distance of two rectangles; 0 if they touch."""
    return hypot(max(a[0] - b[2], b[0] - a[2], 0), max(a[1] - b[3], b[1] - a[3], 0))


def _sound(rects: tuple[Rect, ...], metal: RoutingLayer) -> bool:
    """Return whether a pin of some rectangles keeps the width of its metal and has no slits."""
    db: Any = need("klayout.db", "layout")
    pin = db.Region([db.Box(*rect) for rect in rects]).merged()
    return pin.width_check(metal.width).is_empty() and pin.notch_check(metal.spacing).is_empty()


def upright(place: Place, lines: int, technology: Technology) -> Place:
    """Return a crossing of a cell as one of the same cell upside down, and the other way round."""
    _, up = offsets(technology)
    pitch = technology.metals[LOWEST + 1].pitch
    return place[0], lines - 2 * up // pitch - place[1]


def unreachable(technology: Technology) -> list[str]:
    """Return the cells with a pin that no via on the grid reaches."""
    return [
        name
        for name, macro in technology.macros.items()
        if any(
            pin.use == "signal" and not pin_access(macro, pin.name, technology)
            for pin in macro.pins.values()
        )
    ]


def terminals(
    design: LayoutDesign,
    plan: Floorplan,
    sites: np.ndarray,
    rows: np.ndarray,
    ports: np.ndarray,
) -> list[list[np.ndarray]]:
    """Return the nodes of every pin and port of every net, pins first.

    Raises
    ------
    UserError
        If no via fits on a pin.
    """
    router = Router(plan, [])
    technology = plan.technology
    lines = technology.site[1] // technology.metals[LOWEST + 1].pitch
    left = plan.left // technology.site[0]
    bottom = plan.bottom // technology.metals[LOWEST + 1].pitch
    known: dict[tuple[str, str], dict[Place, PinVia]] = {}
    result = []
    for net in design.nets:
        nodes = []
        for instance, pin in net.pins:
            macro = design.macros[instance]
            if (macro.name, pin) not in known:
                known[macro.name, pin] = pin_access(macro, pin, technology)
            places = known[macro.name, pin]
            if not places:
                raise UserError(f"pin {pin} of {macro.name} must have room for a via on the grid")
            row = int(rows[instance])
            # Every other row is upside down, so that neighbours share a rail.
            turned = [upright(at, lines, technology) if row % 2 else at for at in places]
            at, low = left + int(sites[instance]), bottom + row * lines
            nodes.append(np.array([router.node(0, at + c, low + n) for c, n in turned]))
        for port in net.ports:
            column, line, layer = (int(v) for v in ports[port])
            nodes.append(np.array([router.node(layer, column, line)]))
        result.append(nodes)
    return result
