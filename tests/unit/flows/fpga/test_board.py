"""The boards: their files are complete, and the pins of a design come from them."""

import re

import pytest

from vitruvian.common.errors import UserError
from vitruvian.flows.fpga.board import BOARDS, board_names, load_board
from vitruvian.flows.fpga.default_design import default_design, ranks_note, suited
from vitruvian.flows.fpga.mapping import FAMILIES
from vitruvian.flows.fpga.wrapper import Top, ports_of
from vitruvian.flows.units import reported, variants
from vitruvian.hdl.elaborate import only_described


@pytest.mark.parametrize("name", board_names())
def test_a_board_is_complete_and_every_number_has_a_source(name):
    board = load_board(name)
    assert board.family in FAMILIES and set(board.resources) == {"lut", "ff", "dsp", "bram"}
    assert {"rx", "tx", "led"} <= set(board.pins) and board.clock_mhz > 1
    assert all(board.grid) == board.routed
    pins = [board.clock_pin, *(pin for pins in board.pins.values() for pin in pins)]
    assert len(set(pins)) == len(pins)
    text = (BOARDS / f"{name}.toml").read_text().split("[default]")[0]
    values = [line for line in text.splitlines() if re.match(r"(?!description|family)\w+ =", line)]
    values += [line for line in text.splitlines() if re.match(r"family = \"GW", line)]
    assert len(values) >= 12
    assert not [line for line in values if not re.search(r" # \w", line)]


@pytest.mark.parametrize("name", board_names())
def test_the_default_design_is_on_the_pins_and_runs_at_the_clock_of_the_board(name):
    board = load_board(name)
    variant = default_design(board)
    assert variant.configuration["clock_hz"] == board.clock_mhz * 1e6
    assert variant.configuration["multiplier"] == "dsp"
    ports = ports_of(only_described(variant.build()))
    top = Top(module=variant.module, ports=ports, board=board, controls={"clk", "rst"})
    assert not top.wrapped and set(top.pins) == {"rx", "tx", "led"}


def test_options_that_the_user_gives_stay():
    board = load_board("ulx3s")
    unit = variants("intdot", {"k": [4]})[0]
    assert suited(unit, board, ()).configuration["multiplier"] == "dsp"
    assert suited(unit, board, ["multiplier"]) == unit
    plain = variants("compare", {})[0]
    assert suited(plain, board, ()) == plain
    fast = variants("m3xu", {"variant": ["fast"]})[0]  # its products are carry-save
    assert suited(fast, board, ()) == fast


def test_a_board_has_the_ranks_that_pay_there():
    board, small = load_board("ulx3s"), load_board("icebreaker")
    integer, float16 = variants("intdot", {})[0], variants("dot", {"k": [4]})[0]
    fitted = suited(integer, board, ())
    assert fitted.configuration["pipeline"] == 4 and fitted.label == "k16-p4-dsp"
    assert suited(float16, board, ()).configuration["pipeline"] == 11
    said = ranks_note(integer, fitted, board)
    assert said is not None and "4 register ranks pay on ulx3s" in said and "instead of 1" in said
    # The user's choice stays, and so do the ranks where none have been measured.
    for given, where in ((["pipeline"], board), (["multiplier"], board), ([], small)):
        kept = suited(integer, where, given)
        assert kept.configuration["pipeline"] == 1
        assert ranks_note(integer, kept, where) is None
    # A row of a machine is judged by its component; other rules have no such ranks.
    rows = {"row": ["a100_mma_fp16_fp32", "cdna2_mfma_bf16_fp32"]}
    ranks = [suited(v, board, ()).configuration["pipeline"] for v in variants("machine", rows)]
    assert ranks == [11, None]


@pytest.mark.parametrize("name", board_names())
def test_every_rank_of_a_board_can_be_built(name):
    board = load_board(name)
    by_class = {}
    for unit in ("dot", "intdot", "blockdot", "machine"):
        for variant in reported(unit):
            by_class[variant.unit.component(variant.configuration)[0].__name__] = variant
    for component, ranks in board.ranks.items():
        fitted = suited(by_class[component], board, ())
        assert fitted.configuration["pipeline"] == ranks and fitted.configuration["multiplier"]
        fitted.check()


def test_pins_are_located_by_bits():
    located = load_board("tangnano9k").located({"led": 2, "tx": 1})
    assert located == {
        "clk": ("52", "LVCMOS33"),
        "led[0]": ("10", "LVCMOS18"),
        "led[1]": ("11", "LVCMOS18"),
        "tx": ("17", "LVCMOS33"),
    }


def test_an_unknown_board_is_refused():
    with pytest.raises(UserError, match=r"board must be one of arty, .*, not 'ulx4s'"):
        load_board("ulx4s")
