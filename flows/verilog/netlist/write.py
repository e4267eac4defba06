"""Write the modules of a netlist as Verilog."""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from vitruvian.flows.verilog.netlist.codes import Codes
from vitruvian.flows.verilog.netlist.express import NetlistExpressions, literal
from vitruvian.flows.verilog.netlist.fold import ones
from vitruvian.flows.verilog.netlist.memories import Memories
from vitruvian.flows.verilog.netlist.names import Namer
from vitruvian.flows.verilog.netlist.order import Node, ordered, ranks
from vitruvian.flows.verilog.netlist.prepare import outputs_of, prepared
from vitruvian.flows.verilog.netlist.process import grouped, retargeted, tidied
from vitruvian.flows.verilog.netlist.repeat import lanes
from vitruvian.flows.verilog.netlist.rtlil import Body, RtlilCell, RtlilModule, Sig, parse
from vitruvian.flows.verilog.netlist.simplify import Netlist, reads, targets
from vitruvian.flows.verilog.netlist.source import SourcePart, part_of
from vitruvian.flows.verilog.netlist.statements import NetlistStatements
from vitruvian.flows.verilog.netlist.wrap import comment, fitted, spaced

FILE = (
    "// One file holds the unit and the modules it is made of.\n"
    "/* verilator lint_off DECLFILENAME */\n"
)
FILE_END = "/* verilator lint_on DECLFILENAME */\n"
NARROW = (
    "  // The operands of a product, and a product that is added, stay as narrow as they are:",
    "  // their width decides which multiplier a tool builds.",
    "  /* verilator lint_off WIDTHEXPAND */",
)
#: Connections of an instance that are written in one line if there is room.
SHORT_PINS = 4
WIDE = "  /* verilator lint_on WIDTHEXPAND */"


class Narrow(NamedTuple):
    """The products of a part of the source, or the sums that take a product."""

    part: SourcePart


def verilog(rtlil: str, top: str, ports: Sequence[str], *, plain: bool = False) -> str:
    """Return the modules of an RTLIL text as Verilog, the top module first.

    Parameters
    ----------
    rtlil : str
        RTLIL as Amaranth writes it, in which every name is an identifier of Verilog. Comments tell
        from which parts of the source the nets come if the text has source locations.
    top : str
        The top module.
    ports : sequence of str
        The ports of the top module in the order of the text.
    plain : bool
        If True, the statements have the order of the RTLIL, and equal lanes stay in their module.
        The result of a tool depends a little on the order of the netlist.
    """
    modules = parse(rtlil)
    outputs = {name: outputs_of(module) for name, module in modules.items()}
    taken, netlists = {*modules}, {}
    for name, module in modules.items():
        netlist, same = prepared(module, outputs)
        again = netlist.as_module()
        # Equal parts become modules of their own, so that both these and what is left are
        # simplified again.
        if made := [] if plain else lanes(again, taken, Namer(netlist)):
            outputs |= {lane.name: outputs_of(lane) for lane in made}
            netlists[name] = (prepared(again, outputs)[0], same)
            netlists |= {lane.name: prepared(lane, outputs) for lane in made}
        else:
            netlists[name] = netlist, same
    parts = {name: _part_of(netlist.module) for name, (netlist, _) in netlists.items()}
    texts = {}
    for name, (netlist, same) in netlists.items():
        own = {wire.name for wire in netlist.wires.values() if wire.way}
        # A clock or a reset that nothing reads is no port of the netlist.
        order = [port for port in ports if port in own] if name == top else []
        text = Writer(netlist, order, parts, same).text(plain=plain)
        texts[name] = text if name == top else _titled(text, parts[name])
    first, rest = texts.pop(top), list(texts.values())
    text = f"`timescale 1ns / 1ps\n\n{first}"
    return "\n".join([text, FILE + rest[0], *rest[1:], FILE_END]) if rest else text


def _part_of(module: RtlilModule) -> SourcePart:
    return SourcePart(module.title, "", "") if module.title else part_of(module.src)


def _titled(text: str, part: SourcePart) -> str:
    """Return the text of a module below a comment that says what the module is."""
    words = f"{part.text} [{part.file}]" if part.text else "" if part.file else part.name
    return "\n".join([*comment(words[:1].upper() + words[1:], ""), text])


