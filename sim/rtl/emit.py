"""Conversion of an Amaranth component to Verilog text and to a ``sim.rtl.ports.Interface``."""

import re
from typing import Any

from amaranth.hdl import Shape, ShapeCastable, ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from vitruvian.hdl import elaborate

from .dedupe import deduplicate
from .ports import Interface, Leaf, Port, Stream, plain_port
from .yosys import verilog_of_rtlil


def to_rtlil(component: wiring.Component, *, name: str = "top") -> str:
    """Return the RTLIL of a component, without source positions and with every module only once.

    Equal designs therefore give equal texts.
    """
    shared = getattr(component, "shared", ())
    return deduplicate(elaborate.to_rtlil(component, name=name, shared=shared))


def to_verilog(component: wiring.Component, *, name: str = "top") -> str:
    """Return the Verilog of a component.

    The Yosys that Amaranth brings writes it, so that the text is the same on every machine.
    """
    return verilog_of(to_rtlil(component, name=name))


def verilog_of(text: str) -> str:
    """Return the Verilog of RTLIL text."""
    return verilog_of_rtlil(text)


def interface_of(component: wiring.Component) -> Interface:
    """Return the data ports and streams of a component's signature."""
    elaborate.only_described(component)
    ports: dict[str, list[Any]] = {"in": [], "out": [], "streams_in": [], "streams_out": []}
    _collect(component.signature, "", False, ports)
    return Interface(
        inputs=tuple(ports["in"]),
        outputs=tuple(ports["out"]),
        streams_in=tuple(ports["streams_in"]),
        streams_out=tuple(ports["streams_out"]),
    )


def _collect(signature: Any, prefix: str, flipped: bool, ports: dict[str, list[Any]]) -> None:
    for name, member in signature.members.items():
        names = [f"{prefix}{name}"]
        for count in member.dimensions:
            # As Amaranth names the elements of a port with dimensions.
            names = [f"{n}__{i}" for n in names for i in range(count)]
        for full in names:
            inward = (member.flow == In) != flipped
            if member.is_port:
                _add_port(ports["in" if inward else "out"], full, member.shape)
                continue
            inner = member.signature.flip() if member.flow == In else member.signature
            if isinstance(inner, stream.Signature):
                _add_stream(ports["streams_in" if inward else "streams_out"], full, inner)
            else:
                _collect(inner, f"{full}__", inward, ports)


def _add_port(into: list[Port], name: str, shape: ShapeLike) -> None:
    width = Shape.cast(shape).width
    if width:
        into.append(Port(name=name, width=width, leaves=tuple(_leaves(shape, 0, (), ()))))


def _add_stream(into: list[Stream], name: str, signature: stream.Signature) -> None:
    payload: list[Port] = []
    _add_port(payload, f"{name}__payload", signature.members["payload"].shape)
    if not payload:
        raise ValueError(f"payload of stream {name} must have at least one bit, not 0")
    into.append(
        Stream(
            name=name,
            payload=payload[0],
            valid=None if signature.always_valid else f"{name}__valid",
            ready=None if signature.always_ready else f"{name}__ready",
        )
    )


def _leaves(shape: Any, offset: int, path: tuple[str, ...], dims: tuple) -> list[Leaf]:
    # Enumerations and the like become plain shapes; layouts are kept for their fields.
    while isinstance(shape, ShapeCastable) and not isinstance(shape, data.Layout):
        shape = shape.as_shape()
    if isinstance(shape, data.StructLayout):
        leaves = []
        for key, field in shape:
            leaves += _leaves(field.shape, offset + field.offset, (*path, str(key)), dims)
        return leaves
    if isinstance(shape, data.ArrayLayout):
        stride = Shape.cast(shape.elem_shape).width
        return _leaves(shape.elem_shape, offset, path, (*dims, (shape.length, stride)))
    plain = Shape.cast(shape)
    if not plain.width:
        return []
    return [Leaf(path=path, offset=offset, width=plain.width, signed=plain.signed, dims=dims)]


def module_ports(text: str, top: str) -> list[str]:
    """Return the port names of module ``top`` in Verilog text, in the order of its header.

    Raises
    ------
    ValueError
        If the text has no such module.
    """
    return [
        chunk.split()[-1].lstrip("\\")
        for chunk in _header(text, top)[0].split(",")
        if chunk.split()
    ]


def interface_from_verilog(text: str, top: str) -> Interface:
    """Return the ports of module ``top`` as plain numbers, without ``clk`` and ``rst``.

    A declaration such as ``input [7:0] a`` may be in the header or in the body of the module. Its
    bounds must be literal numbers.

    Raises
    ------
    ValueError
        If the text has no such module, or the declaration of a port is not found.
    """
    inputs, outputs = [], []
    for name, way, width, signed in _declarations(text, top):
        if name in ("clk", "rst"):
            continue
        port = plain_port(name, width, signed=signed)
        (inputs if way == "input" else outputs).append(port)
    return Interface(inputs=tuple(inputs), outputs=tuple(outputs))


def declared_ports(text: str, top: str) -> list[tuple[str, str, int]]:
    """Return name, direction (``input`` or ``output``) and width in bits of every port.

    The ports include clock and reset; ``interface_from_verilog`` says which declarations are read.
    """
    return [(name, way, width) for name, way, width, _ in _declarations(text, top)]


def _declarations(text: str, top: str) -> list[tuple[str, str, int, bool]]:
    """Return name, direction, width and signedness of every port, with clock and reset."""
    header, body = _header(text, top)
    ports = []
    for name in module_ports(text, top):
        match = re.search(
            r"\b(input|output)\s+(?:(?:wire|reg|logic)\s+)?(signed\s+)?"
            rf"(?:\[\s*(-?\d+)\s*:\s*(\d+)\s*\]\s*)?{re.escape(name)}\s*(?=[,;)]|$)",
            header + ";" + body,
        )
        if match is None:
            raise ValueError(f"port {name} of {top} must be declared as input or output")
        # Yosys writes a port of width 0 as [-1:0], which by the rules of Verilog has two bits.
        width = abs(int(match[3]) - int(match[4])) + 1 if match[3] else 1
        ports.append((name, match[1], width, bool(match[2])))
    return ports


def _header(text: str, top: str) -> tuple[str, str]:
    """Return the text between the parentheses of a module's header, and the module's body."""
    # Comments and attributes may contain words of declarations.
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\(\*.*?\*\)", "", text, flags=re.DOTALL)
    match = re.search(
        rf"\bmodule\s+{re.escape(top)}\s*\((.*?)\)\s*;(.*?)\bendmodule\b", text, re.DOTALL
    )
    if match is None:
        raise ValueError(f"Verilog must have a module {top}")
    return match[1], match[2]
