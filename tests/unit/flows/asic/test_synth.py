"""Synthesis of circuits that are small enough to count cells by hand; equal modules; the cache."""

from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.support.toys import Array, Multiply
from vitruvian.common.cache import ResultCache, digest
from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.flows.asic import baseline, cells, measure
from vitruvian.flows.asic.hierarchy import Design
from vitruvian.flows.asic.synth import SynthesisRecipe, synthesize
from vitruvian.flows.yosys import SynthesisError
from vitruvian.hdl.catalogue.unit import Unit, Variant
from vitruvian.hdl.elaborate import to_rtlil


class Nand(wiring.Component):
    """``y = ~(a & b)``, optionally through a register with reset."""

    a: Any
    b: Any
    y: Any

    def __init__(self, *, registered: bool = False, inverted: bool = True):
        self.registered, self.inverted = registered, inverted
        super().__init__({"a": In(1), "b": In(1), "y": Out(1)})

    def elaborate(self, platform):
        m = Module()
        value = self.a & self.b
        domain = m.d.sync if self.registered else m.d.comb
        domain += self.y.eq(~value if self.inverted else value)
        return m


@pytest.fixture(scope="module")
def library() -> cells.CellLibrary:
    return cells.library()


def one(component, library, **options):
    return synthesize(to_rtlil(component), liberty=library.path, targets_ps=(10000,), **options)[
        10000
    ]


def test_area_of_one_gate(library):
    mapped = one(Nand(), library)
    assert mapped.cells == {"NAND2_X1": 1}
    assert mapped.area_um2 == pytest.approx(0.798)
    assert mapped.sequential_area_um2 == 0
    assert mapped.abc_delay_ps is not None and 5 < mapped.abc_delay_ps < 60


def test_area_of_a_gate_and_a_register_with_reset(library):
    """D = ~(a & b) & ~rst takes two cells: NAND and NOR, or OAI and inverter."""
    mapped = one(Nand(registered=True), library)
    assert mapped.cells["DFF_X1"] == 1
    assert mapped.sequential_area_um2 == pytest.approx(4.522)
    logic = sum(library.cells.cells[k].area_um2 * n for k, n in mapped.cells.items()) - 4.522
    assert mapped.area_um2 == pytest.approx(4.522 + logic)
    assert 0.798 < logic < 2.2


def test_yosys_error_is_reported(library):
    with pytest.raises(SynthesisError, match=r"Yosys stopped on 'top': ERROR: .*nonsense"):
        synthesize("nonsense\n", liberty=library.path, cache=False)


def test_a_recipe_without_sweeping_finds_other_cells_of_nearly_the_same_area(library):
    """The sweep merges equal nodes, which ABC finds otherwise for the most part."""
    swept, quick = (
        one(Array(count=4), library, recipe=SynthesisRecipe(sweep=s)) for s in (True, False)
    )
    assert swept.cells != quick.cells
    assert quick.area_um2 == pytest.approx(swept.area_um2, rel=0.05)
    assert (
        "sweep" not in SynthesisRecipe().as_dict()
        and SynthesisRecipe(sweep=False).as_dict()["sweep"] is False
    )
    gate = one(Nand(), library, recipe=SynthesisRecipe(sweep=False))
    assert gate.cells == one(Nand(), library).cells and gate.abc_delay_ps


def test_result_is_cached_and_a_broken_entry_is_made_again(library, own_cache):
    first = one(Nand(), library)
    entries = list((own_cache / "synth").rglob("*.json.gz"))
    assert len(entries) == 1
    entries[0].write_bytes(b"half a fi")
    assert one(Nand(), library) == first
    assert entries[0].read_bytes() != b"half a fi"


def test_cache_keys_keep_parts_apart(own_cache):
    assert digest("ab", "c") != digest("a", "bc")
    store = ResultCache(kind="x")
    assert store.get(digest("1")) is None
    store.put(digest("1"), {"a": [1.5]})
    assert store.get(digest("1")) == {"a": [1.5]}
    off = ResultCache(kind="x", enabled=False)
    assert off.get(digest("1")) is None


