"""Put the mapped modules of a unit together, with buffers between them, for timing of the whole.

A tile of 16 × 16 elements has millions of cells, but only a handful of different modules. The
timing graph therefore holds every distinct module once (it is *folded*). An input of a module that
has several instances takes the worst arrival and the worst slew of all of them, and an output has
the largest of their loads, so a folded path is never shorter than the same path of the whole unit.
``fold=False`` copies every instance instead.

Buffers are inserted before, in every net that has a pin of an instance (``flows.asic.buffers``),
except in clocks, which are ideal. They are the only cells beside those of the modules.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vitruvian.flows.asic import sta
from vitruvian.flows.asic.buffers import Load, Planner
from vitruvian.flows.asic.liberty import LibertyCell, Library

#: The first part of the names of inserted buffers.
BUFFER = "buffer$"


@dataclass(frozen=True, kw_only=True)
class TileModule:
    """One distinct module: its readable label and its mapped netlist with ``instances``."""

    label: str
    netlist: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class AssembledTile:
    """A unit put together from its modules.

    Members
    -------
    timing : Timing
        The longest paths of the whole unit.
    buffers : dict
        Buffer cell -> how many of them were inserted.
    buffer_area_um2 : float
    """

    timing: sta.PathTiming
    buffers: dict[str, int]
    buffer_area_um2: float

    def split(self) -> dict[str, float]:
        """Return the parts of the longest path in ps, in the order in which it passes them.

        The parts are ``clock-to-q``, ``buffers``, every module by its label, and ``set-up``.
        """
        worst = self.timing.worst
        parts: dict[str, float] = {}
        if worst is None:
            return parts
        if worst.kind.startswith("input") and worst.steps:
            first = worst.steps[0]
            # The delay of the cell that drives the input, which is outside of the unit.
            parts["input"] = first.arrival_ps - first.delay_ps
        for number, step in enumerate(worst.steps):
            # Names as ``_Flattener`` makes them: label, number of the copy, cell.
            module, _, cell = step.cell.partition("/")
            if number == 0 and worst.kind.startswith("register"):
                part = "clock-to-q"
            else:
                part = "buffers" if cell.startswith(BUFFER) else module.split("#")[0]
            parts[part] = parts.get(part, 0.0) + step.delay_ps
        if worst.setup_ps:
            parts["set-up"] = worst.setup_ps
        return parts


def assemble(
    modules: Mapping[str, TileModule],
    top: str,
    library: Library,
    *,
    driving_cell: str = "BUF_X4",
    load_ff: float = 5.0,
    fold: bool = True,
    buffered: bool = True,
) -> AssembledTile:
    """Return the timing and the buffers of a whole unit.

    Parameters
    ----------
    modules : mapping of str to Module
        Name -> module, for every name among the types of ``instances``, and for ``top``.
    top : str
        Name of the top module.
    library : Library
        The cells that the modules are mapped onto.
    driving_cell : str
        Cell that drives every input of the unit.
    load_ff : float
        Load on every output of the unit, femtofarads.
    fold : bool
        If True, keep one copy of every distinct module; otherwise one for every instance.
    buffered : bool
        If False, insert no buffers.

    Raises
    ------
    LibertyError
        If a cell is missing from the library.
    ValueError
        If the (folded) unit contains a combinational loop.
    """
    design = _Design(modules, library, driving_cell)
    if buffered:
        for name in design.bottom_up(top):
            design.insert(name)
    counts = design.counts(top)
    buffers: dict[str, int] = {}
    for name, kinds in design.inserted.items():
        for kind, count in kinds.items():
            buffers[kind] = buffers.get(kind, 0) + count * counts[name]
    netlist = _Flattener(design, fold).flat(top)
    timing = sta.analyse(netlist, library, driving_cell=driving_cell, load_ff=load_ff)
    area = sum(library.cells[kind].area_um2 * count for kind, count in buffers.items())
    return AssembledTile(timing=timing, buffers=dict(sorted(buffers.items())), buffer_area_um2=area)


@dataclass
class _Net:
    """The pins of one net in one module; a sink is a cell or instance with the name of its pin."""

    driver: tuple[str, str] | None = None  # cell or instance and its pin
    sinks: list[tuple[str, str, int]] = field(default_factory=list)  # and the index of the bit
    touches_instance: bool = False


class _Design:
    """The modules of a unit, which receive buffers one after the other, children first."""

    def __init__(self, modules: Mapping[str, TileModule], library: Library, driving_cell: str):
        self.library, self.planner = library, Planner(library)
        self.labels = {name: module.label for name, module in modules.items()}
        self.driving = library.cells[driving_cell]
        self.inserted: dict[str, dict[str, int]] = {}
        # The netlists are changed, so they are copied down to the lists of bits.
        self.netlists = {name: _copied(module.netlist) for name, module in modules.items()}
        self._nets = {name: self._pins(name) for name in self.netlists}
        self._inner: dict[tuple[str, int], Load] = {}

    def bottom_up(self, top: str) -> Iterator[str]:
        """Yield every module after its children, each once."""
        seen: set[str] = set()

        def visit(name: str) -> Iterator[str]:
            if name not in seen:
                seen.add(name)
                for instance in self.netlists[name]["instances"].values():
                    yield from visit(instance["type"])
                yield name

        return visit(top)

    def counts(self, top: str) -> dict[str, int]:
        """Return module -> how many instances of it the unit has."""
        total = dict.fromkeys(self.netlists, 0)

        def visit(name: str) -> None:
            total[name] += 1
            for instance in self.netlists[name]["instances"].values():
                visit(instance["type"])

        visit(top)
        return total

    def _pins(self, name: str) -> dict[int, _Net]:
        netlist = self.netlists[name]
        nets: dict[int, _Net] = {}

        def net(bit: int) -> _Net:
            return nets.setdefault(bit, _Net())

        for cell, instance in netlist["cells"].items():
            kind = self.library.cells.get(instance["type"])
            for pin, bits in instance["connections"].items():
                if bits and isinstance(bits[0], int) and kind is not None:
                    if pin in kind.caps:
                        net(bits[0]).sinks.append((cell, pin, 0))
                    else:
                        net(bits[0]).driver = cell, pin
        for cell, instance in netlist["instances"].items():
            ports = self.netlists[instance["type"]]["ports"]
            for pin, bits in instance["connections"].items():
                for index, bit in enumerate(bits):
                    if isinstance(bit, int):
                        net(bit).touches_instance = True
                        if ports[pin]["direction"] == "input":
                            net(bit).sinks.append((cell, pin, index))
                        else:
                            net(bit).driver = cell, f"{pin}:{index}"
        return nets

    def load(self, name: str, bit: int) -> Load:
        """Return the load of a net of module ``name``: its cells' pins and those in instances."""
        key = name, bit
        if key not in self._inner:
            sinks = self._nets[name].get(bit, _Net()).sinks
            loads = [self._sink(name, *sink) for sink in sinks]
            self._inner[key] = Load(sum(x.ff for x in loads), sum(x.pins for x in loads))
        return self._inner[key]

    def _sink(self, name: str, cell: str, pin: str, index: int) -> Load:
        netlist = self.netlists[name]
        if cell in netlist["cells"]:
            # The larger one of the capacitances at a rising and a falling edge.
            return Load(max(self.library.cells[netlist["cells"][cell]["type"]].caps[pin]))
        child = netlist["instances"][cell]["type"]
        bit = self.netlists[child]["ports"][pin]["bits"][index]
        return self.load(child, bit) if isinstance(bit, int) else Load(0.0, 0)

    def _is_clock(self, name: str, bit: int) -> bool:
        netlist = self.netlists[name]
        for cell, pin, index in self._nets[name].get(bit, _Net()).sinks:
            if cell in netlist["cells"]:
                if self.library.cells[netlist["cells"][cell]["type"]].clock == pin:
                    return True
                continue
            child = netlist["instances"][cell]["type"]
            inner = self.netlists[child]["ports"][pin]["bits"][index]
            if isinstance(inner, int) and self._is_clock(child, inner):
                return True
        return False

    def _driver(self, name: str, bit: int) -> tuple[LibertyCell, str, Load]:
        """Return the cell and pin that drive a net, and the load at that cell in other modules.

        The driver of an input is the driving cell of the unit.
        """
        netlist, net = self.netlists[name], self._nets[name].get(bit, _Net())
        if net.driver is None:
            return self.driving, next(iter(self.driving.outputs)), Load(0.0, 0)
        cell, pin = net.driver
        if cell in netlist["cells"]:
            return self.library.cells[netlist["cells"][cell]["type"]], pin, Load(0.0, 0)
        child = netlist["instances"][cell]["type"]
        port, _, index = pin.rpartition(":")
        inner = self.netlists[child]["ports"][port]["bits"][int(index)]
        if not isinstance(inner, int):
            return self.driving, next(iter(self.driving.outputs)), Load(0.0, 0)
        kind, pin, beyond = self._driver(child, inner)
        own = self.load(child, inner)
        return kind, pin, Load(beyond.ff + own.ff, beyond.pins + own.pins)

    def insert(self, name: str) -> None:
        """Insert buffers into those nets of module ``name`` that have a pin of an instance."""
        netlist = self.netlists[name]
        # Far behind the nets of Yosys, so that new numbers stand out in a dump.
        fresh = max(self._nets[name], default=1) + 1_000_000
        kinds = self.inserted.setdefault(name, {})
        for bit, net in sorted(self._nets[name].items()):
            if not net.touches_instance or not net.sinks or self._is_clock(name, bit):
                continue
            driver, pin, fixed = self._driver(name, bit)
            loads = [self._sink(name, *sink) for sink in net.sinks]
            sinks: list[tuple[str, str, int]] = list(net.sinks)
            for kind, owners in self.planner.plan(driver, pin, fixed, loads).levels:
                cell = self.library.cells[kind]
                (source,), (target,) = cell.caps, cell.outputs
                names = []
                for number in range(max(owners) + 1):
                    buffer = f"{BUFFER}{fresh}"
                    netlist["cells"][buffer] = {
                        "type": kind,
                        "connections": {source: [bit], target: [fresh]},
                    }
                    self._nets[name][fresh] = _Net(driver=(buffer, target))
                    for sink, owner in zip(sinks, owners, strict=True):
                        if owner == number:
                            self._move(name, sink, fresh)
                            self._nets[name][fresh].sinks.append(sink)
                    kinds[kind] = kinds.get(kind, 0) + 1
                    names.append((buffer, source, 0))
                    fresh += 1
                sinks = names
            net.sinks = sinks
        # Loads of this module's nets have changed; parents are inserted later and ask again.
        self._inner = {key: load for key, load in self._inner.items() if key[0] != name}

    def _move(self, name: str, sink: tuple[str, str, int], bit: int) -> None:
        cell, pin, index = sink
        netlist = self.netlists[name]
        owner = netlist["cells"].get(cell) or netlist["instances"][cell]
        owner["connections"][pin][index] = bit


