"""Terminals of nets on the grid: where a via reaches a pin without a change of its metal."""

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.floorplan import LOWEST, Floorplan
from vitruvian.flows.asic.layout.lef import CellMacro, Rect, Technology
from vitruvian.flows.asic.layout.route import Router


def covered(rect: Rect, by: tuple[Rect, ...]) -> bool:
    """Return whether rectangles that do not overlap cover ``rect`` together."""
    x0, y0, x1, y1 = rect
    area = sum(
        max(0, min(x1, r[2]) - max(x0, r[0])) * max(0, min(y1, r[3]) - max(y0, r[1])) for r in by
    )
    return area == (x1 - x0) * (y1 - y0)


def pads(technology: Technology, cut: int, layer: int) -> list[Rect]:
    """Return the shapes that the vias of a cut layer may have on a metal."""
    cut_name, metal = technology.cuts[cut].name, technology.metals[layer].name
    return [
        rect
        for via in technology.vias.values()
        if cut_name in via.shapes
        for rect in via.shapes.get(metal, ())
    ]


def pin_access(macro: CellMacro, pin: str, technology: Technology) -> list[tuple[int, int]]:
    """Return the crossings (column, line) in an upright cell where a via lies inside of a pin.

    The via brings no new shape on the pin's metal, so that it cannot break a rule there.
    """
    metal = technology.metals[LOWEST - 1].name
    pitch, height = technology.site[0], technology.metals[LOWEST + 1].pitch
    shapes = macro.pins[pin].shapes.get(metal, ())
    found = []
    for column in range(macro.width // pitch):
        for line in range(macro.height // height):
            x, y = column * pitch + pitch // 2, line * height + height // 2
            if any(
                covered((x + p[0], y + p[1], x + p[2], y + p[3]), shapes)
                for p in pads(technology, LOWEST - 1, LOWEST - 1)
            ):
                found.append((column, line))
    return found


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
    known: dict[tuple[str, str], list[tuple[int, int]]] = {}
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
            nodes.append(
                np.array(
                    [
                        router.node(
                            0,
                            left + int(sites[instance]) + column,
                            bottom + row * lines + (lines - 1 - line if row % 2 else line),
                        )
                        for column, line in places
                    ]
                )
            )
        for port in net.ports:
            column, line, layer = (int(v) for v in ports[port])
            nodes.append(np.array([router.node(layer, column, line)]))
        result.append(nodes)
    return result
