"""Timing diagrams as SVG: bits as levels, words as boxes, a column for each cycle.

Simulations write their rows as JSON beside the pages of the documentation, and the site draws them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LEFT, _TOP, _WIDTH, _HEIGHT, _PITCH = 150, 30, 52, 20, 32


@dataclass(frozen=True)
class WaveRow:
    """A line of the picture: a label, and for each cycle a bit, a text, or None for no value."""

    label: str
    values: list[Any]


def text(rows: Sequence[WaveRow]) -> str:
    """Return rows as the JSON text of a document, with a line for each row."""
    lines = (json.dumps([row.label, row.values], ensure_ascii=False) for row in rows)
    return '{"kind": "timing diagram", "rows": [\n' + ",\n".join(lines) + "]}\n"


def draw(document: Mapping[str, Any]) -> str:
    """Return the picture of a document that `text` made as SVG, with a column for each cycle."""
    lines = [WaveRow(label, values) for label, values in document["rows"]]
    cycles = len(lines[0].values)
    width, height = _LEFT + cycles * _WIDTH + 10, _TOP + (len(lines) + 1) * _PITCH
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="monospace" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for cycle in range(cycles + 1):
        x = _LEFT + cycle * _WIDTH
        out.append(f'<path d="M{x} {_TOP - 8}V{height - 8}" stroke="#ddd"/>')
        if cycle < cycles:
            out.append(f'<text x="{x + _WIDTH // 2}" y="16" text-anchor="middle">{cycle}</text>')
    half = _WIDTH // 2
    wave = "".join(f"v{-_HEIGHT}h{half}v{_HEIGHT}h{half}" for _ in range(cycles))
    out += _label("clk", _TOP)
    out.append(f'<path d="M{_LEFT} {_TOP + _HEIGHT}{wave}" fill="none" stroke="black"/>')
    for index, line in enumerate(lines):
        y = _TOP + (index + 1) * _PITCH
        out += _label(line.label, y)
        out += _bits(line.values, y) if isinstance(line.values[0], int) else _words(line.values, y)
    return "\n".join([*out, "</svg>", ""])


def _label(text: str, y: int) -> list[str]:
    return [f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{text}</text>']


def _bits(values: list[int], y: int) -> list[str]:
    path = f"M{_LEFT} {y + _HEIGHT * (1 - values[0])}"
    for value in values:
        path += f"V{y + _HEIGHT * (1 - value)}h{_WIDTH}"
    return [f'<path d="{path}" fill="none" stroke="#0050a0" stroke-width="1.5"/>']


def _words(values: list[str | None], y: int) -> list[str]:
    out: list[str] = []
    begin = 0
    for end in range(1, len(values) + 1):
        if end < len(values) and values[end] == values[begin]:
            continue
        x, w, text = _LEFT + begin * _WIDTH, (end - begin) * _WIDTH, values[begin]
        if text is None:
            out.append(f'<path d="M{x} {y + _HEIGHT // 2}h{w}" stroke="#999"/>')
        else:
            half = _HEIGHT // 2
            shape = f"M{x + 4} {y}h{w - 8}l4 {half}l-4 {half}h{8 - w}l-4 {-half}z"
            out.append(f'<path d="{shape}" fill="#eef4ff" stroke="#0050a0"/>')
            out.append(f'<text x="{x + w // 2}" y="{y + 14}" text-anchor="middle">{text}</text>')
        begin = end
    return out