class _Flattener:
    """Joins the modules of a design to one netlist with ``links`` between their nets.

    A link leads from a net to a net that is the same wire in another module.
    """

    def __init__(self, design: _Design, fold: bool):
        self._design, self._fold = design, fold
        self._first: dict[str, int] = {}  # copy of a module -> the number of its bit 0
        self._next = 2
        self._used: dict[str, int] = {}
        self.cells: dict[str, Any] = {}
        self.names: dict[str, list[Any]] = {}
        self.links: list[tuple[int, int, bool]] = []

    def flat(self, top: str) -> dict[str, Any]:
        """Return the netlist of the whole unit."""
        boundary = {
            f"{name}.{pin}"
            for name, instance in self._design.netlists[top]["instances"].items()
            for pin in instance["connections"]
        }
        first = self._add(top, top)
        ports = {
            name: {"direction": port["direction"], "bits": _moved(port["bits"], first)}
            for name, port in self._design.netlists[top]["ports"].items()
            if name not in boundary
        }
        return {"ports": ports, "cells": self.cells, "netnames": self.names, "links": self.links}

    def _add(self, name: str, copy: str) -> int:
        """Add a copy of a module unless it is there, and return the number of its bit 0."""
        if copy in self._first:
            return self._first[copy]
        netlist = self._design.netlists[name]
        first = self._first[copy] = self._next
        bits = [bit for net in netlist["netnames"].values() for bit in net]
        for group in ("cells", "instances"):
            for instance in netlist[group].values():
                bits += [bit for wires in instance["connections"].values() for bit in wires]
        self._next += max((bit for bit in bits if isinstance(bit, int)), default=0) + 1
        # Several modules, or copies, may have the same label.
        label = self._design.labels[name]
        used = self._used[label] = self._used.get(label, 0) + 1
        prefix = label if used == 1 else f"{label}#{used}"
        for cell, instance in netlist["cells"].items():
            wires = {pin: _moved(bits, first) for pin, bits in instance["connections"].items()}
            self.cells[f"{prefix}/{cell}"] = {"type": instance["type"], "connections": wires}
        for net, bits in netlist["netnames"].items():
            self.names[f"{prefix}.{net}"] = _moved(bits, first)
        for cell, instance in netlist["instances"].items():
            child = instance["type"]
            inner = self._add(child, child if self._fold else f"{copy}/{cell}")
            ports = self._design.netlists[child]["ports"]
            for pin, bits in instance["connections"].items():
                down = ports[pin]["direction"] == "input"
                for outside, inside in zip(bits, ports[pin]["bits"], strict=True):
                    if isinstance(outside, int) and isinstance(inside, int):
                        source, target = first + outside, inner + inside
                        # In the direction of the signal; True if it goes into the instance.
                        link = (source, target, True) if down else (target, source, False)
                        self.links.append(link)
        return first


def _moved(bits: list[Any], first: int) -> list[Any]:
    return [first + bit if isinstance(bit, int) else bit for bit in bits]


def _copied(netlist: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(netlist)
    for group in ("cells", "instances"):
        result[group] = {
            name: {
                "type": instance["type"],
                "connections": {pin: list(bits) for pin, bits in instance["connections"].items()},
            }
            for name, instance in netlist.get(group, {}).items()
        }
    return result
