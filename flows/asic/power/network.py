"""A mapped netlist as arrays for the simulation: functions, delays at real loads, settled start.

Loads are those of static timing. A gate's delay from an input to an edge of its output is the mean
of the library's tables for this pair (over the conditions on other inputs and the input's edges),
at the load of the output and the mean slew at the input. Static timing takes the worst slew and the
worst table instead, so its longest path is an upper bound of the time to settle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.flows.asic.liberty import Library
from vitruvian.flows.asic.liberty_text import LibertyError
from vitruvian.flows.asic.lookup import levels
from vitruvian.flows.asic.power.cells import PowerCell, PowerLibrary
from vitruvian.flows.asic.power.events import GateNetwork
from vitruvian.flows.asic.power.functions import truth_table
from vitruvian.flows.asic.sta import TimingGraph

_FS = 1000.0  # per ps


@dataclass(frozen=True)
class GateInstance:
    """An instance: its cell, the net of each pin, and the constants at the other pins."""

    name: str
    cell: PowerCell
    pins: dict[str, int]
    constants: dict[str, int]


@dataclass(frozen=True)
class MappedNetwork:
    """A netlist that can be simulated.

    Attributes
    ----------
    network : GateNetwork
    graph : TimingGraph
    instances : list of GateInstance
    registers, gates : list of int
        Instance of each register, and of each clock gate.
    arcs : list of (int, str, str)
        Instance, input and output of each connection of ``network``; an input that is connected to
        several pins has the first of them.
    owner : list of int
        Instance that drives each net, or -1.
    slew : (2 N,) ndarray of float
        Mean slew of each net and edge, ps.
    pattern, value : ndarray of int64
        Input patterns and values of the gates if all inputs and registers are 0.
    input_bits, output_bits : list of (str, int)
        Port and bit of each column of the stimuli and of the outputs.
    clock : int
        Net of the clock, or -1.
    """

    network: GateNetwork
    graph: TimingGraph
    instances: list[GateInstance]
    registers: list[int]
    gates: list[int]
    arcs: list[tuple[int, str, str]]
    owner: list[int]
    slew: np.ndarray
    pattern: np.ndarray
    value: np.ndarray
    input_bits: list[tuple[str, int]]
    output_bits: list[tuple[str, int]]
    clock: int


def build(
    netlist: dict[str, Any],
    library: Library,
    power: PowerLibrary,
    *,
    driving_cell: str = "BUF_X4",
    load_ff: float = 5.0,
    wires_ff: Mapping[int, float] | None = None,
) -> MappedNetwork:
    """Return the network of a mapped netlist.

    ``wires_ff`` has the capacitance of the wires of each bit, as ``flows.asic.sta`` takes it.

    Raises
    ------
    LibertyError
        If a cell is unknown or its function is not supported: latches, registers with an
        asynchronous reset or with logic in front of the state, and more than one clock.
    ValueError
        If the logic contains a combinational loop.
    """
    return _NetworkBuilder(
        netlist, TimingGraph(netlist, library, driving_cell, load_ff, wires_ff), power
    ).build()


class _NetworkBuilder:
    """The steps from a netlist to a ``MappedNetwork``."""

    def __init__(self, netlist: dict[str, Any], graph: TimingGraph, power: PowerLibrary) -> None:
        self.netlist, self.graph = netlist, graph
        self.count = len(graph.nets)
        # Two more nets are the constants, for registers whose next state is one.
        self.zero = self.count
        self.instances = []
        for name, cell, pins in graph.instances:
            bits = netlist["cells"][name]["connections"]
            constants = {
                pin: int(value[0] == "1")
                for pin, value in bits.items()
                if value and isinstance(value[0], str)
            }
            self.instances.append(GateInstance(name, power.cells[cell.name], pins, constants))
        self.slew, self.arc_delay, self.launch_delay = _delays(graph)

    def build(self) -> MappedNetwork:
        """Collect gates and registers, and settle the gates from all zeros."""
        registers, data, launches, clock = self._registers()
        gates = [n for n, instance in enumerate(self.instances) if instance.cell.gate is not None]
        truth = np.zeros(self.count + 2, np.uint64)
        base = np.zeros(self.count + 2, np.int64)
        rows = self._gates(truth, base)
        rows.sort(key=lambda row: row[0])
        first = np.searchsorted([row[0] for row in rows], np.arange(self.count + 3))
        inputs, input_bits = self._bits("input", {clock})
        outputs, output_bits = self._bits("output", set())
        network = GateNetwork(
            truth=truth,
            first=first.astype(np.int64),
            target=np.array([row[1] for row in rows], np.int64),
            mask=np.array([row[2] for row in rows], np.int64),
            delay=np.array([row[3] for row in rows], np.int64).reshape(-1, 2),
            data=np.array(data, np.int64),
            enable=np.array([self._enable(n) for n in registers], np.int64),
            launch=np.array([row[:3] for row in launches], np.int64).reshape(-1, 3),
            launch_delay=np.array([row[3] for row in launches], np.int64).reshape(-1, 2),
            inputs=np.array(inputs, np.int64),
            outputs=np.array(outputs, np.int64),
            input_delay=self._input_delays(inputs),
            gates=np.array([self._enable(n) for n in gates], np.int64),
        )
        owner = [-1] * (self.count + 2)
        for number, instance in enumerate(self.instances):
            for pin in instance.cell.outputs:
                if pin in instance.pins:
                    owner[instance.pins[pin]] = number
        pattern, value = self._settle(network, base)
        return MappedNetwork(
            network=network, graph=self.graph, instances=self.instances, registers=registers,
            gates=gates, arcs=[row[4] for row in rows], owner=owner, slew=self.slew,
            pattern=pattern, value=value, input_bits=input_bits, output_bits=output_bits,
            clock=clock,
        )  # fmt: skip

    def _enable(self, number: int) -> int:
        """Return the net of the enable of a clock gate, or of the gate of a register."""
        gate = number if self.instances[number].cell.gate else self.graph.gates[number]
        if gate < 0:
            return self.zero + 1
        instance = self.instances[gate]
        pins = instance.cell.gate
        assert pins is not None
        constant = self.zero + instance.constants.get(pins.enable, 0)
        return instance.pins.get(pins.enable, constant)

    def _gates(self, truth: np.ndarray, base: np.ndarray) -> list[Any]:
        """Fill the truth tables, and return a row for each connection of a net with a gate.

        A row has the net, the gate, the mask, the delays of both edges, and the label of the arc.
        """
        rows = []
        for number, instance in enumerate(self.instances):
            cell = instance.cell
            if not cell.is_logic:
                continue
            given = [*instance.pins, *instance.constants]
            inputs = tuple(sorted(pin for pin in given if pin not in cell.outputs))
            for output, function in cell.outputs.items():
                if output not in instance.pins:
                    continue
                gate = instance.pins[output]
                truth[gate] = np.uint64(_table(cell, function, inputs))
                pins: dict[int, list[int]] = {}
                for k, pin in enumerate(inputs):
                    if pin in instance.constants:
                        base[gate] |= instance.constants[pin] << k
                    else:
                        pins.setdefault(instance.pins[pin], []).append(k)
                for net, bits in pins.items():
                    both = [
                        self._delay(number, [inputs[k] for k in bits], output, e) for e in (0, 1)
                    ]
                    label = (number, inputs[bits[0]], output)
                    rows.append((net, gate, sum(1 << k for k in bits), both, label))
        return rows

    def _delay(self, instance: int, pins: list[str], output: str, edge: int) -> int:
        """Return the delay in fs from some pins of an instance to an edge of its output."""
        known = [d for pin in pins for d in self.arc_delay.get((instance, pin, output, edge), ())]
        if not known:
            # An input that the library gives no delay for, as it cannot cause this edge.
            known = [
                d
                for key, ds in self.arc_delay.items()
                if key[0::2] == (instance, output)
                for d in ds
            ]
        return max(1, round(_FS * float(np.mean(known)))) if known else 1

    def _registers(self) -> tuple[list[int], list[int], list[Any], int]:
        """Return registers, nets of their next states, rows of their outputs, and the clock."""
        registers, data, launches, clocks = [], [], [], set()
        for number, instance in enumerate(self.instances):
            function, gate = instance.cell.register, instance.cell.gate
            if gate is not None:
                clocks.add(instance.pins[gate.clock])
            if function is None:
                continue
            known = {**instance.pins, **{p: self.zero + v for p, v in instance.constants.items()}}
            if function.has_reset or function.next_state not in known:
                raise LibertyError(
                    f"registers must be plain D flip-flops for power, not {instance.cell.name}"
                )
            if function.clocked_on not in instance.pins:
                raise LibertyError(f"register {instance.name} must have a clock at its rising edge")
            if self.graph.gates[number] < 0:
                clocks.add(instance.pins[function.clocked_on])
            for pin, text in instance.cell.outputs.items():
                if pin in instance.pins:
                    inverted = int(text.strip("()") == function.complement)
                    delays = [
                        max(1, round(_FS * float(np.mean(self.launch_delay[number, pin, edge]))))
                        for edge in (0, 1)
                    ]
                    launches.append((len(registers), instance.pins[pin], inverted, delays))
            registers.append(number)
            data.append(known[function.next_state])
        if len(clocks) > 1:
            raise LibertyError(f"a design must have one clock for power, not {len(clocks)}")
        return registers, data, launches, clocks.pop() if clocks else -1

    def _bits(self, direction: str, without: set[int]) -> tuple[list[int], list[tuple[str, int]]]:
        nets, names = [], []
        for name, port in self.netlist["ports"].items():
            if port["direction"] == direction:
                for index, bit in enumerate(port["bits"]):
                    net = self.graph.nets[bit] if isinstance(bit, int) else self.zero + (bit == "1")
                    if net not in without:
                        nets.append(net)
                        names.append((name, index))
        return nets, names

    def _input_delays(self, inputs: list[int]) -> np.ndarray:
        """Return the delay of the driver of each input beyond its unloaded delay, in fs."""
        delays = np.zeros((len(inputs), 2), np.int64)
        for edge, table, _ in self.graph.driver_arcs:
            load = self.graph.load[2 * np.array(inputs, np.int64) + edge]
            number, zero = np.full(len(inputs), table), np.zeros(len(inputs))
            tables = self.graph.tables
            more = tables(number, zero, load) - tables(number, zero, zero)
            delays[:, edge] = np.maximum(delays[:, edge], np.round(_FS * more).astype(np.int64))
        return delays

    def _settle(self, network: GateNetwork, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return patterns and values of all gates if inputs and states are 0."""
        pattern, value = base.copy(), np.zeros(self.count + 2, np.int64)
        gates = {int(gate) for gate in network.target} | {
            instance.pins[pin]
            for instance in self.instances
            if instance.cell.is_logic
            for pin in instance.cell.outputs
            if pin in instance.pins
        }
        waiting = np.bincount(network.target, minlength=len(value))
        ready = [n for n in range(len(value)) if not waiting[n]]
        for _, net, inverted in network.launch:
            value[net] = inverted
        value[self.zero + 1] = 1
        while ready:
            net = ready.pop()
            if net in gates:
                value[net] = int(network.truth[net]) >> int(pattern[net]) & 1
            for e in range(network.first[net], network.first[net + 1]):
                gate = network.target[e]
                if value[net]:
                    pattern[gate] |= network.mask[e]
                waiting[gate] -= 1
                if not waiting[gate]:
                    ready.append(int(gate))
        if waiting.any():
            raise ValueError("netlist must not hold a combinational loop")
        return pattern, value


