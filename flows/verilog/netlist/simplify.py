"""Simplification of a module: equal operators once, constants folded, unread bits cut off."""

from collections.abc import Callable, Iterator

from vitruvian.flows.verilog.netlist.fold import constant, folded, ones
from vitruvian.flows.verilog.netlist.process import tidied
from vitruvian.flows.verilog.netlist.rtlil import (
    Body,
    Chunk,
    Process,
    RtlilCase,
    RtlilCell,
    RtlilModule,
    Sig,
    Switch,
    cut,
    joined,
    width_of,
)

COMBINATIONAL = (
    *("$and", "$or", "$xor", "$not", "$reduce_or", "$reduce_and", "$reduce_xor", "$reduce_bool"),
    *("$add", "$sub", "$mul", "$neg", "$shl", "$shr", "$sshr", "$shift", "$mux"),
    *("$eq", "$ne", "$lt", "$le", "$gt", "$ge", "$div", "$divfloor", "$mod", "$modfloor"),
)
_EVEN = ("$and", "$or", "$xor", "$not")
_UPWARD = ("$add", "$sub", "$mul", "$neg", "$shl")  # a bit depends on no higher bit


def reads(body: Body) -> Iterator[Sig]:
    """Yield every value that the statements of a process read."""
    for item in body:
        if isinstance(item, Switch):
            yield item.select
            for case in item.cases:
                yield from reads(case.body)
        else:
            yield item[1]


def targets(body: Body) -> Iterator[tuple[Sig, Sig]]:
    """Yield every assignment of a process."""
    for item in body:
        if isinstance(item, Switch):
            for case in item.cases:
                yield from targets(case.body)
        else:
            yield item


def mapped(body: Body, change: Callable[[Sig], Sig]) -> Body:
    """Return the statements with ``change`` applied to every value that they read."""
    result: Body = []
    for item in body:
        if isinstance(item, Switch):
            cases = [RtlilCase(case.patterns, mapped(case.body, change)) for case in item.cases]
            result.append(Switch(change(item.select), cases))
        else:
            result.append((item[0], change(item[1])))
    return result


