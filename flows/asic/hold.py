"""Hold times of a netlist with clock gates: data must not change before the clock has taken it.

With one ideal clock, no register misses its hold time. A gated clock comes later than the clock, so
that data from a register without a gate may be too early for a register with one. ``mend`` delays
such data by buffers. Only paths from registers count: when the inputs of a unit change is not known
here.
"""

from typing import Any

import numpy as np

from vitruvian.common.errors import WorkError
from vitruvian.flows.asic.liberty import LibertyCell, Library
from vitruvian.flows.asic.lookup import levels
from vitruvian.flows.asic.sta import TimingGraph

#: Rounds of buffers before ``mend`` gives up.
_ROUNDS = 40


def slacks(graph: TimingGraph) -> dict[tuple[int, str], float]:
    """Return instance and data pin -> time in ps by which the earliest edge is late enough.

    The earliest arrival takes the shortest delay and the smallest slew at every cell. A pin that no
    register reaches is left out.
    """
    count = 2 * len(graph.nets)
    arrival, slew = np.full(count, np.inf), np.full(count, np.inf)
    node, delay, steep, number, _ = graph.launches.T
    begin, clock_slew = graph.clock[number].T
    np.minimum.at(arrival, node, begin + graph.tables(delay, clock_slew, graph.load[node]))
    np.minimum.at(slew, node, graph.tables(steep, clock_slew, graph.load[node]))
    for rows in levels(graph.arcs, count):
        source, target, delay, steep = graph.arcs[rows, :4].T
        live = np.isfinite(arrival[source])
        source, target, delay, steep = (x[live] for x in (source, target, delay, steep))
        load = graph.load[target]
        np.minimum.at(arrival, target, arrival[source] + graph.tables(delay, slew[source], load))
        np.minimum.at(slew, target, graph.tables(steep, slew[source], load))
    found: dict[tuple[int, str], float] = {}
    for number, (_, cell, pins) in enumerate(graph.instances):
        late, clock_steep = map(float, graph.clock[number])
        for arc in cell.arcs:
            if arc.kind != "hold" or arc.target not in pins:
                continue
            at = 2 * pins[arc.target] + arc.target_edge
            if np.isfinite(arrival[at]):
                least = late + arc.delay(clock_steep, float(slew[at]))
                key = number, arc.target
                found[key] = min(found.get(key, np.inf), float(arrival[at]) - least)
    return found


def mend(
    netlist: dict[str, Any], library: Library, *, driving_cell: str, load_ff: float
) -> tuple[int, float | None]:
    """Insert buffers, in place, in front of the data pins that change too early.

    Returns
    -------
    int, float or None
        Number of buffers, and the least slack in ps that is left, None without any check.

    Raises
    ------
    WorkError
        If a hold time is missed with a long chain of buffers, too.
    """
    buffer = _small_buffer(library)
    bits = [b for c in netlist["cells"].values() for p in c["connections"].values() for b in p]
    bits += [b for port in netlist["ports"].values() for b in port["bits"]]
    last = max((bit for bit in bits if isinstance(bit, int)), default=1)
    (pin,), (output,) = buffer.caps, buffer.outputs
    inserted = 0
    for _ in range(_ROUNDS):
        graph = TimingGraph(netlist, library, driving_cell, load_ff)
        found = slacks(graph)
        early = [key for key, slack in found.items() if slack < 0]
        if not early:
            return inserted, min(found.values(), default=None)
        for number, data in early:
            connections = netlist["cells"][graph.instances[number][0]]["connections"]
            last, inserted = last + 1, inserted + 1
            netlist["cells"][f"hold_{last}"] = {
                "type": buffer.name,
                "connections": {pin: connections[data], output: [last]},
            }
            connections[data] = [last]
    raise WorkError(f"hold times must be met with {_ROUNDS} buffers in a row")


def _small_buffer(library: Library) -> LibertyCell:
    """Return the smallest buffer."""
    return min(
        (
            cell
            for cell in library.cells.values()
            if len(cell.caps) == len(cell.outputs) == 1
            and cell.arcs
            and all(a.kind == "delay" and a.source_edge == a.target_edge for a in cell.arcs)
        ),
        key=lambda cell: (cell.area_um2, cell.name),
    )
