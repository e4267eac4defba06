"""Drawings of datapaths: ranks of boxes with arrows between them, as SVG."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _MAIN = 640, 20, 440  # of the picture; of its margin; of a rank of boxes
_C_LEFT, _C_WIDTH = 500, 120  # the column of C
_GAP, _BETWEEN = 26, 16  # between ranks; between boxes of a rank
_LINE, _PAD = 17, 8
_CHARACTER = 6.6  # mean width of a character


@dataclass(frozen=True)
class Box:
    """A box with a heading and lines below it.

    Attributes
    ----------
    heading : str
    lines : tuple of str
        Longer lines are wrapped.
    """

    heading: str
    lines: tuple[str, ...] = ()

    def wrapped(self, width: float) -> list[str]:
        """Return the heading and the lines as they fit into a width in pixels."""
        many = max(int((width - 2 * _PAD) / _CHARACTER), 8)
        return [part for line in (self.heading, *self.lines) for part in textwrap.wrap(line, many)]


@dataclass(frozen=True)
class Rank:
    """Boxes side by side.

    Attributes
    ----------
    boxes : tuple of Box
    takes_c : bool
        True if C enters the rank's last box.
    """

    boxes: tuple[Box, ...]
    takes_c: bool = False


def draw(title: str, ranks: Sequence[Rank], c: Box | None) -> str:
    """Return the SVG text of a datapath from top to bottom.

    Parameters
    ----------
    title : str
        Description of the picture for readers that cannot see it.
    ranks : sequence of Rank
        Every box of a rank feeds the box below it if both ranks have as many boxes, and otherwise
        every box of the next rank.
    c : Box or None
        The addend, at the right of the first rank.
    """
    parts: list[str] = []
    y, before, entries = 20.0, [], []
    for number, rank in enumerate(ranks):
        places, height = _boxes(parts, rank, y)
        if before:
            _arrows(parts, before, places, y)
        if number == 0 and c is not None:
            c_height = _box(parts, c, _C_LEFT, y, _C_WIDTH)
            c_bottom = y + c_height
        if rank.takes_c:
            # C goes down a column at the right, and an arrow leads from it to each rank that takes
            # it.
            entries.append(y + height / 2)
        before = [(x + width / 2, y + height) for x, width in places]
        y += height + _GAP
    if c is not None and entries:
        middle = _C_LEFT + _C_WIDTH / 2
        parts.append(_path(f"M{middle:g} {c_bottom:g}V{entries[-1]:g}"))
        right = _LEFT + _MAIN
        parts += [_path(f"M{middle:g} {entry:g}H{right:g}", arrow=True) for entry in entries]
    bottom = y - _GAP + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom:g}" '
            f'width="{_WIDTH}" font-family="sans-serif" font-size="13" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>',
            f'<rect width="{_WIDTH}" height="{bottom:g}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _boxes(parts: list[str], rank: Rank, y: float) -> tuple[list[tuple[float, float]], float]:
    """Draw a rank; return the left edge and the width of each box, and the height."""
    many = len(rank.boxes)
    width = (_MAIN - _BETWEEN * (many - 1)) / many
    height = max(_height(box, width) for box in rank.boxes)
    places: list[tuple[float, float]] = []
    for i, box in enumerate(rank.boxes):
        x = _LEFT + i * (width + _BETWEEN)
        _box(parts, box, x, y, width, height)
        places.append((x, width))
    return places, height


def _height(box: Box, width: float) -> float:
    return len(box.wrapped(width)) * _LINE + 2 * _PAD


def _box(
    parts: list[str], box: Box, x: float, y: float, width: float, height: float | None = None
) -> float:
    """Draw one box and return its height."""
    height = _height(box, width) if height is None else height
    parts.append(
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="#eef3f8" '
        'stroke="#31688e"/>'
    )
    headings = len(Box(box.heading).wrapped(width))
    for i, line in enumerate(box.wrapped(width)):
        weight = ' font-weight="bold"' if i < headings else ""
        # The baseline of a line of text, about four fifths of its height down.
        below = y + _PAD + (i + 0.78) * _LINE
        parts.append(
            f'<text x="{x + width / 2:g}" y="{below:.1f}" text-anchor="middle"{weight}>'
            f"{escape(line)}</text>"
        )
    return height


def _arrows(
    parts: list[str],
    before: list[tuple[float, float]],
    places: list[tuple[float, float]],
    y: float,
) -> None:
    """Draw the arrows from one rank to the next, whose top is ``y``."""
    if len(before) == len(places):
        pairs = list(zip(before, places, strict=True))
    # Equal groups of boxes above go to each box below, as in a tree of additions.
    elif len(before) % len(places) == 0:
        each = len(before) // len(places)
        pairs = [(start, places[i // each]) for i, start in enumerate(before)]
    else:
        pairs = [(start, place) for start in before for place in places]
    shared = max(len(before) // len(places), 1) if len(before) != len(places) else 1
    for i, ((x, bottom), (left, width)) in enumerate(pairs):
        # Arrows that meet in one box keep their distance.
        to = left + width * ((i % shared) + 0.5) / shared
        parts.append(_path(f"M{x:g} {bottom:g}L{to:g} {y:g}", arrow=True))


def _path(d: str, *, arrow: bool = False) -> str:
    tip = ' marker-end="url(#tip)"' if arrow else ""
    return f'<path d="{d}" fill="none" stroke="#444"{tip}/>'
