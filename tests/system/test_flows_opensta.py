"""The static timing agrees with OpenSTA, if that is installed (Debian package ``opensta``)."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vitruvian.flows.asic import cells, hold, measure, sta
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.flows.units import variants

CLASSES = {
    "input->output": ("[all_inputs]", "[all_outputs]"),
    "input->register": ("[all_inputs]", "[all_registers -data_pins]"),
    "register->register": ("[all_registers -clock_pins]", "[all_registers -data_pins]"),
    "register->output": ("[all_registers -clock_pins]", "[all_outputs]"),
}
PERIOD_PS = 100_000


def structural(netlist: dict[str, Any]) -> str:
    """Return the mapped netlist as Verilog; net n of the JSON is wire ``n``."""

    def wire(bit: int | str) -> str:
        return f"n{bit}" if isinstance(bit, int) else f"1'b{bit if bit in '01' else 0}"

    lines = [f"module top({', '.join(netlist['ports'])});"]
    for name, port in netlist["ports"].items():
        width = len(port["bits"])
        lines.append(f"{port['direction']} {f'[{width - 1}:0] ' if width > 1 else ''}{name};")
        for index, bit in enumerate(port["bits"]):
            pin = f"{name}[{index}]" if width > 1 else name
            ends = (wire(bit), pin) if port["direction"] == "input" else (pin, wire(bit))
            lines.append(f"assign {ends[0]} = {ends[1]};")
    for number, cell in enumerate(netlist["cells"].values()):
        pins = [f".{pin}({wire(bits[0])})" for pin, bits in cell["connections"].items() if bits]
        lines.append(f"{cell['type']} u{number} ({', '.join(pins)});")
    return "\n".join([*lines, "endmodule"])


def run_sta(script: list[str], folder: Path) -> str:
    """Return what OpenSTA prints when it carries out a script in a folder."""
    (folder / "run.tcl").write_text("\n".join([*script, "exit"]))
    done = subprocess.run(
        ["sta", "-no_splash", "-exit", "run.tcl"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def opensta(
    netlist: dict[str, Any], library: Path, folder: Path, *, gated: bool = False
) -> dict[str, float]:
    """Return path class -> longest delay in ps, as OpenSTA reports it.

    Only if there are gated clocks, it is told to propagate clocks, and ``hold`` is the least slack
    of a hold time.
    """
    (folder / "top.v").write_text(structural(netlist))
    clocked = "clk" in netlist["ports"]
    port = "[get_ports clk]" if clocked else ""
    script = [
        f"read_liberty {library.resolve()}",
        "set_cmd_units -time ps -capacitance fF",
        "read_verilog top.v",
        "link_design top",
        f"create_clock -name clk -period {PERIOD_PS} {port}",
        f"set_driving_cell -lib_cell BUF_X4 [all_inputs{' -no_clocks' if gated else ''}]",
        "set_load 5 [all_outputs]",
        "set_input_delay 0 -clock clk [all_inputs]",
        "set_output_delay 0 -clock clk [all_outputs]",
    ]
    if clocked:
        script.append("unset_input_delay -clock clk [get_ports clk]")
    if gated:
        script.append("set_propagated_clock [all_clocks]")
    # Recent versions take a wire-load model only if they are told to.
    loads = re.search(r'default_wire_load\s*:\s*"(\w+)"', library.read_text())
    if loads:
        script += [f"set_wire_load_model -name {loads[1]}", "set_wire_load_mode top"]
    for kind, (begin, end) in CLASSES.items():
        if clocked or kind == "input->output":
            script += [f'puts "CLASS {kind}"']
            script += [f"report_checks -digits 6 -from {begin} -to {end}"]
    if gated:
        begin, end = CLASSES["register->register"]
        script += ['puts "CLASS hold"']
        script += [f"report_checks -path_delay min -digits 6 -from {begin} -to {end}"]
    told = run_sta(script, folder)
    delays = {}
    for block in told.split("CLASS ")[1:]:
        slack = re.search(r"(-?[\d.]+)\s+slack", block)
        if slack:
            kind = block.split("\n")[0]
            delays[kind] = float(slack[1]) if kind == "hold" else PERIOD_PS - float(slack[1])
    return delays


@pytest.mark.skipif(not shutil.which("sta"), reason="needs OpenSTA (Debian package opensta)")
@pytest.mark.parametrize(
    ("unit", "options"),
    [("compare", {"format": ["fp16"]}), ("add", {"format": ["fp16"], "pipeline": [2]})],
)
def test_longest_paths_agree_with_opensta(unit: str, options: dict, tmp_path: Path):
    library = cells.library()
    row = measure.measure(variants(unit, options), measure.Settings(library=library))[0]
    (piece,) = row.pieces
    for target, mapped in piece.mapped.items():
        theirs = opensta(mapped.netlist, library.path, tmp_path)
        ours = {kind: path.delay_ps for kind, path in piece.timing[target].paths.items()}
        assert ours == pytest.approx(theirs, rel=0.01)


#: A dot product whose registers keep their values in cycles without operands.
GATED: dict[str, Any] = {"precisions": ["int8"], "k": [2], "pipeline": [3], "gated": [True]}


@pytest.mark.skipif(not shutil.which("sta"), reason="needs OpenSTA (Debian package opensta)")
def test_paths_of_gated_clocks_agree_with_opensta(tmp_path: Path):
    """Data and enables arrive early enough at clocks behind gates and without one."""
    library = cells.library("nangate45")
    settings = measure.Settings(
        library=library, recipe=SynthesisRecipe(clock_gates=4), targets_ps=(500,), cut="whole"
    )
    (row,) = measure.measure(variants("element", GATED), settings)
    (piece,) = row.pieces
    netlist = piece.mapped[500].netlist
    assert any(cell["type"].startswith("CLKGATE") for cell in netlist["cells"].values())
    theirs = opensta(netlist, library.path, tmp_path, gated=True)
    ours = {kind: path.delay_ps for kind, path in piece.timing[500].paths.items()}
    graph = sta.TimingGraph(netlist, library.cells, "BUF_X4", 5.0)
    ours["hold"] = min(hold.slacks(graph).values())
    print(f"ours {ours}, OpenSTA {theirs}")
    assert ours == pytest.approx(theirs, rel=0.01)
