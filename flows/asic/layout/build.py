"""From a mapped netlist to a layout: placement, routing, and the capacitance of the wires."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.layout import access, legal, place, shapes
from vitruvian.flows.asic.layout import design as designs
from vitruvian.flows.asic.layout.floorplan import plan
from vitruvian.flows.asic.layout.lef import Technology
from vitruvian.flows.asic.layout.route import Router
from vitruvian.flows.asic.layout.wires import wires

#: A function that is told of the progress: the work, steps done, and steps in total.
Tell = Callable[[str, int, int], None]


def _quiet(what: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class RoutedLayout:
    """A layout and how it came about.

    Attributes
    ----------
    layout : Layout
    placed_um, swapped_um : float
        Half perimeters of all nets after the global placement and after the swaps.
    conflicts : list of int
        For every round of the router, the links that several nets claimed.
    failed : list of str
        Nets without a path.
    """

    layout: shapes.Layout
    placed_um: float
    swapped_um: float
    conflicts: list[int]
    failed: list[str]

    @property
    def wire_um(self) -> float:
        """The length of all wires in µm."""
        return sum(self.wire_um_by_metal().values())

    def wire_um_by_metal(self) -> dict[str, float]:
        """Return the length of the wires of each metal in µm."""
        technology = self.layout.technology
        lengths = dict.fromkeys((metal.name for metal in self.layout.plan.layers), 0.0)
        for net in self.layout.nets:
            for wire in net.wires:
                name = technology.metals[wire.metal].name
                lengths[name] += technology.microns(wire.length)
        return lengths

    @property
    def vias(self) -> int:
        """The number of vias."""
        return sum(len(net.vias) for net in self.layout.nets)

    def wires_ff(self) -> dict[int, float]:
        """Return bit of the netlist -> capacitance of its wires to ground in fF, by the LEF.

        Neither vias nor the coupling between wires have capacitances in the LEF.
        """
        technology = self.layout.technology
        found = {}
        for net, drawn in zip(self.layout.design.nets, self.layout.nets, strict=True):
            if net.bit is not None:
                found[net.bit] = sum(
                    technology.microns(wire.length)
                    * technology.metals[wire.metal].ff_per_micron(technology.per_micron)
                    for wire in drawn.wires
                )
        return found


def lay_out(
    netlist: dict[str, Any],
    technology: Technology,
    *,
    utilisation: float,
    block_um: tuple[float, float] | None = None,
    tries: int = legal.TRIES,
    tell: Tell = _quiet,
) -> RoutedLayout:
    """Place and route a mapped netlist.

    Parameters
    ----------
    netlist : dict
        Ports, cells and netnames, as ``flows.asic.synth`` stores them.
    utilisation : float
        Share of the rows that cells fill, above 0 and at most 1.
    block_um : (float, float), optional
        Width and height of the block, instead of a square by the utilisation.
    tries : int
        Swaps that are tried for each cell.

    Raises
    ------
    UserError
        If the library lacks a cell or a pin, or if its rules do not suit the router.
    """
    design = designs.build(netlist, technology)
    floor = plan(design, technology, utilisation, block_um)
    placed = place.place(design, floor, tell=lambda k, n: tell("place", k, n))
    ports, site = placed.ports, technology.site[0]
    padding, nets = placed.padding, wires(design, site).padded(placed.padding, site)
    try:
        sites, rows = legal.legalise(placed.middles, nets, floor)
    except UserError:
        # The cells fit without the room for wires, or they do not fit at all.
        padding, nets = 0 * padding, wires(design, site)
        sites, rows = legal.legalise(placed.middles, nets, floor)
    at = np.array([(floor.x(c), floor.y(n)) for c, n, _ in ports.tolist()], float).reshape(-1, 2)
    sites, rows, before, after = legal.improve(
        sites, rows, at, nets, floor, tries=tries, tell=lambda k, n: tell("swap cells", k, n)
    )
    sites = sites + padding // 2
    router = Router(floor, access.terminals(design, floor, sites, rows, ports))
    routing = router.run(tell=tell)
    return RoutedLayout(
        layout=shapes.build(design, floor, router, routing, sites, rows, ports),
        placed_um=technology.microns(before),
        swapped_um=technology.microns(after),
        conflicts=routing.conflicts,
        failed=[design.nets[net].name for net in routing.failed],
    )
