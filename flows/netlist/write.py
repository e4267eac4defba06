"""Write the modules of a netlist as Verilog."""

import re
import textwrap
from collections.abc import Sequence

from vitruvian.flows.netlist.express import Expressions
from vitruvian.flows.netlist.fold import ones
from vitruvian.flows.netlist.names import Aliases, Namer
from vitruvian.flows.netlist.process import grouped, retargeted, tidied
from vitruvian.flows.netlist.rtlil import Body, Cell, Sig, Switch, cut, parse, width_of
from vitruvian.flows.netlist.simplify import Netlist

__all__ = ["verilog"]

FILE = (
    "// One file holds the unit and the modules it is made of.\n"
    "/* verilator lint_off DECLFILENAME */\n"
)
FILE_END = "/* verilator lint_on DECLFILENAME */\n"
MULTIPLY = (
    "  // The operands of a product, and a product that is added, stay as narrow as they are:\n"
    "  // their width decides which multiplier a tool builds.\n"
    "  /* verilator lint_off WIDTHEXPAND */\n"
)


def verilog(rtlil: str, top: str, ports: Sequence[str]) -> str:
    """Return the modules of an RTLIL text as Verilog, the top module first.

    Parameters
    ----------
    rtlil : str
        RTLIL as Amaranth writes it, in which every name is an identifier of Verilog.
    top : str
        The top module.
    ports : sequence of str
        The ports of the top module in the order of the text.
    """
    modules = parse(rtlil)
    outputs = {
        name: {wire.name for wire in module.wires.values() if wire.way == "output"}
        for name, module in modules.items()
    }
    texts = {}
    for name, module in modules.items():
        netlist = Netlist(module)
        netlist.outputs = outputs
        own = {wire.name for wire in module.wires.values() if wire.way}
        order = [port for port in ports if port in own] if name == top else []
        texts[name] = Writer(netlist, order).text()
    first, rest = texts.pop(top), list(texts.values())
    text = f"`timescale 1ns / 1ps\n\n{first}"
    return "\n".join([text, FILE + rest[0], *rest[1:], FILE_END]) if rest else text


