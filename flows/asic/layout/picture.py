"""A layout as SVG: outlines of cells, and the wires of each metal in its own colour."""

import re
from collections import defaultdict

from vitruvian.flows.asic.layout.lef import Technology
from vitruvian.flows.asic.layout.shapes import Layout

#: Colours of the metals from the lowest, which hold also on a dark page.
_COLOURS = ("#6b7f99", "#d1495b", "#2e86ab", "#3a9d5d", "#e09f3e", "#8e5ea2")
#: Names of flip-flops: DFF_X1, SDFFR_X2, sg13g2_dfrbpq_1.
_REGISTERS = re.compile(r"(?:^|_)s?df", re.IGNORECASE)
_CELL, _REGISTER, _FILL = "#e8edf3", "#cfdcee", "#f7f8fa"
#: Width of the picture in CSS pixels.
_WIDTH = 760


def svg(layout: Layout, title: str) -> str:
    """Return the picture of a layout.

    Parameters
    ----------
    title : str
        Text below the picture.
    """
    plan, technology = layout.plan, layout.technology
    # Whole numbers of 10 nm keep the file small.
    unit = technology.per_micron / 100
    width, height = round(plan.width / unit), round(plan.height / unit)
    letters = round(width * 14 / _WIDTH)
    bottom = height + 3 * letters
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" '
        f'width="{_WIDTH}" height="{round(_WIDTH * bottom / width)}">',
        f'<rect width="{width}" height="{bottom}" fill="#ffffff"/>',
        f'<g transform="matrix(1 0 0 -1 0 {height})">',
        *_cells(layout, unit),
        *_wires(layout, unit, technology),
        "</g>",
        *_legend(layout, title, letters, height),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _cells(layout: Layout, unit: float) -> list[str]:
    paths: dict[str, list[str]] = defaultdict(list)
    count = len(layout.design.names)
    for number, cell in enumerate(layout.cells):
        x, y = (round(v / unit) for v in cell.at)
        w, h = round(cell.macro.width / unit), round(cell.macro.height / unit)
        register = _REGISTERS.search(cell.macro.name) is not None
        colour = _FILL if number >= count else _REGISTER if register else _CELL
        paths[colour].append(f"M{x} {y}h{w}v{h}h-{w}z")
    return [
        f'<path fill="{colour}" stroke="#9aa7b8" stroke-width="4" d="{"".join(parts)}"/>'
        for colour, parts in paths.items()
    ]


def _wires(layout: Layout, unit: float, technology: Technology) -> list[str]:
    paths: dict[int, list[str]] = defaultdict(list)
    for shapes in layout.nets:
        for wire in shapes.wires:
            (x0, y0), (x1, y1) = wire.start, wire.end
            dx, dy = round((x1 - x0) / unit), round((y1 - y0) / unit)
            step = f"h{dx}" if dx else f"v{dy}"
            paths[wire.metal].append(f"M{round(x0 / unit)} {round(y0 / unit)}{step}")
    return [
        f'<path fill="none" stroke="{_COLOURS[metal % len(_COLOURS)]}" stroke-opacity="0.8" '
        f'stroke-width="{technology.metals[metal].width / unit:g}" d="{"".join(parts)}"/>'
        for metal, parts in sorted(paths.items())
    ]


def _legend(layout: Layout, title: str, letters: int, height: int) -> list[str]:
    style = f'font-family="sans-serif" font-size="{letters}" fill="#333333"'
    lines = [f'<text x="{letters}" y="{height + round(1.2 * letters)}" {style}>{title}</text>']
    metals = sorted({wire.metal for shapes in layout.nets for wire in shapes.wires})
    for number, metal in enumerate(metals):
        x, y = letters * (1 + 7 * number), height + round(2.6 * letters)
        colour = _COLOURS[metal % len(_COLOURS)]
        lines.append(
            f'<text x="{x}" y="{y}" {style.replace("#333333", colour)}>'
            f"{layout.technology.metals[metal].name}</text>"
        )
    return lines
