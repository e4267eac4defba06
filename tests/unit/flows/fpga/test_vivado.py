"""The Vivado projects: Tcl runs against stand-ins of Vivado's commands; pins are constrained."""

import pytest

from vitruvian.cli import main
from vitruvian.flows.fpga.board import load_board

#: Commands of Vivado that the scripts use, as procedures that note their calls.
COMMANDS = """
set ::calls {}
foreach name {create_project add_files set_property update_compile_order launch_runs wait_on_run
              open_run report_utilization report_timing_summary create_clock} {
    proc $name {args} "lappend ::calls \\[list $name {*}\\$args\\]"
}
foreach name {current_fileset get_runs get_timing_paths get_clocks get_ports} {
    proc $name {args} "return \\[list $name {*}\\$args\\]"
}
proc get_property {name of} {
    return [dict get {PROGRESS 100% SLACK 2.0 PERIOD 10.0} $name]
}
proc puts {text} {lappend ::said $text}
"""


@pytest.fixture
def tcl():
    """Return a Tcl interpreter with stand-ins for Vivado's commands."""
    tkinter = pytest.importorskip("tkinter", reason="needs Python with tkinter")
    interpreter = tkinter.Tcl()
    interpreter.eval(COMMANDS)
    return interpreter


@pytest.mark.parametrize("board", ["arty", "pynq-z2"])
def test_the_script_runs_from_the_project_to_the_bitstream(board, tmp_path, tcl, capsys):
    assert main(f"fpga compare --format fp8e4m3 --board {board} --out {tmp_path}".split()) == 0
    assert "%" in capsys.readouterr().out
    (script,) = tmp_path.glob("*.tcl")
    name = script.stem
    tcl.eval(f"source {{{script}}}")
    calls = [tcl.splitlist(call) for call in tcl.splitlist(tcl.eval("set ::calls"))]
    assert calls[0] == (
        *("create_project", name, str(tmp_path / name)),
        *("-part", load_board(board).part["name"], "-force"),
    )
    assert ("launch_runs", "impl_1", "-to_step", "write_bitstream", "-jobs", "2") in calls
    assert {str(p) for p in tmp_path.iterdir()} == {
        str(tmp_path / f"{name}.{ending}") for ending in ("tcl", "xdc", "v")
    }
    assert "fmax: 125.0 MHz" in tcl.eval("join $::said")
    assert "module board_top(" in (tmp_path / f"{name}.v").read_text()


def test_a_run_that_fails_ends_the_script(tmp_path, tcl):
    assert main(f"fpga compare --format fp8e4m3 --board arty --out {tmp_path}".split()) == 0
    (script,) = tmp_path.glob("*.tcl")
    tcl.eval("proc get_property {name of} {return 50%}")
    with pytest.raises(Exception, match="synth_1 did not end"):
        tcl.eval(f"source {{{script}}}")


def test_the_constraints_are_tcl_with_a_clock_and_pins(tmp_path, tcl):
    assert main(f"fpga compare --format fp8e4m3 --board arty --out {tmp_path}".split()) == 0
    (pins,) = tmp_path.glob("*.xdc")
    tcl.eval(f"source {{{pins}}}")
    calls = tcl.eval("set ::calls")
    assert "create_clock -period 10 -name clk {get_ports clk}" in calls
    for port, pin in (("clk", "E3"), ("rx", "A9"), ("tx", "D10")):
        assert f"{{PACKAGE_PIN {pin} IOSTANDARD LVCMOS33}} {{get_ports {port}}}" in calls