class Writer:
    """The text of one module.

    Parameters
    ----------
    netlist : Netlist
        The module, simplified.
    ports : list of str
        Ports in the order of the text, or nothing for the order of the RTLIL.
    parts : dict of str to SourcePart
        Module -> the part of the source that it comes from.
    same : dict of str to list of str
        Net -> further names that the source has for it.
    """

    def __init__(
        self,
        netlist: Netlist,
        ports: list[str],
        parts: dict[str, SourcePart],
        same: dict[str, list[str]],
    ):
        self.n, self.parts, self.same = netlist, parts, same
        self.steps = self._sequential()
        self.namer = Namer(netlist)
        self.expressions = NetlistExpressions(netlist, self.namer)
        self.statements = NetlistStatements(self.expressions)
        self.memories = Memories(self.expressions)
        wires = netlist.wires
        self.ports = ports or [name for name, wire in wires.items() if wire.way and wire.width]
        self.driven = {
            chunk.name: cell
            for cell in netlist.others
            for port, sig in cell.ports.items()
            if netlist.is_output(cell, port)
            for chunk in sig
        }
        #: Nets whose declaration is written.
        self.declared = {name for name, wire in wires.items() if wire.way}
        #: Parts of the source that a comment describes already.
        self.described: set[SourcePart] = set()
        self._inner: dict[str, frozenset[str]] = {}

    def _sequential(self) -> dict[str, Body]:
        """Take the processes that only compute the next value of one register from the netlist."""
        n, steps = self.n, {}
        # A process that also feeds something else keeps its net.
        uses: dict[str, int] = {}
        for sig in [*n.read(), *n.values.values()]:
            for chunk in sig:
                uses[chunk.name] = uses.get(chunk.name, 0) + 1
        for name, cell in n.registers.items():
            data = cell.ports["D"]
            if len(data) != 1 or data[0].name not in n.processes:
                continue
            source = data[0].name
            # A name of the source is worth more than the shorter text.
            if source.startswith("$") and uses[source] == 1 and data == n.wires[source].whole:
                body = retargeted(n.processes.pop(source), name)
                steps[name] = tidied(body, name)
                cell.ports["D"] = ()
        # The values that these processes read count as read by the register.
        for name, body in steps.items():
            n.processes[f"{name} step"] = body
        return steps

    # ------------------------------------------------------------------ text

    def text(self, *, plain: bool = False) -> str:
        """Return the text of the module; a plain one has the order of the netlist."""
        if not plain:
            self.expressions.codes = Codes(self.n, self.same)
        heads = [self._port(name) for name in self.ports]
        lines = [f"module {self.n.name} (", ",\n".join(heads), ");"]
        lines = lines if heads else [f"module {self.n.name};"]
        body = self._plain() if plain else [*self.memories.declared(), *self._stages()]
        body = [*body, *self._initial(), *self._unused()]
        if self.expressions.codes is not None:
            constants = list(self.expressions.codes.declared("\n".join(body)))
            body = ["", *constants, *spaced(body)] if constants else spaced(body)
        lines += [part for line in body for part in fitted(line)]
        return "\n".join([*lines, "endmodule", ""])

    def _kind(self, name: str) -> str:
        driver = self.driven.get(name)
        # The data of a read port with a clock are assigned in an always block.
        memory = driver is not None and driver.numbers.get("CLK_ENABLE")
        return "reg" if name in self.n.registers or name in self.n.processes or memory else "wire"

    def _shape(self, name: str) -> str:
        wire, width = self.n.wires[name], self.expressions.width(name)
        return ("signed " if wire.signed else "") + (f"[{width - 1}:0] " if width > 1 else "")

    def _port(self, name: str) -> str:
        way = self.n.wires[name].way
        kind = self._kind(name) if way == "output" else "wire"
        return f"  {way:<6} {kind} {self._shape(name)}{name}"

    def _declaration(self, name: str) -> str:
        """Return the declaration of a net without the semicolon."""
        keep = "(* keep *) " if self.n.wires[name].keep else ""
        return f"  {keep}{self._kind(name)} {self._shape(name)}{self.namer.name(name)}"

    def _declare(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the declarations of nets that have none yet."""
        for name in names:
            if name not in self.declared:
                yield f"{self._declaration(name)};{self._also(name)}"
        self.declared |= set(names)

    def _also(self, name: str) -> str:
        """Return a comment with the further names that the source has for a net."""
        same = self.same.get(name)
        return f"  // also {', '.join(same)}" if same else ""

    def _exists(self, name: str) -> bool:
        """Return whether the text declares a net."""
        n = self.n
        if name in n.operators:
            return not self.expressions.inline(name)
        driven = name in n.processes or name in n.registers or name in n.values
        return driven or n.wires[name].way != "" or name in self.driven

    # ------------------------------------------------------------------ order

    def _nodes(self) -> tuple[list[Node], list[Node]]:
        """Return the statements without a clock, and the registers."""
        n = self.n
        nodes = [self._net(name) for name in n.order() if self._is_net(name)]
        clocked = []
        for name, cell in n.registers.items():
            sigs = [cell.ports["D"]]
            if name in self.steps:
                # Conditions do not count for the rank of a register, see ``order``.
                sigs = [s for t, s in targets(self.steps[name]) if s != t]
            clocked.append(Node(name, (name,), self._sources(sigs), clocked=True))
        self.cells: dict[Hashable, RtlilCell] = {}
        for index, cell in enumerate(n.others):
            made = [c.name for p, s in cell.ports.items() if n.is_output(cell, p) for c in s]
            inputs = [s for p, s in cell.ports.items() if not n.is_output(cell, p)]
            if cell.kind == "$memrd_v2" and cell.numbers["CLK_ENABLE"]:
                sigs = [cell.ports["ADDR"]]
                clocked.append(Node(made[0], tuple(made), self._sources(sigs), clocked=True))
            elif cell.kind not in ("$meminit_v2", "$memwr_v2"):
                part = self.parts.get(cell.kind) or self._part(made[0])
                reads = self._sources(inputs)
                nodes.append(Node(index, tuple(made), reads, part=part, loose=True))
                self.cells[index] = cell
        return nodes, clocked

    def _plain(self) -> list[str]:
        """Return all declarations, and then all statements in the order of the netlist."""
        n = self.n
        # Statements choose the names of nets without one, in their own order.
        nets = [name for name in n.wires if not n.wires[name].way]
        self.declared |= set(nets)
        lines = list(self._in_order())
        nets = sorted(filter(self._exists, nets), key=lambda name: name.startswith("$"))
        self.declared -= set(nets)
        return [*self._declare(nets), *self.memories.declared(contents=False), *lines]

    def _in_order(self) -> Iterator[str]:
        """Yield all statements in the order of the netlist."""
        n = self.n
        self.cells = {}
        products: list[str] = []
        for name in n.order():
            if self._is_net(name):
                text = self._statement(Node(name, (name,), frozenset()))
                if name in self.expressions.narrow:
                    products += text
                else:
                    yield from text
        if products:
            yield from [*NARROW, *products, WIDE]
        yield from self.memories.contents()
        for cell in n.others:
            yield from self.memories.read(cell) if cell.kind == "$memrd_v2" else ()
        for cells in self.memories.writes():
            yield from self.memories.write(cells)
        for cell in n.others:
            yield from () if cell.kind.startswith("$") else self._instance(cell)
        yield from self._updates(dict.fromkeys(n.wires, 0), memories=False).get(0, ())

    def _is_net(self, name: str) -> bool:
        """Return whether a statement without a clock drives a net."""
        if name in self.n.operators:
            return not self.expressions.inline(name)
        return name not in self.n.registers and not name.endswith(" step")

    def _net(self, name: str) -> Node:
        n = self.n
        if name in n.operators:
            sigs = [sig for port, sig in n.operators[name].ports.items() if port != "Y"]
        else:
            sigs = [n.values[name]] if name in n.values else list(reads(n.processes[name]))
        part = self._part(name)
        narrow = name in self.expressions.narrow
        return Node(name, (name,), self._sources(sigs), part=Narrow(part) if narrow else part)

    def _part(self, name: str) -> SourcePart:
        """Return the part of the source that a net comes from."""
        location = self.n.wires[name].src
        if not location and name in self.n.operators:
            location = self.n.operators[name].src
        return part_of(location)

    def _sources(self, sigs: Iterable[Sig]) -> frozenset[str]:
        """Return the nets of the text that values read, through operators written inside."""
        found: set[str] = set()
        for chunk in (chunk for sig in sigs for chunk in sig if chunk.name):
            if not self.expressions.inline(chunk.name):
                found.add(chunk.name)
                continue
            if chunk.name not in self._inner:
                ports = self.n.operators[chunk.name].ports
                self._inner[chunk.name] = self._sources(s for p, s in ports.items() if p != "Y")
            found |= self._inner[chunk.name]
        return frozenset(found)

    def _stages(self) -> Iterator[str]:
        """Yield all statements, stage by stage."""
        nodes, clocked = self._nodes()
        rank, loops = ranks([*nodes, *clocked])
        held = {name for node in clocked for name in node.makes}
        registers = [name for name in self.n.wires if name in held]
        # A pipeline has few registers in loops, such as a valid bit that waits; a state machine has
        # many.
        staged = bool(registers) and 2 * len(loops) < len(registers)
        if not staged:
            # The logic between registers in loops has no first stage.
            rank = dict.fromkeys(rank, 0)
            yield from self._declare(registers)
        last = max(rank.values(), default=0)
        updates = self._updates(rank)
        known = {name for name, wire in self.n.wires.items() if wire.way == "input"}
        for stage in range(last + 1):
            if staged:
                yield from self._stage(stage, last, [n for n in registers if rank[n] == stage])
            # The registers of a rank are declared at the end of the stage before.
            known |= {name for name in registers if rank[name] <= stage}
            here = [x for x in nodes if max((rank[net] for net in x.makes), default=last) == stage]
            yield from self._logic(here, known)
            fresh = [name for name in registers if rank[name] == stage + 1]
            if fresh or stage in updates:
                yield ""
            yield from self._declare(fresh)
            yield from updates.get(stage, ())

    def _stage(self, stage: int, last: int, registers: list[str]) -> Iterator[str]:
        """Yield the heading of a stage."""
        prefixes = {name.partition("_")[0] for name in registers}
        common = f" ({prefixes.pop()}_*)" if len(prefixes) == 1 and len(registers) > 1 else ""
        begin = f"register rank {stage}{common}" if stage else "the inputs"
        end = f"register rank {stage + 1}" if stage < last else "the outputs"
        yield ""
        yield f"  // ==== Stage {stage + 1} of {last + 1}: from {begin} to {end} ===="
        self.described.clear()

    def _logic(self, nodes: list[Node], known: set[str]) -> Iterator[str]:
        """Yield statements without a clock, each part of the source under its name."""
        ahead: list[str] = []
        part: Hashable = None
        for node in ordered(nodes, known, lambda x: ahead.extend(self._declare(x.makes))):
            if node.part != part:
                if isinstance(part, Narrow):
                    yield WIDE
                part = node.part
                yield from self._part_heading(part.part if isinstance(part, Narrow) else part)
                yield from NARROW if isinstance(part, Narrow) else ()
            yield from ahead
            ahead.clear()
            yield from self._statement(node)
        if isinstance(part, Narrow):
            yield WIDE

    def _part_heading(self, part: object) -> Iterator[str]:
        """Yield an empty line and the comment that names a part; the first one describes it."""
        yield ""
        if not isinstance(part, SourcePart) or not (part.name or part.file):
            return
        text = part.name or part.file
        if part not in self.described:
            text += f": {part.text}" if part.text else ""
            text += f" [{part.file}]" if part.name and part.file else ""
        self.described.add(part)
        yield from comment(text)

    def _statement(self, node: Node) -> Iterator[str]:
        """Yield the statements that drive a net, or the instance that does, with declarations."""
        cell, name = self.cells.get(node.key), str(node.key)
        if cell is not None:
            yield from self._declare(node.makes)
            memory = cell.kind.startswith("$")
            yield from self.memories.read(cell) if memory else self._instance(cell)
        elif name in self.n.processes:
            yield from self._declare([name])
            text = self.statements.text(self.n.processes[name], "=", 4)
            yield from ["  always @* begin", *text, "  end"]
        else:
            value = self.n.values.get(name)
            text = self.expressions
            right = text.operator(name) if value is None else text.text(value)
            if name in self.declared:
                yield f"  assign {self.namer.name(name)} = {right};"
            else:
                yield f"{self._declaration(name)} = {right};{self._also(name)}"
                self.declared.add(name)

    def _updates(self, rank: dict[str, int], *, memories: bool = True) -> dict[int, list[str]]:
        """Return stage -> the statements at a clock edge that read nets of no later stage."""
        n, lines = self.n, {}
        clocks = {name: self.expressions.text(c.ports["CLK"]) for name, c in n.registers.items()}

        def stage(sigs: Iterable[Sig]) -> int:
            return max((rank.get(net, 0) for net in self._sources(sigs)), default=0)

        def add(place: int, clock: str, body: list[str]) -> None:
            block = [f"  always @(posedge {clock}) begin", *body, "  end"]
            lines.setdefault(place, []).extend(block)

        steps: dict[int, dict[str, Body]] = {}
        simple: dict[tuple[int, str], list[str]] = {}
        for name, cell in n.registers.items():
            # A register of rank R is assigned at the end of stage R − 1.
            own = max(rank[name] - 1, 0)
            if name in self.steps:
                place = max(own, stage(reads(self.steps[name])))
                steps.setdefault(place, {})[name] = self.steps[name]
            else:
                place = max(own, stage([cell.ports["D"]]))
                simple.setdefault((place, clocks[name]), []).append(name)
        for place, bodies in sorted(steps.items()):
            for clock, body in grouped(bodies, clocks):
                add(place, clock, self.statements.text(body, "<=", 4))
        for (place, clock), names in simple.items():
            data = {name: n.registers[name].ports["D"] for name in names}
            text = [
                f"    {self.namer.name(name)} <= {self.expressions.text(sig)};"
                for name, sig in data.items()
            ]
            add(place, clock, text)
        if not memories:
            return lines
        for cells in self.memories.writes():
            sigs = [sig for cell in cells for sig in cell.ports.values()]
            lines.setdefault(stage(sigs), []).extend(self.memories.write(cells))
        for cell in n.others:
            if cell.kind == "$memrd_v2" and cell.numbers["CLK_ENABLE"]:
                sigs = [sig for port, sig in cell.ports.items() if port != "DATA"]
                own = max(rank[cell.ports["DATA"][0].name] - 1, 0)
                sigs += self.memories.seen(cell)
                lines.setdefault(max(own, stage(sigs)), []).extend(self.memories.read(cell))
        return lines

    def _initial(self) -> list[str]:
        """Return the block that sets the first values of registers."""
        starts = [
            f"    {self.namer.name(name)} = {literal(wire.init or 0, wire.width)};"
            for name, wire in ((name, self.n.wires[name]) for name in self.n.registers)
            if wire.init is not None
        ]
        return ["", "  initial begin", *starts, "  end"] if starts else []

    def _instance(self, cell: RtlilCell) -> list[str]:
        """Return the text of an instance."""
        pins = []
        for port, sig in cell.ports.items():
            if not sig:
                continue
            if self.n.is_output(cell, port):
                text = ", ".join(self.namer.name(c.name) for c in reversed(sig))
                pins.append(f"    .{port}({text if len(sig) == 1 else f'{{{text}}}'}),")
            else:
                pins.append(f"    .{port}({self.expressions.text(sig)}),")
        if pins:
            pins[-1] = pins[-1][:-1]
        if len(pins) <= SHORT_PINS and self.expressions.codes is not None:
            return [f"  {cell.kind} {cell.name} ({' '.join(pin.strip() for pin in pins)});"]
        return [f"  {cell.kind} {cell.name} (", *pins, "  );"]

    def _unused(self) -> list[str]:
        """Return one net that reads every bit that nothing else reads."""
        parts = []
        for name, wire in self.n.wires.items():
            if wire.way == "output" or not self._exists(name):
                continue
            width = self.expressions.width(name)
            # Bits that no expression has read while the text was written.
            missing = ones(width) & ~self.expressions.read.get(name, 0)
            text = self.namer.name(name)
            # The digits are reversed, so that a position in the text is a bit's number.
            for run in re.finditer("1+", f"{missing:b}"[::-1]):
                low, high = run.start(), run.end() - 1
                if high - low + 1 == width:
                    parts.append(text)
                else:
                    parts.append(f"{text}[{low}]" if low == high else f"{text}[{high}:{low}]")
        if not parts:
            return []
        # The idiom of Verilator's manual for unused signals: its warnings skip this name.
        text = f"  wire unused = &{{1'b0, {', '.join(parts)}}};"
        return ["", "  // Nothing else reads these bits.", text]
