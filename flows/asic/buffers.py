"""Insert trees of buffers between a driver and its loads, as a placement tool does.

The drivers and loads of a mapped module fit each other, but a net between modules can have many
loads that its driver was not sized for: an operand bus reaches every element of a row, a control
bit every element of the tile. ``Planner`` decides how many buffers of which size such a net gets.

The search is greedy. It puts one level of equal buffers between the driver and its loads, in the
number and size that make the whole chain fastest, and then treats the inputs of these buffers as
the loads and tries another level, until a level no longer helps. The loads of a level are dealt to
its buffers evenly, and the slowest buffer counts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace

import numpy as np

from vitruvian.flows.asic.liberty import Arc, LibertyCell, Library

#: The slew at the input of the driver while a tree is planned, ps.
_INPUT_SLEW_PS = 20.0
#: A tree may be this much slower than the fastest one if it is smaller.
_TOLERANCE = 1.02
_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True, order=True)
class Load:
    """The load of one sink: capacitance in fF and the number of its input pins."""

    ff: float
    pins: int = 1


@dataclass(frozen=True, kw_only=True)
class BufferTree:
    """The levels of a tree, from the loads to the driver.

    Members
    -------
    levels : tuple of (str, tuple of int)
        The buffer cell of a level, and for each sink below the level the buffer that drives it.
        The sinks of the first level are the loads; those of the next are the first level's buffers.
    delay_ps : float
        Estimated delay from the input of the driver to the slowest load.
    """

    levels: tuple[tuple[str, tuple[int, ...]], ...]
    delay_ps: float


class Planner:
    """Plans buffer trees with the buffers of a library.

    Parameters
    ----------
    library : Library
        Its cells with one input, one output and a name that contains ``BUF`` but does not belong
        to a clock or tri-state buffer are the buffers.
    """

    def __init__(self, library: Library):
        self._library = library
        self.buffers = sorted(
            (cell for cell in library.cells.values() if _is_buffer(cell)),
            key=lambda cell: (cell.area_um2, cell.name),
        )
        self._wires: dict[int, float] = {}
        self._known: dict[tuple[object, ...], BufferTree] = {}

    def plan(self, driver: LibertyCell, pin: str, fixed: Load, loads: Sequence[Load]) -> BufferTree:
        """Return the tree for one net.

        Parameters
        ----------
        driver : LibertyCell
            The cell that drives the net, with its output ``pin``.
        fixed : Load
            The load that must stay at the driver's output.
        loads : sequence of Load
            The loads that buffers may drive instead.
        """
        key = driver.name, pin, fixed, tuple(loads)
        if key not in self._known:
            self._known[key] = self._search(driver, pin, fixed, loads)
        return self._known[key]

    def _search(
        self, driver: LibertyCell, pin: str, fixed: Load, loads: Sequence[Load]
    ) -> BufferTree:
        arcs = [arc for arc in driver.arcs if arc.target == pin and arc.slew is not None]
        levels: list[tuple[str, tuple[int, ...]]] = []
        # The stages behind the root net, in the order of the signal: buffer and its worst load.
        behind: list[tuple[LibertyCell, float]] = []
        sinks = list(loads)
        current = self._delay(arcs, self._ff([fixed, *sinks]), behind)
        while sinks:
            trials = []
            for count in (count for count in _COUNTS if count <= len(sinks)):
                dealt = _deal(sinks, count)
                worst = self._slowest(sinks, dealt, count)
                for cell in self.buffers:
                    own = Load(max(next(iter(cell.caps.values()))))
                    root = self._ff([fixed, *[own] * count])
                    delay = self._delay(arcs, root, [(cell, worst), *behind])
                    trials.append((delay, cell.area_um2 * count, cell, own, dealt, worst))
            fastest = min((trial[0] for trial in trials), default=current)
            if fastest * _TOLERANCE >= current:
                break
            near = [trial for trial in trials if trial[0] <= fastest * _TOLERANCE]
            current, _, cell, own, dealt, worst = min(near, key=lambda t: (t[1], t[0], t[2].name))
            levels.append((cell.name, dealt))
            behind.insert(0, (cell, worst))
            sinks = [own] * (max(dealt) + 1)
        return BufferTree(levels=tuple(levels), delay_ps=current)

    def _slowest(self, sinks: Sequence[Load], owners: Sequence[int], count: int) -> float:
        """Return the largest capacitance that one of ``count`` buffers drives."""
        groups: list[list[Load]] = [[] for _ in range(count)]
        for sink, owner in zip(sinks, owners, strict=True):
            groups[owner].append(sink)
        return max(map(self._ff, groups))

    def _ff(self, loads: Sequence[Load]) -> float:
        """Return the capacitance of a net with these loads, with its wire."""
        return sum(load.ff for load in loads) + self._wire_ff(sum(load.pins for load in loads))

    def _wire_ff(self, pins: int) -> float:
        if self._library.wire_load is None:
            return 0.0
        if pins not in self._wires:
            wire = self._library.wire_load.capacitance(np.array([pins], dtype=float))
            self._wires[pins] = float(wire[0])
        return self._wires[pins]

    def _delay(
        self, arcs: Sequence[Arc], ff: float, stages: Sequence[tuple[LibertyCell, float]]
    ) -> float:
        """Return the delay of a driver with load ``ff`` and of the buffers behind it, in ps."""
        total, slew = _stage(arcs, _INPUT_SLEW_PS, ff)
        for cell, load in stages:
            delay, slew = _stage(cell.arcs, slew, load)
            total += delay
        return total


def _stage(arcs: Sequence[Arc], slew: float, ff: float) -> tuple[float, float]:
    """Return the worst delay and the worst output slew of a cell, in ps."""
    rows = [(arc.delay(slew, ff), arc.slew(slew, ff)) for arc in arcs if arc.slew is not None]
    return max(row[0] for row in rows), max(row[1] for row in rows)


def _deal(sinks: Sequence[Load], count: int) -> tuple[int, ...]:
    """Return the buffer of each sink: the heaviest sinks first, each to the least loaded buffer."""
    owners = [0] * len(sinks)
    total = [(0.0, owner) for owner in range(count)]  # a heap
    for index in sorted(range(len(sinks)), key=lambda n: (-sinks[n].ff, n)):
        ff, owner = total[0]
        owners[index] = owner
        heapreplace(total, (ff + sinks[index].ff, owner))
    return tuple(owners)


def _is_buffer(cell: LibertyCell) -> bool:
    """Return True for a plain buffer: non-inverting, one input, one output, no clock buffer."""
    if not re.match(r"BUF", cell.name.upper()) or len(cell.caps) != 1 or len(cell.outputs) != 1:
        return False
    arcs = [arc for arc in cell.arcs if arc.kind == "delay"]
    return bool(arcs) and all(arc.source_edge == arc.target_edge for arc in arcs)
