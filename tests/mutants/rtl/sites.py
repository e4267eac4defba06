"""The places of an RTL source at which a mutant can be, and the calls that are put there.

The source is Amaranth. Its tree is rewritten so that every operator, condition, multiplexer,
selection and assignment becomes a call of ``schemata``, which decides what hardware it makes.
"""

import ast
from dataclasses import dataclass

#: Name of the object in a rewritten module whose methods are called.
HOOK = "_vitruvian_mutants"

BINARY: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
COMPARISONS: dict[type, str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: Methods of a value that reduce it to one bit, and those whose first argument is an index.
_REDUCTIONS = ("any", "all")
_SELECTIONS = ("bit_select", "word_select")


@dataclass(frozen=True)
class Site:
    """A place in a source.

    Attributes
    ----------
    file : str
        Name of the file.
    line, column : int
        Its place, the line from 1.
    kind : str
        The method of ``schemata.Schemata`` that stands there.
    text : str
        The source text.
    """

    file: str
    line: int
    column: int
    kind: str
    text: str


class Rewriter(ast.NodeTransformer):
    """Put calls into the tree of a file, and keep its sites.

    Parameters
    ----------
    file : str
        Name of the file.
    skipped : tuple of str
        Classes that are left as they are.
    """

    def __init__(self, file: str, skipped: tuple[str, ...] = ()):
        self.file, self.skipped = file, skipped
        self.sites: list[Site] = []

    def _call(self, method: str, node: ast.expr, *arguments: ast.expr | str) -> ast.expr:
        text = " ".join(ast.unparse(node).split())
        self.sites.append(Site(self.file, node.lineno, node.col_offset, method, text))
        values = [ast.Constant(x) if isinstance(x, str) else x for x in arguments]
        key: list[ast.expr] = [ast.Constant(self.file), ast.Constant(len(self.sites) - 1)]
        call = ast.Call(
            ast.Attribute(ast.Name(HOOK, ast.Load()), method, ast.Load()),
            [ast.Tuple(key, ast.Load()), *values],
            [],
        )
        return ast.copy_location(call, node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if node.name in self.skipped:
            return node
        return self.generic_visit(node)

    def _function(self, node: ast.FunctionDef) -> ast.AST:
        """Rewrite the body of a function, but not its types and defaults."""
        node.body = [self.visit(statement) for statement in node.body]
        return node

    visit_FunctionDef = _function

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        original = ast.parse(ast.unparse(node), mode="eval").body
        ast.copy_location(original, node)
        self.generic_visit(node)
        if type(node.op) not in BINARY:
            return node
        return self._call("binary", original, BINARY[type(node.op)], node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        original = ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)
        self.generic_visit(node)
        if len(node.ops) > 1 or type(node.ops[0]) not in COMPARISONS:
            return node
        operator = COMPARISONS[type(node.ops[0])]
        return self._call("compare", original, operator, node.left, node.comparators[0])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        original = ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)
        self.generic_visit(node)
        if not isinstance(node.op, ast.Invert):
            return node
        return self._call("invert", original, node.operand)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        original = ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)
        self.generic_visit(node)
        if isinstance(node.slice, ast.Slice | ast.Constant | ast.Tuple):
            return node
        node.slice = self._call("index", original, node.slice)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        original = ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if name is None and isinstance(node.func, ast.Name):
            name = {"Mux": "Mux"}.get(node.func.id)
        if node.keywords or name is None:
            return node
        count = len(node.args)
        if name in ("If", "Elif") and count == 1:
            node.args = [self._call("condition", original, node.args[0])]
        elif name == "Switch" and count == 1:
            node.args = [self._call("index", original, node.args[0])]
        elif name in _SELECTIONS and count == 2:
            node.args[0] = self._call("index", original, node.args[0])
        elif name == "Mux" and count == 3:
            return self._call("mux", original, *node.args)
        elif name in _REDUCTIONS and count == 0 and isinstance(node.func, ast.Attribute):
            return self._call("reduction", original, name, node.func.value)
        elif name == "eq" and count == 1 and isinstance(node.func, ast.Attribute):
            return self._call("assign", original, node.func.value, node.args[0])
        return node


def rewrite(file: str, source: bytes, skipped: tuple[str, ...] = ()) -> tuple[ast.Module, list]:
    """Return the rewritten tree of a file, and its sites in the order of their numbers."""
    rewriter = Rewriter(file, skipped)
    tree = ast.fix_missing_locations(rewriter.visit(ast.parse(source)))
    return tree, rewriter.sites
