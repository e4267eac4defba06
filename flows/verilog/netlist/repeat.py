"""Equal lanes of a module become instances of one module.

The RTL makes the lanes of a datapath in a loop, and their signals differ in a number: ``p0_zero``,
``p1_zero``. The signals of one number and one rank (see ``order``) come from some bits of inputs
and registers. All logic without registers that comes from these bits alone is a *lane*, unless it
would belong to several. If lanes consist of the same operators with the same connections, a new
module has them once. A flattened design is the same as before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vitruvian.flows.verilog.netlist.keywords import KEYWORDS
from vitruvian.flows.verilog.netlist.names import Namer
from vitruvian.flows.verilog.netlist.order import Node, ranks
from vitruvian.flows.verilog.netlist.process import retargeted
from vitruvian.flows.verilog.netlist.rtlil import (
    Body,
    Chunk,
    Process,
    RtlilCell,
    RtlilModule,
    Sig,
    Wire,
    joined,
)
from vitruvian.flows.verilog.netlist.simplify import COMBINATIONAL, mapped, reads, targets

_NUMBERED = re.compile(r"([a-z]+)(\d+)_(\w+)")
#: Signals of the source that a lane has at least.
_LEAST = 6
#: Nets that a lane has at least for each of its ports, and the same for a lane with few outputs.
#: Rows of partial products, which have six and eight outputs, took 6 % more area as modules
#: (docs/decisions/0028-readable-verilog.md).
_NETS_PER_PORT, _NETS_PER_PORT_NARROW = 12, 3
#: Outputs that a lane has at most to count as one with few: a shifter has its word and lost bits.
_FEW_OUTPUTS = 4
#: Lines that a module must save at least; the estimate is not exact.
_LEAST_SAVED = 10


@dataclass
class _Driver:
    """The driver of a net: a cell, the statements of a process, or a value."""

    net: str
    place: int
    cell: RtlilCell | None = None
    body: Body | None = None
    value: Sig = ()
    reads: frozenset[str] = frozenset()

    def sigs(self) -> list[Sig]:
        """Return the values that it reads."""
        if self.cell is not None:
            return [sig for port, sig in self.cell.ports.items() if port != "Y"]
        return [self.value] if self.body is None else list(reads(self.body))


@dataclass
class _Lane:
    """The nets of a lane, in the order of the text, and what they read from outside."""

    number: str
    nets: list[str]
    #: Ranges of nets outside: net -> list of (first bit, bits).
    ranges: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    #: (net, first bit) of each range -> its place among the inputs.
    inputs: dict[tuple[str, int], int] = field(default_factory=dict)


def lanes(module: RtlilModule, taken: set[str], namer: Namer) -> list[RtlilModule]:
    """Replace the equal lanes of a module by instances, and return the modules of the lanes.

    Parameters
    ----------
    module : RtlilModule
        It is changed.
    taken : set of str
        Names of modules; those of the new modules join them.
    namer : Namer
        Chooses the names of ports for nets without one.
    """
    made = []
    while (found := _Lanes(module, namer)).choose():
        made.append(found.extract(taken))
    return made


class _Lanes:
    """The lanes of a module."""

    def __init__(self, module: RtlilModule, namer: Namer):
        self.module, self.namer = module, namer
        self.drivers: dict[str, _Driver] = {}
        self.outside: set[str] = set()
        self.ports = {wire.name for wire in module.wires.values() if wire.way or wire.keep}
        self._collect()
        self.readers: dict[str, set[str]] = {}
        for driver in self.drivers.values():
            for net in driver.reads:
                self.readers.setdefault(net, set()).add(driver.net)
        self.support = self._support()
        self.group: list[_Lane] = []
        self.stem = ""

    def _collect(self) -> None:
        found: list[_Driver] = []
        module = self.module
        for cell in module.cells:
            if cell.kind in COMBINATIONAL and cell.ports["Y"]:
                found.append(_Driver(cell.ports["Y"][0].name, 0, cell=cell))
        for process in module.processes:
            names = {chunk.name for target, _ in targets(process.body) for chunk in target}
            found += [_Driver(name, 0, body=process.body) for name in names if len(names) == 1]
        found += [_Driver(t[0].name, 0, value=source) for t, source in module.connects if t]
        order = {name: place for place, name in enumerate(module.wires)}
        for driver in found:
            driver.place = order[driver.net]
            driver.reads = frozenset(c.name for sig in driver.sigs() for c in sig if c.name)
        self.outside = {c.name for cell in module.cells for c in self._seen(cell)}
        self.outside |= {wire.name for wire in module.wires.values() if wire.way or wire.keep}
        known = {driver.net: driver for driver in found}
        # What nothing reads stays in the module; here it would give lanes outputs.
        work = [net for net in self.outside if net in known]
        alive = set(work)
        while work:
            more = (known[work.pop()].reads & known.keys()) - alive
            alive |= more
            work += more
        self.drivers = {net: known[net] for net in known if net in alive}

    @staticmethod
    def _seen(cell: RtlilCell) -> Iterator[Chunk]:
        """Yield what a cell that no lane has reads or drives."""
        if cell.kind not in COMBINATIONAL:
            yield from (chunk for sig in cell.ports.values() for chunk in sig if chunk.name)

    def _ranks(self) -> dict[str, int]:
        nodes = [Node(net, (net,), driver.reads) for net, driver in self.drivers.items()]
        for index, cell in enumerate(self.module.cells):
            if cell.kind in COMBINATIONAL:
                continue
            clocked = cell.kind == "$dff"
            made = [c.name for c in cell.ports.get("Q", ())] if clocked else []
            sources = frozenset(c.name for c in cell.ports.get("D", ()) if c.name)
            nodes.append(Node(index, tuple(made), sources, clocked=clocked))
        return ranks(nodes)[0]

    # ------------------------------------------------------------------ search

    def choose(self) -> bool:
        """Choose the group of lanes that saves most text; return False if none saves any."""
        families: dict[tuple[str, int], dict[str, set[str]]] = {}
        rank = self._ranks()
        for net in self.drivers:
            match = _NUMBERED.fullmatch(net)
            if match and net not in self.ports:
                family = families.setdefault((match[1], rank.get(net, 0)), {})
                family.setdefault(match[2], set()).add(net)
        best: list[_Lane] = []
        most: float = _LEAST_SAVED
        for (stem, _), members in families.items():
            large = {n: nets for n, nets in members.items() if len(nets) >= _LEAST}
            if len(large) < 2:
                continue
            for group in self._equal(large, stem):
                saved = self._saved(group)
                if saved > most:
                    best, most, self.stem = group, saved, stem
        self.group = best
        return bool(best)

    def _equal(self, members: dict[str, set[str]], stem: str) -> list[list[_Lane]]:
        """Return the groups of equal lanes."""
        groups: dict[object, list[_Lane]] = {}
        for number, nets in self._grown(members).items():
            if not nets or self._multiplies(nets) or self._returns(nets):
                continue
            lane = _Lane(number, sorted(nets, key=lambda net: self.drivers[net].place))
            self._find_inputs(lane)
            groups.setdefault(self._form(lane, stem), []).append(lane)
        return [group for group in groups.values() if len(group) > 1]

    def _support(self) -> dict[str, int]:
        """Return net -> mask of the bits of inputs, registers and instances that it comes from."""
        places: dict[str, int] = {}
        support: dict[str, int] = {}
        bits = 0

        def mask(sig: Sig) -> int:
            nonlocal bits
            total = 0
            for name, low, width in sig:
                if name in self.drivers:
                    total |= support.get(name, 0)
                elif name:
                    if name not in places:
                        places[name] = bits
                        bits += self.module.wires[name].width
                    total |= ((1 << width) - 1) << low + places[name]
            return total

        for net in self._order():
            support[net] = 0
            for sig in self.drivers[net].sigs():
                support[net] |= mask(sig)
        return support

    def _order(self) -> Iterator[str]:
        """Yield the nets of drivers, each after those that it reads."""
        state: set[str] = set()
        for root in self.drivers:
            work = [(root, False)]
            while work:
                net, done = work.pop()
                if done:
                    yield net
                elif net not in state and net in self.drivers:
                    state.add(net)
                    work.append((net, True))
                    work += [(source, False) for source in sorted(self.drivers[net].reads)]

    def _grown(self, members: dict[str, set[str]]) -> dict[str, set[str]]:
        """Return the nets of each lane: those that come from what only its signals come from."""
        masks = {}
        for number, seeds in members.items():
            masks[number] = 0
            for net in seeds:
                masks[number] |= self.support[net]
        nets: dict[str, set[str]] = {number: set() for number in members}
        for net, support in self.support.items():
            owners = [number for number, mask in masks.items() if not support & ~mask]
            if support and len(owners) == 1 and net not in self.ports:
                nets[owners[0]].add(net)
        return nets

    def _multiplies(self, nets: set[str]) -> bool:
        """Return whether a lane has a product: it must stay beside its sum for a DSP block."""
        cells = (self.drivers[net].cell for net in nets)
        return any(cell is not None and cell.kind == "$mul" for cell in cells)

    def _returns(self, nets: set[str]) -> bool:
        """Return whether logic outside reads the lane and the lane reads it."""
        seen: set[str] = set()
        work = [r for net in nets for r in self.readers.get(net, ()) if r not in nets]
        while work:
            net = work.pop()
            if net not in seen:
                seen.add(net)
                work += self.readers.get(net, ())
        return bool(seen & nets)

    def _find_inputs(self, lane: _Lane) -> None:
        """Store the ranges of nets outside that a lane reads; ranges that touch are one."""
        inside = set(lane.nets)
        pieces: dict[str, list[tuple[int, int]]] = {}
        for net in lane.nets:
            for chunk in (c for sig in self.drivers[net].sigs() for c in sig):
                if chunk.name and chunk.name not in inside:
                    pieces.setdefault(chunk.name, []).append((chunk.low, chunk.low + chunk.width))
        for name, parts in pieces.items():
            merged: list[list[int]] = []
            for low, high in sorted(parts):
                if merged and low <= merged[-1][1]:
                    merged[-1][1] = max(merged[-1][1], high)
                else:
                    merged.append([low, high])
            lane.ranges[name] = [(low, high - low) for low, high in merged]
        for net in lane.nets:
            for chunk in (c for sig in self.drivers[net].sigs() for c in sig):
                if chunk.name in lane.ranges:
                    low, _ = self._range(lane, chunk)
                    lane.inputs.setdefault((chunk.name, low), len(lane.inputs))

    @staticmethod
    def _range(lane: _Lane, chunk: Chunk) -> tuple[int, int]:
        """Return the range of a net outside that has the bits of a chunk."""
        return next(
            (low, bits)
            for low, bits in lane.ranges[chunk.name]
            if low <= chunk.low and chunk.low + chunk.width <= low + bits
        )

    def _form(self, lane: _Lane, stem: str) -> object:
        """Return a key that is equal for lanes of the same logic."""
        place = {net: index for index, net in enumerate(lane.nets)}

        def form(sig: Sig) -> Any:
            result: list[object] = []
            for chunk in sig:
                if chunk.name in place:
                    result.append(("in", place[chunk.name], chunk.low, chunk.width))
                elif chunk.name:
                    low, bits = self._range(lane, chunk)
                    number = lane.inputs[chunk.name, low]
                    result.append(("out", number, bits, chunk.low - low, chunk.width))
                else:
                    result.append(chunk)
            return tuple(result)

        parts: list[object] = []
        for net in lane.nets:
            driver, wire = self.drivers[net], self.module.wires[net]
            seed = _NUMBERED.fullmatch(net)
            name = seed[3] if seed and seed[1] == stem else ""
            kind, numbers = "", ()
            if driver.cell is not None:
                kind, numbers = driver.cell.kind, tuple(sorted(driver.cell.numbers.items()))
            body = None if driver.body is None else repr(mapped(driver.body, form))
            if body is not None:
                body = body.replace(repr(net), "")
            sigs = tuple(form(sig) for sig in driver.sigs()) if driver.body is None else body
            parts.append((name, wire.width, wire.signed, kind, numbers, sigs))
        return tuple(parts)

    def _saved(self, group: list[_Lane]) -> float:
        """Return about how many lines a module for equal lanes saves."""
        nets, ins, outs = group[0].nets, len(group[0].inputs), len(self._outputs(group))
        least = _NETS_PER_PORT_NARROW if outs <= _FEW_OUTPUTS else _NETS_PER_PORT
        if len(nets) < least * (ins + outs):
            return 0
        # An instance has a line for each port if it has more than a few; an output is declared.
        instances = len(group) * (outs + (3 if ins + outs <= 4 else ins + outs + 2))
        # About half of the nets without a name are written inside expressions.
        named = sum(not net.startswith("$") for net in nets)
        lines = (len(nets) + named) / 2
        return lines * (len(group) - 1) - instances - (ins + outs + 4)

    def _outputs(self, group: list[_Lane]) -> list[int]:
        """Return the places of the nets that something outside a lane reads."""
        found: set[int] = set()
        for lane in group:
            inside = set(lane.nets)
            for index, net in enumerate(lane.nets):
                if net in self.outside or self.readers.get(net, set()) - inside:
                    found.add(index)
        return sorted(found)

    # ------------------------------------------------------------------ extraction

    def extract(self, taken: set[str]) -> RtlilModule:
        """Replace the lanes of the group by instances and return the module that they have."""
        first, outputs = self.group[0], self._outputs(self.group)
        name = f"{self.module.name}_{self.stem}"
        while name in taken:
            name += "_lane"
        taken.add(name)
        child, inputs, internal = self._child(name, first, outputs)
        gone: set[str] = set()
        instances = []
        for lane in self.group:
            ports: dict[str, Sig] = {
                inputs[number]: (Chunk(net, low, dict(lane.ranges[net])[low]),)
                for (net, low), number in sorted(lane.inputs.items(), key=lambda x: inputs[x[1]])
            }
            for index in outputs:
                ports[internal[index]] = self.module.wires[lane.nets[index]].whole
            label = f"{self.stem}{lane.number}"
            label += "_lane" * (label in self.module.wires)
            instances.append(RtlilCell(name, label, {}, ports))
            kept = {lane.nets[index] for index in outputs}
            gone |= set(lane.nets)
            for net in set(lane.nets) - kept:
                del self.module.wires[net]
        module = self.module
        module.cells = [
            cell
            for cell in module.cells
            if cell.kind not in COMBINATIONAL or not gone & {c.name for c in cell.ports["Y"]}
        ]
        module.processes = [
            process
            for process in module.processes
            if not any(c.name in gone for t, _ in targets(process.body) for c in t)
        ]
        module.connects = [(t, s) for t, s in module.connects if not t or t[0].name not in gone]
        module.cells += instances
        return child

    def _child(
        self, name: str, lane: _Lane, outputs: list[int]
    ) -> tuple[RtlilModule, list[str], list[str]]:
        """Return the module of a lane, and the names of its inputs and of its nets."""
        used: set[str] = set()

        def free(wish: str) -> str:
            wish = f"{wish}_v" if wish in KEYWORDS else wish
            fresh, number = wish, 1
            while fresh in used:
                number += 1
                fresh = f"{wish}_{number}"
            used.add(fresh)
            return fresh

        wires = self.module.wires
        lanes = [f"{self.stem}{lane.number}" for lane in self.group]
        module = RtlilModule(name, title=f"lanes {', '.join(lanes[:-1])} and {lanes[-1]}")
        whole = self._whole_inputs(lane, outputs)
        inputs = [""] * len(lane.inputs)
        for (net, low), number in lane.inputs.items():
            inputs[number] = free(_without(self.namer.name(whole.get(number, net)), lane.number))
            bits = dict(lane.ranges[net])[low]
            old = wires[net]
            whole_codes = old.codes if bits == old.width else {}
            module.wires[inputs[number]] = Wire(
                inputs[number], bits, way="input", kind=old.kind, codes=whole_codes
            )
        module.wires = dict(sorted(module.wires.items()))
        internal = []
        for index, net in enumerate(lane.nets):
            if net in whole.values():
                number = next(number for number, alias in whole.items() if alias == net)
                internal.append(inputs[number])
                continue
            wish = f"${index}"
            if not net.startswith("$") or index in outputs:
                wish = _without(self.namer.name(net), lane.number)
                wish = wish.removeprefix(f"{self.stem}_")
                wish = f"n{wish}" if wish[0].isdigit() else wish
            internal.append(free(wish))
        for index, net in enumerate(lane.nets):
            if net in whole.values():
                continue
            old = wires[net]
            module.wires[internal[index]] = Wire(
                internal[index],
                old.width,
                signed=old.signed,
                way="output" if index in outputs else "",
                init=old.init,
                src=old.src,
                kind=old.kind,
                codes=old.codes,
            )
        place = {net: internal[index] for index, net in enumerate(lane.nets)}

        def moved(sig: Sig) -> Sig:
            chunks: list[Chunk] = []
            for chunk in sig:
                if chunk.name in place:
                    chunks.append(Chunk(place[chunk.name], chunk.low, chunk.width))
                elif chunk.name:
                    low, _ = self._range(lane, chunk)
                    port = inputs[lane.inputs[chunk.name, low]]
                    chunks.append(Chunk(port, chunk.low - low, chunk.width))
                else:
                    chunks.append(chunk)
            return joined(tuple(chunks))

        for net in (net for net in lane.nets if net not in whole.values()):
            driver, new = self.drivers[net], place[net]
            if driver.cell is not None:
                cell = driver.cell
                ports = {port: moved(sig) for port, sig in cell.ports.items()}
                module.cells.append(
                    RtlilCell(cell.kind, cell.name, dict(cell.numbers), ports, cell.src)
                )
            elif driver.body is not None:
                body = retargeted(mapped(driver.body, moved), new)
                module.processes.append(Process(body))
            else:
                module.connects.append((module.wires[new].whole, moved(driver.value)))
        return module, inputs, internal

    def _whole_inputs(self, lane: _Lane, outputs: list[int]) -> dict[int, str]:
        """Return number of an input -> a signal of the lane that is the whole input."""
        found: dict[int, str] = {}
        for index, net in enumerate(lane.nets):
            value = self.drivers[net].value
            if len(value) != 1 or index in outputs or value[0].name not in lane.ranges:
                continue
            low, bits = self._range(lane, value[0])
            if (low, bits) == (value[0].low, value[0].width):
                found.setdefault(lane.inputs[value[0].name, low], net)
        return found


def _without(name: str, number: str) -> str:
    """Return a name without the number of its lane."""
    return re.sub(rf"(?<=[a-z]){number}(?=_|$)|_{number}$", "", name, count=1)
