"""Design rules of a GDS, checked by KLayout: nothing of the router is used, only LEF and GDS.

Checked are, on every metal and cut with shapes of wires: the width of metals, the size of cuts,
spacing (also the wider one beside wide shapes and in crowds of cuts), the least area where the LEF
has one, and that the metals around every cut contain those of a via of the LEF. The layers below
the lowest metal are the library's, and cells of equal rows only touch.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import hypot
from pathlib import Path
from typing import Any

from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.gds import layer_numbers, opened
from vitruvian.flows.asic.layout.lef import RoutingLayer, Technology


@dataclass(frozen=True)
class Marker:
    """A place that breaks a rule: the rule, and its box in microns."""

    rule: str
    box: tuple[float, float, float, float]


def check(path: Path, top: str, technology: Technology) -> list[Marker]:
    """Return the markers of the cell ``top`` of a GDS.

    Raises
    ------
    UserError
        If the file has no such cell.
    """
    db: Any = need("klayout.db", "layout")
    book, cell = opened(db, path, top)
    return _Checker(db, book, cell, technology).run()


class _Checker:
    """The merged shapes of every layer, and the rules on them."""

    def __init__(self, db: Any, book: Any, cell: Any, technology: Technology) -> None:
        self.db, self.technology, self.dbu = db, technology, book.dbu
        self.unit = round(1 / (technology.per_micron * book.dbu))
        numbers = layer_numbers(technology)
        self.shapes = {
            name: db.Region(cell.begin_shapes_rec(book.layer(number.layer, number.datatype)))
            for name, number in numbers.items()
        }
        self.merged = {name: region.merged() for name, region in self.shapes.items()}
        for region in self.merged.values():
            region.merged_semantics = False  # merging again takes KLayout most of the time
        self.markers: list[Marker] = []

    def run(self) -> list[Marker]:
        for metal in self.technology.metals:
            if not self.merged[metal.name].is_empty():
                self._metal(metal)
        for number in range(len(self.technology.cuts)):
            self._cut(number)
        return self.markers

    def _mark(self, rule: str, found: Any) -> None:
        for item in found.each():
            box = item.bbox() if not hasattr(item, "polygon") else item.polygon(0).bbox()
            self.markers.append(
                Marker(
                    rule, tuple(v * self.dbu for v in (box.left, box.bottom, box.right, box.top))
                )
            )

    def _metal(self, metal: RoutingLayer) -> None:
        db, name, shapes = self.db, metal.name, self.merged[metal.name]
        self._mark(f"width of {name}", shapes.width_check(self.unit * metal.width))
        self._mark(f"spacing of {name}", self._near(shapes, self.unit * metal.spacing))
        for width, length, spacing in metal.wide:
            if spacing <= metal.spacing:
                continue
            # Shapes of at least the width survive being made narrower and wider again.
            half = self.unit * width // 2
            broad = shapes.sized(1 - half).sized(half - 1)
            if not broad.is_empty():
                near = broad.separation_check(
                    shapes - broad, self.unit * spacing, False, db.Region.Projection, None,
                    self.unit * length + 1,
                )  # fmt: skip
                # What touches a broad shape belongs to it.
                apart = [pair for pair in near.each() if pair.distance() > 0]
                both = broad.merged().space_check(
                    self.unit * spacing, False, db.Region.Projection, None, self.unit * length + 1
                )
                apart += list(both.each())
                self._mark(f"wide spacing of {name}", db.EdgePairs(apart))
        if metal.least_area:
            least = metal.least_area * self.unit**2
            small = shapes.with_area(None, least, False)
            self._mark(f"area of {name}", small)

    def _near(self, shapes: Any, spacing: int) -> Any:
        """Return the pairs of edges that are too close, stripe by stripe.

        A supply is one polygon with thousands of corners, for which KLayout needs the square.
        """
        db, box = self.db, shapes.bbox()
        found = db.EdgePairs()
        height = 20 * spacing
        for low in range(box.bottom, box.top + 1, height):
            around = db.Box(box.left, low - 2 * spacing, box.right, low + height + 2 * spacing)
            part = shapes & db.Region(around)
            part.merged_semantics = False
            for pair in part.space_check(spacing, False, db.Region.Euclidian).each():
                # A pair that begins in another stripe is found there.
                if low <= pair.bbox().bottom < low + height:
                    found.insert(pair)
        return found

    def _cut(self, number: int) -> None:
        cut = self.technology.cuts[number]
        shapes, whole = self.shapes[cut.name], self.merged[cut.name]
        if shapes.is_empty():
            return
        size = self.unit * cut.width
        # Cuts that overlap merge into shapes of another size.
        right = whole.with_bbox_width(size, False).with_bbox_height(size, False).rectangles()
        self._mark(f"size of {cut.name}", whole - right)
        self._mark(
            f"spacing of {cut.name}",
            whole.space_check(self.unit * cut.spacing, False, self.db.Region.Euclidian),
        )
        for count, within, spacing in cut.crowded:
            boxes = [polygon.bbox() for polygon in whole.each()]
            crowd = _crowd(boxes, count, self.unit * within, self.unit * spacing)
            self._mark(f"crowd of {cut.name}", self.db.Region(crowd))
        metals = [self.technology.metals[n].name for n in (number, number + 1)]
        waiting = [polygon.bbox() for polygon in right.each()]
        for via in self.technology.vias.values():
            if waiting and cut.name in via.shapes and all(m in via.shapes for m in metals):
                waiting = self._not_inside(waiting, via, metals)
        self._mark(f"enclosure of {cut.name}", self.db.Region(waiting))

    def _not_inside(self, cuts: list[Any], via: Any, metals: list[str]) -> list[Any]:
        """Return the cuts around which the metals do not contain the shapes of a via."""
        bad: set[int] = set()
        for metal in metals:
            for rect in via.shapes[metal]:
                left, bottom, right, top = (self.unit * v for v in rect)
                boxes = []
                for cut in cuts:
                    x, y = cut.center().x, cut.center().y
                    boxes.append(self.db.Box(x + left, y + bottom, x + right, y + top))
                # KLayout's ``inside`` takes a minute on the shapes of a supply.
                outside = self.db.Region(boxes) - self.merged[metal]
                if outside.is_empty():
                    continue
                touched = self.db.Region(boxes)
                touched.merged_semantics = False
                found = {
                    (box.left, box.bottom)
                    for box in (p.bbox() for p in touched.overlapping(outside).each())
                }
                bad |= {n for n, b in enumerate(boxes) if (b.left, b.bottom) in found}
        return [cut for n, cut in enumerate(cuts) if n in bad]


def _crowd(boxes: list[Any], count: int, within: int, spacing: int) -> list[Any]:
    """Return the boxes with at least ``count`` others within a distance, one of them too near."""
    step = within + max((max(b.width(), b.height()) for b in boxes), default=0)
    places: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for box in boxes:
        places[box.left // step, box.bottom // step].append(box)
    found = []
    for (x, y), own in places.items():
        around = [
            b for dx in (-1, 0, 1) for dy in (-1, 0, 1) for b in places.get((x + dx, y + dy), ())
        ]
        for box in own:
            gaps = [_distance(box, other) for other in around if other != box]
            near = [gap for gap in gaps if gap <= within]
            if len(near) >= count and min(near) < spacing:
                found.append(box)
    return found


def _distance(a: Any, b: Any) -> float:
    """Return the distance of two boxes; 0 if they touch."""
    return hypot(
        max(a.left - b.right, b.left - a.right, 0), max(a.bottom - b.top, b.bottom - a.top, 0)
    )