def test_write_leaves_nothing_behind_when_it_fails(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("no space")

    path = tmp_path / "out.v"
    path.write_text("before")
    monkeypatch.setattr("vitruvian.common.files.os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_equal_modules_are_found_by_content():
    design = Design(to_rtlil(Array(count=5)))
    assert sorted(design.counts().values()) == [1, 5]
    parts = design.parts(lambda path, label: path.startswith("pe_"))
    assert [(part.label, part.count) for part in parts] == [("top", 1), ("pe_0", 5)]
    assert "blackbox" in parts[0].rtlil and "blackbox" not in parts[1].rtlil
    with pytest.raises(ValueError, match="top must be one of the modules"):
        Design(to_rtlil(Array(count=1)), top="nothing")


def test_piece_times_count_equals_flat(library):
    """For multipliers without common operands, flat and multiplied areas differ by ABC's noise."""
    flat = one(Array(count=4), library).area_um2
    for unit in (toy(Array, shared=()), toy(Array, shared=(Multiply,))):
        settings = measure.Settings(library=library, targets_ps=(10000,), cut="modules")
        row = measure.measure([Variant(unit, {"count": 4})], settings)[0]
        assert row.area_um2(10000) == pytest.approx(flat, rel=0.03)
        assert sorted(piece.count for piece in row.pieces if piece.mapped[10000].cells) == [4]
    settings = measure.Settings(library=library, targets_ps=(10000,), cut="whole")
    (whole,) = measure.measure([Variant(unit, {"count": 4})], settings)[0].pieces
    assert whole.count == 1 and whole.area_um2(10000) == pytest.approx(flat, rel=1e-9)


def toy(component, **options) -> Unit:
    return Unit(
        name="toy",
        summary="a circuit of this test",
        options={},
        default=dict,
        package="tests",
        component=lambda c: (component, dict(c)),
        macs=lambda c: c.get("count", 0),
        **options,
    )


def test_row_has_figures_per_mac_and_a_path(library):
    settings = measure.Settings(library=library)
    row = measure.measure([Variant(toy(Array), {"count": 2})], settings)[0]
    document = row.as_json()
    assert set(document["targets"]) == {"10000", "500"}
    relaxed = document["targets"]["10000"]
    assert relaxed["area_um2_per_mac"] == pytest.approx(relaxed["area_um2"] / 2, abs=0.06)
    assert set(relaxed["delay_by_class_ps"]) == {"input->register", "register->output"}
    assert relaxed["delay_ps"] == max(relaxed["delay_by_class_ps"].values())
    assert relaxed["path"][-1]["arrival_ps"] < relaxed["delay_ps"]


def test_baseline_catches_a_changed_unit(library, tmp_path, monkeypatch):
    monkeypatch.setattr(baseline, "FOLDER", tmp_path)
    settings = measure.Settings(library=library, targets_ps=(10000,))
    before = measure.measure([Variant(toy(Nand), {})], settings)
    assert [d.same for d in baseline.compare(before, "vt45")] == [False]  # none stored yet
    written = baseline.update(before, settings)
    assert written == [tmp_path / "vt45" / "toy.json"]
    assert [d.same for d in baseline.compare(before, "vt45")] == [True]

    mutated = measure.measure([Variant(toy(lambda: Nand(inverted=False)), {})], settings)
    (difference,) = baseline.compare(mutated, "vt45")
    assert not difference.same
    assert difference.change("area_um2") == pytest.approx(0.266, abs=0.11)
    header, lines = baseline.table([difference])
    assert len(header) == len(lines[0])
    written[0].write_text("{")
    with pytest.raises(UserError, match="must be JSON with rows"):
        baseline.compare(before, "vt45")
