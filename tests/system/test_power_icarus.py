"""The simulation of power counts the edges that Icarus Verilog counts, if that is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vitruvian.flows.asic.cells import library
from vitruvian.flows.asic.measure import Settings, measure
from vitruvian.flows.asic.power import cells
from vitruvian.flows.asic.power.measure import run
from vitruvian.flows.asic.power.network import MappedNetwork, build
from vitruvian.flows.asic.power.stimulus import PowerStimulus, stimulus
from vitruvian.flows.units import variants

PERIOD_FS = 8_000_000
CYCLES = 200


def one_delay_each(mapped: MappedNetwork) -> np.ndarray:
    """Give every pin of a gate the delay of its slowest one, as Verilog's ``assign`` has it."""
    network = mapped.network
    slowest = np.zeros((len(network.truth), 2), np.int64)
    np.maximum.at(slowest, network.target, network.delay)
    network.delay[:] = slowest[network.target]
    network.input_delay[:] = 1
    return slowest


def verilog(mapped: MappedNetwork, delays: np.ndarray, stimuli: np.ndarray, warm_up: int) -> str:
    """Return a module that drives the gates and writes every change behind the warm-up."""
    network, nets = mapped.network, len(mapped.network.truth) - 2

    def wire(net: int) -> str:
        return f"n{net}" if net < nets else f"1'b{net - nets}"

    inputs = [f"n{net}" for net in network.inputs]
    lines = ["`timescale 1fs/1fs", "module top; reg clk = 0; integer c;"]
    lines += [f"{'reg' if f'n{net}' in inputs else 'wire'} n{net};" for net in range(nets)]
    for instance in mapped.instances:
        values = {pin: wire(net) for pin, net in instance.pins.items()}
        values |= {pin: f"1'b{bit}" for pin, bit in instance.constants.items()}
        for output, function in instance.cell.outputs.items():
            if instance.cell.register is None and output in instance.pins:
                gate = instance.pins[output]
                text = re.sub(r"[A-Z]\w*", lambda word: values[word[0]], function)  # noqa: B023
                fall, rise = delays[gate]
                lines.append(f"assign #({rise},{fall}) n{gate} = {text.replace('!', '~')};")
    for register, net in enumerate(network.data):
        lines.append(f"reg s{register} = 0;")
        lines.append(f"always @(posedge clk) s{register} <= {wire(int(net))};")
    for (register, net, inverted), (fall, rise) in zip(
        network.launch.tolist(), network.launch_delay.tolist(), strict=True
    ):
        lines.append(f"assign #({rise},{fall}) n{net} = {'~' if inverted else ''}s{register};")
    rows, width = stimuli.shape
    half = PERIOD_FS // 2
    lines += [
        f"reg [{width - 1}:0] rows [0:{rows - 1}];",
        'initial begin $readmemb("rows", rows);',
        *(f"{name} = 0;" for name in inputs),
        f"#{4 * PERIOD_FS};",
        f"for (c = 0; c < {rows}; c = c + 1) begin",
        f'if (c == {warm_up}) begin $dumpfile("changes.vcd"); $dumpvars(0, top); end',
        f"clk = 1; #1; {{{','.join(reversed(inputs))}}} = rows[c];",
        f"#{half} clk = 0; #{half - 1};",
        "end $finish; end endmodule",
    ]
    return "\n".join(lines)


def counted(path: Path, nets: int) -> np.ndarray:
    """Return the falling and rising edges of every net in a file of changes."""
    names: dict[str, str] = {}
    last: dict[str, str] = {}
    edges = np.zeros((nets, 2), np.int64)
    for line in path.read_text().splitlines():
        words = line.split()
        if line.startswith("$var"):
            names[words[3]] = words[4]
        elif line[:1] in ("0", "1", "x"):
            name = names[line[1:]]
            if name[0] == "n" and {last.get(name, "x"), line[0]} == {"0", "1"}:
                edges[int(name[1:]), int(line[0])] += 1
            last[name] = line[0]
    return edges


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
@pytest.mark.parametrize(("unit", "options"), [("intdot", {"k": [4]}), ("dot", {"k": [2]})])
def test_icarus_counts_the_same_edges(unit: str, options: dict[str, list[int]], tmp_path: Path):
    (variant,) = variants(unit, options)
    cell_library = library()
    area = measure([variant], Settings(library=cell_library, targets_ps=(500,), cut="whole"))
    netlist = area[0].pieces[0].mapped[500].netlist
    mapped = build(netlist, cell_library.cells, cells.load(cell_library.path))
    delays = one_delay_each(mapped)
    drawn: PowerStimulus = stimulus(variant, "uniform", cycles=CYCLES, seed=1)
    counts = run(mapped, drawn, label="icarus")
    zeros = np.zeros(CYCLES + drawn.warm_up, np.uint8)
    columns = [
        drawn.inputs[port][:, bit] if port in drawn.inputs else zeros
        for port, bit in mapped.input_bits
    ]
    stimuli = np.stack(columns, axis=1)
    rows = "\n".join("".join(map(str, row[::-1])) for row in stimuli)
    (tmp_path / "rows").write_text(rows)
    (tmp_path / "top.v").write_text(verilog(mapped, delays, stimuli, drawn.warm_up))
    for command in (["iverilog", "-g2012", "-o", "top", "top.v"], ["vvp", "top"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    nets = len(mapped.network.truth) - 2
    theirs, ours = counted(tmp_path / "changes.vcd", nets), counts.events[:nets]
    # Events in the same femtosecond have no order, so that a few pulses differ.
    assert abs(theirs - ours).sum() < 1e-3 * ours.sum() and ours.sum() > 10_000
    # Without glitches the counts would be far apart.
    assert abs(theirs - counts.settled[:nets]).sum() > 0.2 * ours.sum()
