"""The energy of a peer: its operands are ours, and a wrong result is refused."""

import csv

import pytest

from benchmarks import power_peers
from benchmarks.area_peers import Peer
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.sim.rtl.emit import to_verilog

#: Ports of cvfpu around our own unit; the number is the word of the first factor.
_WRAPPER = """
module peer (
  input logic [2:0][31:0] operands_i,
  input logic in_valid_i, out_ready_i, rst_ni,
  output logic [31:0] result_o,
  output logic in_ready_o, out_valid_o
);
  top unit (
    .a(operands_i[%d][15:0]), .b(operands_i[1][15:0]), .c(operands_i[2]), .d(result_o)
  );
  assign in_ready_o = out_ready_i & rst_ni;
  assign out_valid_o = in_valid_i;
endmodule
"""


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """Return a function that writes the sources of a peer, which is the only one then."""
    monkeypatch.setattr(power_peers, "RECIPES", {"usual": SynthesisRecipe()})
    given = UNITS["dot"].default({"preset": "ieee", "k": 1, "pipeline": 0})
    unit = to_verilog(Variant(UNITS["dot"], given).build())

    def write(first):
        (tmp_path / "peer.sv").write_text(unit + _WRAPPER % first)
        found = {power_peers._LABEL: Peer(top="peer", files=("peer.sv",), macs=1)}
        monkeypatch.setitem(power_peers.PEERS, "cvfpu", found)
        return ["--sources", str(tmp_path), "--liberty", "vt45", "--cycles", "20"]

    return write


def test_a_peer_whose_results_are_goldens_has_a_row_for_each_stimulus(peer, tmp_path):
    table = tmp_path / "table.csv"
    assert power_peers.main([*peer(0), "--stimulus", "uniform,relu", "--csv", str(table)]) == 0
    header, *rows = csv.reader(table.read_text().splitlines())
    assert tuple(header) == power_peers.HEADER
    assert [row[:3] for row in rows] == [["cvfpu FMA", "usual", x] for x in ("uniform", "relu")]
    assert all(0 < float(settled) < float(timed) for *_, settled, timed, _ in rows)


def test_a_peer_with_other_results_is_refused(peer, capsys):
    assert power_peers.main([*peer(2), "--stimulus", "uniform"]) == 1
    line = capsys.readouterr().err
    assert "of the netlist differs from golden in" in line and line.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cycles", "0"], "cycles must be positive, not 0"),
        (["--stimulus", "unifrm"], "(did you mean uniform?)"),
    ],
)
def test_mistakes_are_named_in_one_line(peer, arguments, message, capsys):
    assert power_peers.main([*peer(0), *arguments]) == 2
    line = capsys.readouterr().err
    assert line.startswith("power_peers: ") and message in line and line.count("\n") == 1
