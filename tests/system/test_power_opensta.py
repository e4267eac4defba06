"""The energy of a netlist agrees with OpenSTA's at one activity of all nets, if it is installed."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.system.test_flows_opensta import GATED, run_sta, structural
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
GROUPS: tuple[str, ...] = ("Combinational", "Sequential", "Clock")


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
    """Return internal power, that of switched loads, and leakage, in W, of each group of cells.

    The drivers of inputs and of the clock are no part of the netlist. Clock gates are the group
    ``Clock``.
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
            group = _group(mapped.instances[mapped.owner[net]].cell)
            edges = 1 if group == "Clock" else ACTIVITY / 2  # of each direction
            switched[group] += 0.5 * known.volts**2 * edges * float(load)
    leaks = dict.fromkeys(GROUPS, 0.0)
    for instance in mapped.instances:
        leaks[_group(instance.cell)] += instance.cell.leakage_nw * 1e-9
    gates = float(split.owned[mapped.gates].sum()) - leaks["Clock"] * PERIOD_PS * 1000
    inner = {
        "Combinational": split.parts["combinational"] - switched["Combinational"],
        # OpenSTA takes both outputs of a register as independent, so it counts each condition on
        # both of them, under which the clock has its energy, with half of its probability.
        "Sequential": split.parts["registers"] - switched["Sequential"],
        "Clock": gates - switched["Clock"],
    }
    if mapped.clock >= 0:
        clock = split.parts["clock"] - 0.5 * known.volts**2 * float(loads[mapped.clock])
        inner["Sequential"] += (clock - gates) / 2
    return {
        group: [inner[group] / PERIOD_PS / 1000, switched[group] / PERIOD_PS / 1000, leaks[group]]
        for group in GROUPS
    }


def _group(cell: power_cells.PowerCell) -> str:
    """Return the group of a cell in OpenSTA."""
    if cell.gate is not None:
        return "Clock"
    return "Combinational" if cell.is_logic else "Sequential"


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
        # An ideal clock would have no slew behind its gates.
        *(["set_propagated_clock [all_clocks]"] if clock else []),
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
@pytest.mark.parametrize(
    ("unit", "options", "recipe", "groups"),
    [
        ("dot", {"preset": ["a100"], "k": [4], "pipeline": [0]}, RECIPE, GROUPS[:1]),
        ("dot", {"preset": ["a100"], "k": [4], "pipeline": [3]}, RECIPE, GROUPS[:2]),
        ("element", GATED, replace(RECIPE, clock_gates=4), GROUPS),
    ],
)
def test_power_agrees_with_opensta(
    unit: str,
    options: dict[str, Any],
    recipe: SynthesisRecipe,
    groups: Sequence[str],
    tmp_path: Path,
):
    library = cells.library("nangate45")
    (row,) = measure(
        variants(unit, options),
        Settings(library=library, recipe=recipe, targets_ps=(500,), cut="whole"),
    )
    netlist = row.pieces[0].mapped[500].netlist
    expected, found = opensta(netlist, library.path, tmp_path), ours(netlist, library)
    for group in GROUPS:
        theirs, own = (1000 * sum(figures[group]) for figures in (expected, found))
        print(f"{row.variant.label}, {group}: OpenSTA {theirs:.3f} mW, ours {own:.3f}")
        assert (theirs > 0) == (group in groups)
        assert sum(found[group]) == pytest.approx(sum(expected[group]), rel=0.05), group
        # Single figures are small differences of tables at other loads and slews. For those of a
        # clock gate, OpenSTA weighs conditions on the enable, but the clock never stops.
        if group != "Clock":
            assert found[group] == pytest.approx(expected[group], rel=0.08), group
