"""The energy of a netlist agrees with OpenSTA's at one activity of all nets, if it is installed."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.system.test_flows_opensta import run_sta, structural
from vitruvian.flows.asic import cells
from vitruvian.flows.asic.measure import Settings, measure
from vitruvian.flows.asic.power import cells as power_cells
from vitruvian.flows.asic.power.energy import energies
from vitruvian.flows.asic.power.events import EventCounts
from vitruvian.flows.asic.power.network import MappedNetwork, build
from vitruvian.flows.asic.synth import SynthesisRecipe
from vitruvian.flows.units import variants

#: Edges of each net in a clock cycle, and the cycle.
ACTIVITY, CYCLES, PERIOD_PS = 0.2, 4000, 5000.0
RECIPE = SynthesisRecipe()
GROUPS = ("Combinational", "Sequential")


def uniform(mapped: MappedNetwork) -> EventCounts:
    """Return counts in which every net has the same edges, and every state of a register."""
    nets, registers = len(mapped.network.truth), len(mapped.network.data)
    edges = np.full((nets, 2), round(CYCLES * ACTIVITY / 2), np.int64)
    return EventCounts(
        events=edges,
        settled=edges,
        arcs=np.zeros((len(mapped.network.target), 2), np.int64),
        states=np.full((registers, 4), CYCLES // 4, np.int64),
        # All clock gates are open in every cycle.
        opened=np.full((len(mapped.gates), 4), [0, 0, 0, CYCLES], np.int64),
        last=np.zeros(1, np.int64),
    )


def ours(netlist: dict[str, Any], library: cells.CellLibrary) -> dict[str, list[float]]:
    """Return internal power, that of switched loads, and leakage, in W, of gates and registers.

    The drivers of inputs and of the clock are no part of the netlist.
    """
    known = power_cells.load(library.path)
    mapped = build(
        netlist,
        library.cells,
        known,
        driving_cell=RECIPE.driving_cell,
        load_ff=RECIPE.load_ff,
    )
    split, _ = energies(mapped, known, uniform(mapped), cycles=CYCLES, period_ps=PERIOD_PS)
    switched = dict.fromkeys(GROUPS, 0.0)
    loads = mapped.graph.load.reshape(-1, 2).sum(1)
    for net, load in enumerate(loads):
        if mapped.owner[net] >= 0:
            group = GROUPS[mapped.instances[mapped.owner[net]].cell.register is not None]
            switched[group] += 0.5 * known.volts**2 * ACTIVITY / 2 * float(load)
    inner = {
        "Combinational": split.parts["combinational"] - switched["Combinational"],
        # OpenSTA takes both outputs of a register as independent, so it counts each condition on
        # both of them, under which the clock has its energy, with half of its probability.
        "Sequential": split.parts["registers"] - switched["Sequential"],
    }
    if mapped.clock >= 0:
        clock = split.parts["clock"] - 0.5 * known.volts**2 * float(loads[mapped.clock])
        inner["Sequential"] += clock / 2
    leaks = dict.fromkeys(GROUPS, 0.0)
    for instance in mapped.instances:
        leaks[GROUPS[instance.cell.register is not None]] += instance.cell.leakage_nw * 1e-9
    return {
        group: [inner[group] / PERIOD_PS / 1000, switched[group] / PERIOD_PS / 1000, leaks[group]]
        for group in GROUPS
    }


def opensta(netlist: dict[str, Any], library: Path, folder: Path) -> dict[str, list[float]]:
    """Return the same figures as OpenSTA reports them."""
    (folder / "top.v").write_text(structural(netlist))
    clock = "[get_ports clk]" if "clk" in netlist["ports"] else ""
    others = "[all_inputs -no_clocks]"
    activity = f"-activity {ACTIVITY} -duty 0.5"
    loads = re.search(r'default_wire_load\s*:\s*"(\w+)"', library.read_text())
    assert loads
    script = [
        f"read_liberty {library.resolve()}",
        "read_verilog top.v",
        "link_design top",
        f"set_wire_load_model -name {loads[1]}",
        "set_wire_load_mode top",
        f"create_clock -name clk -period {PERIOD_PS / 1000} {clock}",
        f"set_driving_cell -lib_cell BUF_X4 {others}",
        "set_load 5 [all_outputs]",
        f"set_input_delay 0 -clock clk {others}",
        "set_output_delay 0 -clock clk [all_outputs]",
        f"set_power_activity -global {activity}",
        f"set_power_activity -input {activity}",
        "report_power -digits 6",
    ]
    told = run_sta(script, folder)
    found = {}
    for group in GROUPS:
        row = re.search(rf"^{group} +(\S+) +(\S+) +(\S+)", told, re.MULTILINE)
        assert row, told
        found[group] = [float(figure) for figure in row.groups()]
    return found


def _version() -> tuple[int, ...]:
    """Return the version of OpenSTA; empty if there is none."""
    if not shutil.which("sta"):
        return ()
    done = subprocess.run(["sta", "-version"], capture_output=True, text=True, check=True)
    return tuple(int(number) for number in re.findall(r"\d+", done.stdout)[:3])


@pytest.mark.skipif(_version() < (2, 6), reason="needs OpenSTA 2.6 or newer")
@pytest.mark.parametrize("stages", [0, 3])
def test_power_agrees_with_opensta(stages: int, tmp_path: Path):
    library = cells.library("nangate45")
    (row,) = measure(
        variants("dot", {"preset": ["a100"], "k": [4], "pipeline": [stages]}),
        Settings(library=library, recipe=RECIPE, targets_ps=(500,), cut="whole"),
    )
    netlist = row.pieces[0].mapped[500].netlist
    expected, found = opensta(netlist, library.path, tmp_path), ours(netlist, library)
    assert sum(expected["Combinational"]) > 0 and (sum(expected["Sequential"]) > 0) == (stages > 0)
    for group in GROUPS:
        theirs, own = (1000 * sum(figures[group]) for figures in (expected, found))
        print(f"{stages} ranks, {group}: OpenSTA {theirs:.3f} mW, ours {own:.3f}")
        assert sum(found[group]) == pytest.approx(sum(expected[group]), rel=0.05), group
        # Single figures are small differences of tables at other loads and slews.
        assert found[group] == pytest.approx(expected[group], rel=0.08), group
