"""Layouts in a library of 130 nm: least areas, pins beside the tracks, wide vias, no taps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="placement needs the extra layout")
pytest.importorskip("klayout.db", reason="GDS needs the extra layout")

from tests.unit.flows.asic.layout_library_130 import CELLS, SHAPES, TECHNOLOGY, rails, technology
from tests.unit.flows.asic.test_layout import netlist
from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.flows.asic.cells import CellLibrary, library, sg13g2
from vitruvian.flows.asic.layout import compare, def_file, design, gds, lef, process, rules, vias
from vitruvian.flows.asic.layout.access import pin_access, unreachable
from vitruvian.flows.asic.layout.build import RoutedLayout, lay_out
from vitruvian.flows.asic.layout.floorplan import offsets, track_steps

PROCESS = technology()


def library_gds(path: Path) -> None:
    """Write the cells as GDS, with labels on a datatype of their own."""
    db: Any = need("klayout.db", "layout")
    book = db.Layout()
    for name, (sites, pins) in SHAPES.items():
        cell = book.create_cell(name)
        for pin, rect in {**pins, **rails(sites)}.items():
            box = db.Box(*(round(1000 * v) for v in rect))
            cell.shapes(book.layer(30, 0)).insert(box)
            middle = db.Trans(box.center().x, box.center().y)
            cell.shapes(book.layer(30, 25)).insert(db.Text(pin, middle))
    book.write(str(path))


@pytest.fixture(scope="module")
def made() -> RoutedLayout:
    return lay_out(netlist(60, 1), PROCESS, utilisation=0.6, tries=60)


@pytest.fixture(scope="module")
def written(made: RoutedLayout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gds130")
    library_gds(folder / "cells.gds")
    gds.write(made.layout, "top", folder / "cells.gds", folder / "top.gds")
    return folder / "top.gds"


def test_lef_says_what_the_layout_needs():
    assert [layer.name for layer in PROCESS.layers][:3] == ["M1", "C1", "M2"]  # no contacts
    assert {cut.width for cut in PROCESS.cuts} == {190}
    assert PROCESS.cuts[0].spacing == 220 and PROCESS.cuts[0].crowded == ((3, 311, 290),)
    assert PROCESS.grid == 5 and PROCESS.tap is None
    assert {width: cell.name for width, cell in PROCESS.fillers.items()} == {
        1: "SPACE_1", 2: "SPACE_2",
    }  # fmt: skip
    assert PROCESS.rails == [("GND", "ground", 220), ("PWR", "power", 220)]
    assert offsets(PROCESS) == (0, 0) and track_steps(PROCESS) == [(1, 1)] * 4
    metals = PROCESS.metals
    assert vias.least_nodes(metals[1], 420) == 2 and vias.least_nodes(metals[2], 480) == 1
    # 0.144 µm² of a wire of 0.2 µm are 0.72 µm, and the half width at both ends counts.
    assert vias.beyond(metals[1], 420, 5) == 50 and vias.beyond(metals[1], 840, 5) == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("ADJACENTCUTS 3 WITHIN 0.311", "ADJACENTCUTS 3", "must be S ADJACENTCUTS N WITHIN D"),
        ("USE GROUND", "USE SIGNAL", "cells with rails over their lower and upper edge"),
        ("OFFSET 0 ;", "OFFSET 0.1 ;", "OFFSET of M3 must be 0 or half of its PITCH"),
    ],
)
def test_a_wrong_lef_is_refused(old: str, new: str, words: str):
    with pytest.raises(lef.LefError, match=words):
        known = lef.read(TECHNOLOGY.replace(old, new), CELLS.replace(old, new))
        assert known.rails and offsets(known)


def test_vias_reach_pins_beside_the_tracks_and_narrow_ones():
    inverter, gate = PROCESS.macros["INV_X1"], PROCESS.macros["NAND2_X1"]
    assert {(at, v.shift) for at, v in pin_access(inverter, "A", PROCESS).items()} == {((1, 4), 0)}
    assert {(at, v.shift) for at, v in pin_access(gate, "A1", PROCESS).items()} == {((1, 4), 145)}
    # The via is wider than the pin.
    assert {at[0] for at in pin_access(gate, "A2", PROCESS)} == {3}
    assert unreachable(PROCESS) == []
    near = replace(gate, obstructions={"M1": ((1100, 600, 1200, 3000),)})
    assert pin_access(near, "A2", PROCESS) == {}
    strange = replace(PROCESS, macros={**PROCESS.macros, "NAND2_X1": near})
    assert unreachable(strange) == ["NAND2_X1"]


@pytest.mark.parametrize(("gates", "seed", "utilisation"), [(20, 2, 0.6), (150, 3, 0.7)])
def test_layouts_keep_all_rules(gates: int, seed: int, utilisation: float, tmp_path: Path):
    given = netlist(gates, seed)
    given["ports"]["unused"] = {"direction": "input", "bits": [7000, 7001, 7002]}
    made = lay_out(given, PROCESS, utilisation=utilisation, tries=60)
    library_gds(tmp_path / "cells.gds")
    gds.write(made.layout, "top", tmp_path / "cells.gds", tmp_path / "top.gds")
    assert rules.check(tmp_path / "top.gds", "top", PROCESS) == []
    assert compare.compare(tmp_path / "top.gds", "top", made.layout.design, PROCESS).equal
    text = def_file.text(made.layout, "top")
    assert "- GND ( * GND )" in text and "+ USE POWER ;" in text


def test_a_block_of_a_given_size(tmp_path: Path):
    made = lay_out(netlist(20, 2), PROCESS, utilisation=0.7, block_um=(43.2, 25.2), tries=60)
    floor = made.layout.plan
    assert (floor.width, floor.height) == (43200, 25200) and floor.rows == 5
    library_gds(tmp_path / "cells.gds")
    gds.write(made.layout, "top", tmp_path / "cells.gds", tmp_path / "top.gds")
    assert rules.check(tmp_path / "top.gds", "top", PROCESS) == []
    for block, words in (
        ((43.3, 25.2), "width of the block must be a multiple of 0.48 µm, not 43.3"),
        ((43.2, 25), "height of the block must be a multiple of 0.42 µm, not 25"),
        ((43.2, 8.4), "block must have room for two rows and their margins"),
        ((14.4, 16.8), "utilisation must leave rows with room for all cells"),
    ):
        with pytest.raises(UserError, match=words):
            lay_out(netlist(20, 2), PROCESS, utilisation=0.7, block_um=block, tries=1)


def test_a_constant_has_a_cell_for_every_eight_pins():
    given = netlist(30, 1)
    for cell in list(given["cells"].values())[:20]:
        cell["connections"]["A" if "A" in cell["connections"] else "A1"] = ["1"]
    built = design.build(given, PROCESS)
    ties = [
        name for name, macro in zip(built.names, built.macros, strict=True) if "LOGIC" in macro.name
    ]
    loads = [len(net.pins) - 1 for net in built.nets if net.name.startswith("tie")]
    assert len(ties) == 3 and sorted(loads)[1:] == [8, 8] and sum(loads) in (20, 21)


def _least(book: Any) -> None:
    """Add a wire that is too short."""
    db: Any = need("klayout.db", "layout")
    book.cell("top").shapes(book.layer(70, 0)).insert(db.Box(300, 100, 900, 300))


def _crowd(book: Any) -> None:
    """Add four cuts, one of them too near to the three others around it."""
    db: Any = need("klayout.db", "layout")
    for x, y in ((0, 0), (480, 0), (-480, 0), (0, 420)):
        box = db.Box(x, y, x + 190, y + 190).moved(2000, 2000)
        book.cell("top").shapes(book.layer(40, 0)).insert(box)


def _plates(book: Any) -> None:
    """Add two broad shapes that are too near to each other, though no other shape is near."""
    db: Any = need("klayout.db", "layout")
    shapes = book.cell("top").shapes(book.layer(110, 0))
    shapes.insert(db.Box(2000, 2000, 3000, 4000))
    shapes.insert(db.Box(3220, 2000, 4220, 4000))


@pytest.mark.parametrize(
    ("change", "rule"),
    [(_least, "area of M3"), (_crowd, "crowd of C1"), (_plates, "wide spacing of M5")],
)
def test_the_checker_finds_what_is_wrong(written: Path, tmp_path: Path, change: Any, rule: str):
    db: Any = need("klayout.db", "layout")
    book = db.Layout()
    book.read(str(written))
    assert rules.check(written, "top", PROCESS) == []
    change(book)
    book.write(str(tmp_path / "changed.gds"))
    assert rule in {marker.rule for marker in rules.check(tmp_path / "changed.gds", "top", PROCESS)}


def test_cuts_that_are_apart_are_no_crowd():
    db: Any = need("klayout.db", "layout")
    row = [db.Box(480 * n, 0, 480 * n + 190, 190) for n in range(5)]
    assert rules._crowd(row, 2, 311, 290) == []
    assert rules._crowd([*row, db.Box(480, 420, 670, 610)], 3, 311, 290) == [row[1]]


def test_ports_have_pins_and_labels_in_gds(written: Path):
    db: Any = need("klayout.db", "layout")
    book = db.Layout()
    book.read(str(written))
    top = book.cell("top")
    texts = {
        shape.text.string
        for layer in (50, 70)
        for shape in top.shapes(book.layer(layer, 25)).each()
    }
    assert texts == {"a[0]", "a[1]", "a[2]", "y[0]", "y[1]"}
    pins = [shape for layer in (50, 70) for shape in top.shapes(book.layer(layer, 2)).each()]
    assert len(pins) == 5


def test_a_library_without_shapes_is_refused():
    with pytest.raises(UserError, match="layout must have one of nangate45, sg13g2, not 'vt45'"):
        process.load(library())


def test_a_pdk_that_is_missing_or_other_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    with pytest.raises(RuntimeError, match="sg13g2 needs IHP's open PDK: pip install ciel"):
        sg13g2.fetch()
    with pytest.raises(UserError, match="there is no"):
        library("sg13g2", driving_cell="sg13g2_buf_4")
    place = tmp_path / "ihp-sg13g2/libs.ref/sg13g2_stdcell" / sg13g2.FILES["cells"][0]
    place.parent.mkdir(parents=True)
    place.write_text("another revision")
    with pytest.raises(RuntimeError, match="must have SHA-256 c9bbc02d"):
        sg13g2.fetch("cells")


def test_the_cells_of_ihp_are_read_and_reached():
    """Skipped without the PDK: its cells are on nobody's index of packages."""
    try:
        path = sg13g2.fetch()
    except RuntimeError as error:
        pytest.skip(str(error))
    known = process.load(CellLibrary("sg13g2", path)).technology
    assert known.rails == [("VSS", "ground", 220), ("VDD", "power", 220)]
    assert known.ties == {"0": ("sg13g2_tielo", "L_LO"), "1": ("sg13g2_tiehi", "L_HI")}
    assert known.gds["Metal3"] == lef.GdsLayer(30, label=25, pin=2)
    assert sorted(unreachable(known)) == [
        "sg13g2_a221oi_1", "sg13g2_dlhrq_1", "sg13g2_sdfbbp_1",
    ]  # fmt: skip
