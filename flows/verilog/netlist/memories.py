"""The text of memories: their declaration and contents, writes and reads."""

from vitruvian.flows.verilog.netlist.express import NetlistExpressions, literal
from vitruvian.flows.verilog.netlist.rtlil import RtlilCell, Sig, cut, width_of


class Memories:
    """The memories of one module."""

    def __init__(self, expressions: NetlistExpressions):
        self.expressions = expressions
        self.n, self.namer = expressions.netlist, expressions.namer

    def declared(self, *, contents: bool = True) -> list[str]:
        """Return the declarations, with the contents at the start."""
        lines = [
            f"  {self._attributes(name)}reg [{width - 1}:0] {name} [0:{depth - 1}];"
            for name, (width, depth) in self.n.memories.items()
        ]
        return [*lines, *(self.contents() if contents else ())]

    def contents(self) -> list[str]:
        """Return the statements that set the contents at the start."""
        texts = [
            self._contents(cell, self._name(cell))
            for cell in self.n.others
            if cell.kind == "$meminit_v2"
        ]
        counter = ["  integer entry;"] if any(loop for _, loop in texts) else []
        return [*counter, *(line for text, _ in texts for line in text)]

    def _attributes(self, memory: str) -> str:
        return "(* no_rw_check *) " if memory in self.n.unchecked else ""

    @staticmethod
    def _name(cell: RtlilCell) -> str:
        return str(cell.numbers["MEMID"]).lstrip("\\")

    def writes(self) -> list[list[RtlilCell]]:
        """Return the write ports, those of one memory and one clock together."""
        groups: dict[tuple[str, Sig], list[RtlilCell]] = {}
        for cell in self.n.others:
            if cell.kind == "$memwr_v2":
                groups.setdefault((self._name(cell), cell.ports["CLK"]), []).append(cell)
        return list(groups.values())

    def write(self, cells: list[RtlilCell]) -> list[str]:
        """Return the statements of write ports of one memory and one clock."""
        clock = self.expressions.text(cells[0].ports["CLK"])
        body = [line for cell in cells for line in self._write(cell, self._name(cell))]
        return [f"  always @(posedge {clock}) begin", *body, "  end"]

    def _contents(self, cell: RtlilCell, memory: str) -> tuple[list[str], bool]:
        width, depth = self.n.memories[memory]
        words = [self._number(cut(cell.ports["DATA"], i * width, width)) for i in range(depth)]
        # A loop in place of a line for each of many equal words.
        if len(set(words)) == 1:
            return [
                "  initial",
                f"    for (entry = 0; entry < {depth}; entry = entry + 1)",
                f"      {memory}[entry] = {literal(words[0], width)};",
            ], True
        rows = [f"    {memory}[{i}] = {literal(word, width)};" for i, word in enumerate(words)]
        return ["  initial begin", *rows, "  end"], False

    @staticmethod
    def _number(sig: Sig) -> int:
        total = shift = 0
        for _, value, width in sig:
            total |= value << shift
            shift += width
        return total

    def _write(self, cell: RtlilCell, memory: str) -> list[str]:
        address = self.expressions.text(cell.ports["ADDR"])
        data, lines, low = cell.ports["DATA"], [], 0
        bits = [cut(cell.ports["EN"], i, 1) for i in range(width_of(data))]
        while low < len(bits):
            high = low
            # Neighbouring bits with the same enable are written by one statement.
            while high < len(bits) and bits[high] == bits[low]:
                high += 1
            part = "" if high - low == len(bits) else f"[{high - 1}:{low}]"
            condition = self.expressions.text(bits[low])
            value = self.expressions.text(cut(data, low, high - low))
            lines.append(f"    if ({condition}) {memory}[{address}]{part} <= {value};")
            low = high
        return lines

    def _bypassed(self, cell: RtlilCell) -> list[RtlilCell]:
        """Return the write ports whose data a read port with a clock gives in the same cycle."""
        # A bit for each write port, by its number.
        mask = int(cell.numbers["TRANSPARENCY_MASK"])
        return [
            other
            for other in self.n.others
            if other.kind == "$memwr_v2"
            and other.numbers["MEMID"] == cell.numbers["MEMID"]
            and mask >> int(other.numbers["PORTID"]) & 1
        ]

    def seen(self, cell: RtlilCell) -> list[Sig]:
        """Return what a read port with a clock reads of write ports."""
        return [sig for other in self._bypassed(cell) for sig in other.ports.values()]

    def read(self, cell: RtlilCell) -> list[str]:
        """Return the statements of a read port, without the declaration of its data."""
        memory = self._name(cell)
        name = self.namer.name(cell.ports["DATA"][0].name)
        address = self.expressions.text(cell.ports["ADDR"])
        if not cell.numbers["CLK_ENABLE"]:
            return [f"  assign {name} = {memory}[{address}];"]
        enable = self.expressions.text(cell.ports["EN"])
        clock = self.expressions.text(cell.ports["CLK"])
        lines = [f"  always @(posedge {clock}) begin"]
        lines.append(f"    if ({enable}) {name} <= {memory}[{address}];")
        for other in self._bypassed(cell):
            where = self.expressions.text(other.ports["ADDR"], inside=True)
            value = self.expressions.text(other.ports["DATA"])
            write = self.expressions.text(cut(other.ports["EN"], 0, 1), inside=True)
            # A transparent port gives the new word, where a non-blocking read would give the old
            # one.
            hit = f"{enable} & {write} & ({where} == {address})"
            lines.append(f"    if ({hit}) {name} <= {value};")
        return [*lines, "  end"]
