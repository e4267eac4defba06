"""A picture of the placement of a design on an FPGA.

The documentation keeps the document from which the site draws it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

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


def plan(work: BoardDesign, routed: RoutedDesign) -> dict[str, Any]:
    """Return the document of a placement: what is in each tile, in parts of its width.

    A tile with cells of several kinds is divided by their numbers. The strength of a colour is not
    used, so a tile with one cell looks like a full one.

    Returns
    -------
    document : dict
        ``title``; ``grid``, the columns and rows of tiles; ``cells``, the number of cells by kind;
        ``tiles``: for each kind x, y and width, tile after tile in one list.
    """
    tiles: dict[tuple[int, int], Counter[str]] = {}
    for name, x, y in routed.placement:
        kind = kind_of(name)
        if kind:
            tiles.setdefault((x, y), Counter())[kind] += 1
    clock = "no clock frequency" if routed.fmax_mhz is None else f"{routed.fmax_mhz:.1f} MHz"
    total = Counter(kind for tile in tiles.values() for kind in tile.elements())
    shapes: dict[str, list[int]] = {kind: [] for kind in _COLOURS if total[kind]}
    for (x, y), counts in sorted(tiles.items()):
        done = 0
        for kind in shapes:
            # A kind of which there are few in the tile still gets a column of its own.
            share = counts[kind] / counts.total() * (_TILE - 1)
            part = min(max(1, round(share)) if counts[kind] else 0, _TILE - 1 - done)
            if part:
                shapes[kind] += [x, y, part]
                done += part
    return {
        "kind": "floorplan",
        "title": f"{work.board.description}, {clock}",
        "grid": list(work.board.grid),
        "cells": {kind: total[kind] for kind in shapes},
        "tiles": shapes,
    }


def text(document: Mapping[str, Any]) -> str:
    """Return a document of `plan` as JSON with one line for each kind of cell."""
    head = json.dumps({k: v for k, v in document.items() if k != "tiles"}, ensure_ascii=False)
    lines = ",\n".join(
        f"  {json.dumps(kind)}: {json.dumps(tiles, separators=(',', ':'))}"
        for kind, tiles in document["tiles"].items()
    )
    return f'{head[:-1]}, "tiles": {{\n{lines}}}}}\n'


def draw(document: Mapping[str, Any]) -> str:
    """Return the picture of a document of `plan` as SVG: a square for each tile, filled by kind."""
    columns, rows = document["grid"]
    width = max(columns * _TILE, 420) + 2 * _MARGIN
    top = 62
    height = top + rows * _TILE + _MARGIN
    font = 'font-family="sans-serif" font-size'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="20" {font}="13" fill="#222222">{escape(document["title"])}</text>',
    ]
    parts += _legend(document["cells"], font)
    parts.append(
        f'<rect x="{_MARGIN}" y="{top}" width="{columns * _TILE}" height="{rows * _TILE}" '
        'fill="#f2f2f2" stroke="#888888"/>'
    )
    filled: Counter[tuple[int, int]] = Counter()  # width that the kinds before have taken
    for kind, tiles in document["tiles"].items():
        shape = ""
        for x, y, part in zip(tiles[::3], tiles[1::3], tiles[2::3], strict=True):
            left = _MARGIN + x * _TILE + filled[x, y]
            shape += f"M{left} {top + y * _TILE}h{part}v{_TILE - 1}h{-part}z"
            filled[x, y] += part
        parts.append(f'<path fill="{_COLOURS[kind]}" d="{shape}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(cells: Mapping[str, int], font: str) -> list[str]:
    """Return the squares and words of the kinds that are in the picture."""
    parts: list[str] = []
    at = _MARGIN
    for kind, count in cells.items():
        word = f"{kind} {count:,}"
        parts.append(f'<rect x="{at}" y="34" width="12" height="12" fill="{_COLOURS[kind]}"/>')
        parts.append(f'<text x="{at + 17}" y="44" {font}="12" fill="#222222">{word}</text>')
        at += 30 + 8 * len(word)
    return parts
