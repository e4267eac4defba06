"""The design that is laid out: instances, nets and ports, taken from a mapped netlist."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.layout.lef import CellMacro, Technology

#: Pins with a constant that a cell drives.
_TIED = 8


@dataclass(frozen=True)
class PortBit:
    """A bit of a port: its name, its direction and its net."""

    name: str
    direction: str
    net: int


@dataclass
class LayoutNet:
    """A net: its name, the pins that it joins (instance, pin), and its ports (indices)."""

    name: str
    bit: int | None = None
    pins: list[tuple[int, str]] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)


@dataclass
class LayoutDesign:
    """Instances (names and cells), nets and ports; their indices are their numbers.

    Attributes
    ----------
    names : list of str
        Names of the instances, which are unique and need no escapes in DEF.
    macros : list of CellMacro
        Cell of each instance.
    sources : list of str
        Name of each instance in the netlist; empty for cells that drive constants.
    """

    names: list[str] = field(default_factory=list)
    macros: list[CellMacro] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    nets: list[LayoutNet] = field(default_factory=list)
    ports: list[PortBit] = field(default_factory=list)

    def terminals(self, net: int) -> int:
        """Return the number of pins and ports that a net joins."""
        return len(self.nets[net].pins) + len(self.nets[net].ports)


def build(netlist: dict[str, Any], technology: Technology) -> LayoutDesign:
    """Return the design of a mapped netlist, with a cell for every constant at a pin.

    Raises
    ------
    UserError
        If the library has no such cell or pin, or if a pin lacks a shape.
    """
    design = LayoutDesign()
    labels = _labels(netlist)
    numbers: dict[int, int] = {}
    tied: dict[str, list[int]] = {}

    def net(bit: Any) -> int:
        if isinstance(bit, str):
            return _tie(design, technology, bit, tied)
        if bit not in numbers:
            numbers[bit] = len(design.nets)
            design.nets.append(LayoutNet(labels.get(bit, f"n{bit}"), bit))
        return numbers[bit]

    for number, (source, cell) in enumerate(sorted(netlist["cells"].items())):
        macro = _macro(technology, cell["type"])
        instance = len(design.names)  # constants have instances of their own between those
        design.names.append(f"u{number}")
        design.macros.append(macro)
        design.sources.append(source)
        for pin, bits in cell["connections"].items():
            if pin not in macro.pins or not macro.pins[pin].shapes:
                raise UserError(f"LEF of {macro.name} must have a pin {pin} with shapes")
            if bits:
                design.nets[net(bits[0])].pins.append((instance, pin))
    for name, port in netlist["ports"].items():
        for index, bit in enumerate(port["bits"]):
            label = f"{name}[{index}]" if len(port["bits"]) > 1 else name
            number = net(bit)
            design.nets[number].ports.append(len(design.ports))
            design.ports.append(PortBit(label, port["direction"], number))
    return design


def _macro(technology: Technology, name: str) -> CellMacro:
    if name not in technology.macros:
        raise UserError(f"cell {name} must be in the LEF of the library")
    return technology.macros[name]


def _tie(
    design: LayoutDesign, technology: Technology, bit: str, known: dict[str, list[int]]
) -> int:
    """Return the net of a cell that drives a constant (0 if its value is open).

    Every cell of this kind serves ``_TIED`` pins, one after the other; ``known`` has their nets.
    """
    constant = "1" if bit == "1" else "0"
    if constant not in technology.ties:
        raise UserError(f"library must have a cell that drives the constant {constant}")
    nets = known.setdefault(constant, [])
    if nets and design.terminals(nets[-1]) <= _TIED:
        return nets[-1]
    kind, pin = technology.ties[constant]
    number = sum(map(len, known.values()))
    # Instances of the netlist are numbered, so that the letter keeps the names apart.
    design.names.append(f"t{number}")
    design.macros.append(_macro(technology, kind))
    design.sources.append("")
    net = LayoutNet(f"tie{number}")
    design.nets.append(net)
    net.pins.append((len(design.names) - 1, pin))
    nets.append(len(design.nets) - 1)
    return nets[-1]


def _labels(netlist: dict[str, Any]) -> dict[int, str]:
    """Return a readable and unique name for the bits that the RTL has named."""
    best: dict[int, str] = {}
    taken: set[str] = set()
    for label, bit in _named_bits(netlist):
        if bit not in best and label not in taken:
            best[bit] = label
            taken.add(label)
    return best


def _named_bits(netlist: dict[str, Any]) -> Iterator[tuple[str, int]]:
    ports = {name: port["bits"] for name, port in netlist["ports"].items()}
    for names in (ports, netlist.get("netnames", {})):
        for name, bits in names.items():
            if re.fullmatch(r"[A-Za-z_]\w*", name) is None or re.fullmatch(r"n\d+|tie\d+", name):
                continue
            for index, bit in enumerate(bits):
                if isinstance(bit, int):
                    yield (f"{name}[{index}]" if len(bits) > 1 else name), bit
