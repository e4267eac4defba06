"""Names for nets: those of the source wherever one fits, else names from what a net feeds."""

import re
from collections import defaultdict

from vitruvian.flows.verilog.netlist.fold import is_constant
from vitruvian.flows.verilog.netlist.process import retargeted
from vitruvian.flows.verilog.netlist.rtlil import Chunk, RtlilCell, Sig
from vitruvian.flows.verilog.netlist.simplify import Netlist, reads

# Names that Amaranth or ``flows.verilog.emit`` has invented.
_POOR = re.compile(r"\$|(?:port|signal)(?:_\d+)+$")
_LONGEST = 36


def poor(name: str) -> bool:
    """Return whether a name comes from a tool and not from the source."""
    return bool(_POOR.match(name))


class Aliases:
    """The wires that the source names but that are only connected to other wires.

    Amaranth reads the other wires in place of these. Here, readers of exactly the bits that an
    alias stands for read the alias again; the other aliases become comments.

    Attributes
    ----------
    same : dict of str to list of str
        Wire -> further names that the source has for all of its bits.
    """

    def __init__(self, netlist: Netlist):
        self.netlist = netlist
        self.same: dict[str, list[str]] = defaultdict(list)
        self._adopt()
        self._index: dict[Chunk, list[tuple[Sig, str]]] = defaultdict(list)
        self._parts: dict[str, list[tuple[Chunk, str]]] = defaultdict(list)
        known: dict[Sig, str] = {}
        for name, value in netlist.values.items():
            if netlist.wires[name].way == "output" or is_constant(value):
                continue
            (first, *more), whole = value, len(value) == 1 and value == self._whole(value)
            if value in known:
                self.same[known[value]].append(name)
            elif whole and not more and not poor(first.name):
                self.same[first.name].append(name)
            elif first.name and not poor(name):
                known[value] = name
                self._index[first].append((value, name))
                if not more:
                    self._parts[first.name].append((first, name))
        for entries in self._index.values():
            # The alias of most chunks is tried first.
            entries.sort(key=lambda entry: -len(entry[0]))
        self._rewrite()

    def _whole(self, value: Sig) -> Sig:
        wire = self.netlist.wires.get(value[0].name)
        return wire.whole if wire else ()

    def _adopt(self) -> None:
        """Give a net without a name the name of a wire that is connected to all of it."""
        n, names = self.netlist, {}
        for name, value in list(n.values.items()):
            if len(value) != 1 or value != self._whole(value) or poor(name):
                continue
            old = value[0].name
            if n.wires[old].named or old in names:
                continue
            for table in (n.operators, n.processes, n.registers):
                if old in table:
                    table[name] = table.pop(old)  # type: ignore[assignment]
                    del n.values[name]
                    n.wires[name].init = n.wires[old].init
                    n.wires[name].keep |= n.wires[old].keep
                    names[old] = n.wires[name].whole
                    # The readers of both are readers of the one net now.
                    n.demand[name] = n.demand.get(name, 0) | n.demand.get(old, 0)
        if names:
            self.netlist.replace(lambda sig: n.resolved(sig, names))
            for table in (n.operators, n.registers):
                for name, cell in table.items():
                    cell.ports["Y" if "Y" in cell.ports else "Q"] = n.wires[name].whole
            for name, body in n.processes.items():
                n.processes[name] = retargeted(body, name)

    def _rewrite(self) -> None:
        n = self.netlist
        # The alias itself must still say what it stands for.
        kept = {name: n.values[name] for name in n.values if n.wires[name].way != "output"}
        self.netlist.replace(self.renamed)
        n.values.update(kept)

    def renamed(self, sig: Sig) -> Sig:
        """Return a value in which aliases take the place of what they stand for."""
        result: list[Chunk] = []
        index = 0
        while index < len(sig):
            for value, name in self._index.get(sig[index], ()):
                if sig[index : index + len(value)] == value:
                    result += self.netlist.wires[name].whole
                    index += len(value)
                    break
            else:
                result.append(self._inside(sig[index]))
                index += 1
        return tuple(result)

    def _inside(self, chunk: Chunk) -> Chunk:
        """Return bits of the smallest alias for a part of a wire that has all bits of ``chunk``."""
        best = None
        for outer, name in self._parts.get(chunk.name, ()) if chunk.name else ():
            inside = outer.low <= chunk.low and chunk.low + chunk.width <= outer.low + outer.width
            if inside and (best is None or outer.width < best[0].width):
                best = outer, name
        return Chunk(best[1], chunk.low - best[0].low, chunk.width) if best else chunk


