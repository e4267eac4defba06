"""Sites of the DSP and RAM blocks of a dense design on an ECP5.

nextpnr's electrostatic placer moves cells of all kinds as if each could lie anywhere. Only when
they are nearly spread, it puts the blocks on sites, of which few rows of the chip have any. Often
these are far away: the wires of cores became longer by a third to a half, and the other cells
hardly followed. The functions here find better sites, given such a placement, so that a second one
has its blocks in place from the beginning.

The way is that of quadratic placers. A net is a set of springs between its pins, so strong that
their energy is half the perimeter of the net's box at the places of the moment (the model is known
as bound to bound). Weak springs hold all other cells at their places, so that they stay spread.
Blocks are free at first; then a spring pulls each to a site of its own, more strongly in every
round. These sites are the ones with the least sum of ways.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitruvian.common.extras import need
from vitruvian.flows.fpga.wrapper import TOP

#: Strength of the spring that holds a cell at its place; that between two pins at a distance of one
#: tile is 2. With 0.1, the wires of `tiny` had 445 thousand tiles in the end, instead of 439.
_HOLD = 0.02
#: What a spring to a site gains in each round, for each pin of its block, after the first rounds.
_PULL, _FREE_ROUNDS, _ROUNDS = 0.006, 10, 80
#: Strength of the spring that holds a pin of the chip and others that have one place.
_FIXED = 10.0
#: Pins of a net from which it goes everywhere anyway.
_EVERYWHERE = 3000
#: Inputs of clocks, which have wires of their own.
_CLOCKS = frozenset(("CLK", "WCK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3"))
_MOVING = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW")

Places = NDArray[np.float64]


@dataclass(frozen=True)
class Site:
    """A site of a chip: nextpnr's name, and the tile."""

    name: str
    x: int
    y: int


def _sites(columns: Iterable[int], rows: Iterable[int], kinds: Mapping[int, str]) -> list[Site]:
    """Return sites in every row, at some distances (-> kind) from every column."""
    at = [(x + d, y, kind) for y in rows for x in columns for d, kind in kinds.items()]
    return [Site(f"X{x}/Y{y}/{kind}", x, y) for x, y, kind in at]


#: Columns of the LFE5U-85F from which its blocks are counted.
_COLUMNS = (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114)

#: Device -> kind of block -> its sites. Source: placements of nextpnr.
SITES: dict[str, dict[str, list[Site]]] = {
    "85k": {
        "DP16KD": _sites(_COLUMNS, (22, 46, 70, 82), {0: "EBR0", 2: "EBR1", 4: "EBR2", 6: "EBR3"}),
        "MULT18X18D": _sites(
            _COLUMNS, (10, 34, 58), {0: "MULT18_0", 1: "MULT18_1", 4: "MULT18_4", 5: "MULT18_5"}
        ),
    }
}


@dataclass(frozen=True)
class Placement:
    """Cells of a placed netlist, and their nets.

    Members
    -------
    names, kinds : array of str, [cells]
    places : array of float, [cells, 2]
        Column and row of each cell.
    pins : array of int
        Cells of the nets, one net after the other, each cell once.
    starts : array of int
        First pin of each net.
    """

    names: NDArray[np.str_]
    kinds: NDArray[np.str_]
    places: Places
    pins: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def net_of(self) -> NDArray[np.int64]:
        """Net of each pin."""
        sizes = np.diff(self.starts, append=len(self.pins))
        return np.repeat(np.arange(len(self.starts)), sizes)

    def wires(self, places: Places) -> float:
        """Return half the perimeters of the boxes of all nets, in tiles."""
        at = places[self.pins]
        most = np.maximum.reduceat(at, self.starts)
        return float((most - np.minimum.reduceat(at, self.starts)).sum())


def fix(netlist: str, placed: str, sites: Mapping[str, list[Site]]) -> str:
    """Return a netlist in which every block has a site.

    Parameters
    ----------
    netlist, placed : str
        A flat netlist (JSON), and the same as nextpnr has placed it.
    sites : dict of str to list of Site
        Those of the device.
    """
    design = json.loads(netlist)
    cells = design["modules"][TOP]["cells"]
    for name, site in choose(read(placed), sites).items():
        cells[name]["attributes"]["BEL"] = site.name
    return json.dumps(design)


