"""The changes that the sampler can make to a source text."""

import ast
from dataclasses import dataclass

_COMPARISONS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}

_ARITHMETIC: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "+"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}


@dataclass(frozen=True)
class Mutant:
    """A change of one position in a file.

    Parameters
    ----------
    path : str
        File, relative to the repository.
    line : int
        Line of the change, from 1.
    start, end : int
        Byte offsets of the replaced text within the file.
    text : str
        New text.
    change : str
        Old and new text, for a reader.
    """

    path: str
    line: int
    start: int
    end: int
    text: str
    change: str

    def apply(self, source: bytes) -> bytes:
        """Return the mutated source."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def compiles(self, source: bytes) -> bool:
        """Return True if the mutated source is still valid Python."""
        try:
            compile(self.apply(source), self.path, "exec")
        except (SyntaxError, ValueError):
            return False
        return True


class _Finder(ast.NodeVisitor):
    """Collector of the mutants of a file; types, docstrings and texts are not changed."""

    def __init__(self, path: str, source: bytes):
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, start: int, end: int, text: str) -> None:
        old = self.source[start:end].decode()
        line = self.source.count(b"\n", 0, start) + 1
        short = " ".join(old.split())
        short = short if len(short) < 40 else short[:36] + " …"
        self.found.append(Mutant(self.path, line, start, end, text, f"{short} → {text}"))

    def _operator(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace a binary operator."""
        begin, end = self._span(left)[1], self._span(right)[0]
        at = self.source.find(old.encode(), begin, end)
        if at >= 0:
            self._replace(at, at + len(old), new)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            self._operator(left, right, *_COMPARISONS[type(op)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.List, ast.Tuple)
        parts = (node.left, node.right)
        is_text = any(
            isinstance(p, texts) or (isinstance(p, ast.Constant) and isinstance(p.value, str))
            for p in parts
        )
        if type(node.op) in _ARITHMETIC and not is_text:
            self._operator(node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._operator(node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert | ast.USub):
            start, _ = self._span(node)
            self._replace(start, self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(*self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._replace(*self._span(node), str(node.value + 1))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _ARITHMETIC:
            old, new = _ARITHMETIC[type(node.op)]
            begin, end = self._span(node.target)[1], self._span(node.value)[0]
            at = self.source.find(f"{old}=".encode(), begin, end)
            self._replace(at, at + len(old) + 1, f"{new}=")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            self._replace(*self._span(node), "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(*self._span(node), "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(*self._span(node), "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(*self._span(node), "continue")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            self._replace(self._span(node.test)[0], self._span(node.test)[0], "not ")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Skip the type of a parameter."""

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in [*node.args.defaults, *node.args.kw_defaults, *node.body]:
            if part is not None:
                self.visit(part)

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip strings, whose positions within a line are not exact before Python 3.12."""

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__all__" not in names:
            self.generic_visit(node)


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file in the order of the text; a few may not compile."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda m: (m.start, m.end, m.text))