class Writer:
    """The text of one module.

    Parameters
    ----------
    netlist : Netlist
        The module; it is simplified here.
    ports : list of str
        Ports in the order of the text, or nothing for the order of the RTLIL.
    """

    def __init__(self, netlist: Netlist, ports: list[str]):
        self.n = netlist
        self.names = [name for name, wire in netlist.wires.items() if wire.named and wire.width]
        netlist.simplify()
        self.aliases = Aliases(netlist)
        self._drop_aliases()
        self.steps = self._sequential()
        self.namer = Namer(netlist)
        self.expressions = Expressions(netlist, self.namer)
        wires = netlist.wires
        self.ports = ports or [name for name, wire in wires.items() if wire.way and wire.width]

    def _drop_aliases(self) -> None:
        """Remove the values of aliases that nothing reads, and store them for comments."""
        n = self.n
        read = {chunk.name for sig in n.read() for chunk in sig}
        work = [name for name in n.values if n.wires[name].way == "output" or name in read]
        alive = set(work)
        while work:
            for chunk in n.values[work.pop()]:
                if chunk.name in n.values and chunk.name not in alive:
                    alive.add(chunk.name)
                    work.append(chunk.name)
        self.unread = {name: n.values.pop(name) for name in [*n.values] if name not in alive}

    def _sequential(self) -> dict[str, Body]:
        """Take the processes that only compute the next value of one register from the netlist."""
        n, steps = self.n, {}
        uses: dict[str, int] = {}
        for sig in [*n.read(), *n.values.values()]:
            for chunk in sig:
                uses[chunk.name] = uses.get(chunk.name, 0) + 1
        for name, cell in n.registers.items():
            data = cell.ports["D"]
            if len(data) != 1 or data[0].name not in n.processes:
                continue
            source = data[0].name
            if source.startswith("$") and uses[source] == 1 and data == n.wires[source].whole:
                body = retargeted(n.processes.pop(source), name)
                steps[name] = tidied(body, name)
                cell.ports["D"] = ()
        # The values that these processes read count as read by the register.
        for name, body in steps.items():
            n.processes[f"{name} step"] = body
        return steps

    # ------------------------------------------------------------------ text

    def text(self) -> str:
        """Return the text of the module."""
        n = self.n
        body = [*self._logic(), *self._memories(), *self._instances(), *self._registers()]
        heads = [self._port(name) for name in self.ports]
        lines = [f"module {n.name} (", ",\n".join(heads), ");"] if heads else [f"module {n.name};"]
        lines += [*self._declarations(), *body, *self._unused(), "endmodule", ""]
        return "\n".join(lines)

    def _kind(self, name: str) -> str:
        driver = self._outputs().get(name)
        memory = driver is not None and driver.numbers.get("CLK_ENABLE")
        register = name in self.n.registers or name in self.n.processes or memory
        return "reg " if register else "wire"

    def _shape(self, name: str) -> str:
        wire, width = self.n.wires[name], self.expressions.width(name)
        return ("signed " if wire.signed else "") + (f"[{width - 1}:0] " if width > 1 else "")

    def _port(self, name: str) -> str:
        way = self.n.wires[name].way
        kind = self._kind(name).strip() if way == "output" else "wire"
        return f"  {way:<6} {kind} {self._shape(name)}{name}"

    def _declarations(self) -> list[str]:
        n, lines = self.n, []
        declared = [name for name in n.wires if not n.wires[name].way and self._exists(name)]
        named = [name for name in declared if not name.startswith("$")]
        others = [name for name in declared if name.startswith("$")]
        for name in (*named, *others):
            keep = "(* keep *) " if n.wires[name].keep else ""
            text = f"  {keep}{self._kind(name)} {self._shape(name)}{self.namer.name(name)};"
            same = self.aliases.same.get(name, ())
            lines.append(text + (f"  // also {', '.join(same)}" if same else ""))
        for name in self.ports:
            if same := self.aliases.same.get(name):
                lines.append(f"  // {name} is also {', '.join(same)}")
        for name, value in self.unread.items():
            if name in (x for same in self.aliases.same.values() for x in same):
                continue
            if any(not self._exists(c.name) and c.name not in n.operators for c in value if c.name):
                continue
            lines.append(f"  // {name} is {self._quoted(value)}")
        text = "\n".join([*lines, *map(self._port, self.ports)])
        present = set(re.findall(r"\w+", text))
        gone = [name for name in self.names if name not in present]
        lines += _comment("Nothing reads these signals of the source:", gone)
        lines += [
            f"  reg [{width - 1}:0] {name} [0:{depth - 1}];"
            for name, (width, depth) in n.memories.items()
        ]
        return lines

    def _quoted(self, value: Sig) -> str:
        """Return the text of a value for a comment, which reads nothing."""
        read = dict(self.expressions.read)
        text = self.expressions.text(value)
        self.expressions.read = read
        return text

    def _exists(self, name: str) -> bool:
        """Return whether the text declares a net."""
        n = self.n
        if name in n.operators:
            return not self.expressions.inline(name)
        driven = name in n.processes or name in n.registers or name in n.values
        return driven or n.wires[name].way != "" or name in self._outputs()

    def _outputs(self) -> dict[str, Cell]:
        if not hasattr(self, "_driven"):
            self._driven = {
                chunk.name: cell
                for cell in self.n.others
                for port, sig in cell.ports.items()
                if self.n.is_output(cell, port)
                for chunk in sig
            }
        return self._driven

    def _logic(self) -> list[str]:
        n, lines, products = self.n, [], []
        for name in n.order():
            if name in n.operators:
                if self.expressions.inline(name):
                    continue
                line = f"  assign {self.namer.name(name)} = {self.expressions.operator(name)};"
                (products if name in self.expressions.narrow else lines).append(line)
            elif name in n.values:
                lines.append(f"  assign {name} = {self.expressions.text(n.values[name])};")
            elif name not in n.registers and not name.endswith(" step"):
                lines += ["  always @* begin", *self._body(n.processes[name], "=", 4), "  end"]
        if products:
            end = "  /* verilator lint_on WIDTHEXPAND */"
            lines += [MULTIPLY.rstrip("\n"), *products, end]
        return lines

    def _body(self, body: Body, sign: str, indent: int) -> list[str]:
        """Return the statements of a process."""
        lines, space = [], " " * indent
        for item in body:
            if isinstance(item, Switch):
                lines += self._switch(item, sign, indent)
                continue
            target, source = item
            if not target or target == source:
                continue
            lines.append(f"{space}{self._target(target)} {sign} {self.expressions.text(source)};")
        return lines

    def _target(self, target: Sig) -> str:
        ((name, low, width),) = target
        text = self.namer.name(name)
        if width == self.n.wires[name].width:
            return text
        return f"{text}[{low}]" if width == 1 else f"{text}[{low + width - 1}:{low}]"

    def _switch(self, switch: Switch, sign: str, indent: int) -> list[str]:
        width, space = width_of(switch.select), " " * indent
        cases = list(switch.cases)
        bodies = [self._body(case.body, sign, indent + 2) for case in cases]
        while cases and not bodies[-1] and not cases[-1].patterns:
            cases.pop()
            bodies.pop()
        if not any(bodies):
            return []
        chain = width == 1 or any("-" in p for case in cases for p in case.patterns)
        lines = []
        if chain:
            for index, (case, body) in enumerate(zip(cases, bodies, strict=True)):
                condition = self._condition(switch.select, case.patterns)
                last = index and (not case.patterns or (width == 1 and index == 1))
                word = "if" if not index else "end else if"
                head = "end else begin" if last else f"{word} ({condition}) begin"
                lines += [space + head, *body]
            return [*lines, space + "end"]
        lines.append(f"{space}case ({self.expressions.text(switch.select)})")
        count = 0
        for case, body in zip(cases, bodies, strict=True):
            count += len(case.patterns)
            size = -(-width // 4)
            label = ", ".join(f"{width}'h{int(p, 2):0{size}x}" for p in case.patterns) or "default"
            if len(body) == 1 and body[0].endswith(";"):
                lines.append(f"{space}  {label}: {body[0].strip()}")
            else:
                inner = [f"  {line}" for line in body]
                lines += [f"{space}  {label}: begin", *inner, f"{space}  end"]
        if count < 1 << width and all(case.patterns for case in cases):
            lines.append(f"{space}  default: ;")
        return [*lines, f"{space}endcase"]

    def _condition(self, select: Sig, patterns: list[str]) -> str:
        """Return the condition that a value matches one of the patterns."""
        terms = []
        for pattern in patterns:
            bits = [(i, bit) for i, bit in enumerate(reversed(pattern)) if bit != "-"]
            factors = []
            for index, bit in bits:
                text = self.expressions.text(cut(select, index, 1), inside=True)
                factors.append(text if bit == "1" else f"~{text}")
            if len(factors) == 1 and factors[0].startswith("("):
                factors = [factors[0][1:-1]]
            terms.append(" & ".join(factors) or "1'b1")
        if len(terms) == 1:
            return terms[0]
        return " | ".join(f"({term})" if " & " in term else term for term in terms)

    def _registers(self) -> list[str]:
        n, lines = self.n, []
        simple: dict[str, list[str]] = {}
        clocks = {name: self.expressions.text(c.ports["CLK"]) for name, c in n.registers.items()}
        for clock, body in grouped(self.steps, clocks):
            lines += [f"  always @(posedge {clock}) begin", *self._body(body, "<=", 4), "  end"]
        for name, cell in n.registers.items():
            if name not in self.steps:
                text = f"    {self.namer.name(name)} <= {self.expressions.text(cell.ports['D'])};"
                simple.setdefault(clocks[name], []).append(text)
        for clock, body in simple.items():
            lines += [f"  always @(posedge {clock}) begin", *body, "  end"]
        starts = [
            f"    {self.namer.name(name)} = {n.wires[name].width}'h{n.wires[name].init or 0:x};"
            for name in n.registers
            if n.wires[name].init is not None
        ]
        return [*lines, *(["  initial begin", *starts, "  end"] if starts else [])]

    def _memories(self) -> list[str]:
        lines: list[str] = []
        writes: dict[tuple[str, str], list[str]] = {}
        counter = False
        for cell in self.n.others:
            if not cell.kind.startswith("$mem"):
                continue
            memory = str(cell.numbers["MEMID"]).lstrip("\\")
            if cell.kind == "$meminit_v2":
                text, loop = self._contents(cell, memory)
                counter |= loop
                lines += text
            elif cell.kind == "$memwr_v2":
                clock = self.expressions.text(cell.ports["CLK"])
                writes.setdefault((memory, clock), []).extend(self._write(cell, memory))
            else:
                lines += self._read(cell, memory)
        for (_, clock), body in writes.items():
            lines += [f"  always @(posedge {clock}) begin", *body, "  end"]
        return ["  integer entry;", *lines] if counter else lines

    def _contents(self, cell: Cell, memory: str) -> tuple[list[str], bool]:
        width, depth = self.n.memories[memory]
        size = -(-width // 4)
        words = [self._number(cut(cell.ports["DATA"], i * width, width)) for i in range(depth)]
        if len(set(words)) == 1:
            return [
                "  initial",
                f"    for (entry = 0; entry < {depth}; entry = entry + 1)",
                f"      {memory}[entry] = {width}'h{words[0]:x};",
            ], True
        rows = [f"    {memory}[{i}] = {width}'h{word:0{size}x};" for i, word in enumerate(words)]
        return ["  initial begin", *rows, "  end"], False

    @staticmethod
    def _number(sig: Sig) -> int:
        total = shift = 0
        for _, value, width in sig:
            total |= value << shift
            shift += width
        return total

    def _write(self, cell: Cell, memory: str) -> list[str]:
        address = self.expressions.text(cell.ports["ADDR"])
        data, lines, low = cell.ports["DATA"], [], 0
        bits = [cut(cell.ports["EN"], i, 1) for i in range(width_of(data))]
        while low < len(bits):
            high = low
            while high < len(bits) and bits[high] == bits[low]:
                high += 1
            part = "" if high - low == len(bits) else f"[{high - 1}:{low}]"
            condition = self.expressions.text(bits[low])
            value = self.expressions.text(cut(data, low, high - low))
            lines.append(f"    if ({condition}) {memory}[{address}]{part} <= {value};")
            low = high
        return lines

    def _read(self, cell: Cell, memory: str) -> list[str]:
        name = self.namer.name(cell.ports["DATA"][0].name)
        address = self.expressions.text(cell.ports["ADDR"])
        if not cell.numbers["CLK_ENABLE"]:
            return [f"  assign {name} = {memory}[{address}];"]
        enable = self.expressions.text(cell.ports["EN"])
        clock = self.expressions.text(cell.ports["CLK"])
        lines = [f"  always @(posedge {clock}) begin"]
        lines.append(f"    if ({enable}) {name} <= {memory}[{address}];")
        mask = int(cell.numbers["TRANSPARENCY_MASK"])
        for other in self.n.others:
            same = other.numbers.get("MEMID") == cell.numbers["MEMID"]
            if other.kind == "$memwr_v2" and same and mask >> int(other.numbers["PORTID"]) & 1:
                where = self.expressions.text(other.ports["ADDR"], inside=True)
                value = self.expressions.text(other.ports["DATA"])
                write = self.expressions.text(cut(other.ports["EN"], 0, 1), inside=True)
                hit = f"{enable} & {write} & ({where} == {address})"
                lines.append(f"    if ({hit}) {name} <= {value};")
        return [*lines, "  end"]

    def _instances(self) -> list[str]:
        lines: list[str] = []
        for cell in self.n.others:
            if cell.kind.startswith("$"):
                continue
            pins = []
            for port, sig in cell.ports.items():
                if not sig:
                    continue
                if self.n.is_output(cell, port):
                    text = ", ".join(self.namer.name(c.name) for c in reversed(sig))
                    pins.append(f"    .{port}({text if len(sig) == 1 else f'{{{text}}}'})")
                else:
                    pins.append(f"    .{port}({self.expressions.text(sig)})")
            lines += [f"  {cell.kind} {cell.name} (", ",\n".join(pins), "  );"]
        return lines

    def _unused(self) -> list[str]:
        """Return one net that reads every bit that nothing else reads."""
        parts = []
        for name, wire in self.n.wires.items():
            if wire.way == "output" or not self._exists(name):
                continue
            width = self.expressions.width(name)
            missing = ones(width) & ~self.expressions.read.get(name, 0)
            text = self.namer.name(name)
            for run in re.finditer("1+", f"{missing:b}"[::-1]):
                low, high = run.start(), run.end() - 1
                if high - low + 1 == width:
                    parts.append(text)
                else:
                    parts.append(f"{text}[{low}]" if low == high else f"{text}[{high}:{low}]")
        if not parts:
            return []
        text = textwrap.wrap(f"wire unused = &{{1'b0, {', '.join(parts)}}};", 96)
        return ["  // Nothing else reads these bits.", *(f"  {line}" for line in text)]


def _comment(text: str, names: list[str]) -> list[str]:
    """Return a comment with names, or nothing if there are none."""
    if not names:
        return []
    return [f"  // {line}" for line in textwrap.wrap(f"{text} {', '.join(names)}.", 94)]