def choose(design: Placement, sites: Mapping[str, list[Site]]) -> dict[str, Site]:
    """Return the name of each block of a placed design -> its new site."""
    blocks = np.isin(design.kinds, list(sites))
    held = np.where(np.isin(design.kinds, _MOVING), _HOLD, _FIXED)
    pins = np.bincount(design.pins, minlength=len(design.kinds))
    places = design.places
    chosen = _assign(design, places, pins, sites)
    for round_ in range(_ROUNDS):
        targets, strength = design.places.copy(), held.copy()
        for cell, site in chosen.items():
            targets[cell] = site.x, site.y
        pull = _PULL * max(0, round_ - _FREE_ROUNDS)
        strength[blocks] = pull * pins[blocks] + 1e-6  # the system must have one solution
        places = _relaxed(design, places, targets, strength)
        chosen = _assign(design, places, pins, sites)
    return {str(design.names[cell]): site for cell, site in chosen.items()}


def read(placed: str) -> Placement:
    """Return what nextpnr has placed, without nets of clocks."""
    (module,) = (m for m in json.loads(placed)["modules"].values() if m["cells"])
    names: list[str] = []
    kinds: list[str] = []
    places: list[tuple[int, int]] = []
    cells_of: dict[Any, dict[int, None]] = {}
    for name, cell in module["cells"].items():
        at = re.match(r"X(\d+)/Y(\d+)/", cell["attributes"].get("NEXTPNR_BEL", ""))
        if not at:
            continue
        for port, bits in cell["connections"].items():
            for bit in bits if port not in _CLOCKS else ():
                if isinstance(bit, int):
                    cells_of.setdefault(bit, {})[len(names)] = None
        names.append(name)
        kinds.append(cell["type"])
        places.append((int(at[1]), int(at[2])))
    nets = [list(cells) for cells in cells_of.values() if 1 < len(cells) < _EVERYWHERE]
    return Placement(
        names=np.array(names),
        kinds=np.array(kinds),
        places=np.array(places, float),
        pins=np.array([cell for net in nets for cell in net]),
        starts=np.cumsum([0, *(len(net) for net in nets)])[:-1],
    )


def _assign(
    design: Placement, places: Places, pins: NDArray[np.int64], sites: Mapping[str, list[Site]]
) -> dict[int, Site]:
    """Return a site for each block, with the least sum of ways from its place, times its pins."""
    optimize = need("scipy.optimize", "fpga")
    chosen: dict[int, Site] = {}
    for kind, free in sites.items():
        blocks = np.flatnonzero(design.kinds == kind)
        targets = np.array([(site.x, site.y) for site in free])
        ways = np.abs(places[blocks][:, None] - targets[None]).sum(axis=2)
        rows, columns = optimize.linear_sum_assignment(pins[blocks][:, None] * ways)
        chosen |= {int(blocks[r]): free[c] for r, c in zip(rows, columns, strict=True)}
    return chosen


def _relaxed(
    design: Placement, places: Places, targets: Places, strength: NDArray[np.float64]
) -> Places:
    """Return the places at which the forces of all springs are in balance.

    Parameters
    ----------
    places : array of float, [cells, 2]
        Where the strengths of the wires are taken.
    targets : array of float, [cells, 2]
        Place to which the spring of each cell pulls it.
    strength : array of float, [cells]
        Strength of that spring.
    """
    return np.stack(
        [_balance(design, places[:, axis], targets[:, axis], strength) for axis in (0, 1)], axis=1
    )


def _balance(
    design: Placement,
    places: NDArray[np.float64],
    targets: NDArray[np.float64],
    strength: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the balance of ``_relaxed`` along one axis; all arrays are [cells]."""
    sparse = need("scipy.sparse", "fpga")
    linalg = need("scipy.sparse.linalg", "fpga")
    net_of, at = design.net_of, places[design.pins]
    sizes = np.diff(design.starts, append=len(design.pins))
    order = np.lexsort((at, net_of))
    lowest, highest = order[design.starts], order[design.starts + sizes - 1]
    every = np.arange(len(design.pins))
    left, right, stiff = [], [], []
    for bounds in (lowest, highest):
        bound = bounds[net_of]
        # Each pin has a spring to both bounds of its net, and these have one between them.
        others = (every != bound) & ((bounds is lowest) | (every != lowest[net_of]))
        far = np.maximum(np.abs(at - at[bound])[others], 1)
        left.append(design.pins[others])
        right.append(design.pins[bound[others]])
        stiff.append(2 / (sizes[net_of][others] - 1) / far)
    a, b, s = np.concatenate(left), np.concatenate(right), np.concatenate(stiff)
    matrix = sparse.coo_matrix(
        (np.concatenate([-s, -s, s, s]), (np.r_[a, b, a, b], np.r_[b, a, a, b])),
        shape=(len(places), len(places)),
    ).tocsr() + sparse.diags(strength)
    found, _ = linalg.cg(
        matrix,
        strength * targets,
        x0=places,
        rtol=1e-6,
        maxiter=200,
        M=sparse.diags(1 / matrix.diagonal()),
    )
    return found