class Netlist:
    """A module whose wires have one driver each.

    Attributes
    ----------
    wires : dict of str to Wire
    operators : dict of str to RtlilCell
        Wire -> the combinational operator that drives it.
    processes : dict of str to list
        Wire -> the statements that drive it.
    registers : dict of str to RtlilCell
        Wire -> its register.
    values : dict of str to Sig
        Wire -> the value that it is connected to.
    others : list of RtlilCell
        Instances and memory ports.
    """

    def __init__(self, module: RtlilModule):
        self.module = module
        self.name = module.name
        self.wires = module.wires
        self.memories, self.unchecked = module.memories, module.unchecked
        self.operators: dict[str, RtlilCell] = {}
        self.registers: dict[str, RtlilCell] = {}
        self.processes: dict[str, Body] = {}
        self.values: dict[str, Sig] = {}
        self.others: list[RtlilCell] = []
        for cell in module.cells:
            if cell.kind in COMBINATIONAL:
                if cell.ports["Y"]:  # an operator may have no bits
                    self.operators[cell.ports["Y"][0].name] = cell
            elif cell.kind == "$dff":
                self.registers[cell.ports["Q"][0].name] = cell
            else:
                self.others.append(cell)
        for target, source in module.connects:
            if target:
                self.values[target[0].name] = source
        for process in module.processes:
            self._add(process)
        for name in [n for n, cell in self.operators.items() if not width_of(cell.ports["Y"])]:
            del self.operators[name]

    def _add(self, process: Process, old: str = "") -> None:
        """Store a process in place of ``old``; without a switch it is a value."""
        self.processes.pop(old, None)
        all_targets = [target for target, _ in targets(process.body) if target]
        if not all_targets:
            return
        name = all_targets[0][0].name
        if any(isinstance(item, Switch) for item in process.body):
            self.processes[name] = process.body
            return
        # Later assignments overwrite bits of earlier ones; bits that none assigns are 0.
        value = constant(0, self.wires[name].width)
        for item in process.body:
            if isinstance(item, Switch) or not item[0]:
                continue
            (chunk,), source = item
            above = chunk.low + chunk.width
            rest = cut(value, above, self.wires[name].width - above)
            value = joined((*cut(value, 0, chunk.low), *source, *rest))
        self.values[name] = value

    def is_output(self, cell: RtlilCell, port: str) -> bool:
        """Return whether a port of an instance or memory port drives its wire."""
        if cell.kind == "$memrd_v2":
            return port == "DATA"
        return not cell.kind.startswith("$") and port in self.outputs.get(cell.kind, ())

    outputs: dict[str, set[str]] = {}

    def read(self) -> list[Sig]:
        """Return every value that an operator, process, register, memory or instance reads."""
        cells = (*self.operators.values(), *self.registers.values())
        sigs = [sig for cell in cells for port, sig in cell.ports.items() if port not in ("Y", "Q")]
        for cell in self.others:
            sigs += [sig for port, sig in cell.ports.items() if not self.is_output(cell, port)]
        for body in self.processes.values():
            sigs += reads(body)
        return sigs

    def as_module(self) -> RtlilModule:
        """Return a module with the present drivers and all wires."""
        return RtlilModule(
            self.name,
            self.wires,
            [*self.operators.values(), *self.registers.values(), *self.others],
            [Process(body) for body in self.processes.values()],
            [(self.wires[name].whole, value) for name, value in self.values.items()],
            self.memories,
            self.unchecked,
            self.module.src,
        )

    # ------------------------------------------------------------------ folding

    def simplify(self) -> None:
        """Fold constants and merge equal operators until nothing changes, then cut unread bits."""
        known: dict[str, Sig] = {}
        # A pass may open more to fold; the bound only guards against a pair that changes back and
        # forth.
        for _ in range(8):
            before = len(known)
            self._pass(known)
            if len(known) == before:
                break
        self._demand()

    def resolved(self, sig: Sig, known: dict[str, Sig]) -> Sig:
        """Return a value without the wires that ``known`` maps to other values."""
        if all(chunk.name not in known for chunk in sig):
            return sig
        chunks: list[Chunk] = []
        for chunk in sig:
            if chunk.name in known:
                inner = cut(known[chunk.name], chunk.low, chunk.width)
                chunks += self.resolved(inner, known)
            else:
                chunks.append(chunk)
        return joined(tuple(chunks))

    def _pass(self, known: dict[str, Sig]) -> None:
        seen: dict[object, str] = {}
        # The values of wires without a name take their place.
        for name in [name for name in self.values if not self.wires[name].named]:
            known[name] = self.values.pop(name)
        for name in self.order():
            if name in self.values:
                continue
            if name in self.processes:
                body = mapped(self.processes[name], lambda sig: self.resolved(sig, known))
                self._add(Process(tidied(body)), name)
                continue
            cell = self.operators[name]
            inputs = {p: self.resolved(s, known) for p, s in cell.ports.items() if p != "Y"}
            cell.ports = {**inputs, "Y": cell.ports["Y"]}
            self._ranges(cell)
            value = self._value_without(name)
            if value is None:
                self._merge(name, inputs, seen, known)
                continue
            del self.operators[name]
            if self.wires[name].named:
                self.values[name] = value
            else:
                known[name] = value
        for cell in (*self.registers.values(), *self.others):
            for port, sig in cell.ports.items():
                if port != "Q" and not self.is_output(cell, port):
                    cell.ports[port] = self.resolved(sig, known)
        for name, value in self.values.items():
            self.values[name] = self.resolved(value, known)

    def _value_without(self, name: str) -> Sig | None:
        """Return the value of an operator that is not needed for it, or None if it is."""
        cell, width = self.operators[name], self.wires[name].width
        value = folded(cell, width)
        if value is not None:
            return value
        if cell.kind in ("$eq", "$ne"):
            cell = self._inverted(name, cell)
        if cell.kind != "$not" or len(cell.ports["A"]) != 1:
            return None
        # The inverse of an inverse, both of all bits, is the operand.
        (chunk,) = cell.ports["A"]
        source = self.operators.get(chunk.name)
        if source is None or source.kind != "$not" or chunk.width != width:
            return None
        operand = source.ports["A"]
        whole = width_of(operand) == width == self.wires[chunk.name].width
        return operand if whole else None

    def _merge(
        self, name: str, inputs: dict[str, Sig], seen: dict[object, str], known: dict[str, Sig]
    ) -> None:
        """Make one operator of equal operators on equal operands.

        It keeps a name of the source if one of them has it.
        """
        cell, width = self.operators[name], self.wires[name].width
        key = (cell.kind, width, *sorted(cell.numbers.items()), *sorted(inputs.items()))
        if key not in seen:
            seen[key] = name
        elif not self.wires[name].named:
            known[name] = self.wires[seen[key]].whole
            del self.operators[name]
        # The first one gives way to this one, as only this one has a name.
        elif not self.wires[seen[key]].named:
            known[seen[key]] = self.wires[name].whole
            del self.operators[seen[key]]
            seen[key] = name

    def _ranges(self, cell: RtlilCell) -> None:
        """Store the widths that follow from the operands."""
        for port in ("A", "B"):
            if f"{port}_WIDTH" in cell.numbers:
                cell.numbers[f"{port}_WIDTH"] = width_of(cell.ports[port])

    def _inverted(self, name: str, cell: RtlilCell) -> RtlilCell:
        """Return ``x == 0`` of one bit as ``~x``."""
        a, b = cell.ports["A"], cell.ports["B"]
        # x == 0 and x != 1 are the same for one bit.
        zero = constant(int(cell.kind == "$ne"), 1)
        if self.wires[name].width == 1 and width_of(a) == 1 and b == zero:
            cell = RtlilCell("$not", cell.name, {"A_SIGNED": 0}, {"A": a, "Y": cell.ports["Y"]})
            self.operators[name] = cell
        return cell

    def order(self) -> list[str]:
        """Return the wires that are not registers, each after what it reads."""
        result: list[str] = []
        state: dict[str, bool] = {}
        for root in [*self.operators, *self.processes, *self.values]:
            # A depth-first search without recursion; a loop is cut where it closes.
            stack = [(root, iter(self._sources(root)))] if root not in state else []
            state.setdefault(root, False)
            while stack:
                name, rest = stack[-1]
                for source in rest:
                    if source not in state:
                        state[source] = False
                        stack.append((source, iter(self._sources(source))))
                        break
                else:
                    stack.pop()
                    state[name] = True
                    if name in self.operators or name in self.processes or name in self.values:
                        result.append(name)
        return result

    def _sources(self, name: str) -> list[str]:
        if name in self.operators:
            ports = self.operators[name].ports
            sigs = [sig for port, sig in ports.items() if port != "Y"]
        elif name in self.processes:
            sigs = list(reads(self.processes[name]))
        else:
            sigs = [self.values[name]] if name in self.values else []
        return [chunk.name for sig in sigs for chunk in sig if chunk.name]

    # ------------------------------------------------------------------ unread bits

    def _demand(self) -> None:
        """Remove what nothing reads, and the unread high bits of nets without a name."""
        self.demand = self._demanded()
        narrow = self._drop_unread() | self._narrowed()
        if narrow:
            self.replace(lambda sig: _within(sig, narrow))

    def _demanded(self) -> dict[str, int]:
        """Return the bits of each net that an output or a cell that stays reads, as masks."""
        demand: dict[str, int] = {}
        work: list[tuple[str, int]] = []

        def want(sig: Sig, mask: int = -1) -> None:
            for name, low, width in sig:
                bits = (mask & ones(width)) << low if name else 0
                mask >>= width
                # Masks only grow, so that the work ends.
                if bits & ~demand.get(name, 0):
                    demand[name] = demand.get(name, 0) | bits
                    work.append((name, demand[name]))

        for wire in self.wires.values():
            if wire.way == "output" or wire.keep:
                want(wire.whole)
        readers: dict[str, RtlilCell] = {}
        for cell in self.others:
            for port, sig in cell.ports.items():
                if cell.kind == "$memrd_v2" and port == "DATA":
                    readers[sig[0].name] = cell
                elif not self.is_output(cell, port) and cell.kind != "$memrd_v2":
                    want(sig)
        while work:
            name, mask = work.pop()
            if name in self.operators:
                self._want_operands(self.operators[name], mask, want)
            elif name in self.registers:
                want(self.registers[name].ports["D"], mask)
                # A register that is read needs its clock, a data bit only the same bit.
                want(self.registers[name].ports["CLK"])
            elif name in self.values:
                want(self.values[name], mask)
            elif name in readers:
                for port, sig in readers[name].ports.items():
                    if port != "DATA":
                        want(sig)
            elif name in self.processes:
                for (chunk,), source in targets(self.processes[name]):
                    want(source, mask >> chunk.low)
                for sig in _selects(self.processes[name]):
                    want(sig)
        return demand

    def _drop_unread(self) -> dict[str, int]:
        """Remove all drivers that nothing reads, and return a width of 0 for each of their nets."""
        demand, narrow = self.demand, dict[str, int]()
        for table in (self.operators, self.processes, self.registers):
            for name in [name for name in table if not demand.get(name)]:
                del table[name]
                # Unread bits of a net that is kept whole may come from it.
                narrow[name] = 0
        self.others = [
            cell
            for cell in self.others
            if cell.kind != "$memrd_v2" or demand.get(cell.ports["DATA"][0].name)
        ]
        return narrow

    def _narrowed(self) -> dict[str, int]:
        """Cut the unread high bits of operators off, and return the new widths of their nets."""
        demand, narrow = self.demand, dict[str, int]()
        # A name of the source keeps the width that it has there.
        least = {
            v[0].name: v[0].width for v in self.values.values() if len(v) == 1 and not v[0].low
        }
        for name, cell in self.operators.items():
            wire, bits = self.wires[name], max(demand[name].bit_length(), least.get(name, 0))
            if not wire.named and bits < wire.width and cell.kind in (*_EVEN, *_UPWARD, "$mux"):
                wire.width = bits
                cell.ports["Y"] = wire.whole
                narrow[name] = bits
        return narrow

    def replace(self, change: Callable[[Sig], Sig]) -> None:
        """Apply ``change`` to every value that something in the netlist reads."""
        for cell in (*self.operators.values(), *self.registers.values()):
            for port, sig in cell.ports.items():
                if port not in ("Y", "Q"):
                    cell.ports[port] = change(sig)
        for cell in self.others:
            for port, sig in cell.ports.items():
                if not self.is_output(cell, port):
                    cell.ports[port] = change(sig)
        for name, body in self.processes.items():
            self.processes[name] = mapped(body, change)
        for name, value in self.values.items():
            self.values[name] = change(value)

    @staticmethod
    def _want_operands(cell: RtlilCell, mask: int, want: Callable[..., None]) -> None:
        signed = bool(cell.numbers.get("A_SIGNED"))
        for port, sig in cell.ports.items():
            if port == "Y":
                continue
            bits = -1
            if cell.kind in _EVEN or (cell.kind == "$mux" and port != "S"):
                bits = mask
            elif cell.kind in _UPWARD and not (cell.kind == "$shl" and port == "B"):
                # A carry comes from all lower bits.
                bits = ones(mask.bit_length())
            # Bits above the operand are copies of its sign.
            if signed and bits >= 1 << width_of(sig):
                bits |= 1 << width_of(sig) - 1
            want(sig, bits)


def _selects(body: Body) -> Iterator[Sig]:
    for item in body:
        if isinstance(item, Switch):
            yield item.select
            for case in item.cases:
                yield from _selects(case.body)


def _within(sig: Sig, widths: dict[str, int]) -> Sig:
    """Return a value with zeros for the bits that nets of these widths do not have."""
    chunks: list[Chunk] = []
    for name, low, width in sig:
        size = widths.get(name, low + width)
        if low < size:
            chunks.append(Chunk(name, low, min(width, size - low)))
        chunks += constant(0, min(width, max(0, low + width - size)))
    return joined(tuple(chunks))
