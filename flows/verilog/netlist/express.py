"""Verilog expressions for the operators of a netlist, each operand at its full width.

An operator that is read once is written inside its reader's expression. Every operand has the width
of its expression, so that no tool has to extend or cut a value.
"""

from collections import Counter

from vitruvian.flows.verilog.netlist.codes import Codes
from vitruvian.flows.verilog.netlist.fold import extended, ones
from vitruvian.flows.verilog.netlist.names import Namer
from vitruvian.flows.verilog.netlist.rtlil import Chunk, RtlilCell, Sig, cut, width_of
from vitruvian.flows.verilog.netlist.simplify import Netlist

_INFIX = {
    "$and": "&", "$or": "|", "$xor": "^", "$add": "+", "$sub": "-", "$mul": "*", "$shl": "<<",
    "$shr": ">>", "$sshr": ">>>", "$shift": ">>", "$eq": "==", "$ne": "!=", "$lt": "<", "$le": "<=",
    "$gt": ">", "$ge": ">=",
}  # fmt: skip
_PREFIX = {"$not": "~", "$neg": "-", "$reduce_or": "|", "$reduce_bool": "|", "$reduce_and": "&"}
_PREFIX |= {"$reduce_xor": "^"}
_COMPARE = ("$eq", "$ne", "$lt", "$le", "$gt", "$ge")
_ORDERED = ("$lt", "$le", "$gt", "$ge")
RIGHT = ("$shr", "$sshr", "$shift")
#: Operators whose operand A needs no brackets if it has the same operator: the first one, or that
#: behind the colon.
_CHAINED = ("$and", "$or", "$xor", "$mux")
_SLICED = ("$and", "$or", "$xor", "$not", "$mux")
#: Operators whose result must go to a net of its own: their width or sign depends on the context.
_APART = ("$mul", *RIGHT)
_LONGEST = 88
#: Bits of the longest constant; a longer one is a concatenation.
_LITERAL_BITS = 256


def literal(value: int, width: int) -> str:
    """Return the text of a constant."""
    if width == 1:
        return f"1'b{value}"
    if width <= _LITERAL_BITS:
        return f"{width}'h{value:0{-(-width // 4)}x}"
    if value in (0, ones(width)):
        return f"{{{width}{{1'b{value & 1}}}}}"
    starts = range(0, width, _LITERAL_BITS)
    sizes = [min(_LITERAL_BITS, width - start) for start in starts]
    parts = [literal(value >> b & ones(n), n) for b, n in zip(starts, sizes, strict=True)]
    return f"{{{', '.join(reversed(parts))}}}"


