"""Vias that suit the grid of tracks, and the layers of wires that such vias join."""

from math import ceil

from vitruvian.flows.asic.layout.lef import LefError, RoutingLayer, Technology, ViaShape

#: The lowest layer of wires is the second metal; there are at most five.
LOWEST, HIGHEST = 1, 5


def across(via: ViaShape, metal: RoutingLayer) -> int:
    """Return the width of a via on a metal, across the direction of its wires."""
    low, high = (1, 3) if metal.horizontal else (0, 2)
    return max(rect[high] - rect[low] for rect in via.shapes[metal.name])


def fitting(technology: Technology, cut: int, metals: tuple[int, ...]) -> list[ViaShape]:
    """Return the vias of a cut layer that keep their spacing to those on the next track.

    Vias as narrow as the wires of all these metals come first, then small ones.
    """
    known = [technology.metals[n] for n in metals]

    def fits(via: ViaShape) -> bool:
        return all(across(via, m) <= max(m.width, m.pitch - m.spacing) for m in known)

    def order(via: ViaShape) -> tuple[bool, int]:
        rects = [r for name in via.shapes for r in via.shapes[name]]
        size = sum((r[2] - r[0]) * (r[3] - r[1]) for r in rects)
        return any(across(via, m) > m.width for m in known), size

    names = [technology.metals[n].name for n in (cut, cut + 1)]
    found = [
        via
        for via in technology.vias.values()
        if len(via.shapes.get(technology.cuts[cut].name, ())) == 1
        and all(name in via.shapes for name in names)
    ]
    return sorted(filter(fits, found), key=order)


def usual_via(technology: Technology, cut: int) -> ViaShape:
    """Return the smallest via of a cut layer whose shapes fit the tracks of both metals.

    Raises
    ------
    LefError
        If there is no such via.
    """
    found = fitting(technology, cut, (cut, cut + 1))
    if not found:
        raise LefError(f"LEF must have a via of {technology.cuts[cut].name} as narrow as its wires")
    return found[0]


def wire_layers(technology: Technology) -> list[RoutingLayer]:
    """Return the layers of wires: those above metal 1 that take turns and that vias join.

    Raises
    ------
    LefError
        If metal 2 is not vertical, if metal 3 is not horizontal, or if no via joins them.
    """
    metals = technology.metals
    found = [m for m in metals[LOWEST : LOWEST + 1] if not m.horizontal]
    for number in range(LOWEST + 1, min(HIGHEST + 1, len(metals))):
        if not found or metals[number].horizontal == metals[number - 1].horizontal:
            break
        if len(found) > 1 and not fitting(technology, number - 1, (number - 1, number)):
            break
        found.append(metals[number])
    if len(found) < 2:
        raise LefError("LEF must have metal 2 vertical, metal 3 horizontal, and so on")
    usual_via(technology, LOWEST)
    return found


def least_nodes(metal: RoutingLayer, pitch: int) -> int:
    """Return on how many nodes of the grid a wire must lie to have its least area.

    Parameters
    ----------
    pitch : int
        Distance of nodes along the wire. Nodes of different nets are two such steps apart, so that
        a wire may reach beyond its last node until half of the spacing is left.
    """
    if not metal.least_area:
        return 1
    length = ceil(metal.least_area / metal.width)
    return max(1, ceil((length + metal.spacing) / pitch) - 1)


def beyond(metal: RoutingLayer, length: int, grid: int) -> int:
    """Return how far the ends of a wire of some length must move out for its least area.

    The usual half width at both ends counts; the result is a multiple of ``grid``.
    """
    lacks = ceil(metal.least_area / metal.width) - length - metal.width
    return max(0, ceil(lacks / 2 / grid) * grid)
