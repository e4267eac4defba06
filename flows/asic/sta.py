"""Static timing analysis of a mapped netlist: the longest paths through logic and registers.

The analysis is graph-based and uses the library's look-up tables, as OpenSTA does, whose figures
it reproduces. It keeps the worst slew and the worst arrival at every net and edge. The clock is
ideal and has zero slew; behind a clock gate it comes later (``flows.asic.clocks``), which lengthens
paths that begin there and shortens those that end there. Every net has the wire capacitance of a
layout, or else that of the library's default wire-load model, or none if the library has no such
model. A library cell drives each input, and its delay beyond the unloaded delay counts; each output
carries a load. Delays are interpolated linearly in slew and load, and extended linearly outside the
table.

``flows.asic.hold`` checks hold times. The analysis does not model recovery and removal checks,
clock trees, false paths or latches. If a cell's delay depends on a constant at another input, the
worst condition counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.flows.asic.clocks import clock_arrivals, gates_of
from vitruvian.flows.asic.liberty import (
    Arc,
    LibertyCell,
    LibertyError,
    LibertyTable,
    Library,
    WireLoad,
)
from vitruvian.flows.asic.lookup import TableSet, levels

CLASSES = ("input->output", "input->register", "register->register", "register->output")
_EDGES = ("fall", "rise")
#: Stands for the instance of an arc that is a link between modules.
_LINK = -1
_AXIS = np.array([0.0, 1.0])
_NO_DELAY = LibertyTable(_AXIS, _AXIS, np.zeros((2, 2)))
_SAME_SLEW = LibertyTable(_AXIS, _AXIS, np.array([[0.0, 0.0], [1.0, 1.0]]))


@dataclass(frozen=True, kw_only=True)
class PathStep:
    """One cell on a path: its pins, its output net and edge, its delay and the arrival time."""

    cell: str
    kind: str
    through: str
    net: str
    edge: str
    delay_ps: float
    arrival_ps: float


@dataclass(frozen=True, kw_only=True)
class TimingPath:
    """A longest path; ``delay_ps`` includes clock-to-output and set-up times where they apply.

    ``start`` and ``end`` are bits of ports or registers with the names of the RTL, as ``sum[3]``.
    ``late_ps`` is the time by which the clock arrives late at the end, which counts as negative.
    """

    kind: str
    start: str
    end: str
    delay_ps: float
    setup_ps: float
    steps: tuple[PathStep, ...]
    late_ps: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PathTiming:
    """The longest path of every class (``CLASSES``) that the design has."""

    paths: dict[str, TimingPath]

    @property
    def worst(self) -> TimingPath | None:
        """The longest path, or None if no input or register reaches an output or register."""
        return max(self.paths.values(), key=lambda path: path.delay_ps, default=None)

    @property
    def delay_ps(self) -> float | None:
        """Length of the longest path in ps, or None if there is no path."""
        worst = self.worst
        return None if worst is None else worst.delay_ps


def analyse(
    netlist: dict[str, Any],
    library: Library,
    *,
    driving_cell: str = "BUF_X4",
    load_ff: float = 5.0,
    wires_ff: Mapping[int, float] | None = None,
) -> PathTiming:
    """Return the longest paths of a mapped netlist.

    Parameters
    ----------
    netlist : dict
        A module from Yosys' ``write_json``, mapped onto ``library``. It may also have ``links``, as
        ``flows.asic.tile`` makes them: (net, net, down) for nets that are one wire in two modules.
        The signal passes from the first to the second. If ``down`` is true, the second net is
        inside an instance, and its load counts at the first net; otherwise it is outside, and of
        several such nets, which belong to several instances, the largest load counts.
    driving_cell : str
        Library cell that drives every input.
    load_ff : float
        Load on every output, femtofarads.
    wires_ff : mapping of int to float, optional
        Capacitance of the wires of a bit, femtofarads, in the place of the wire-load model.

    Raises
    ------
    LibertyError
        If a cell of the netlist or the driving cell is missing from the library, or if the
        netlist contains a latch.
    ValueError
        If the logic contains a combinational loop.
    """
    return TimingGraph(netlist, library, driving_cell, load_ff, wires_ff).timing()


def arrivals(
    netlist: dict[str, Any], library: Library, *, driving_cell: str, load_ff: float
) -> tuple[float, dict[int, float]]:
    """Return the longest path, and net -> the latest arrival of an edge, all in ps.

    Nets that no path reaches have an arrival of minus infinity. Parameters and errors are those of
    ``analyse``.
    """
    graph = TimingGraph(netlist, library, driving_cell, load_ff)
    timing = graph.timing()
    latest = graph.arrival.max(axis=0)
    nets = {bit: float(latest[2 * net : 2 * net + 2].max()) for bit, net in graph.nets.items()}
    return timing.delay_ps or 0.0, nets


class TimingGraph:
    """The arcs of the cells of a netlist, and the load of every net.

    Every net has two nodes, 2 × net + edge, one for its falling and one for its rising edge.

    Arrays with a leading axis of length 2 keep paths from inputs (0) and registers (1) apart.

    Attributes
    ----------
    instances : list of (str, LibertyCell, dict of str to int)
        Name, cell and pins of every instance, in the order of the netlist. Pins are nets, which
        are numbered from 0.
    nets : dict of int to int
        Bit of the netlist -> net.
    inputs, outputs : dict of int to str
        Nets of the ports, and names of their bits.
    load : ndarray of float
        Load of every node, in fF.
    arcs : (N, 6) ndarray of int
        Source node, target node, delay table, slew table, instance and label of each delay.
    launches : (N, 5) ndarray of int
        The same without the source, for the delays from a clock to an output.
    labels : list of Arc
        The arcs of the library.
    driver_arcs : list of (int, int, int)
        Edge, delay table and slew table of the driver of every input.
    gates : list of int
        Instance that gates the clock of each instance, or -1.
    clock : (I, 2) ndarray of float
        Arrival and slew of the rising clock at each instance, ps.
    """

    def __init__(
        self,
        netlist: dict[str, Any],
        library: Library,
        driving_cell: str,
        load_ff: float,
        wires_ff: Mapping[int, float] | None = None,
    ) -> None:
        self.instances: list[tuple[str, LibertyCell, dict[str, int]]] = []
        self.nets: dict[int, int] = {}
        self.driver = _driver(library, driving_cell)
        for name, instance in netlist["cells"].items():
            if instance["type"] not in library.cells:
                raise LibertyError(f"cell {instance['type']!r} must be in library {library.name!r}")
            cell = library.cells[instance["type"]]
            if cell.is_latch:
                raise LibertyError(f"cells must be logic or flip-flops, not the latch {cell.name}")
            pins = {
                pin: self._net(bits[0])
                for pin, bits in instance["connections"].items()
                # A bit that is a string is a constant; it starts no path.
                if bits and isinstance(bits[0], int)
            }
            self.instances.append((name, cell, pins))
        ports = netlist["ports"]
        self.inputs = self._port_nets(ports, "input")
        self.outputs = self._port_nets(ports, "output")
        self.links = [(self._net(a), self._net(b), down) for a, b, down in netlist.get("links", ())]
        self.load = self._loads(load_ff, library.wire_load if wires_ff is None else None)
        for bit, capacitance in (wires_ff or {}).items():
            if bit in self.nets:
                self.load[2 * self.nets[bit] : 2 * self.nets[bit] + 2] += capacitance
        self.gates = gates_of(self.instances)
        self.clock = clock_arrivals(self.instances, self.gates, self.load)
        self._names = _net_names(netlist, self.nets)
        self._collect()

    def _net(self, bit: int) -> int:
        return self.nets.setdefault(bit, len(self.nets))

    def _port_nets(self, ports: dict[str, Any], direction: str) -> dict[int, str]:
        labels: dict[int, str] = {}
        for name, port in ports.items():
            if port["direction"] == direction:
                for index, bit in enumerate(port["bits"]):
                    if isinstance(bit, int):
                        label = f"{name}[{index}]" if len(port["bits"]) > 1 else name
                        labels.setdefault(self._net(bit), label)
        return labels

    def _loads(self, load_ff: float, wire_load: WireLoad | None) -> np.ndarray:
        # A pin's capacitance differs between falling (even) and rising (odd) edges.
        load = np.zeros(2 * len(self.nets))
        for net in self.outputs:
            load[2 * net : 2 * net + 2] += load_ff
        fanout = np.zeros(len(self.nets))
        for _, cell, pins in self.instances:
            for pin, net in pins.items():
                if pin in cell.caps:
                    load[2 * net] += cell.caps[pin][0]
                    load[2 * net + 1] += cell.caps[pin][1]
                    fanout[net] += 1
        self._share(load, fanout)
        if wire_load is not None:
            load += np.repeat(wire_load.capacitance(fanout), 2)
        return load

    def _share(self, load: np.ndarray, fanout: np.ndarray) -> None:
        """Add to every net the loads and pins of the same wire in other modules (links)."""
        behind: dict[int, list[tuple[int, bool]]] = {}
        for source, target, down in self.links:
            behind.setdefault(source, []).append((target, down))
        pairs = load.reshape(-1, 2)  # a view, so ``load`` changes
        done: set[int] = set()

        def visit(net: int) -> None:
            if net in done:
                return
            done.add(net)
            outside_load, outside_pins = np.zeros(2), 0.0
            for target, down in behind.get(net, ()):
                visit(target)
                if down:
                    pairs[net] += pairs[target]
                    fanout[net] += fanout[target]
                else:
                    outside_load = np.maximum(outside_load, pairs[target])
                    outside_pins = max(outside_pins, fanout[target])
            pairs[net] += outside_load
            fanout[net] += outside_pins

        for net in behind:
            visit(net)

    def _collect(self) -> None:
        """Store delay arcs, launch arcs (clock to output) and captures (set-up) as arrays."""
        tables = TableSet()
        # Columns: source node, target node, delay table, slew table, instance, label.
        rows: list[tuple[int, int, int, int, int, int]] = []
        self.labels: list[Arc] = []
        # A launch has no source node: the clock reaches every register at a known time.
        launches: list[tuple[int, int, int, int, int]] = []
        self.captures: list[tuple[int, Arc, int]] = []
        for number, (_, cell, pins) in enumerate(self.instances):
            for arc in cell.arcs:
                if arc.kind == "setup":
                    if arc.target in pins:
                        self.captures.append((number, arc, 2 * pins[arc.target] + arc.target_edge))
                    continue
                if arc.target not in pins or arc.source not in pins or arc.slew is None:
                    continue
                if arc.kind == "gate":
                    continue
                target = 2 * pins[arc.target] + arc.target_edge
                delay, slew = tables.add(arc.delay), tables.add(arc.slew)
                if arc.kind == "clock":
                    launches.append((target, delay, slew, number, len(self.labels)))
                else:
                    source = 2 * pins[arc.source] + arc.source_edge
                    rows.append((source, target, delay, slew, number, len(self.labels)))
                self.labels.append(arc)
        if self.links:
            # A link is an arc without delay that keeps the slew.
            delay, slew = tables.add(_NO_DELAY), tables.add(_SAME_SLEW)
            for source, target, _ in self.links:
                for edge in (0, 1):
                    rows.append((2 * source + edge, 2 * target + edge, delay, slew, _LINK, _LINK))
        self.arcs = np.array(rows, dtype=np.int64).reshape(-1, 6)
        self.launches = np.array(launches, dtype=np.int64).reshape(-1, 5)
        # The driver counts as an arc without a source: inputs arrive through it.
        self.driver_arcs = [
            (arc.target_edge, tables.add(arc.delay), tables.add(arc.slew))
            for arc in self.driver.arcs
            if arc.kind == "delay" and arc.slew is not None
        ]
        tables.freeze()
        self.tables = tables

    def timing(self) -> PathTiming:
        """Propagate arrivals and slews in topological order, and pick the worst endpoints."""
        count = 2 * len(self.nets)
        self.slew = np.zeros(count)
        self.arrival = np.full((2, count), -np.inf)  # from inputs, from registers
        self.previous = np.full((2, count), -1, dtype=np.int64)
        self._drive_inputs()
        self._launch_registers()
        for rows in levels(self.arcs, count):
            self._propagate(rows)
        return self._pick()

    def _drive_inputs(self) -> None:
        # The clock is ideal, so the clock port starts no path.
        clocks = {pins.get(cell.clock or "", -1) for _, cell, pins in self.instances}
        nets = [net for net in self.inputs if net not in clocks]
        for edge, delay, slew in self.driver_arcs:
            nodes = 2 * np.array(nets, dtype=np.int64) + edge
            zero, load = np.zeros(len(nodes)), self.load[nodes]
            loaded = self.tables(np.full(len(nodes), delay), zero, load)
            # The unloaded driver is part of the preceding design, so subtract its delay.
            bare = self.tables(np.full(len(nodes), delay), zero, zero)
            slews = self.tables(np.full(len(nodes), slew), zero, load)
            self.arrival[0, nodes] = np.maximum(self.arrival[0, nodes], loaded - bare)
            self.slew[nodes] = np.maximum(self.slew[nodes], slews)

    def _launch_registers(self) -> None:
        node, delay, slew, number, _ = self.launches.T
        (begin, steep), load = self.clock[number].T, self.load[node]
        arrivals = begin + self.tables(delay, steep, load)
        # ``maximum.at`` handles nodes that occur several times in one array.
        np.maximum.at(self.arrival[1], node, arrivals)
        np.maximum.at(self.slew, node, self.tables(slew, steep, load))
        worst = arrivals == self.arrival[1, node]
        # Encode launch number n as -2 - n, since -1 means "no predecessor".
        self.previous[1, node[worst]] = -2 - np.flatnonzero(worst)

    def _propagate(self, rows: np.ndarray) -> None:
        source, target, delay, slew = self.arcs[rows, :4].T
        load = self.load[target]
        delays = self.tables(delay, self.slew[source], load)
        # A net that no path reaches must not contribute its slew.
        live = np.isfinite(self.arrival[:, source]).any(0)
        slews = np.where(live, self.tables(slew, self.slew[source], load), 0.0)
        np.maximum.at(self.slew, target, slews)
        for tag in (0, 1):
            arrivals = self.arrival[tag, source] + delays
            np.maximum.at(self.arrival[tag], target, arrivals)
            worst = np.isfinite(arrivals) & (arrivals == self.arrival[tag, target])
            self.previous[tag, target[worst]] = rows[worst]

    def _pick(self) -> PathTiming:
        # An end is the name of an output or the number of a register, whose name takes a search.
        ends: dict[str, tuple[float, float, float, int, int, str | int]] = {}

        def offer(
            kind: str, total: float, setup: float, tag: int, node: int, end: str | int,
            late: float = 0.0,
        ) -> None:  # fmt: skip
            if np.isfinite(total) and (kind not in ends or total > ends[kind][0]):
                ends[kind] = (float(total), setup, late, tag, node, end)

        for net, label in self.outputs.items():
            for node in (2 * net, 2 * net + 1):
                offer(CLASSES[0], self.arrival[0, node], 0.0, 0, node, label)
                offer(CLASSES[3], self.arrival[1, node], 0.0, 1, node, label)
        for number, arc, node in self.captures:
            if np.isfinite(self.arrival[:, node]).any():
                # The set-up time depends on the slews of the clock and of the data.
                late, steep = map(float, self.clock[number])
                setup = arc.delay(steep, float(self.slew[node]))
                for tag in (0, 1):
                    total = self.arrival[tag, node] + setup - late
                    offer(CLASSES[1 + tag], total, setup, tag, node, number, late)
        paths: dict[str, TimingPath] = {}
        for kind in CLASSES:
            if kind in ends:
                total, setup, late, tag, node, end = ends[kind]
                label = end if isinstance(end, str) else self._register(end)
                start, steps = self._path(tag, node)
                paths[kind] = TimingPath(
                    kind=kind, start=start, end=label, delay_ps=total, setup_ps=setup, steps=steps,
                    late_ps=late,
                )  # fmt: skip
        return PathTiming(paths=paths)

    def _register(self, number: int) -> str:
        """Return the signal and the bit that a flip-flop stores, or its name if it has no signal.

        A flip-flop whose bit is 1 after a reset may store the complement, and an inverter then
        drives the signal.
        """
        name, cell, pins = self.instances[number]
        own = [pins[arc.target] for arc in cell.arcs if arc.kind == "clock" and arc.target in pins]
        for net in [*dict.fromkeys(own), *self._behind_one_input(own)]:
            if "$" not in self._names[net] and self._names[net] != f"net{net}":
                return self._names[net]
        return name

    def _behind_one_input(self, nets: list[int]) -> list[int]:
        """Return the outputs of inverters and buffers whose inputs are these nets."""
        found: list[int] = []
        for _, cell, pins in self.instances:
            outputs = [pins[pin] for pin in cell.outputs if pin in pins]
            inputs = [net for pin, net in pins.items() if pin in cell.caps]
            if len(inputs) == 1 and inputs[0] in nets:
                found += outputs
        return found

    def _path(self, tag: int, node: int) -> tuple[str, tuple[PathStep, ...]]:
        """Return the begin of a path and its cells, from an endpoint back to input or register."""
        steps: list[PathStep] = []
        start = ""
        while True:
            row = int(self.previous[tag, node])
            if row == -1:
                start = self.inputs.get(node // 2, "")
                break
            number, label = self.arcs[row, 4:] if row >= 0 else self.launches[-2 - row, 3:]
            if number == _LINK:
                node = int(self.arcs[row, 0])
                continue
            arc, (name, cell, _) = self.labels[label], self.instances[number]
            # The step's delay is the difference of arrivals; a launch starts with its clock.
            before = self.arrival[tag, self.arcs[row, 0]] if row >= 0 else self.clock[number, 0]
            steps.append(
                PathStep(
                    cell=name,
                    kind=cell.name,
                    through=f"{arc.source}->{arc.target}",
                    net=self._names[node // 2],
                    edge=_EDGES[node % 2],
                    delay_ps=float(self.arrival[tag, node] - before),
                    arrival_ps=float(self.arrival[tag, node]),
                )
            )
            if row < 0:
                start = self._register(int(number))
                steps += self._gate_step(int(number))
                break
            node = int(self.arcs[row, 0])
        return start, tuple(reversed(steps))

    def _gate_step(self, number: int) -> list[PathStep]:
        """Return the clock gate in front of a register as a step, or nothing without a gate."""
        if self.gates[number] < 0:
            return []
        name, cell, pins = self.instances[self.gates[number]]
        assert cell.gate is not None
        late = float(self.clock[number, 0])
        return [
            PathStep(
                cell=name,
                kind=cell.name,
                through=f"{cell.gate.clock}->{cell.gate.output}",
                net=self._names[pins[cell.gate.output]],
                edge="rise",
                delay_ps=late,
                arrival_ps=late,
            )
        ]


def _driver(library: Library, name: str) -> LibertyCell:
    if name not in library.cells:
        buffers = sorted(cell for cell in library.cells if "BUF" in cell.upper())
        raise LibertyError(f"driving cell must be in the library ({buffers}), not {name!r}")
    return library.cells[name]


def _net_names(netlist: dict[str, Any], nets: dict[int, int]) -> list[str]:
    """Return each net's most readable name: without Yosys' ``$`` if possible, then the shortest."""
    best: dict[int, tuple[bool, int, str]] = {}
    for name, bits in netlist["netnames"].items():
        for index, bit in enumerate(bits):
            if bit in nets:
                label = f"{name}[{index}]" if len(bits) > 1 else name
                # Tuples compare from left to right; the label itself makes the choice unique.
                key = ("$" in name, len(label), label)
                net = nets[bit]
                best[net] = min(best.get(net, key), key)
    return [best[net][2] if net in best else f"net{net}" for net in range(len(nets))]
