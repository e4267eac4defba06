"""The shapes of a layout: wires and vias of the nets, rails, ports and filling cells."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from vitruvian.flows.asic.layout.access import PinVia, Place, pin_access, upright
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.floorplan import Floorplan, offsets
from vitruvian.flows.asic.layout.lef import CellMacro, Rect, Technology, ViaShape
from vitruvian.flows.asic.layout.route import RoutedNet, Router, Routing
from vitruvian.flows.asic.layout.vias import LOWEST, beyond, usual_via

#: Width of the two straps that join the rails, and their distance from the rows, in microns.
_STRAP_UM, _STRAP_AWAY_UM = 0.3, 0.3


@dataclass(frozen=True)
class RoutedWire:
    """The middle of a wire of a net, from one point to another, on a metal (0 is the lowest)."""

    metal: int
    start: tuple[int, int]
    end: tuple[int, int]

    @property
    def length(self) -> int:
        """The length in database units."""
        return abs(self.end[0] - self.start[0]) + abs(self.end[1] - self.start[1])


@dataclass(frozen=True)
class PlacedVia:
    """A via of a net: its shape and its middle."""

    via: ViaShape
    at: tuple[int, int]


@dataclass
class NetShapes:
    """Wires and vias of a net."""

    wires: list[RoutedWire] = field(default_factory=list)
    vias: list[PlacedVia] = field(default_factory=list)


@dataclass(frozen=True)
class PlacedCell:
    """An instance: its name, its cell, its lower left corner, and whether it is upside down."""

    name: str
    macro: CellMacro
    at: tuple[int, int]
    flipped: bool


@dataclass
class Layout:
    """A block with all its shapes; lengths are in database units.

    Attributes
    ----------
    cells : list of PlacedCell
        The instances of the design in their order, then taps and fillers.
    nets : list of NetShapes
        Shapes of each net of the design.
    ports : list of (int, Rect)
        Metal and shape of each port.
    rails : list of (str, Rect)
        Rails and straps on the lowest metal: name of the supply and shape.
    """

    design: LayoutDesign
    plan: Floorplan
    cells: list[PlacedCell]
    nets: list[NetShapes]
    ports: list[tuple[int, Rect]]
    rails: list[tuple[str, Rect]]

    @property
    def technology(self) -> Technology:
        """The process."""
        return self.plan.technology


def build(
    design: LayoutDesign,
    plan: Floorplan,
    router: Router,
    routing: Routing,
    sites: np.ndarray,
    rows: np.ndarray,
    ports: np.ndarray,
) -> Layout:
    """Return the shapes of a placed and routed design."""
    cells = _cells(design, plan, sites, rows)
    maker = _NetMaker(design, plan, router, cells)
    nets = [
        NetShapes() if routed is None else maker.shapes(number, routed)
        for number, routed in enumerate(routing.nets)
    ]
    return Layout(design, plan, cells, nets, _ports(plan, ports), _rails(plan))


def _cells(
    design: LayoutDesign, plan: Floorplan, sites: np.ndarray, rows: np.ndarray
) -> list[PlacedCell]:
    """Return the instances, the taps of every row, and fillers in all gaps."""
    technology = plan.technology
    site, height = technology.site

    def put(name: str, macro: CellMacro, at: int, row: int) -> PlacedCell:
        corner = (plan.left + at * site, plan.bottom + row * height)
        return PlacedCell(name, macro, corner, row % 2 == 1)

    cells = [
        put(name, macro, int(at), int(row))
        for name, macro, at, row in zip(design.names, design.macros, sites, rows, strict=True)
    ]
    tap = technology.tap
    for row in range(plan.rows):
        for number, at in enumerate(plan.taps):
            if tap is not None:
                cells.append(put(f"tap{row * len(plan.taps) + number}", tap, at, row))
    free = np.ones((plan.rows, plan.sites), bool)
    for at in plan.taps:
        free[:, at : at + plan.tap] = False
    for macro, at, row in zip(design.macros, sites, rows, strict=True):
        free[row, at : at + macro.width // site] = False
    fillers = technology.fillers
    count = 0
    for row in range(plan.rows):
        at = 0
        while at < plan.sites:
            gap = int(np.argmin(np.append(free[row, at:], False)))
            fits = [width for width in fillers if width <= gap]
            if fits:
                cells.append(put(f"fill{count}", fillers[max(fits)], at, row))
                count += 1
            at += max(fits, default=1)
    return cells


def _rails(plan: Floorplan) -> list[tuple[str, Rect]]:
    """Return a rail at every edge of a row, and a strap at each side that joins those of a supply.

    The rails have the width of those in the cells, which reach as far over the edge of a row.
    """
    technology = plan.technology
    site, height = technology.site
    supplies = technology.rails
    half = max(rail[2] for rail in supplies)
    names = [rail[0] for rail in supplies]
    left, right = plan.left, plan.left + plan.sites * site
    width, away = (round(v * technology.per_micron) for v in (_STRAP_UM, _STRAP_AWAY_UM))
    top = plan.bottom + plan.rows * height
    rails: list[tuple[str, Rect]] = []
    for edge in range(plan.rows + 1):
        y = plan.bottom + edge * height
        supply = names[edge % 2]
        x0 = left - away - width if supply == names[0] else left
        x1 = right + away + width if supply == names[1] else right
        rails.append((supply, (x0, y - half, x1, y + half)))
    low, high = plan.bottom - half, top + half
    rails.append((names[0], (left - away - width, low, left - away, high)))
    rails.append((names[1], (right + away, low, right + away + width, high)))
    return rails


def _ports(plan: Floorplan, ports: np.ndarray) -> list[tuple[int, Rect]]:
    """Return the shape of each port, which reaches the border of the block."""
    site, pitch = plan.technology.site[0], plan.technology.metals[LOWEST + 1].pitch
    found = []
    for column, line, layer in ports.tolist():
        half = plan.layers[layer].width // 2
        x, y = plan.x(column), plan.y(line)
        along = site // 2 if layer % 2 else pitch // 2
        dx, dy = (along, half) if layer % 2 else (half, along)
        found.append((layer + LOWEST, (x - dx, y - dy, x + dx, y + dy)))
    return found


class _NetMaker:
    """Turns edges of the grid into wires and vias."""

    def __init__(
        self, design: LayoutDesign, plan: Floorplan, router: Router, cells: list[PlacedCell]
    ) -> None:
        self.design, self.plan, self.router, self.cells = design, plan, router, cells
        self.grid = plan.technology.grid
        self.known: dict[tuple[str, str], dict[Place, PinVia]] = {}
        self.vias = [
            usual_via(plan.technology, cut) for cut in range(LOWEST, LOWEST + len(plan.layers) - 1)
        ]

    def shapes(self, number: int, routed: RoutedNet) -> NetShapes:
        """Return wires, vias between layers, and the vias on the pins of a net."""
        shapes = NetShapes()
        runs: dict[tuple[int, int], set[int]] = defaultdict(set)  # (layer, track) -> links
        used: dict[tuple[int, int], set[int]] = defaultdict(set)  # (layer, track) -> nodes
        places = self.router.places(routed.edges).tolist()
        for (layer_a, column_a, line_a), (layer_b, column_b, line_b) in places:
            if layer_a != layer_b:
                low = min(layer_a, layer_b)
                point = (self.plan.x(column_a), self.plan.y(line_a))
                shapes.vias.append(PlacedVia(self.vias[low], point))
            elif layer_a % 2:
                runs[layer_a, line_a].add(max(column_a, column_b))
            else:
                runs[layer_a, column_a].add(max(line_a, line_b))
            for layer, column, line in (
                (layer_a, column_a, line_a),
                (layer_b, column_b, line_b),
            ):
                used[(layer, line) if layer % 2 else (layer, column)].add(
                    column if layer % 2 else line
                )
        for key, nodes in used.items():
            # Neighbours of one net that no wire joins would be too close to each other.
            runs[key] |= {node for node in nodes if node - 1 in nodes}
        for (layer, track), links in sorted(runs.items()):
            shapes.wires += self._runs(layer, track, sorted(links))
        for (layer, track), nodes in sorted(used.items()):
            if not self.plan.layers[layer].least_area:
                continue
            for node in sorted(nodes):
                if node - 1 not in nodes and node + 1 not in nodes:
                    column, line = (node, track) if layer % 2 else (track, node)
                    point = (self.plan.x(column), self.plan.y(line))
                    shapes.wires.append(self._long_enough(layer, point, point))
        self._pins(number, routed, shapes)
        return shapes

    def _runs(self, layer: int, track: int, links: list[int]) -> list[RoutedWire]:
        """Return the wires of a track: one for each sequence of links without a gap."""
        found = []
        begin = 0
        for k in range(1, len(links) + 1):
            if k < len(links) and links[k] == links[k - 1] + 1:
                continue
            first, last = links[begin] - 1, links[k - 1]
            begin = k
            ends = [
                (self.plan.x(at), self.plan.y(track))
                if layer % 2
                else (self.plan.x(track), self.plan.y(at))
                for at in (first, last)
            ]
            found.append(self._long_enough(layer, ends[0], ends[1]))
        return found

    def _long_enough(self, layer: int, start: tuple[int, int], end: tuple[int, int]) -> RoutedWire:
        """Return the wire between two points, longer at both ends if it lacks area."""
        metal = self.plan.layers[layer]
        more = beyond(metal, abs(end[0] - start[0]) + abs(end[1] - start[1]), self.grid)
        dx, dy = (more, 0) if layer % 2 else (0, more)
        return RoutedWire(
            layer + LOWEST, (start[0] - dx, start[1] - dy), (end[0] + dx, end[1] + dy)
        )

    def _pins(self, number: int, routed: RoutedNet, shapes: NetShapes) -> None:
        """Add the vias from pins of cells to the lowest layer of wires."""
        places = self.router.places(routed.pins).tolist()
        pins = self.design.nets[number].pins
        for (instance, pin), (_, column, line) in zip(pins, places, strict=False):
            at = (self.plan.x(column), self.plan.y(line))
            via, shift = self._pin_via(self.cells[instance], pin, at)
            beside = (at[0], at[1] + shift)
            if shift:
                shapes.wires.append(RoutedWire(LOWEST, at, beside))
            shapes.vias.append(PlacedVia(via, beside))

    def _pin_via(self, cell: PlacedCell, pin: str, at: tuple[int, int]) -> tuple[ViaShape, int]:
        """Return the via that joins a pin at a crossing, and its distance from there."""
        technology = self.plan.technology
        key = (cell.macro.name, pin)
        if key not in self.known:
            self.known[key] = pin_access(cell.macro, pin, technology)
        right, up = offsets(technology)
        pitch = technology.metals[LOWEST + 1].pitch
        place = (
            (at[0] - cell.at[0] - right) // technology.site[0],
            (at[1] - cell.at[1] - up) // pitch,
        )
        if not cell.flipped:
            found = self.known[key][place]
            return found.via, found.shift
        found = self.known[key][upright(place, technology.site[1] // pitch, technology)]
        return found.via, -found.shift


def placed(rects: tuple[Rect, ...], cell: PlacedCell) -> tuple[Rect, ...]:
    """Return shapes of a cell at the place of the cell."""
    x, y = cell.at
    if cell.flipped:
        top = y + cell.macro.height
        return tuple((r[0] + x, top - r[3], r[2] + x, top - r[1]) for r in rects)
    return tuple((r[0] + x, r[1] + y, r[2] + x, r[3] + y) for r in rects)


def rectangle(wire: RoutedWire, width: int) -> Rect:
    """Return the shape of a wire, which reaches half its width beyond its ends."""
    half = width // 2
    (x0, y0), (x1, y1) = wire.start, wire.end
    return (min(x0, x1) - half, min(y0, y1) - half, max(x0, x1) + half, max(y0, y1) + half)


def metal_rects(layout: Layout, net: int) -> list[tuple[str, Rect]]:
    """Return all shapes of a net on metals and cuts: name of the layer and rectangle."""
    technology = layout.technology
    found = [
        (technology.metals[w.metal].name, rectangle(w, technology.metals[w.metal].width))
        for w in layout.nets[net].wires
    ]
    for placed_via in layout.nets[net].vias:
        x, y = placed_via.at
        for name, rects in placed_via.via.shapes.items():
            found += [(name, (r[0] + x, r[1] + y, r[2] + x, r[3] + y)) for r in rects]
    return found
