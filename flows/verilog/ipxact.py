"""Describe a module in IP-XACT (IEEE 1685-2014), which many tools for systems on chip read."""

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

#: Namespace of the elements.
NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"

_PORT = re.compile(r"(?m)^ *(input|output) +(?:wire|reg) +(?:\[(\d+):0\] +)?(\w+),?$")


class VerilogPort(NamedTuple):
    """A port of a module: its name, whether it is an input, and its width in bits."""

    name: str
    inward: bool
    width: int


def ports_of(text: str, module: str) -> list[VerilogPort]:
    """Return the ports of a module in Verilog text that ``flows.verilog.emit.emit`` has written."""
    head = text[text.index(f"module {module} (") :]
    found = _PORT.findall(head[: head.index(");")])
    return [VerilogPort(name, way == "input", int(top or 0) + 1) for way, top, name in found]


def component(
    module: str, *, summary: str, version: str, ports: Sequence[VerilogPort], files: Sequence[str]
) -> str:
    """Return the text of ``component.xml``.

    Parameters
    ----------
    module : str
        Name of the module.
    summary : str
        One line about the unit.
    version : str
        Version of the component.
    files : sequence of str
        Verilog files, relative to ``component.xml``.
    """
    ElementTree.register_namespace("ipxact", NAMESPACE)
    root = Element(_tag("component"))
    names = {"vendor": "vitruvian", "library": "units", "name": module, "version": version}
    for name, value in names.items():
        _add(root, name, value)
    # The order of the elements is that of the standard's schema.
    model = _add(root, "model")
    view = _add(_add(model, "views"), "view")
    _add(view, "name", "verilog")
    _add(view, "componentInstantiationRef", "verilog")
    instance = _add(_add(model, "instantiations"), "componentInstantiation")
    _add(instance, "name", "verilog")
    _add(instance, "language", "verilog")
    _add(instance, "moduleName", module)
    _add(_add(instance, "fileSetRef"), "localName", "rtl")
    parent = _add(model, "ports")
    for port in ports:
        _add_port(parent, port)
    group = _add(_add(root, "fileSets"), "fileSet")
    _add(group, "name", "rtl")
    for path in files:
        file = _add(group, "file")
        _add(file, "name", path)
        _add(file, "fileType", "verilogSource")
    _add(root, "description", summary)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _add_port(parent: Element, port: VerilogPort) -> None:
    element = _add(parent, "port")
    # A wire without a vector is a single bit.
    _add(element, "name", port.name)
    wire = _add(element, "wire")
    _add(wire, "direction", "in" if port.inward else "out")
    if port.width > 1:
        vector = _add(_add(wire, "vectors"), "vector")
        _add(vector, "left", str(port.width - 1))
        _add(vector, "right", "0")


def _add(parent: Element, name: str, text: str | None = None) -> Element:
    element = SubElement(parent, _tag(name))
    element.text = text
    return element


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
