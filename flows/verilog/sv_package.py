"""Name the fields of wide ports: a SystemVerilog package of packed structures, and bit ranges.

A port ``i__payload`` whose payload is a structure has the type ``i_payload_t`` in the package
``MODULE_pkg``. A port or a field with codes, such as an opcode, has an enumeration there. The
first member of a packed structure is the uppermost one, so that the members stand in falling order
of their place. Element 0 of an array is the lowest one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from amaranth.hdl import Shape
from amaranth.lib import data

from vitruvian.flows.verilog.netlist.keywords import KEYWORDS
from vitruvian.flows.verilog.opcodes import instruction_codes
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described

#: Port or field -> code -> mnemonic, for numbers that are no enumeration.
InstructionCodes = Mapping[str, Mapping[int, str]]


class Range(NamedTuple):
    """The bits of a field: ``path`` has the port first, and elements of arrays are not in it.

    ``low`` is the place of the lowest bit, in element 0 of every array; ``bits`` is the width,
    with all elements. ``stride`` is the width of an element if the field is an array, else 0.
    """

    path: tuple[str, ...]
    low: int
    bits: int
    stride: int


def files(variant: Variant) -> dict[str, str]:
    """Return the package of a unit by its file name, or nothing if no port has fields or codes."""
    text = package(variant.module, only_described(variant.build()))
    return {f"{variant.module}_pkg.sv": text} if text else {}


def package(module: str, component: Any) -> str:
    """Return a package with types for the ports that have fields or codes, or an empty text.

    Parameters
    ----------
    module : str
        Name of the module; the package has the name ``{module}_pkg``.
    component : wiring.Component
        Supplies the ports.
    """
    codes = instruction_codes(component)
    lines = [line for name, shape in _structured(component) for line in _types(name, shape, codes)]
    lines += _coded(component, codes)
    if not lines:
        return ""
    head = [
        f"// Types and codes of the ports of {module}.",
        "//",
        "// A port has the bits of its type: connect a variable of the type to it.",
        f"package {module}_pkg;",
    ]
    return "\n".join([*head, *(f"  {line}".rstrip() for line in lines), "endpackage", ""])


def ranges(component: Any) -> Iterator[Range]:
    """Yield the bits of every field of the ports that have fields."""
    for name, shape in _structured(component):
        yield from _ranges((name,), shape, 0)


def _structured(component: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the layout of every port that has a structure in it."""
    for path, _, value in component.signature.flatten(component):
        layout = _layout(value.shape())
        inner = layout
        # An array of structures needs a type for its elements.
        while isinstance(inner, data.ArrayLayout):
            inner = _layout(inner.elem_shape)
        if isinstance(inner, data.StructLayout) and Shape.cast(inner).width:
            yield "__".join(map(str, path)), layout


def _layout(shape: Any) -> Any:
    """Return the layout of a structure or an array, or the shape itself."""
    try:
        return data.Layout.cast(shape)
    except TypeError:
        return shape


def _fields(layout: data.StructLayout) -> list[tuple[str, data.Field]]:
    """Return the fields that have bits, the lowest first."""
    fields = [(str(name), field) for name, field in layout if field.width]
    # Layouts list fields in the order of their definition.
    return sorted(fields, key=lambda item: item[1].offset)


def _ranges(path: tuple[str, ...], shape: Any, low: int) -> Iterator[Range]:
    while isinstance(shape, data.ArrayLayout):
        shape = _layout(shape.elem_shape)
    if not isinstance(shape, data.StructLayout):
        return
    for name, field in _fields(shape):
        inner, stride = _layout(field.shape), 0
        if isinstance(inner, data.ArrayLayout):
            stride = Shape.cast(inner.elem_shape).width
        place = (*path, name)
        yield Range(place, low + field.offset, field.width, stride)
        yield from _ranges(place, inner, low + field.offset)


def _coded(component: Any, codes: InstructionCodes) -> Iterator[str]:
    """Yield the lines that name the codes of the ports without fields."""
    structured = {name for name, _ in _structured(component)}
    for path, _, value in component.signature.flatten(component):
        name = "__".join(map(str, path))
        if name in structured:
            continue
        text = list(_codes(name.replace("__", "_"), value.shape(), codes.get(str(path[-1]))))
        # A port with fields has its codes beside them.
        yield from [f"// Codes of port {name}.", *text, ""] if text else []


def _types(name: str, layout: Any, codes: InstructionCodes) -> Iterator[str]:
    """Yield the lines that define the type of a port, and those of the structures in it."""
    base = name.replace("__", "_")
    text, dimensions, before = _type(base, layout, codes)
    yield from before
    # A structure has the name of the port already.
    if dimensions or not text.endswith("_t"):
        yield f"typedef {text}{dimensions} {base}_t;  // port {name}"
    else:
        yield f"// {text} is the type of port {name}."
    yield ""


def _type(
    base: str, shape: Any, codes: InstructionCodes, field: str = ""
) -> tuple[str, str, list[str]]:
    """Return a type, its dimensions, and the lines that define structures and codes for it."""
    dimensions = ""
    shape = _layout(shape)
    array = isinstance(shape, data.ArrayLayout)
    while isinstance(shape, data.ArrayLayout):
        dimensions += f" [{shape.length - 1}:0]"
        shape = _layout(shape.elem_shape)
    if isinstance(shape, data.StructLayout):
        name = f"{base}_element_t" if array else f"{base}_t"
        return name, dimensions, list(_structure(base, name, shape, codes))
    cast = Shape.cast(shape)
    lines = list(_codes(base, shape, codes.get(field)))
    sign = " signed" if cast.signed else ""
    width = f" [{cast.width - 1}:0]" if cast.width > 1 or array else ""
    return f"logic{sign}", dimensions + width, lines


def _codes(base: str, shape: Any, given: Mapping[int, str] | None) -> Iterator[str]:
    """Yield the lines that name the codes of an enumeration; fields keep the type of bits.

    The codes of a plain number are ``given``.
    """
    shape = _layout(shape)
    if isinstance(shape, data.Layout) or Shape.cast(shape).signed:
        return
    width = Shape.cast(shape).width
    members = getattr(shape, "__members__", None) or {}
    codes = given or {int(member.value): name for name, member in members.items()}
    if not codes:
        return
    names = {code: re.sub(r"\W+", "_", f"{base}_{name}").upper() for code, name in codes.items()}
    yield f"typedef enum logic [{width - 1}:0] {{"
    lines = [f"  {name} = {width}'d{code}" for code, name in reversed(names.items())]
    # Codes in rising order; the last one has no comma.
    yield from (f"{line}," for line in lines[:0:-1])
    yield lines[0]
    yield f"}} {base}_e;"


def _structure(
    base: str, name: str, layout: data.StructLayout, codes: InstructionCodes
) -> Iterator[str]:
    """Yield the definition of a structure, after those of the structures in it."""
    members: list[str] = []
    top = layout.size
    for field_name, field in reversed(_fields(layout)):
        text, dimensions, before = _type(f"{base}_{field_name}", field.shape, codes, field_name)
        yield from before
        # A packed structure has no gaps, so that one in the layout would move all members above it.
        if top > field.offset + field.width:
            raise ValueError(f"fields of {base} must touch, not leave bits free")
        top = field.offset
        # A field may be called ``type`` or ``begin`` in Python.
        member = f"{field_name}_v" if field_name in KEYWORDS else field_name
        width = f"[{field.offset} +: {field.width}]"
        members.append(f"  {text}{dimensions} {member};  // {width}")
    yield "typedef struct packed {"
    yield from members
    yield f"}} {name};"
