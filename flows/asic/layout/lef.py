"""Reader of LEF: the layers, vias and sites of a technology, and the shapes of its cells.

All lengths become whole database units, of which a micron has ``Technology.per_micron``. Polygons
become rectangles, because all polygons of cells have horizontal and vertical edges.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

#: A rectangle: left, bottom, right, top.
Rect = tuple[int, int, int, int]


class LefError(ValueError):
    """A LEF text that cannot be read; the message names the word that is wrong."""


@dataclass(frozen=True)
class RoutingLayer:
    """A metal layer: lengths in database units, capacitances in fF per µm² and per µm of edge.

    ``wide`` has rows (width, parallel length, spacing): a shape of at least this width keeps this
    spacing to others beside it over more than the length. ``least_area`` is 0 without a rule.
    """

    name: str
    horizontal: bool
    width: int
    spacing: int
    pitch: int
    offset: tuple[int, int]
    wide: tuple[tuple[int, int, int], ...]
    least_area: int
    area_ff: float
    edge_ff: float

    def ff_per_micron(self, micron: int) -> float:
        """Return the capacitance of a micron of a wire of the usual width, to ground."""
        return self.area_ff * self.width / micron + 2 * self.edge_ff


@dataclass(frozen=True)
class CutLayer:
    """A layer of vias: width of a cut and spacing of cuts, in database units.

    ``crowded`` has rows (count, distance, spacing): a cut with so many neighbours within the
    distance keeps this spacing to them.
    """

    name: str
    width: int
    spacing: int
    crowded: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ViaShape:
    """A via: its rectangles by layer, around the origin."""

    name: str
    shapes: dict[str, tuple[Rect, ...]]


@dataclass(frozen=True)
class MacroPin:
    """A pin of a cell: its direction, its use (``signal``, ``power`` or ``ground``), its shapes."""

    name: str
    direction: str
    use: str
    shapes: dict[str, tuple[Rect, ...]]


@dataclass(frozen=True)
class CellMacro:
    """A cell: width, height, pins, obstructions, and its class in words such as ``core spacer``."""

    name: str
    width: int
    height: int
    pins: dict[str, MacroPin]
    obstructions: dict[str, tuple[Rect, ...]]
    kind: str = "core"

    @property
    def passive(self) -> bool:
        """Whether the cell has pins of supplies alone, as fillers and taps have."""
        return all(pin.use in ("power", "ground") for pin in self.pins.values())


@dataclass(frozen=True)
class GdsLayer:
    """A layer in GDS: layer and datatype of its shapes, and the datatypes of labels and pins.

    Pins have no shapes of their own if their datatype is None.
    """

    layer: int
    datatype: int = 0
    label: int = 0
    pin: int | None = None


@dataclass
class Technology:
    """What the LEF files say of a process, and what the library adds to it.

    Attributes
    ----------
    per_micron, grid : int
        Database units per micron, and those of the manufacturing grid.
    layers : list of RoutingLayer or CutLayer
        Metals and cuts from the lowest to the highest.
    vias : dict of str to ViaShape
    site : (int, int)
        Width and height of a site, which is the unit of placement.
    macros : dict of str to CellMacro
    ties : dict of str to (str, str)
        Constant -> cell that drives it, and its output. LEF says nothing of them.
    gds : dict of str to GdsLayer
        Layers of the GDS; without any, metals and cuts have the layers from 11 on.
    """

    per_micron: int = 0
    grid: int = 1
    layers: list[RoutingLayer | CutLayer] = field(default_factory=list)
    vias: dict[str, ViaShape] = field(default_factory=dict)
    site: tuple[int, int] = (0, 0)
    macros: dict[str, CellMacro] = field(default_factory=dict)
    ties: dict[str, tuple[str, str]] = field(default_factory=dict)
    gds: dict[str, GdsLayer] = field(default_factory=dict)

    @property
    def tap(self) -> CellMacro | None:
        """The cell that ties wells to the rails; None if all cells do so themselves."""
        found = [m for m in self.macros.values() if m.passive and "TAP" in m.name.upper()]
        return found[0] if found else None

    @property
    def fillers(self) -> dict[int, CellMacro]:
        """Width in sites -> cell without transistors that fills a gap of a row."""
        found = [
            macro
            for name, macro in sorted(self.macros.items(), reverse=True)
            if macro.passive and ("spacer" in macro.kind.split() or name.startswith("FILL"))
        ]
        return {macro.width // self.site[0]: macro for macro in found}

    @property
    def rails(self) -> list[tuple[str, str, int]]:
        """The rails of an upright row, the lower one first: supply, its use, half of its width."""
        metal = self.metals[0].name
        found = {}
        for macro in self.macros.values():
            for pin in macro.pins.values():
                for rect in pin.shapes.get(metal, ()) if pin.use in ("power", "ground") else ():
                    for edge in (0, macro.height):
                        if rect[1] < edge < rect[3] and macro.height == self.site[1]:
                            found[edge] = (pin.name, pin.use, min(edge - rect[1], rect[3] - edge))
        if len(found) != 2:
            raise LefError("LEF must have cells with rails over their lower and upper edge")
        return [found[0], found[self.site[1]]]

    @property
    def metals(self) -> list[RoutingLayer]:
        """The metal layers from the lowest to the highest."""
        return [layer for layer in self.layers if isinstance(layer, RoutingLayer)]

    @property
    def cuts(self) -> list[CutLayer]:
        """The layers of vias from the lowest to the highest."""
        return [layer for layer in self.layers if isinstance(layer, CutLayer)]

    def microns(self, length: float) -> float:
        """Return a length in microns."""
        return length / self.per_micron


def read(*texts: str) -> Technology:
    """Return the technology that LEF texts describe together, the one with the layers first.

    Raises
    ------
    LefError
        If a text ends early, if a number is missing or is no multiple of a database unit, or if
        the texts have no layers, no site or no cells.
    """
    technology = Technology()
    for text in texts:
        _Reader(text, technology).run()
    for what, known in (
        ("UNITS with DATABASE MICRONS", technology.per_micron),
        ("routing layers", technology.metals),
        ("a SITE", technology.site[0]),
        ("cells (MACRO)", technology.macros),
    ):
        if not known:
            raise LefError(f"LEF must have {what}")
    lowest = technology.layers.index(technology.metals[0])
    technology.layers = technology.layers[lowest:]  # contacts to transistors are not ours
    for number, layer in enumerate(technology.layers):
        if isinstance(layer, CutLayer) and not layer.width:
            cuts = [r for via in technology.vias.values() for r in via.shapes.get(layer.name, ())]
            width = min((r[2] - r[0] for r in cuts), default=0)
            technology.layers[number] = replace(layer, width=width)
    return technology


class _Reader:
    """One pass over the words of a LEF text."""

    def __init__(self, text: str, technology: Technology) -> None:
        lines = (line.partition("#")[0] for line in text.splitlines())
        self.words: Iterator[str] = iter(re.findall(r'"[^"]*"|\S+', "\n".join(lines)))
        self.technology = technology

    def _word(self) -> str:
        """Return the next word."""
        word = next(self.words, None)
        if word is None:
            raise LefError("LEF must not end inside of a statement")
        return word

    def run(self) -> None:
        """Read all statements."""
        for given in self.words:
            word = given.upper()  # keywords may have small letters
            if word == "UNITS":
                self._units()
            elif word == "MANUFACTURINGGRID":
                self.technology.grid = max(1, self._length(self._statement()[0]))
            elif word == "LAYER":
                self._layer(self._word())
            elif word == "VIA":
                self._via(self._word())
            elif word == "SITE":
                self._site(self._word())
            elif word == "MACRO":
                self._macro(self._word())
            elif word in ("VIARULE", "NONDEFAULTRULE"):
                self._skip_to_end(self._word())
            elif word in ("SPACING", "PROPERTYDEFINITIONS"):
                self._skip_to_end(word)
            elif word == "END":
                if self._word() == "LIBRARY":
                    return
            else:
                self._statement()

    def _statement(self) -> list[str]:
        """Return the words up to the next semicolon."""
        words = []
        while (word := self._word()) != ";":
            words.append(word)
        return words

    def _skip_to_end(self, name: str) -> None:
        previous = ""
        while not ((word := self._word()) == name and previous == "END"):
            previous = word

    def _length(self, word: str) -> int:
        """Return a number of microns in database units."""
        value = self._number(word) * self.technology.per_micron
        if abs(value - round(value)) > 1e-4:
            raise LefError(f"LEF length must be a multiple of a database unit, not {word!r}")
        return round(value)

    @staticmethod
    def _number(word: str) -> float:
        try:
            return float(word)
        except ValueError:
            raise LefError(f"LEF must have a number, not {word!r}") from None

    def _units(self) -> None:
        while (word := self._word()) != "END":
            words = self._statement()
            if word == "DATABASE" and len(words) == 2:
                self.technology.per_micron = int(self._number(words[1]))
        self._word()

    def _block(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the statements of a block that ``END name`` closes."""
        while (word := self._word()) != "END":
            yield word, self._statement()
        if (word := self._word()) != name:
            raise LefError(f"LEF block {name} must end with its name, not with {word!r}")

    def _layer(self, name: str) -> None:
        known: dict[str, list[str]] = {}
        crowded: list[list[str]] = []
        for word, words in self._block(name):
            if word == "SPACING" and "ADJACENTCUTS" in words:
                crowded.append(words)
            else:
                known[word] = words
        kind = known.get("TYPE", [""])[0]
        if kind not in ("ROUTING", "CUT"):
            return
        if self.technology.per_micron == 0:
            raise LefError("LEF must have UNITS before its layers")
        # The width of cuts may be missing; vias have it, too.
        if not (("WIDTH" in known or kind == "CUT") and {"SPACING", "SPACINGTABLE"} & known.keys()):
            raise LefError(f"LEF layer {name} must have WIDTH and SPACING")
        width = self._length(known.get("WIDTH", ["0"])[0])
        wide = self._table(known.get("SPACINGTABLE", []))
        spacing = self._length(known["SPACING"][0]) if "SPACING" in known else wide[0][2]
        if kind == "CUT":
            rows = tuple(self._crowded(words) for words in crowded)
            self.technology.layers.append(CutLayer(name, width, spacing, rows))
            return
        pitches = [self._length(word) for word in known.get("PITCH", [])] or [width + spacing]
        offset = [self._length(word) for word in known.get("OFFSET", ["0"])]
        self.technology.layers.append(
            RoutingLayer(
                name=name, horizontal=known.get("DIRECTION", [""])[0] == "HORIZONTAL",
                width=width, spacing=spacing, pitch=pitches[0], offset=(offset[0], offset[-1]),
                wide=tuple(row for row in wide if row[0] or row[1]),
                least_area=self._area(known.get("AREA", ["0"])[0]),
                area_ff=1000 * self._number(known.get("CAPACITANCE", ["0"])[-1]),
                edge_ff=1000 * self._number(known.get("EDGECAPACITANCE", ["0"])[-1]),
            )
        )  # fmt: skip

    def _table(self, words: list[str]) -> list[tuple[int, int, int]]:
        """Return rows (width, parallel length, spacing) of a spacing table: above both, spacing."""
        if not words:
            return []
        parts = " ".join(words).removeprefix("PARALLELRUNLENGTH").split("WIDTH")
        lengths = [self._length(word) for word in parts[0].split()]
        rows = []
        for part in parts[1:]:
            width, *spacings = (self._length(word) for word in part.split())
            rows += [(width, n, spacing) for n, spacing in zip(lengths, spacings, strict=True)]
        return rows

    def _crowded(self, words: list[str]) -> tuple[int, int, int]:
        """Return the count, the distance and the spacing of a rule about crowded cuts."""
        if len(words) != 5 or words[1] != "ADJACENTCUTS" or words[3] != "WITHIN":
            raise LefError(f"LEF SPACING must be S ADJACENTCUTS N WITHIN D, not {' '.join(words)}")
        return int(self._number(words[2])), self._length(words[4]), self._length(words[0])

    def _area(self, word: str) -> int:
        return round(self._number(word) * self.technology.per_micron**2)

    def _shapes(self, word: str, words: list[str]) -> list[Rect]:
        numbers = [self._length(w) for w in words if w not in ("(", ")")]
        if word == "RECT":
            if len(numbers) != 4:
                raise LefError(f"LEF RECT must have four numbers, not {len(numbers)}")
            x0, y0, x1, y1 = numbers
            return [(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))]
        return rectangles(list(zip(numbers[::2], numbers[1::2], strict=True)))

    def _via(self, name: str) -> None:
        shapes: dict[str, list[Rect]] = {}
        layer = ""
        while (word := self._word()) != "END":
            if word == "DEFAULT":
                continue
            words = self._statement()
            if word == "LAYER":
                layer = words[0]
            elif word in ("RECT", "POLYGON"):
                shapes.setdefault(layer, []).extend(self._shapes(word, words))
        self._word()
        self.technology.vias[name] = ViaShape(name, {k: tuple(v) for k, v in shapes.items()})

    def _site(self, name: str) -> None:
        for word, words in self._block(name):
            if word == "SIZE":
                self.technology.site = (self._length(words[0]), self._length(words[2]))

    def _macro(self, name: str) -> None:
        pins: dict[str, MacroPin] = {}
        size, kind = [0, 0], "core"
        obstructions: dict[str, tuple[Rect, ...]] = {}
        while (word := self._word()) != "END":
            if word == "PIN":
                pin = self._pin(self._word())
                pins[pin.name] = pin
            elif word == "OBS":
                obstructions = self._geometry()
            else:
                words = self._statement()
                if word == "SIZE":
                    size = [self._length(words[0]), self._length(words[2])]
                elif word == "CLASS":
                    kind = " ".join(words).lower()
        self._word()
        self.technology.macros[name] = CellMacro(name, size[0], size[1], pins, obstructions, kind)

    def _pin(self, name: str) -> MacroPin:
        direction, use = "", "signal"
        shapes: dict[str, tuple[Rect, ...]] = {}
        while (word := self._word()) != "END":
            if word == "PORT":
                for layer, rects in self._geometry().items():
                    shapes[layer] = shapes.get(layer, ()) + rects
                continue
            words = self._statement()
            if word == "DIRECTION":
                direction = words[0].lower()
            elif word == "USE":
                use = words[0].lower()
        self._word()
        return MacroPin(name, direction, use, shapes)

    def _geometry(self) -> dict[str, tuple[Rect, ...]]:
        """Return the rectangles by layer of a PORT or of OBS, which a bare END closes."""
        shapes: dict[str, list[Rect]] = {}
        layer = ""
        while (word := self._word()) != "END":
            words = self._statement()
            if word == "LAYER":
                layer = words[0]
            elif word in ("RECT", "POLYGON"):
                shapes.setdefault(layer, []).extend(self._shapes(word, words))
        return {name: tuple(rects) for name, rects in shapes.items()}


def rectangles(points: list[tuple[int, int]]) -> list[Rect]:
    """Cut a polygon with horizontal and vertical edges into rectangles.

    Raises
    ------
    LefError
        If an edge is neither horizontal nor vertical.
    """
    edges = list(zip(points, [*points[1:], points[0]], strict=True))
    if any(a[0] != b[0] and a[1] != b[1] for a, b in edges):
        raise LefError("LEF polygons must have horizontal and vertical edges only")
    heights = sorted({y for _, y in points})
    found: list[Rect] = []
    for low, high in pairwise(heights):
        # The vertical edges across this band, from left to right, enclose the inside in pairs.
        across = sorted(
            a[0] for a, b in edges if min(a[1], b[1]) <= low and max(a[1], b[1]) >= high
        )
        found += [(x0, low, x1, high) for x0, x1 in zip(across[::2], across[1::2], strict=True)]
    return found
