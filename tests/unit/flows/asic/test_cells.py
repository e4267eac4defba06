"""The built-in cell library has the published areas, sane delays and what the tools need."""

import itertools

import pytest

from vitruvian.common.errors import UserError
from vitruvian.flows.asic import cells, liberty
from vitruvian.flows.asic.cells import stages, writer
from vitruvian.flows.asic.liberty_text import parse_groups

PUBLISHED_UM2 = {
    "INV_X1": 0.532, "BUF_X1": 0.798, "NAND2_X1": 0.798, "NAND3_X1": 1.064, "NAND4_X1": 1.330,
    "NOR2_X1": 0.798, "NOR3_X1": 1.064, "AND2_X1": 1.064, "AND3_X1": 1.330, "OR2_X1": 1.064,
    "XOR2_X1": 1.596, "XNOR2_X1": 1.596, "AOI21_X1": 1.064, "AOI22_X1": 1.330, "AOI211_X1": 1.330,
    "AOI221_X1": 1.596, "AOI222_X1": 2.128, "OAI21_X1": 1.064, "OAI22_X1": 1.330,
    "MUX2_X1": 1.862, "HA_X1": 2.660, "FA_X1": 4.256, "DFF_X1": 4.522, "DFF_X2": 5.054,
    "DFFR_X1": 5.320, "DFFS_X1": 5.320,
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> liberty.Library:
    return liberty.parse(writer.liberty(), name="vt45")


def test_areas_are_the_published_ones(library: liberty.Library):
    areas = {name: library.cells[name].area_um2 for name in PUBLISHED_UM2}
    assert areas == pytest.approx(PUBLISHED_UM2)


def test_every_function_matches_the_name_of_its_cell(library: liberty.Library):
    def value(name: str, **pins: int) -> int:
        cell = library.cells[name]
        function = next(iter(cell.outputs.values()))
        text = function.replace("!", " not ").replace("&", " and ").replace("|", " or ")
        return int(bool(eval(text, {}, {pin: bool(bit) for pin, bit in pins.items()})))

    for a, b, c in itertools.product((0, 1), repeat=3):
        assert value("XOR2_X1", A=a, B=b) == a ^ b
        assert value("XNOR2_X2", A=a, B=b) == 1 - (a ^ b)
        assert value("MUX2_X1", A=a, B=b, S=c) == (b if c else a)
        assert value("AOI21_X4", A=a, B1=b, B2=c) == 1 - (a | (b & c))
        assert value("OAI21_X2", A=a, B1=b, B2=c) == 1 - (a & (b | c))
        assert value("AND3_X1", A1=a, A2=b, A3=c) == a & b & c
        assert value("NOR3_X1", A1=a, A2=b, A3=c) == 1 - (a | b | c)
        assert value("FA_X1", A=a, B=b, CI=c) == int(a + b + c > 1)
        for d in (0, 1):
            assert value("AOI211_X4", A=a, B=b, C1=c, C2=d) == 1 - (a | b | (c & d))
            assert value("OAI22_X1", A1=a, A2=b, B1=c, B2=d) == 1 - ((a | b) & (c | d))


def test_delays_grow_with_load_slew_and_stack(library: liberty.Library):
    def worst(name: str, slew: float, load: float) -> float:
        return max(arc.delay(slew, load) for arc in library.cells[name].arcs)

    assert worst("INV_X1", 10, 2) < worst("INV_X1", 10, 8) < worst("INV_X1", 60, 8)
    assert worst("INV_X4", 10, 8) < worst("INV_X2", 10, 8) < worst("INV_X1", 10, 8)
    assert worst("INV_X1", 10, 4) < worst("NOR2_X1", 10, 4) < worst("NOR3_X1", 10, 4)
    fan_out_of_four = worst("INV_X1", 20, 4 * library.cells["INV_X1"].caps["A"][0])
    assert 10 < fan_out_of_four < 40  # ps, a 45 nm process


def test_later_transistor_of_a_stack_is_slower():
    stage = stages.Stage("ZN", stages.network("A1 & A2 & A3"))
    delays = [stage.response(pin, 0, 10.0, 2.0)[0] for pin in ("A1", "A2", "A3")]
    assert delays == sorted(delays) and delays[0] < delays[2]
    with pytest.raises(ValueError, match="pin must be an input of 'ZN', not 'B'"):
        stage.response("B", 0, 10.0, 2.0)


def test_liberty_text_is_the_same_every_time():
    assert writer.liberty() == writer.liberty()


def test_library_by_name_and_by_file(own_cache, tmp_path):
    built_in = cells.library()
    assert built_in.path.is_relative_to(own_cache)
    file = tmp_path / "mine.lib"
    file.write_text(writer.liberty())
    assert cells.library(str(file)).name == "mine"
    with pytest.raises(
        UserError, match="liberty must be vt45, nangate45, sg13g2 or an existing file"
    ):
        cells.library("nothing.lib")
    with pytest.raises(UserError, match="driving cell must be one of BUF_X1"):
        cells.library(str(file), driving_cell="BUF_X3")
    file.write_text("not liberty")
    with pytest.raises(UserError, match="must be a liberty file"):
        cells.library(str(file))


def test_unused_groups_are_skipped_with_their_contents():
    """A skipped group may contain other groups, and more cells may follow it."""
    cell = "cell (X) { area : 2; pg_pin (V) { one (a) { b : 1; } two () { } c : 3; } }"
    text = f"library (x) {{ {cell} cell (Y) {{ area : 3; }} }}"
    groups = parse_groups(text, "x").groups[0].groups
    assert [(g.name, g.arguments, g.attributes) for g in groups] == [
        ("cell", ["X"], {"area": "2"}),
        ("cell", ["Y"], {"area": "3"}),
    ]
    assert not groups[0].groups
