"""The nets as arrays, as placement reads them: pins, and the bounds of each net."""

from dataclasses import dataclass

import numpy as np

from vitruvian.flows.asic.layout.design import LayoutDesign

#: Nets beyond this size pull no cells.
_MOST_PINS = 64


@dataclass
class Wires:
    """The nets as arrays: pins of net n are ``first[n]`` to ``first[n + 1]``.

    Attributes
    ----------
    first : (nets + 1,) ndarray of int
    cell : (pins,) ndarray of int
        Instance of a pin, or number of instances + port.
    offset : (pins,) ndarray of float
        Distance of a pin from the middle of its cell, to the right.
    widths : (instances,) ndarray of int
        Widths of the instances in sites.
    """

    first: np.ndarray
    cell: np.ndarray
    offset: np.ndarray
    widths: np.ndarray

    def inner(self) -> "Wires":
        """Return the nets without their ports, as far as they still join two pins."""
        inside = self.cell < len(self.widths)
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        pins = np.bincount(owner[inside], minlength=len(self.first) - 1)
        kept = inside & (pins > 1)[owner]
        first = np.concatenate([[0], np.cumsum(pins[pins > 1])])
        return Wires(first, self.cell[kept], self.offset[kept], self.widths)

    def padded(self, sites: np.ndarray, site: int) -> "Wires":
        """Return the same nets with free sites beside each cell, half of them at its left."""
        offset = self.offset.copy()
        inside = self.cell < len(self.widths)
        # With an odd number of free sites, the cell is half a site left of the middle.
        offset[inside] -= sites[self.cell[inside]] % 2 * site / 2
        return Wires(self.first, self.cell, offset, self.widths + sites)


def wires(design: LayoutDesign, site: int) -> Wires:
    """Return the nets of a design that join at least two pins, without the largest ones."""
    first, cell, offset = [0], [], []
    count = len(design.names)
    for net in design.nets:
        if not 2 <= len(net.pins) + len(net.ports) <= _MOST_PINS:
            continue
        for instance, pin in net.pins:
            macro = design.macros[instance]
            rects = [rect for rects in macro.pins[pin].shapes.values() for rect in rects]
            middle = (min(r[0] for r in rects) + max(r[2] for r in rects)) / 2
            cell.append(instance)
            offset.append(middle - macro.width / 2)
        cell += [count + port for port in net.ports]
        offset += [0.0] * len(net.ports)
        first.append(len(cell))
    return Wires(
        np.array(first, np.int64), np.array(cell, np.int64), np.array(offset, np.float64),
        np.array([macro.width // site for macro in design.macros], np.int64),
    )  # fmt: skip


def bounds(net: Wires, *places: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the lowest and the highest position of the pins of each net, for every axis.

    Parameters
    ----------
    *places : (pins,) ndarray of float
        Position of every pin along an axis.
    """
    first = net.first[:-1]
    if not len(first):
        return [(np.zeros(0), np.zeros(0)) for _ in places]
    return [(np.minimum.reduceat(at, first), np.maximum.reduceat(at, first)) for at in places]
