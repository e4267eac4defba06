"""Connectivity of a GDS against the netlist: KLayout extracts the nets from the shapes alone.

A pin of an instance is where the library's GDS has its label, so that the cells are black boxes:
transistors inside of them are not compared. Names of nets take no part in the extraction.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.gds import NAME, layer_numbers, opened
from vitruvian.flows.asic.layout.lef import GdsLayer, Technology

#: Separates the parts of a label.
_BETWEEN = "\t"


@dataclass
class Comparison:
    """What differs between a GDS and a netlist.

    Attributes
    ----------
    opens : list of str
        Nets whose pins are in several pieces of metal.
    shorts : list of (str, ...)
        Groups of nets in one piece of metal.
    missing : list of str
        Instances, pins and ports that the GDS lacks, or has too many.
    pins : int
        Number of labels that were found.
    """

    opens: list[str] = field(default_factory=list)
    shorts: list[tuple[str, ...]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    pins: int = 0

    @property
    def equal(self) -> bool:
        """Whether the GDS has exactly the nets of the netlist."""
        return not (self.opens or self.shorts or self.missing)


def compare(path: Path, top: str, design: LayoutDesign, technology: Technology) -> Comparison:
    """Return how the nets of the cell ``top`` in a GDS differ from those of a design.

    Raises
    ------
    UserError
        If the file has no such cell.
    """
    db: Any = need("klayout.db", "layout")
    book, cell = opened(db, path, top)
    pieces, kinds = _extract(db, book, cell, technology)
    result = Comparison(pins=sum(len(labels) for labels in pieces))
    expected = _expected(design)
    rails = {name for name, _, _ in technology.rails}
    for name, macro in zip(design.names, design.macros, strict=True):
        if kinds.get(name) != macro.name:
            result.missing.append(f"instance {name} must be a {macro.name}, not {kinds.get(name)}")
    found: dict[str, set[int]] = defaultdict(set)  # net -> pieces
    seen: set[str] = set()
    inside: list[set[str]] = []
    for number, labels in enumerate(pieces):
        names = set()
        for label in labels:
            net = _net_of(label, expected, rails)
            if net is None:
                continue
            seen.add(label)
            names.add(net)
            found[net].add(number)
        inside.append(names)
    result.missing += sorted(
        f"pin {label.replace(_BETWEEN, '/')} must be on a metal" for label in expected.keys() - seen
    )
    result.opens = sorted(net for net, parts in found.items() if len(parts) > 1)
    result.shorts = [tuple(sorted(names)) for names in inside if len(names) > 1]
    return result


def _expected(design: LayoutDesign) -> dict[str, str]:
    """Return label -> net of all pins of instances and of all ports."""
    labels = {}
    for net in design.nets:
        for instance, pin in net.pins:
            labels[f"{design.names[instance]}{_BETWEEN}{pin}"] = net.name
    for port in design.ports:
        labels[port.name] = design.nets[port.net].name
    return labels


def _net_of(label: str, expected: dict[str, str], rails: set[str]) -> str | None:
    """Return the net of a label; pins of supplies belong to the supply, others may be open."""
    pin = label.rpartition(_BETWEEN)[2]
    return pin if pin in rails else expected.get(label)


def _extract(
    db: Any, book: Any, cell: Any, technology: Technology
) -> tuple[list[list[str]], dict[str, str]]:
    """Return the labels on each connected piece of metal, and the cell of each named instance."""
    numbers = layer_numbers(technology)
    flat = db.Layout()
    flat.dbu = book.dbu
    block = flat.create_cell("flat")
    for number in numbers.values():
        region = db.Region(cell.begin_shapes_rec(book.layer(number.layer, number.datatype)))
        block.shapes(flat.layer(number.layer, 0)).insert(region)
    metals = [numbers[metal.name] for metal in technology.metals]
    kinds: dict[str, str] = {}
    for instance in cell.each_inst():
        name = instance.property(NAME)
        kinds[str(name)] = instance.cell.name
        for number in metals:
            for shape in instance.cell.shapes(book.layer(number.layer, number.label)).each():
                if shape.is_text():
                    text = shape.text.transformed(instance.trans)
                    label = f"{name}{_BETWEEN}{shape.text.string}"
                    block.shapes(flat.layer(number.layer, 1)).insert(db.Text(label, text.trans))
    for number in metals:
        for shape in cell.shapes(book.layer(number.layer, number.label)).each():
            if shape.is_text():
                block.shapes(flat.layer(number.layer, 1)).insert(shape.text)
    return _labels(db, flat, block, technology, numbers), kinds


def _labels(
    db: Any, flat: Any, block: Any, technology: Technology, numbers: dict[str, GdsLayer]
) -> list[list[str]]:
    """Let KLayout extract the nets of a flat cell, and return the labels of each."""
    extraction = db.LayoutToNetlist(db.RecursiveShapeIterator(flat, block, []))
    names = [layer.name for layer in technology.layers if layer.name in numbers]
    layers = {
        name: extraction.make_layer(flat.layer(numbers[name].layer, 0), name) for name in names
    }
    for name in names:
        extraction.connect(layers[name])
    for cut, (low, high) in zip(technology.cuts, pairwise(technology.metals), strict=False):
        extraction.connect(layers[low.name], layers[cut.name])
        extraction.connect(layers[cut.name], layers[high.name])
    for metal in technology.metals:
        texts = extraction.make_text_layer(
            flat.layer(numbers[metal.name].layer, 1), f"{metal.name} text"
        )
        extraction.connect(layers[metal.name], texts)
    extraction.extract_netlist()
    circuit = extraction.netlist().circuit_by_name("flat")
    return [net.name.split(",") for net in circuit.each_net() if net.name]
