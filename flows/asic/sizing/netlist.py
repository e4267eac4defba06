"""A mapped netlist whose cells can be exchanged, with its timing."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.flows.asic.liberty import LibertyCell, Library
from vitruvian.flows.asic.lookup import TableSet, levels
from vitruvian.flows.asic.sizing.timing import Circuit, follow, late, trace, undo
from vitruvian.flows.asic.sta import TimingGraph

#: Ranks between two levels, for cells that replace one.
_STEP = 4
#: Longest path, in cells.
_LONGEST = 8192
_Netlist = dict[str, Any]


class SizedNetlist:
    """A netlist whose cells can be exchanged, with its timing.

    ``resize``, ``swap``, ``bypass`` and ``add`` change the netlist. They are called inside
    ``begin`` and ``follow``, after which the timing is that of the changed netlist; ``undo`` takes
    everything since ``begin`` back.

    Parameters
    ----------
    netlist : dict
        A module in the form of ``flows.asic.synth.Mapped.netlist``; ``write_back`` changes it.
    spare : int
        Number of instances, and of nets, that may be added.

    Attributes
    ----------
    cells : list of LibertyCell
        The kinds of cells: those of the library.
    slots : list of dict of str to int
        For each kind, the number of each pin in the arrays of ``circuit``.
    names : list of str
        Name of each instance.
    gone : set of int
        Instances that are not part of the netlist any more.
    port_nets : set of int
        Nets of ports.
    area : float
        Sum of the areas of all cells, µm².
    """

    def __init__(
        self,
        netlist: _Netlist,
        library: Library,
        *,
        driving_cell: str,
        load_ff: float,
        spare: int = 4096,
    ) -> None:
        graph = TimingGraph(netlist, library, driving_cell, load_ff)
        self._netlist = netlist
        self.cells = sorted(library.cells.values(), key=lambda cell: cell.name)
        self.number = {cell.name: kind for kind, cell in enumerate(self.cells)}
        self.slots = [
            {pin: slot for slot, pin in enumerate(sorted([*cell.caps, *cell.outputs]))}
            for cell in self.cells
        ]
        self.names = [name for name, _, _ in graph.instances]
        self.gone: set[int] = set()
        self.port_nets = set(graph.inputs) | set(graph.outputs)
        self.area = sum(cell.area_um2 for _, cell, _ in graph.instances)
        self._bits = [bit for bit, _ in sorted(graph.nets.items(), key=lambda item: item[1])]
        bits = [b for net in netlist["netnames"].values() for b in net if isinstance(b, int)]
        self._last = max([*bits, *self._bits], default=1)
        self.circuit = _circuit(self, graph, library, load_ff, spare)
        nets = len(self.circuit.driver)
        self._pool = int(self.circuit.count.sum())  # rows of ``sinks`` in use
        self._chain = np.full(nets, -2, np.int64)
        self._heads = np.full(int(self.circuit.rank.max(initial=0)) + _STEP + 1, -1, np.int64)
        self._log = np.zeros(4 * nets, np.int64)
        self._old = np.zeros((4 * nets, 6))
        self._entries = 0
        self._result = np.zeros(3)
        self._path = np.zeros((_LONGEST, 2), np.int64)
        size = 16 * len(self.names)
        self._follow: Callable[..., int] = fitting(follow, size)
        self._undo: Callable[..., None] = fitting(undo, size)
        self._late: Callable[..., None] = fitting(late, size)
        self._trace: Callable[..., int] = fitting(trace, size)
        self._back: list[Callable[[], object]] = []
        self.refresh()

    # Timing.

    def refresh(self) -> None:
        """Compute the timing of the whole netlist; ``follow`` leaves out the smallest changes."""
        self.follow(range(len(self._bits)))

    def begin(self) -> None:
        """Begin a change, which ``undo`` takes back until the next call of this method."""
        area, names, nets, pool = self.area, len(self.names), len(self._bits), self._pool

        def back() -> None:
            self.area, self._pool = area, pool
            del self.names[names:], self._bits[nets:]

        self._back = [back]
        self._entries = 0

    def follow(self, nets: Iterable[int]) -> None:
        """Compute nets again, whose drivers or loads changed, and all behind them that changes."""
        array = np.array(sorted(set(nets)), np.int64)
        self._entries = self._follow(
            self.circuit, array, self._chain, self._heads, self._log, self._old
        )
        if self._entries < 0:
            raise RuntimeError("the log of a change must be long enough")

    def undo(self) -> None:
        """Restore netlist and timing as they were at the last ``begin``."""
        self._undo(self.circuit, self._log, self._old, self._entries)
        for back in reversed(self._back):
            back()
        self._back, self._entries = [], 0

    def late(self, limit_ps: float = np.inf) -> tuple[float, float]:
        """Return the longest path, and the sum of the times of all ends beyond a limit, in ps."""
        self._late(self.circuit, limit_ps, self._result)
        return float(self._result[0]), float(self._result[1])

    def longest(self) -> list[tuple[int, int]]:
        """Return the longest path from its begin to its end: instances, and their input pins.

        The pin is -1 where the path begins at a clock.
        """
        self._late(self.circuit, np.inf, self._result)
        if self._result[2] < 0:
            return []
        end, edge = divmod(int(self._result[2]), 2)
        inst, pin = self.circuit.ends[end, :2]
        net = int(pin) if inst < 0 else int(self.circuit.pins[inst, pin])
        used = self._trace(self.circuit, net, edge, self._path)
        return [(int(i), int(p)) for i, p in self._path[:used][::-1]]

    def overloaded(self, net: int) -> bool:
        """Return whether a net has more load than the library allows the cell that drives it."""
        inst = int(self.circuit.driver[net])
        if inst < 0:
            return False
        kind = self.circuit.kind[inst]
        limits = self.cells[kind].max_ff
        pin = next(p for p in limits if self.slots[kind][p] == self.circuit.slot[net])
        return bool(self.circuit.load[net].max() > limits[pin])

    # What is there.

    def cell(self, inst: int) -> LibertyCell:
        """Return the cell of an instance."""
        return self.cells[self.circuit.kind[inst]]

    def net(self, inst: int, pin: str) -> int:
        """Return the net of a pin, or -1 if it has none or is constant."""
        return int(self.circuit.pins[inst, self.slots[self.circuit.kind[inst]][pin]])

    def output_nets(self, inst: int) -> list[int]:
        """Return the nets that an instance drives."""
        nets = (self.net(inst, pin) for pin in self.cell(inst).outputs)
        return [net for net in nets if net >= 0]

    def input_nets(self, inst: int) -> list[int]:
        """Return the nets that an instance reads, without its clock."""
        cell = self.cell(inst)
        nets = (self.net(inst, pin) for pin in cell.caps if pin != cell.clock)
        return [net for net in nets if net >= 0]

    def arrival(self, net: int) -> float:
        """Return the latest arrival at a net in ps, or minus infinity."""
        return float(self.circuit.arrival[net].max()) if net >= 0 else -np.inf

    # Changes.

    def resize(self, inst: int, kind: int) -> list[int]:
        """Exchange the cell of an instance for another size of it; return the nets to follow."""
        circuit, old = self.circuit, int(self.circuit.kind[inst])
        self.area += self.cells[kind].area_um2 - self.cells[old].area_um2
        circuit.kind[inst] = kind
        self._back.append(lambda: circuit.kind.__setitem__(inst, old))
        return [*self.input_nets(inst), *self.output_nets(inst)]

    def swap(self, inst: int, one: int, other: int) -> list[int]:
        """Exchange the nets of two inputs of a cell; return the nets to follow."""
        pins = self.circuit.pins[inst]
        nets = {slot: int(pins[slot]) for slot in (one, other)}
        for slot, new in ((one, other), (other, one)):
            self._unlink(nets[slot], inst, slot)
            self._set_pin(inst, slot, nets[new])
        for slot in (one, other):
            self._link(int(pins[slot]), inst, slot)
        return [*(net for net in nets.values() if net >= 0), *self.output_nets(inst)]

    def bypass(self, inst: int) -> list[int]:
        """Give the sinks of a buffer to the net in front of it; return the nets to follow."""
        (front,), (behind,) = self.input_nets(inst), self.output_nets(inst)
        self.remove(inst)
        moved = self._sinks(behind).copy()
        self._place(front, np.vstack([self._sinks(front), moved]))
        self._place(behind, moved[:0])
        for sink, slot in moved:
            self._set_pin(int(sink), int(slot), front)
        return [front, *(net for sink, _ in moved for net in self.output_nets(int(sink)))]

    def remove(self, inst: int) -> None:
        """Take an instance out of the netlist."""
        kind = int(self.circuit.kind[inst])
        for pin, slot in self.slots[kind].items():
            net = int(self.circuit.pins[inst, slot])
            if pin in self.cells[kind].caps and net >= 0 and pin != self.cells[kind].clock:
                self._unlink(net, inst, slot)
            self._set_pin(inst, slot, -1)
        self.gone.add(inst)
        self._back.append(lambda: self.gone.discard(inst))
        self.area -= self.cells[kind].area_um2

    def new_net(self) -> int:
        """Return a new net without driver and sinks."""
        net = len(self._bits)
        self._bits.append(self._last + 1 + net)
        self.circuit.count[net] = 0
        return net

    def add(self, cell: str, pins: dict[str, int], *, name: str, rank: int) -> None:
        """Add an instance with these nets; ``rank`` is its place in the topological order."""
        circuit, inst, kind = self.circuit, len(self.names), self.number[cell]
        self.names.append(name)
        circuit.kind[inst], circuit.rank[inst], circuit.pins[inst] = kind, rank, -1
        for pin, net in pins.items():
            slot = self.slots[kind][pin]
            circuit.pins[inst, slot] = net
            if pin in self.cells[kind].caps:
                self._link(net, inst, slot)
            else:
                self._drive(net, inst, slot)
        self.area += self.cells[kind].area_um2

    def room(self, instances: int) -> bool:
        """Return whether as many instances, and as many nets, can be added."""
        return len(self.names) + instances <= len(self.circuit.kind)

    def _sinks(self, net: int) -> np.ndarray:
        begin = self.circuit.begin[net]
        return self.circuit.sinks[begin : begin + self.circuit.count[net]]

    def _set_pin(self, inst: int, slot: int, net: int) -> None:
        pins = self.circuit.pins[inst]
        old = int(pins[slot])
        pins[slot] = net
        self._back.append(lambda: pins.__setitem__(slot, old))

    def _drive(self, net: int, inst: int, slot: int) -> None:
        circuit = self.circuit
        old = int(circuit.driver[net]), int(circuit.slot[net])
        circuit.driver[net], circuit.slot[net] = inst, slot

        def back() -> None:
            circuit.driver[net], circuit.slot[net] = old

        self._back.append(back)

    def _place(self, net: int, rows: np.ndarray) -> None:
        """Write the sinks of a net at the end of the pool."""
        circuit = self.circuit
        old = int(circuit.begin[net]), int(circuit.count[net])
        if self._pool + len(rows) > len(circuit.sinks):
            longer = np.zeros((2 * (self._pool + len(rows)), 2), np.int64)
            longer[: self._pool] = circuit.sinks[: self._pool]
            self.circuit = circuit = circuit._replace(sinks=longer)
        circuit.sinks[self._pool : self._pool + len(rows)] = rows
        circuit.begin[net], circuit.count[net] = self._pool, len(rows)
        self._pool += len(rows)

        def back() -> None:
            self.circuit.begin[net], self.circuit.count[net] = old

        self._back.append(back)

    def _unlink(self, net: int, inst: int, slot: int) -> None:
        if net >= 0:
            rows = self._sinks(net)
            self._place(net, rows[(rows[:, 0] != inst) | (rows[:, 1] != slot)])

    def _link(self, net: int, inst: int, slot: int) -> None:
        if net >= 0:
            self._place(net, np.vstack([self._sinks(net), [[inst, slot]]]))

    def write_back(self) -> None:
        """Change the netlist to what it is now."""
        cells = self._netlist["cells"]
        for inst, name in enumerate(self.names):
            if inst in self.gone:
                cells.pop(name, None)
                continue
            kind = int(self.circuit.kind[inst])
            connections = dict(cells.get(name, {"connections": {}})["connections"])
            for pin, slot in self.slots[kind].items():
                net = int(self.circuit.pins[inst, slot])
                if net >= 0:
                    connections[pin] = [self._bits[net]]
            cells[name] = {"type": self.cells[kind].name, "connections": connections}


def _circuit(
    own: SizedNetlist, graph: TimingGraph, library: Library, load_ff: float, spare: int
) -> Circuit:
    """Return the arrays of a netlist."""
    tables = TableSet()
    first, arcs, setups = _library_arcs(own, tables)
    before = [
        (arc.target_edge, tables.add(arc.delay), tables.add(arc.slew))
        for arc in graph.driver.arcs
        if arc.kind == "delay" and arc.slew is not None
    ]
    tables.freeze()
    width = max(map(len, own.slots))
    caps = np.zeros((len(own.cells), width, 2))
    for kind, cell in enumerate(own.cells):
        for pin, both in cell.caps.items():
            caps[kind, own.slots[kind][pin]] = both
    count, nets = len(graph.instances) + spare, len(graph.nets) + spare
    kinds, pins = np.zeros(count, np.int64), np.full((count, width), -1, np.int64)
    driver, slot = np.full(nets, -1, np.int64), np.zeros(nets, np.int64)
    sinks: list[list[tuple[int, int]]] = [[] for _ in range(nets)]
    ends = []
    clocks = {wires.get(cell.clock or "", -1) for _, cell, wires in graph.instances}
    driver[[net for net in graph.inputs if net not in clocks]] = -2
    for inst, (_, cell, wires) in enumerate(graph.instances):
        kind = kinds[inst] = own.number[cell.name]
        for pin, net in wires.items():
            pins[inst, own.slots[kind][pin]] = net
            if pin in cell.outputs:
                driver[net], slot[net] = inst, own.slots[kind][pin]
            elif pin != cell.clock:
                sinks[net].append((inst, own.slots[kind][pin]))
        ends += [(inst, own.slots[kind][pin], *both) for pin, both in setups[kind].items()]
    ends += [(-1, net, -1, -1) for net in graph.outputs]
    counts = np.array([len(rows) for rows in sinks], np.int64)
    pool = np.zeros((4 * int(counts.sum()) + 64, 2), np.int64)
    for begin, rows in zip(counts.cumsum() - counts, sinks, strict=True):
        if rows:
            pool[begin : begin + len(rows)] = rows
    port_ff = np.zeros(nets)
    port_ff[list(graph.outputs)] = load_ff
    wire = np.zeros(len(pool) + 1)
    if library.wire_load is not None:
        wire = library.wire_load.capacitance(np.arange(len(pool) + 1.0))
    rank = np.zeros(count, np.int64)
    for level, rows in enumerate(levels(graph.arcs, 2 * len(graph.nets))):
        rank[graph.arcs[rows, 4]] = _STEP * (level + 1)
    return Circuit(
        first=np.array(first),
        arcs=np.array(arcs, np.int64).reshape(-1, 6),
        caps=caps,
        slews=tables.slews,
        loads=tables.loads,
        values=tables.values,
        size=tables.size,
        wire=wire,
        kind=kinds,
        rank=rank,
        pins=pins,
        driver=driver,
        slot=slot,
        port_ff=port_ff,
        begin=counts.cumsum() - counts,
        count=counts,
        sinks=pool,
        before=np.array(before, np.int64).reshape(-1, 3),
        load=np.zeros((nets, 2)),
        arrival=np.full((nets, 2), -np.inf),
        slew=np.zeros((nets, 2)),
        ends=np.array(ends, np.int64).reshape(-1, 4),
        clock=np.vstack([graph.clock, np.zeros((spare, 2))]),
    )


def _library_arcs(
    own: SizedNetlist, tables: TableSet
) -> tuple[list[int], list[tuple[int, ...]], list[dict[str, list[int]]]]:
    """Return begins and rows of the arcs of each kind, and the set-up tables of its data pins."""
    first, arcs = [0], []
    setups: list[dict[str, list[int]]] = []
    for cell, slots in zip(own.cells, own.slots, strict=True):
        data: dict[str, list[int]] = {}
        for arc in cell.arcs:
            if arc.kind == "setup":
                data.setdefault(arc.target, [-1, -1])[arc.target_edge] = tables.add(arc.delay)
            elif arc.kind in ("clock", "delay") and arc.slew is not None and arc.target in slots:
                source = -1 if arc.kind == "clock" else slots[arc.source]
                edges = arc.source_edge, arc.target_edge
                delay, slew = tables.add(arc.delay), tables.add(arc.slew)
                arcs.append((slots[arc.target], source, *edges, delay, slew))
        first.append(len(arcs))
        setups.append(data)
    return first, arcs, setups
