"""Layouts of small netlists in a library of our own: placement, wires, rules and connectivity."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="placement needs the extra layout")

from tests.unit.flows.asic.layout_library import CELLS, SHAPES, TECHNOLOGY, TIES
from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.flows.asic import cells as libraries
from vitruvian.flows.asic.layout import def_file, design, lef, picture, place, shapes
from vitruvian.flows.asic.layout.access import pin_access
from vitruvian.flows.asic.layout.build import RoutedLayout, lay_out
from vitruvian.flows.asic.layout.floorplan import plan, track_steps
from vitruvian.flows.asic.layout.route import Router
from vitruvian.flows.asic.sta import TimingGraph


def netlist(gates: int, seed: int) -> dict[str, Any]:
    """Return a random netlist of inverters and NAND gates with five ports and a constant."""
    rng = np.random.default_rng(seed)
    bits: list[Any] = [2, 3, 4]
    found = {}
    for number in range(gates):
        inputs = ("A1", "A2") if rng.random() < 0.6 else ("A",)
        pins = {pin: [bits[rng.integers(max(0, len(bits) - 8), len(bits))]] for pin in inputs}
        if number == 5:
            pins[inputs[0]] = ["1"]
        bit = 10 + number
        kind = "INV_X1" if len(inputs) == 1 else "NAND2_X1"
        found[f"$g{number}"] = {"type": kind, "connections": {**pins, "ZN": [bit]}}
        bits.append(bit)
    ports = {
        "a": {"direction": "input", "bits": [2, 3, 4]},
        "y": {"direction": "output", "bits": [bits[-1], bits[-2]]},
    }
    return {"ports": ports, "cells": found, "netnames": {"a": {"bits": [2, 3, 4]}}}


@pytest.fixture(scope="module")
def technology() -> lef.Technology:
    read = lef.read(TECHNOLOGY, CELLS)
    read.ties = TIES
    return read


@pytest.fixture(scope="module")
def made(technology: lef.Technology) -> RoutedLayout:
    return lay_out(netlist(20, 1), technology, utilisation=0.6, tries=60)


def test_lef_has_what_the_text_says(technology: lef.Technology):
    assert [m.name for m in technology.metals] == [f"metal{n}" for n in range(1, 6)]
    assert technology.site == (380, 2800) and technology.per_micron == 2000
    assert technology.metals[1].wide == ((0, 600, 140), (210, 0, 140), (210, 600, 280))
    assert technology.metals[1].ff_per_micron(2000) == pytest.approx(0.04 * 0.07 + 2 * 0.02)
    assert technology.macros["NAND2_X1"].pins["A1"].shapes == {"metal1": ((120, 1000, 260, 1540),)}
    assert technology.vias["V2"].shapes["metal3"] == ((-140, -70, 140, 70),)


def test_a_polygon_is_cut_into_rectangles():
    ring = [(0, 0), (6, 0), (6, 2), (2, 2), (2, 4), (6, 4), (6, 6), (0, 6)]
    rects = lef.rectangles(ring)
    assert sum((r[2] - r[0]) * (r[3] - r[1]) for r in rects) == 6 * 6 - 4 * 2
    with pytest.raises(lef.LefError, match="horizontal and vertical edges only"):
        lef.rectangles([(0, 0), (1, 1), (0, 1)])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("SIZE 0.19 BY 1.4", "SIZE 0.19 BY 1.40001", "must be a multiple of a database unit"),
        ("PITCH 0.14", "PITCH wide", "must have a number, not 'wide'"),
        ("END metal2", "END metal3", "block metal2 must end with its name, not with 'metal3'"),
        ("DATABASE MICRONS 2000", "TIME 1", "must have UNITS before its layers"),
        ("END LIBRARY", "SITE x", "must not end inside of a statement"),
        ("  WIDTH 0.07 ;\n  PITCH", "  PITCH", "layer metal1 must have WIDTH and SPACING"),
    ],
)
def test_a_wrong_lef_is_refused(old: str, new: str, words: str):
    assert old in TECHNOLOGY
    with pytest.raises(lef.LefError, match=words):
        lef.read(TECHNOLOGY.replace(old, new), CELLS)
    with pytest.raises(lef.LefError, match=r"must have cells \(MACRO\)"):
        lef.read(TECHNOLOGY)


def test_vias_reach_pins_on_the_grid(technology: lef.Technology):
    assert pin_access(technology.macros["INV_X1"], "A", technology).keys() == {(0, 4)}
    # A flat pin has room for a flat via only.
    assert pin_access(technology.macros["NAND2_X1"], "A2", technology).keys() == {(1, 4)}
    assert len(pin_access(technology.macros["INV_X1"], "ZN", technology)) == 4


def test_tracks_are_as_far_apart_as_wires_and_cuts_need(technology: lef.Technology):
    # Cuts of via4 are 0.14 µm wide and 0.16 µm apart, which two lines (0.28 µm) do not give.
    assert track_steps(technology) == [(1, 1), (1, 1), (2, 1), (1, 3)]
    metals = technology.metals
    upright = replace(technology, layers=[replace(m, horizontal=False) for m in metals])
    with pytest.raises(lef.LefError, match="metal 2 vertical, metal 3 horizontal"):
        track_steps(upright)


def test_constants_and_unknown_cells(technology: lef.Technology):
    built = design.build(netlist(20, 1), technology)
    assert [m.name for m in built.macros].count("LOGIC1_X1") == 1
    tie = built.names.index("t0")
    (net,) = [n for n in built.nets if (tie, "Z") in n.pins]
    assert len(net.pins) == 2
    assert [built.nets[p.net].name for p in built.ports[:3]] == ["a[0]", "a[1]", "a[2]"]
    wrong = netlist(3, 1)
    wrong["cells"]["$g0"]["type"] = "XOR9"
    with pytest.raises(UserError, match="cell XOR9 must be in the LEF"):
        design.build(wrong, technology)


def test_the_design_has_the_pins_of_the_netlist(technology: lef.Technology):
    given = netlist(20, 3)
    built = design.build(given, technology)
    found = {
        (built.sources[instance], pin): net.bit
        for net in built.nets
        for instance, pin in net.pins
        if built.sources[instance]
    }
    expected = {
        (name, pin): bits[0] if isinstance(bits[0], int) else None
        for name, cell in given["cells"].items()
        for pin, bits in cell["connections"].items()
    }
    assert found == expected
    assert len({net.name for net in built.nets}) == len(built.nets)


def test_a_border_has_room_for_all_ports(technology: lef.Technology):
    given = netlist(2, 1)
    given["ports"]["z"] = {"direction": "input", "bits": list(range(100, 200))}
    floor = plan(design.build(given, technology), technology, 0.7)
    assert len(place.slots(floor, 105)) >= 105
    made = lay_out(given, technology, utilisation=0.7, tries=10)
    places = {rect for _, rect in made.layout.ports}
    assert len(places) == len(made.layout.ports) == 105 and made.conflicts == [0]


def test_cells_that_do_not_fit_are_refused(technology: lef.Technology):
    with pytest.raises(UserError, match="utilisation must leave rows with room for all cells"):
        lay_out(netlist(60, 1), technology, utilisation=1.2, tries=1)


def test_cells_are_in_rows_without_overlap_or_gap(made: RoutedLayout):
    floor = made.layout.plan
    site, height = floor.technology.site
    taken = np.zeros((floor.rows, floor.sites), int)
    for cell in made.layout.cells:
        row, rest = divmod(cell.at[1] - floor.bottom, height)
        at, more = divmod(cell.at[0] - floor.left, site)
        assert rest == more == 0 and cell.flipped == bool(row % 2)
        taken[row, at : at + cell.macro.width // site] += 1
    assert (taken == 1).all()
    assert made.swapped_um <= made.placed_um


def gap(a: lef.Rect, b: lef.Rect) -> float:
    """Return the distance of two rectangles; 0 if they touch."""
    dx = max(a[0] - b[2], b[0] - a[2], 0)
    dy = max(a[1] - b[3], b[1] - a[3], 0)
    return float(np.hypot(dx, dy))


def pieces(items: list[tuple[str, lef.Rect]], pairs: set[tuple[str, str]]) -> int:
    """Return the number of connected pieces of shapes on layers; ``pairs`` of layers connect."""
    owner = list(range(len(items)))

    def root(n: int) -> int:
        while owner[n] != n:
            n = owner[n]
        return n

    for (i, (la, a)), (j, (lb, b)) in combinations(enumerate(items), 2):
        if (la == lb or (la, lb) in pairs or (lb, la) in pairs) and gap(a, b) == 0:
            owner[root(i)] = root(j)
    return len({root(n) for n in range(len(items))})


def net_shapes(made: RoutedLayout, net: int) -> list[tuple[str, lef.Rect]]:
    """Return the shapes of a net with those of its pins and ports."""
    layout = made.layout
    items = shapes.metal_rects(layout, net)
    for instance, pin in layout.design.nets[net].pins:
        cell = layout.cells[instance]
        items += [("metal1", r) for r in shapes.placed(cell.macro.pins[pin].shapes["metal1"], cell)]
    for port in layout.design.nets[net].ports:
        metal, rect = layout.ports[port]
        items.append((f"metal{metal + 1}", rect))
    return items


@pytest.mark.parametrize(
    ("gates", "seed", "utilisation"), [(20, 1, 0.6), (20, 2, 0.6), (20, 3, 0.6), (120, 1, 0.9)]
)
def test_nets_are_joined_and_apart(
    technology: lef.Technology, gates: int, seed: int, utilisation: float
):
    """Every pair of shapes is compared, without the router and without KLayout."""
    made = lay_out(netlist(gates, seed), technology, utilisation=utilisation, tries=60)
    assert made.conflicts[-1] == 0 and not made.failed
    pairs = {(f"metal{n + d}", f"via{n}") for n in range(1, 5) for d in (0, 1)}
    least = {layer.name: layer.spacing for layer in technology.layers}
    by_layer: dict[str, list[tuple[int, lef.Rect]]] = defaultdict(list)
    for net in range(len(made.layout.nets)):
        items = net_shapes(made, net)
        assert pieces(items, pairs) == 1
        for name, rect in items:
            by_layer[name].append((net, rect))
    for name, items in by_layer.items():
        for (net, a), (other, b) in combinations(items, 2):
            if net != other:
                assert gap(a, b) >= least[name], (name, a, b)
            elif name.startswith("via"):
                assert gap(a, b) >= least[name] or a == b, (name, a, b)


def test_nets_that_cannot_be_apart_stay_in_conflict(technology: lef.Technology):
    floor = plan(design.build(netlist(5, 1), technology), technology, 0.5)
    router = Router(floor, [])
    node = router.node
    ends = [[node(0, 10, 10), node(0, 10, 20)], [node(0, 10, 11), node(0, 14, 20)]]
    terminals = [[np.array([n]) for n in pair] for pair in ends]
    routing = Router(floor, terminals).run(rounds=3)
    assert len(routing.conflicts) == 3 and routing.conflicts[-1] > 0
    far = [[np.array([node(0, 10, 10)]), np.array([node(0, 14, 20)])]]
    assert Router(floor, far).run().conflicts == [0]


def test_wires_load_their_nets(made: RoutedLayout):
    technology = made.layout.technology
    wires = made.wires_ff()
    drawn = [
        technology.metals[wire.metal].ff_per_micron(2000) * wire.length / 2000
        for net in made.layout.nets
        for wire in net.wires
    ]
    tie = sum(n.bit is None for n in made.layout.design.nets)
    assert tie == 1 and 0 < sum(wires.values()) <= sum(drawn) + 1e-9
    assert made.wire_um == pytest.approx(
        sum(w.length for n in made.layout.nets for w in n.wires) / 2000
    )
    library = libraries.library().cells
    bare, loaded = (
        TimingGraph(netlist(20, 1), library, "BUF_X4", 5.0, given) for given in ({}, wires)
    )
    for bit, net in bare.nets.items():
        more = loaded.load[2 * net] - bare.load[2 * net]
        assert more == pytest.approx(wires[bit]), bit
    delays = [graph.timing().delay_ps for graph in (bare, loaded)]
    assert delays[0] is not None and delays[1] is not None and delays[0] < delays[1]


def test_def_and_picture_have_all_parts(made: RoutedLayout):
    text = def_file.text(made.layout, "top")
    counts = {
        line.split()[0]: int(line.split()[1])
        for line in text.splitlines()
        if line.startswith(("COMPONENTS", "PINS", "SPECIALNETS", "NETS"))
    }
    assert counts == {
        "COMPONENTS": len(made.layout.cells),
        "PINS": 7,
        "SPECIALNETS": 2,
        "NETS": len(made.layout.nets),
    }
    assert text.count(" V2\n") + text.count(" V2 ;") == sum(
        v.via.name == "V2" for n in made.layout.nets for v in n.vias
    )
    drawn = picture.svg(made.layout, "twenty gates")
    assert drawn.count("<path") >= 4 and "twenty gates" in drawn and "metal2" in drawn


def library_gds(path: Path) -> None:
    """Write the cells of the small library as GDS, with a label on every pin."""
    db: Any = need("klayout.db", "layout")

    book = db.Layout()
    book.dbu = 0.0005
    layer = book.layer(11, 0)
    for name, (sites, pins) in SHAPES.items():
        cell = book.create_cell(name)
        rails = {"VSS": (0, -0.085, 0.19 * sites, 0.085), "VDD": (0, 1.315, 0.19 * sites, 1.485)}
        for pin, rect in {**pins, **rails}.items():
            box = db.Box(*(round(2000 * v) for v in rect))
            cell.shapes(layer).insert(box)
            cell.shapes(layer).insert(db.Text(pin, db.Trans(box.center().x, box.center().y)))
    book.write(str(path))


@pytest.fixture(scope="module")
def written(made: RoutedLayout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("klayout.db", reason="GDS needs the extra layout")
    from vitruvian.flows.asic.layout import gds

    folder = tmp_path_factory.mktemp("gds")
    library_gds(folder / "cells.gds")
    gds.write(made.layout, "top", folder / "cells.gds", folder / "top.gds")
    return folder / "top.gds"


def checked(path: Path, made: RoutedLayout) -> tuple[set[str], Any]:
    from vitruvian.flows.asic.layout import compare, rules

    technology = made.layout.technology
    found = {marker.rule for marker in rules.check(path, "top", technology)}
    return found, compare.compare(path, "top", made.layout.design, technology)


def test_the_gds_keeps_all_rules_and_has_the_nets(written: Path, made: RoutedLayout):
    markers, found = checked(written, made)
    assert not markers and found.equal
    pins = sum(len(net.pins) for net in made.layout.design.nets)
    # Pins of cells, two supplies of each instance, the ports, and the labels of two straps.
    assert found.pins == pins + 2 * len(made.layout.cells) + 5 + 2


def test_the_def_has_the_shapes_of_the_gds(written: Path, made: RoutedLayout):
    """KLayout reads the DEF with the vias of the LEF, and finds the shapes that the GDS has."""
    db: Any = need("klayout.db", "layout")
    folder = written.parent
    (folder / "tech.lef").write_text(TECHNOLOGY)
    (folder / "cells.lef").write_text(CELLS)
    (folder / "top.def").write_text(def_file.text(made.layout, "top"))
    options = db.LoadLayoutOptions()
    config = options.lefdef_config
    config.lef_files = [str(folder / "tech.lef"), str(folder / "cells.lef")]
    config.dbu, config.macro_resolution_mode, config.read_lef_with_def = 0.0005, 1, False
    config.produce_cell_outlines = False
    numbers = gds_layers(made)
    config.layer_map = db.LayerMap.from_string(
        "\n".join(f"{k}{p} : {n}/0" for k, n in numbers.items() for p in ("", ".PIN", ".SPNET"))
    )
    read, book = db.Layout(), db.Layout()
    read.read(str(folder / "top.def"), options)
    book.read(str(written))
    for number in numbers.values():
        both = [
            db.Region(each.cell("top").begin_shapes_rec(each.layer(number, 0)))
            for each in (read, book)
        ]
        assert (both[0] ^ both[1]).is_empty(), number
        assert number > 15 or not both[0].is_empty()


def gds_layers(made: RoutedLayout) -> dict[str, int]:
    from vitruvian.flows.asic.layout.gds import layer_numbers

    return {name: each.layer for name, each in layer_numbers(made.layout.technology).items()}


def _boxes(book: Any, layer: int) -> list[Any]:
    """Return the shapes of wires and vias on a layer, the longest ones last."""
    boxes = [s for s in book.cell("top").shapes(book.layer(layer, 0)).each() if s.is_box()]
    return sorted(boxes, key=lambda s: max(s.box.width(), s.box.height()))


def _remove(layer: int) -> Callable[[Any], None]:
    return lambda book: _boxes(book, layer)[-1].delete()


def _shift(layer: int, dx: int, dy: int) -> Callable[[Any], None]:
    def change(book: Any) -> None:
        db: Any = need("klayout.db", "layout")

        for shape in _boxes(book, layer)[-8:]:
            shape.transform(db.Trans(dx, dy))

    return change


def _grow(layer: int, dx: int, dy: int) -> Callable[[Any], None]:
    def change(book: Any) -> None:
        shape = _boxes(book, layer)[-1]
        shape.box = shape.box.enlarged(dx, dy)

    return change


def _plate(book: Any) -> None:
    """Add a broad shape and, 0.2 µm beside it, a wire; broad shapes need 0.28 µm."""
    db: Any = need("klayout.db", "layout")
    shapes_ = book.cell("top").shapes(book.layer(19, 0))
    shapes_.insert(db.Box(2000, 2000, 3000, 4000))
    shapes_.insert(db.Box(3400, 2000, 3680, 4000))


def _exchange(book: Any) -> None:
    top = book.cell("top")
    one = next(i for i in top.each_inst() if i.cell.name == "LOGIC1_X1")
    one.cell_index = book.cell("INV_X1").cell_index()


def _second_cut(book: Any) -> None:
    shape = _boxes(book, 14)[0]
    book.cell("top").shapes(book.layer(14, 0)).insert(shape.box.moved(0, 280))


@pytest.mark.parametrize(
    ("change", "rule", "kind"),
    [
        (_remove(12), None, "opens"),
        (_remove(14), None, "opens"),
        (_remove(13), None, "opens"),
        (_shift(13, 0, 5000), None, "opens"),
        (_shift(15, 0, 60), "spacing of metal3", None),
        (_grow(13, -20, 0), "width of metal2", None),
        (_plate, "wide spacing of metal5", None),
        (_grow(13, 380, 0), None, "shorts"),
        (_grow(14, 10, 10), "size of via2", None),
        (_second_cut, "spacing of via2", None),
        (_shift(14, 100, 0), "enclosure of via2", None),
        (_exchange, None, "missing"),
    ],
)
def test_the_checkers_find_what_is_wrong(
    written: Path,
    made: RoutedLayout,
    tmp_path: Path,
    change: Callable[[Any], None],
    rule: str | None,
    kind: str | None,
):
    db: Any = need("klayout.db", "layout")

    book = db.Layout()
    book.read(str(written))
    change(book)
    book.write(str(tmp_path / "changed.gds"))
    markers, found = checked(tmp_path / "changed.gds", made)
    assert rule is None or rule in markers
    assert kind is None or getattr(found, kind)


def test_small_areas_are_found(written: Path, made: RoutedLayout):
    from vitruvian.flows.asic.layout import rules

    technology = made.layout.technology
    layers = [
        replace(each, least_area=500_000) if each.name == "metal2" else each
        for each in technology.layers
    ]
    strict = replace(technology, layers=layers)
    assert {m.rule for m in rules.check(written, "top", strict)} == {"area of metal2"}
