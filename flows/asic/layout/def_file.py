"""A layout as DEF, which holds places and wires but no shapes of the library's cells."""

from collections.abc import Iterator

from vitruvian.flows.asic.layout.lef import Rect
from vitruvian.flows.asic.layout.shapes import Layout


def text(layout: Layout, top: str) -> str:
    """Return the DEF of a layout."""
    plan, technology = layout.plan, layout.technology
    lines = [
        "VERSION 5.6 ;",
        "NAMESCASESENSITIVE ON ;",
        'DIVIDERCHAR "/" ;',
        'BUSBITCHARS "[]" ;',
        f"DESIGN {top} ;",
        f"UNITS DISTANCE MICRONS {technology.per_micron} ;",
        f"DIEAREA ( 0 0 ) ( {plan.width} {plan.height} ) ;",
        *_block("COMPONENTS", _components(layout)),
        *_block("PINS", _pins(layout)),
        *_block("SPECIALNETS", _rails(layout)),
        *_block("NETS", _nets(layout)),
        "END DESIGN",
    ]
    return "\n".join(lines) + "\n"


def _block(name: str, items: Iterator[str]) -> list[str]:
    known = list(items)
    return [f"{name} {len(known)} ;", *known, f"END {name}"]


def _components(layout: Layout) -> Iterator[str]:
    for cell in layout.cells:
        turn = "FS" if cell.flipped else "N"
        yield f"- {cell.name} {cell.macro.name} + PLACED ( {cell.at[0]} {cell.at[1]} ) {turn} ;"


def _pins(layout: Layout) -> Iterator[str]:
    for port, (metal, rect) in zip(layout.design.ports, layout.ports, strict=True):
        net = layout.design.nets[port.net].name
        yield (
            f"- {port.name} + NET {net} + DIRECTION {port.direction.upper()} + USE SIGNAL "
            + _pin_shape(layout, metal, rect)
        )
    uses = _uses(layout)
    for supply, rect in layout.rails[-2:]:
        yield (
            f"- {supply} + NET {supply} + DIRECTION INOUT + USE {uses[supply]} "
            + _pin_shape(layout, 0, rect)
        )


def _uses(layout: Layout) -> dict[str, str]:
    return {name: use.upper() for name, use, _ in layout.technology.rails}


def _pin_shape(layout: Layout, metal: int, rect: Rect) -> str:
    x, y = (rect[0] + rect[2]) // 2, (rect[1] + rect[3]) // 2
    name = layout.technology.metals[metal].name
    return (
        f"+ LAYER {name} ( {rect[0] - x} {rect[1] - y} ) ( {rect[2] - x} {rect[3] - y} ) "
        f"+ FIXED ( {x} {y} ) N ;"
    )


def _rails(layout: Layout) -> Iterator[str]:
    metal = layout.technology.metals[0].name
    for supply, use in _uses(layout).items():
        parts = []
        for name, (x0, y0, x1, y1) in layout.rails:
            if name != supply:
                continue
            if x1 - x0 > y1 - y0:
                middle = (y0 + y1) // 2
                parts.append(f"{metal} {y1 - y0} ( {x0} {middle} ) ( {x1} {middle} )")
            else:
                middle = (x0 + x1) // 2
                parts.append(f"{metal} {x1 - x0} ( {middle} {y0} ) ( {middle} {y1} )")
        routed = "\n  NEW ".join(parts)
        yield f"- {supply} ( * {supply} )\n  + ROUTED {routed}\n  + USE {use} ;"


def _nets(layout: Layout) -> Iterator[str]:
    design, metals = layout.design, layout.technology.metals
    for net, shapes in zip(design.nets, layout.nets, strict=True):
        pins = [f"( PIN {design.ports[port].name} )" for port in net.ports]
        pins += [f"( {design.names[instance]} {pin} )" for instance, pin in net.pins]
        parts = []
        for wire in shapes.wires:
            (x0, y0), (x1, y1) = wire.start, wire.end
            # Wires reach half their width beyond their ends, as is usual in DEF.
            parts.append(f"{metals[wire.metal].name} ( {x0} {y0} ) ( {x1} {y1} )")
        for placed in shapes.vias:
            low = next(m.name for m in metals if m.name in placed.via.shapes)
            parts.append(f"{low} ( {placed.at[0]} {placed.at[1]} ) {placed.via.name}")
        routed = "\n  + ROUTED " + "\n  NEW ".join(parts) if parts else ""
        yield f"- {net.name}\n  {' '.join(pins)}{routed} ;"
