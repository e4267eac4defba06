"""Simplify a module before its text is written, and give nets the names of the source."""

from dataclasses import replace

from vitruvian.flows.verilog.netlist.express import RIGHT
from vitruvian.flows.verilog.netlist.names import Aliases
from vitruvian.flows.verilog.netlist.rtlil import RtlilModule, width_of
from vitruvian.flows.verilog.netlist.simplify import Netlist


def outputs_of(module: RtlilModule) -> set[str]:
    """Return the outputs of a module."""
    return {wire.name for wire in module.wires.values() if wire.way == "output"}


def _widen(netlist: Netlist) -> None:
    """Give each right shift that drives a narrower output a net of its own.

    Such a net is as wide as the value that is shifted, which an output must not be.
    """
    for name, cell in list(netlist.operators.items()):
        wire = netlist.wires[name]
        if wire.way == "output" and cell.kind in RIGHT and width_of(cell.ports["A"]) > wire.width:
            inner = f"{name}_shifted"
            while inner in netlist.wires:
                inner += "_"
            netlist.wires[inner] = replace(wire, name=inner, way="")
            whole = netlist.wires[inner].whole
            netlist.operators[inner] = replace(cell, ports={**cell.ports, "Y": whole})
            netlist.values[name] = whole
            del netlist.operators[name]


def prepared(
    module: RtlilModule, outputs: dict[str, set[str]]
) -> tuple[Netlist, dict[str, list[str]]]:
    """Return a simplified netlist, and net -> further names that the source has for it."""
    netlist = Netlist(module)
    netlist.outputs = outputs
    netlist.simplify()
    _widen(netlist)
    same = Aliases(netlist).same
    read = {chunk.name for sig in netlist.read() for chunk in sig}
    work = [name for name in netlist.values if netlist.wires[name].way == "output" or name in read]
    alive = set(work)
    while work:
        for chunk in netlist.values[work.pop()]:
            if chunk.name in netlist.values and chunk.name not in alive:
                alive.add(chunk.name)
                work.append(chunk.name)
    # Nothing reads the other aliases.
    netlist.values = {name: value for name, value in netlist.values.items() if name in alive}
    return netlist, same
