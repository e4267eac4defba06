"""A picture of all packages on their floors, with the imports between them."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

#: Top folder -> colour of its packages.
_COLOURS = {
    "golden": "#f7e9c8",
    "hdl": "#d9ecd9",
    "sim": "#dce8f6",
    "flows": "#f6dfe6",
    "vitruvian": "#e6e0f2",
}

_WIDTH, _LEFT, _TOP = 760, 34, 62
_BOX, _GAP, _LINE, _FLOOR = 17, 6, 25, 14  # height of a box, spaces between boxes, lines and floors
_LETTER = 6.2  # mean width of a letter of 10 pixels


def draw(document: Mapping[str, Any]) -> str:
    """Return the packages of a document of ``benchmarks/house.py`` as SVG.

    Parameters
    ----------
    document : mapping
        ``title``; ``packages``, pairs of a folder and its floor; ``arrows`` and ``upwards``, pairs
        of the places of a package and of one that it imports.
    """
    boxes, labels, height = _placed(document["packages"])
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="10">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="13">{escape(document["title"])}</text>',
        *_legend(len(document["upwards"])),
    ]
    for kind, style in (("arrows", "#8a94a6"), ("upwards", "#d01c1c")):
        path = "".join(_arrow(boxes[a], boxes[b]) for a, b in document[kind])
        wide = 'stroke-width="0.5" opacity="0.55"' if kind == "arrows" else 'stroke-width="1.1"'
        out.append(f'<path d="{path}" fill="none" stroke="{style}" {wide}/>')
    for (name, _), (x, y, wide) in zip(document["packages"], boxes, strict=True):
        top, _, inner = name.partition("/")
        out.append(
            f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{_BOX}" rx="3" '
            f'fill="{_COLOURS[top]}" stroke="#667"/>'
            f'<text x="{x + wide / 2:.0f}" y="{y + 12}" text-anchor="middle">'
            f"{escape(inner or top)}</text>"
        )
    out += [f'<text x="10" y="{y + 12}" fill="#667">{floor}</text>' for floor, y in labels]
    return "\n".join([*out, "</svg>", ""])


def _legend(upwards: int) -> Iterator[str]:
    x = 10
    for top, colour in _COLOURS.items():
        yield f'<rect x="{x}" y="32" width="12" height="12" fill="{colour}" stroke="#667"/>'
        yield f'<text x="{x + 17}" y="42">{top}</text>'
        x += 30 + 7 * len(top)
    text = f"imports that lead upwards or in a circle: {upwards}"
    yield f'<path d="M{x} 38h14" stroke="#d01c1c"/><text x="{x + 20}" y="42">{text}</text>'


def _placed(
    packages: list[tuple[str, int]],
) -> tuple[list[tuple[float, int, float]], list[tuple[int, int]], int]:
    """Return x, y and width of each package's box, the floors with their y, and the height."""
    order = list(_COLOURS)
    boxes: dict[int, tuple[float, int, float]] = {}
    labels: list[tuple[int, int]] = []
    y = _TOP
    for floor in sorted({floor for _, floor in packages}, reverse=True):
        places = [i for i, (_, each) in enumerate(packages) if each == floor]
        places.sort(key=lambda i: (order.index(packages[i][0].partition("/")[0]), packages[i][0]))
        labels.append((floor, y))
        x = float(_LEFT)
        for i in places:
            top, _, inner = packages[i][0].partition("/")
            wide = _LETTER * len(inner or top) + 10
            if x + wide > _WIDTH - 10:
                x, y = float(_LEFT), y + _LINE
            boxes[i] = (x, y, wide)
            x += wide + _GAP
        y += _LINE + _FLOOR
    return [boxes[i] for i in range(len(packages))], labels, y


def _arrow(first: tuple[float, int, float], other: tuple[float, int, float]) -> str:
    """Return a line from the bottom of a box to the top of a lower one, or from top to bottom."""
    x, y = first[0] + first[2] / 2, first[1]
    u, v = other[0] + other[2] / 2, other[1]
    down = v > y
    return f"M{x:.0f} {y + _BOX * down}L{u:.0f} {v + _BOX * (not down)}"