_ROLES = {
    "$add": "sum", "$sub": "difference", "$mul": "product", "$neg": "negated", "$mux": "choice",
    "$and": "and", "$or": "or", "$xor": "xor", "$not": "not", "$reduce_or": "any",
    "$reduce_bool": "any", "$reduce_and": "all", "$reduce_xor": "parity", "$shl": "shifted",
    "$shr": "shifted", "$sshr": "shifted", "$shift": "part", "$eq": "equal", "$ne": "unequal",
    "$lt": "less", "$le": "at_most", "$gt": "greater", "$ge": "at_least",
}  # fmt: skip
_JOINTS = {"$eq": "is", "$ne": "is_not", "$lt": "below", "$gt": "above", "$ge": "from"}
_JOINTS |= {"$le": "to", "$and": "and", "$or": "or", "$xor": "xor", "$add": "plus", "$sub": "minus"}
_BEFORE = {"$reduce_or": "any", "$reduce_bool": "any", "$reduce_and": "all", "$not": "not"}


class Namer:
    """Names for the nets of a module that the source does not name.

    A net with one operand, or a comparison, is named after its operands: ``any_total``,
    ``opcode_is_3``. Any other net is named after the named net that it feeds and its role there:
    ``total_sum``.
    """

    def __init__(self, netlist: Netlist):
        self.netlist = netlist
        self.taken = {name for name in netlist.wires if not name.startswith("$")}
        self.taken |= {cell.name for cell in netlist.others} | {"unused"} | set(netlist.memories)
        self.chosen: dict[str, str] = {}
        self.feeds: dict[str, list[str]] = defaultdict(list)
        self._readers()

    def _readers(self) -> None:
        n = self.netlist
        tables = [(name, cell.ports) for name, cell in (*n.operators.items(), *n.registers.items())]
        for name, ports in tables:
            for port, sig in ports.items():
                if port not in ("Y", "Q"):
                    self._feed(sig, name)
        for name, body in n.processes.items():
            for sig in reads(body):
                self._feed(sig, name.removesuffix(" step"))
        for name, value in n.values.items():
            self._feed(value, name)
        for cell in n.others:
            for port, sig in cell.ports.items():
                if not n.is_output(cell, port):
                    base = "memory" if cell.kind.startswith("$") else cell.name
                    self._feed(sig, f"{base}_{port.lower()}")

    def _feed(self, sig: Sig, name: str) -> None:
        for chunk in sig:
            if chunk.name.startswith("$"):
                self.feeds[chunk.name].append(name)

    def name(self, net: str) -> str:
        """Return the name of a net in the text."""
        if not net.startswith("$"):
            return net
        if net not in self.chosen:
            self.chosen[net] = ""  # a loop through a register must end
            wish = re.sub(r"\W+", "_", self._wish(net)).strip("_") or "net"
            fresh, number = wish, 1
            while fresh in self.taken:
                number += 1
                fresh = f"{wish}_{number}"
            self.taken.add(fresh)
            # The number of a name follows the order of the text, hence names are chosen when they
            # are first written.
            self.chosen[net] = fresh
        return self.chosen[net]

    def _wish(self, net: str) -> str:
        n = self.netlist
        for cell in n.others:
            for port, sig in cell.ports.items():
                if n.is_output(cell, port) and sig and sig[0].name == net:
                    return f"{cell.name}_{port}" if not cell.kind.startswith("$") else "word"
        cell = n.operators.get(net)
        if cell is not None and (text := self._from_operands(cell)):
            return text
        role = _ROLES.get(cell.kind, "value") if cell is not None else "next"
        return f"{self._root(net, set())}_{role if net not in n.registers else 'q'}"

    def _root(self, net: str, seen: set[str]) -> str:
        """Return the nearest net with a name from the source that ``net`` feeds."""
        seen.add(net)
        # Breadth first: the nearest named net is found first.
        frontier = [net]
        while frontier:
            following: list[str] = []
            for inner in frontier:
                for name in self.feeds[inner]:
                    if not name.startswith("$"):
                        return name
                    if name not in seen:
                        seen.add(name)
                        following.append(name)
            frontier = following
        return "net"

    def _from_operands(self, cell: RtlilCell) -> str:
        """Return a short name from the operands, or nothing."""
        a = self._word(cell.ports.get("A", ()))
        b = self._word(cell.ports.get("B", ()))
        text = ""
        if cell.kind in _BEFORE and a and not a.isdecimal():
            text = f"{_BEFORE[cell.kind]}_{a}"
        elif cell.kind in _JOINTS and a and b and not a.isdecimal():
            text = f"{a}_{_JOINTS[cell.kind]}_{b}"
        return text if len(text) <= _LONGEST else ""

    def _word(self, sig: Sig) -> str:
        """Return one name or number that stands for an operand, or nothing."""
        while len(sig) > 1 and not sig[-1].name and not sig[-1].low:
            sig = sig[:-1]  # zeros above
        if len(sig) != 1:
            return ""
        ((name, low, width),) = sig
        if not name:
            return str(low)
        if name.startswith("$"):
            return ""
        if width == self.netlist.wires[name].width:
            return name
        return f"{name}_{low}" if width == 1 else f"{name}_{low + width - 1}_{low}"