class NetlistExpressions:
    """The expressions of one module.

    Attributes
    ----------
    read : dict of str to int
        Net -> mask of the bits that the expressions written so far read.
    codes : Codes or None
        The names of constants that are compared with nets, if the text has any.
    """

    def __init__(self, netlist: Netlist, namer: Namer):
        self.netlist, self.namer = netlist, namer
        self.read: dict[str, int] = {}
        self.codes: Codes | None = None
        #: Products and the sums of them, whose operands keep their own width.
        self.narrow = {name for name, c in netlist.operators.items() if c.kind == "$mul"}
        self._prepare()
        self.uses = self._count()
        self._inline: dict[str, bool] = {}

    # ------------------------------------------------------------------ widths

    def _prepare(self) -> None:
        """Extend or cut every operand to the width of its expression."""
        for name, cell in self.netlist.operators.items():
            width = self.netlist.wires[name].width
            signed = bool(cell.numbers.get("A_SIGNED"))
            ports = cell.ports
            if cell.kind in _COMPARE:
                size = max(width_of(ports["A"]), width_of(ports["B"]))
                for port in "AB":
                    ports[port] = extended(ports[port], size, signed)
            elif cell.kind in RIGHT:
                ports["A"] = extended(ports["A"], max(width_of(ports["A"]), width), signed)
            elif cell.kind == "$shl":
                ports["A"] = extended(ports["A"], width, signed)
            elif self._takes_product(cell, width):
                self.narrow.add(name)
            elif cell.kind != "$mul" and not cell.kind.startswith("$reduce"):
                for port in "AB":
                    if port in ports:
                        ports[port] = extended(ports[port], width, signed)

    def _takes_product(self, cell: RtlilCell, width: int) -> bool:
        """Return whether a signed sum has a product as its operand, which a DSP block may add."""
        if cell.kind not in ("$add", "$sub") or not cell.numbers.get("A_SIGNED"):
            return False
        operands = [cell.ports["A"], cell.ports["B"]]
        if any(len(sig) != 1 or width_of(sig) > width for sig in operands):
            return False
        return any(self._is_product(sig) for sig in operands)

    def _is_product(self, sig: Sig) -> bool:
        """Return whether a value is a whole product, or a register of one."""
        n, name = self.netlist, sig[0].name
        if name not in n.wires or sig != n.wires[name].whole:
            return False
        if name in n.registers:
            data = n.registers[name].ports["D"]
            return len(data) == 1 and self._is_product(data)
        return name in n.operators and n.operators[name].kind == "$mul"

    def width(self, net: str) -> int:
        """Return the number of bits that the declaration of a net has."""
        cell = self.netlist.operators.get(net)
        width = self.netlist.wires[net].width
        if cell is None:
            return width
        if cell.kind in RIGHT:
            return max(width, width_of(cell.ports["A"]))
        return width

    # ------------------------------------------------------------------ what is written inside

    def _count(self) -> Counter[str]:
        """Return how often each net is read; bits of one value count once."""
        n, uses = self.netlist, Counter[str]()
        sigs = [*n.read(), *n.values.values()]
        for sig in sigs:
            for chunk in dict.fromkeys(sig):
                uses[chunk.name] += 1
        self.slices: dict[str, Counter[Chunk]] = {}
        for sig in sigs:
            for chunk in dict.fromkeys(sig):
                self.slices.setdefault(chunk.name, Counter())[chunk] += 1
        return uses

    def inline(self, net: str) -> bool:
        """Return whether a net is written inside the expressions that read it."""
        if net in self._inline:
            return self._inline[net]
        cell = self.netlist.operators.get(net)
        self._inline[net] = False
        if cell is None or not net.startswith("$") or cell.kind in _APART or net in self.narrow:
            return False
        if self.netlist.wires[net].keep:
            return False
        slices = self.slices.get(net, Counter())
        whole = all(chunk.width == self.netlist.wires[net].width for chunk in slices)
        if not whole:
            total = sum(chunk.width for chunk in slices)
            separate = total <= self.netlist.wires[net].width and max(slices.values()) == 1
            if not separate or not self._sliceable(cell):
                return False
        elif self.uses[net] > self._most(cell):
            return False
        # The text may be written for some bits only, so that what it reads does not count yet.
        read, self.read = self.read, {}
        answer = len(self._operator(cell, 0, self.netlist.wires[net].width)) <= _LONGEST
        self.read = read
        self._inline[net] = answer
        return answer

    def _sliceable(self, cell: RtlilCell) -> bool:
        """Return whether some bits of an operator can be written from the same bits of operands."""
        operators = self.netlist.operators
        return cell.kind in _SLICED and all(
            not self.inline(chunk.name) or (port != "S" and self._sliceable(operators[chunk.name]))
            for port, sig in cell.ports.items()
            if port != "Y"
            for chunk in sig
        )

    def _most(self, cell: RtlilCell) -> int:
        """Return how many readers may repeat an operator."""
        sigs = [sig for port, sig in cell.ports.items() if port != "Y"]
        plain = all(len(sig) == 1 and not self.inline(sig[0].name) for sig in sigs)
        if cell.kind == "$not" and plain and width_of(cell.ports["A"]) == 1:
            return 99
        short = cell.kind in (*_COMPARE, "$reduce_or", "$reduce_and", "$and", "$or")
        return (
            2 if plain and short and self.netlist.wires[cell.ports["Y"][0].name].width == 1 else 1
        )

    # ------------------------------------------------------------------ text

    def text(self, sig: Sig, *, inside: bool = False) -> str:
        """Return the text of a value; with ``inside``, it can be an operand of an operator."""
        if not sig:
            return "1'b0"
        runs: list[tuple[Chunk, int]] = []
        for chunk in sig:
            if runs and chunk.name and runs[-1][0] == chunk:
                runs[-1] = (chunk, runs[-1][1] + 1)
            else:
                runs.append((chunk, 1))
        if len(runs) == 1 and runs[0][1] == 1:
            return self._chunk(runs[0][0], inside)
        parts = []
        for chunk, count in reversed(runs):
            text = self._chunk(chunk, False)
            parts.append(text if count == 1 else f"{{{count}{{{text}}}}}")
        return parts[0] if len(parts) == 1 else f"{{{', '.join(parts)}}}"

    def _chunk(self, chunk: Chunk, inside: bool) -> str:
        name, low, width = chunk
        if not name:
            return literal(low, width)
        if self.inline(name):
            text = self._operator(self.netlist.operators[name], low, width)
            return f"({text})" if inside and " " in text.strip("{}") else text
        self.read[name] = self.read.get(name, 0) | ((1 << width) - 1) << low
        size, text = self.width(name), self.namer.name(name)
        if width == size:
            return text
        return f"{text}[{low}]" if width == 1 else f"{text}[{low + width - 1}:{low}]"

    def code(self, net: Sig, value: Sig) -> str:
        """Return the name of a constant for a net with an enumeration, or nothing."""
        return self.codes.name(net, value) if self.codes is not None else ""

    def operator(self, net: str) -> str:
        """Return the expression of the operator that drives a net."""
        return self._operator(self.netlist.operators[net], 0, self.netlist.wires[net].width)

    def _operator(self, cell: RtlilCell, low: int, width: int) -> str:
        ports, kind = cell.ports, cell.kind
        signed = bool(cell.numbers.get("A_SIGNED"))
        whole = self.netlist.wires[ports["Y"][0].name].width

        def operand(port: str) -> str:
            sig = ports[port]
            if kind in _SLICED and port != "S" and width < whole:
                sig = cut(sig, low, width)
            name = ports["Y"][0].name
            if kind in ("$eq", "$ne") and (code := self.code(ports["BA"[port == "B"]], sig)):
                return code
            text = self.text(sig, inside=True)
            if port == "A" and kind in _CHAINED and self._continues(sig, kind):
                text = self.text(sig)
            if signed and (
                kind in _ORDERED
                or name in self.narrow
                or (kind in ("$sshr", "$shift") and port == "A")
            ):
                return f"$signed({self.text(sig)})"
            return text

        if kind == "$mux":
            return f"{operand('S')} ? {operand('B')} : {operand('A')}"
        if kind in _PREFIX:
            text = operand("A")
            return f"{_PREFIX[kind]}({text})" if text[0] in "-&|^~" else f"{_PREFIX[kind]}{text}"
        if kind == "$shift" and signed:
            kind = "$sshr"
        return f"{operand('A')} {_INFIX[kind]} {operand('B')}"

    def _continues(self, sig: Sig, kind: str) -> bool:
        """Return whether a value is one operator of a kind that is written inside."""
        cell = self.netlist.operators.get(sig[0].name) if len(sig) == 1 else None
        return cell is not None and cell.kind == kind and self.inline(sig[0].name)