def _table(cell: PowerCell, function: str, inputs: tuple[str, ...]) -> int:
    if not function:
        raise LibertyError(f"cell {cell.name} must have a function for power")
    return truth_table(function, inputs).word


def _delays(
    graph: TimingGraph,
) -> tuple[np.ndarray, dict[Any, list[float]], dict[Any, list[float]]]:
    """Return mean slews, and the delays in ps of every arc of every instance.

    The keys are (instance, input, output, edge of the output), and of delays from the clock, with
    that of its gate, (instance, output, edge).
    """
    nodes = 2 * len(graph.nets)
    total, number = np.zeros(nodes), np.zeros(nodes)

    def add(node: np.ndarray, slews: np.ndarray) -> None:
        np.add.at(total, node, np.maximum(slews, 0.0))
        np.add.at(number, node, 1)

    nets = np.array(list(graph.inputs), np.int64)
    for edge, _, slew in graph.driver_arcs:
        node = 2 * nets + edge
        add(node, graph.tables(np.full(len(node), slew), np.zeros(len(node)), graph.load[node]))
    launches: dict[Any, list[float]] = {}
    node, delay, slew, instance, label = graph.launches.T
    begin, steep = graph.clock[instance].T
    add(node, graph.tables(slew, steep, graph.load[node]))
    for at, n, name in zip(
        begin + graph.tables(delay, steep, graph.load[node]), instance, label, strict=True
    ):
        arc = graph.labels[name]
        launches.setdefault((n, arc.target, arc.target_edge), []).append(float(at))
    arcs: dict[Any, list[float]] = {}
    for rows in levels(graph.arcs, nodes):
        source, target, delay, slew, instance, label = graph.arcs[rows].T
        slews = total[source] / np.maximum(number[source], 1)
        add(target, graph.tables(slew, slews, graph.load[target]))
        delays = graph.tables(delay, slews, graph.load[target])
        for at, n, name in zip(delays, instance, label, strict=True):
            arc = graph.labels[name]
            arcs.setdefault((n, arc.source, arc.target, arc.target_edge), []).append(float(at))
    return total / np.maximum(number, 1), arcs, launches
