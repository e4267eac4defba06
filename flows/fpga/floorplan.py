"""A picture of the placement of a design on an FPGA."""

from collections import Counter
from collections.abc import Mapping

from vitruvian.flows.fpga.place import BoardDesign, RoutedDesign

#: Kind of cell -> colour, in the order in which the legend names them. The colours differ in
#: brightness as well, so that they can be told apart without their hue.
_COLOURS = {
    "LUT": "#4c9be8",
    "FF": "#1b4f8f",
    "DSP": "#e07b00",
    "BRAM": "#2a9d4f",
    "IO": "#c2185b",
}

#: Kind -> beginnings of nextpnr's names of its cells, over all families. An iCE40 cell has a LUT
#: and a flip-flop, and counts as a LUT.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "LUT": ("TRELLIS_COMB", "ICESTORM_LC", "LUT", "ALU", "MUX2", "RAM16"),
    "FF": ("TRELLIS_FF", "DFF"),
    "DSP": ("MULT", "ICESTORM_DSP", "ALU54", "PADD"),
    "BRAM": ("DP16KD", "PDPW16KD", "ICESTORM_RAM", "BSRAM", "SDP", "DPB", "DPX", "SPX", "pROM"),
    "IO": ("TRELLIS_IO", "SB_IO", "IBUF", "OBUF", "IOB"),
}

_TILE = 7  # width and height of a tile in the picture
_MARGIN = 12


def kind_of(name: str) -> str | None:
    """Return the kind of a placed cell, a key of the legend, or None if it is not drawn."""
    starts = [(len(s), kind) for kind, all_ in _NAMES.items() for s in all_ if name.startswith(s)]
    return max(starts)[1] if starts else None


def draw(work: BoardDesign, routed: RoutedDesign) -> str:
    """Return the floorplan as SVG: one square for each tile, filled by what is in it.

    A tile with cells of several kinds is divided by their numbers. The strength of a colour is not
    used, so a tile with one cell looks like a full one.
    """
    tiles: dict[tuple[int, int], Counter[str]] = {}
    for name, x, y in routed.placement:
        kind = kind_of(name)
        if kind:
            tiles.setdefault((x, y), Counter())[kind] += 1
    columns, rows = work.board.grid
    width = max(columns * _TILE, 420) + 2 * _MARGIN
    top = 62
    height = top + rows * _TILE + _MARGIN
    text = 'font-family="sans-serif" font-size'
    clock = "no clock frequency" if routed.fmax_mhz is None else f"{routed.fmax_mhz:.1f} MHz"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="20" {text}="13" fill="#222222">{work.board.description}, '
        f"{clock}</text>",
    ]
    parts += _legend(Counter(kind for tile in tiles.values() for kind in tile.elements()), text)
    parts.append(
        f'<rect x="{_MARGIN}" y="{top}" width="{columns * _TILE}" height="{rows * _TILE}" '
        'fill="#f2f2f2" stroke="#888888"/>'
    )
    shapes: dict[str, list[str]] = {kind: [] for kind in _COLOURS}
    for (x, y), counts in sorted(tiles.items()):
        left = _MARGIN + x * _TILE
        total, done = counts.total(), 0
        for kind in _COLOURS:
            # A kind of which there are few in the tile still gets a column of its own.
            part = max(1, round(counts[kind] / total * (_TILE - 1))) if counts[kind] else 0
            part = min(part, _TILE - 1 - done)
            if part:
                shapes[kind].append(f"M{left + done} {top + y * _TILE}h{part}v{_TILE - 1}h{-part}z")
                done += part
    parts += [
        f'<path fill="{_COLOURS[kind]}" d="{"".join(shape)}"/>'
        for kind, shape in shapes.items()
        if shape
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(counts: Counter[str], text: str) -> list[str]:
    """Return the squares and words of the kinds that are in the picture."""
    parts: list[str] = []
    at = _MARGIN
    for kind, colour in _COLOURS.items():
        if counts[kind]:
            word = f"{kind} {counts[kind]:,}"
            parts.append(f'<rect x="{at}" y="34" width="12" height="12" fill="{colour}"/>')
            parts.append(f'<text x="{at + 17}" y="44" {text}="12" fill="#222222">{word}</text>')
            at += 30 + 8 * len(word)
    return parts
