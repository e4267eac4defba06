"""Clock gates of a mapped netlist: the cell that synthesis uses, and copies of the right sizes.

Yosys gives all registers that share an enable one gate (pass ``clockgate``). ``share`` gives them
as many gates, of such a size, as their clock pins and wires need.
"""

from math import ceil
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.liberty import LibertyCell, Library
from vitruvian.flows.asic.sta import TimingGraph

#: The least number of registers with the same enable that get a clock gate. The enable of fewer
#: registers chooses between old and new value by a multiplexer for each.
LEAST = 4
#: The part of the largest load of a gate that it gets, so that the clock is not late by much.
_FILLED = 0.5


def clock_gates(library: Library) -> list[LibertyCell]:
    """Return the clock gates of a library, the smallest first.

    Raises
    ------
    UserError
        If the library has none.
    """
    found = [cell for cell in library.cells.values() if cell.gate is not None and cell.max_ff]
    if not found:
        raise UserError(
            "--clock-gates must have a library with clock gates for rising edges, as nangate45 has"
        )
    return sorted(found, key=lambda cell: (cell.area_um2, cell.name))


def command(library: Library, least: int) -> str:
    """Return the command of Yosys that gives registers with an enable a clock gate.

    Parameters
    ----------
    least : int
        Number of registers that must share an enable.
    """
    cell = clock_gates(library)[0]
    pins = cell.gate
    assert pins is not None
    ports = f"{pins.enable}:{pins.clock}:{pins.output}"
    return f"clockgate -pos {cell.name} {ports} -min_net_size {least}"


def share(netlist: dict[str, Any], library: Library, *, driving_cell: str, load_ff: float) -> int:
    """Replace each clock gate of a netlist, in place, by gates that can drive its registers.

    Of the sizes, that with the least area counts. The registers are dealt evenly.

    Returns
    -------
    int
        Number of clock gates.
    """
    graph = TimingGraph(netlist, library, driving_cell, load_ff)
    sizes = clock_gates(library)
    groups: dict[int, list[int]] = {}
    for number, gate in enumerate(graph.gates):
        if gate >= 0:
            groups.setdefault(gate, []).append(number)
    bits = [b for net in netlist["netnames"].values() for b in net if isinstance(b, int)]
    last, total = max([*bits, *graph.nets], default=1), 0
    for gate, registers in groups.items():
        name, own, _ = graph.instances[gate]
        cell, copies = _choose(registers, graph, sizes, library)
        pins, old = cell.gate, own.gate
        assert pins is not None and old is not None
        given = netlist["cells"].pop(name)["connections"]
        for copy in range(copies):
            last, total = last + 1, total + 1
            netlist["cells"][f"{name}_{copy}" if copies > 1 else name] = {
                "type": cell.name,
                "connections": {
                    pins.clock: given[old.clock],
                    pins.enable: given[old.enable],
                    pins.output: [last],
                },
            }
            for number in registers[copy::copies]:
                register, kind, _ = graph.instances[number]
                netlist["cells"][register]["connections"][kind.clock] = [last]
    return total


def _choose(
    registers: list[int], graph: TimingGraph, sizes: list[LibertyCell], library: Library
) -> tuple[LibertyCell, int]:
    """Return the size and the number of the gates of some registers."""
    pin_ff = max(
        max(cell.caps[cell.clock])
        for _, cell, _ in (graph.instances[number] for number in registers)
        if cell.clock is not None
    )

    def load(count: int) -> float:
        wire = library.wire_load
        return count * pin_ff + (0.0 if wire is None else float(wire.capacitance(np.array(count))))

    def copies(cell: LibertyCell) -> int:
        limit = _FILLED * min(cell.max_ff.values())
        return next(
            (n for n in range(1, len(registers)) if load(ceil(len(registers) / n)) <= limit),
            len(registers),
        )

    each = [(copies(cell) * cell.area_um2, copies(cell), cell.name) for cell in sizes]
    _, many, name = min(each)
    return library.cells[name], many
