"""The areas of peers: sources are elaborated with constants, and what is missing is named."""

import csv
import re

import pytest

from benchmarks import area_peers
from benchmarks.area_peers import PEERS, Peer
from vitruvian.flows.asic.synth import SynthesisRecipe

_SOURCE = """
`include "width.svh"
module unit #(parameter int W = 2) (
  input  logic clk, subtract,
  input  logic [W-1:0] a, b,
  output logic [`WIDTH-1:0] sum
);
  always_ff @(posedge clk) sum <= subtract ? sum - a * b : sum + a * b;
endmodule
"""
_UNIT = Peer(
    top="unit",
    files=("unit.sv",),
    includes=("headers",),
    parameters={"W": "3"},
    defines={"WIDTH": "7"},
    ties={"subtract": "1'd0"},
    macs=1,
)


@pytest.fixture
def sources(tmp_path):
    """Return a folder, whose name has a blank, with the sources of a small unit."""
    folder = tmp_path / "a clone"
    (folder / "headers").mkdir(parents=True)
    (folder / "unit.sv").write_text(_SOURCE)
    (folder / "headers" / "width.svh").write_text("// The width is a macro.\n")
    return folder


def test_parameters_macros_and_constants_reach_the_design(sources):
    rtlil = area_peers.elaborate(_UNIT, sources)
    ports = re.findall(r"wire (?:width (\d+) )?\w+put \d+ \\(\w+)", rtlil)
    assert ports == [("", "clk"), ("3", "a"), ("3", "b"), ("7", "sum")]
    assert re.search(r"connect \\subtract 1'0", rtlil)


def test_equal_sources_in_different_folders_are_equal_designs(sources, tmp_path):
    first = area_peers.elaborate(_UNIT, sources)
    assert area_peers.elaborate(_UNIT, sources.rename(tmp_path / "other")) == first


def test_the_table_has_a_row_for_a_given_unit(sources, capsys, monkeypatch):
    monkeypatch.setattr(area_peers, "RECIPES", {"usual": SynthesisRecipe()})
    given = ["--top", "unit", "--files", "unit.sv", "--include", "headers", "--macs", "1"]
    settings = ["--parameter", "W=3", "--define", "WIDTH=7", "--tie", "subtract=1'd0"]
    place = ["--sources", str(sources), "--liberty", "vt45"]
    assert area_peers.main([*given, *settings, *place, "--stages", "1"]) == 0
    header, row = csv.reader(capsys.readouterr().out.splitlines())
    assert tuple(header) == area_peers.HEADER and row[:3] == ["unit", "1", "1"]
    assert all(float(figure) > 0 for figure in row[3:]) and len(row) == 7


@pytest.mark.parametrize("name", PEERS)
def test_missing_sources_are_named_in_one_line(name, tmp_path, capsys):
    assert area_peers.main([name, "--sources", str(tmp_path), "--liberty", "vt45"]) == 2
    line = capsys.readouterr().err
    peer = next(iter(PEERS[name].values()))
    assert line.count("\n") == 1 and peer.files[0] in line
    assert peer.repository in line and peer.commit[:12] in line and peer.preparation in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "peer must be ours, cvfpu, vortex, or --top with --files"),
        (["--top", "t", "--files", "f", "--tie", "x"], "an assignment must be NAME=VALUE, not 'x'"),
        (["ours", "--macs", "0"], "macs must be positive, not 0"),
    ],
)
def test_mistakes_are_named_in_one_line(arguments, message, capsys):
    assert area_peers.main([*arguments, "--liberty", "vt45"]) == 2
    assert capsys.readouterr().err == f"area_peers: {message}\n"
