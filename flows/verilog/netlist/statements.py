"""The text of statements that a process makes: assignments and choices."""

from vitruvian.flows.verilog.netlist.express import NetlistExpressions
from vitruvian.flows.verilog.netlist.rtlil import Body, Chunk, Sig, Switch, cut, width_of


class NetlistStatements:
    """The statements of one module."""

    def __init__(self, expressions: NetlistExpressions):
        self.expressions = expressions
        self.n, self.namer = expressions.netlist, expressions.namer

    def text(self, body: Body, sign: str, indent: int) -> list[str]:
        """Return the statements of a process."""
        lines, space = [], " " * indent
        for item in body:
            if isinstance(item, Switch):
                lines += self._switch(item, sign, indent)
                continue
            target, source = item
            if not target or target == source:
                continue
            value = self.expressions.code(target, source) or self.expressions.text(source)
            lines.append(f"{space}{self._target(target)} {sign} {value};")
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
        bodies = [self.text(case.body, sign, indent + 2) for case in cases]
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
            label = ", ".join(self._label(switch.select, p) for p in case.patterns) or "default"
            if len(body) == 1 and body[0].endswith(";"):
                lines.append(f"{space}  {label}: {body[0].strip()}")
            else:
                inner = [f"  {line}" for line in body]
                lines += [f"{space}  {label}: begin", *inner, f"{space}  end"]
        if count < 1 << width and all(case.patterns for case in cases):
            lines.append(f"{space}  default: ;")
        return [*lines, f"{space}endcase"]

    def _label(self, select: Sig, pattern: str) -> str:
        """Return the text of a value that a case has."""
        value = (Chunk("", int(pattern, 2), len(pattern)),)
        return self.expressions.code(select, value) or self.expressions.text(value)

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
