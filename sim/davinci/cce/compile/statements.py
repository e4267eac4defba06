"""Statements, compiled to functions of the frame that say how to go on."""

from collections.abc import Callable, Set

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.declarations import RESULT_SLOT, Declarations
from vitruvian.sim.davinci.cce.compile.expressions import MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.scope import Names
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.limits import PARTS_OF_A_STEP
from vitruvian.sim.davinci.cce.language.types import VOID, Structure, Type
from vitruvian.sim.davinci.cce.rewrite.classes import method_name

__all__ = ["Statements"]

#: What a statement gives back when it does not go on with the next one.
_BREAK, _CONTINUE, _RETURN = 1, 2, 3


class Statements(Declarations):
    """Compiles the statements of a function; `starts` put values into what outlives a call."""

    def __init__(self, names: Names, addressed: Set[str], starts: list[Callable]):
        super().__init__(names, addressed)
        self.starts = starts
        self.result: Type = VOID
        self.depth = 0  # of loops
        self.switches = 0

    def statement(self, node: c_ast.Node | None) -> Callable:
        """Compile a statement."""
        if node is None or isinstance(node, c_ast.EmptyStatement | c_ast.Pragma):
            return lambda f: 0
        handler = getattr(self, f"_do_{type(node).__name__}", None)
        if handler is not None:
            return handler(node)
        if hasattr(self, f"_on_{type(node).__name__}"):
            get = self.expression(node).get

            def run(f):
                get(f)
                return 0

            return run
        raise CceError(position_of(node), f"{type(node).__name__} is not part of the dialect")

    def _do_Compound(self, node: c_ast.Compound) -> Callable:
        self.names.scopes.append({})
        steps = [self.statement(x) for x in node.block_items or []]
        self.names.scopes.pop()
        return _block(steps)

    def _do_Decl(self, node: c_ast.Decl) -> Callable:
        if isinstance(node.type, c_ast.FuncDecl):
            return lambda f: 0
        if node.name is None:
            self.names.type_of(node, self.count)
            return lambda f: 0
        made = self._constructed(node)
        if made is not None:
            zero = c_ast.InitList([], node.coord)
            node = c_ast.Decl(
                node.name, node.quals, [], node.storage, [], node.type, zero, None, node.coord
            )
        variable, start = self.declared(node, fixed="static" in (node.storage or []))
        self.names.scopes[-1][node.name] = variable
        if made is not None:
            first, build = start, self.call(made).get
            start = build if first is None else lambda f: (first(f), build(f))
        if start is None:
            return lambda f: 0
        if "static" in (node.storage or []):
            self.starts.append(start)
            return lambda f: 0

        def run(f):
            start(f)
            return 0

        return run

    def _constructed(self, node: c_ast.Decl) -> c_ast.FuncCall | None:
        """The call of a constructor that a declaration means."""
        names = getattr(getattr(node.type, "type", None), "names", None)
        if not isinstance(node.type, c_ast.TypeDecl) or names is None:
            return None
        type, _ = self.names.type_of(node, self.count)
        if not isinstance(type, Structure):
            return None
        name = method_name(type.name, type.name)
        if not self.has_function(name):
            return None
        given = [] if node.init is None else getattr(node.init, "exprs", None) or [node.init]
        if len(given) == 1 and not isinstance(node.init, c_ast.InitList):
            if self.expression(given[0]).type == type:  # a copy
                return None
        itself = c_ast.ID(node.name, node.coord)
        arguments = c_ast.ExprList([itself, *given], node.coord)
        return c_ast.FuncCall(c_ast.ID(name, node.coord), arguments, node.coord)

    def _do_StaticAssert(self, node: c_ast.StaticAssert) -> Callable:
        """What cannot be told before it runs is taken for true."""
        test = self.condition(node.cond)
        if test.constant == (0,):
            text = "" if node.message is None else f": {node.message.value}"
            raise CceError(position_of(node), f"a static assertion does not hold{text}")
        return lambda f: 0

    def _do_DeclList(self, node: c_ast.DeclList) -> Callable:
        return _block([self.statement(x) for x in node.decls])

    def _do_Typedef(self, node: c_ast.Typedef) -> Callable:
        self.names.typedefs[node.name], _ = self.names.type_of(node, self.count)
        return lambda f: 0

    def _do_If(self, node: c_ast.If) -> Callable:
        test = self.condition(node.cond)
        if test.constant is not None:  # what is never reached need not make sense
            return self.statement(node.iftrue if test.constant[0] else node.iffalse)
        yes, no = self.statement(node.iftrue), self.statement(node.iffalse)
        choose = test.get
        return lambda f: yes(f) if choose(f) else no(f)

    def _loop(self, node: c_ast.Node) -> Callable:
        self.depth += 1
        body = self.statement(node)
        self.depth -= 1
        return body

    def _do_For(self, node: c_ast.For) -> Callable:
        here = position_of(node)
        self.names.scopes.append({})
        first, parts = self.statement(node.init), self.parts
        test = None if node.cond is None else self.condition(node.cond).get
        after = self.statement(node.next)
        body = self._loop(node.stmt)
        self.names.scopes.pop()
        weight = 1 + (self.parts - parts) // PARTS_OF_A_STEP

        def run(f):
            first(f)
            step = f[MACHINE_SLOT].step
            while test is None or test(f):
                step(here, weight)
                end = body(f)
                if end == _BREAK:
                    break
                if end == _RETURN:
                    return end
                after(f)
            return 0

        return run

    def _do_While(self, node: c_ast.While) -> Callable:
        return self._do_For(c_ast.For(None, node.cond, None, node.stmt, node.coord))

    def _do_DoWhile(self, node: c_ast.DoWhile) -> Callable:
        here = position_of(node)
        parts = self.parts
        test, body = self.condition(node.cond).get, self._loop(node.stmt)
        weight = 1 + (self.parts - parts) // PARTS_OF_A_STEP

        def run(f):
            while True:
                f[MACHINE_SLOT].step(here, weight)
                end = body(f)
                if end == _BREAK:
                    return 0
                if end == _RETURN:
                    return end
                if not test(f):
                    return 0

        return run

    def _do_Switch(self, node: c_ast.Switch) -> Callable:
        choose = self.number(node.cond, "what switch is given").get
        cases: dict[int | None, int] = {}
        steps: list[Callable] = []
        self.switches += 1
        self.names.scopes.append({})
        items = node.stmt.block_items if isinstance(node.stmt, c_ast.Compound) else [node.stmt]
        for item in items or []:
            while isinstance(item, c_ast.Case | c_ast.Default):
                key = self.count(item.expr) if isinstance(item, c_ast.Case) else None
                cases[key] = len(steps)
                inner = item.stmts or []
                steps += [self.statement(x) for x in inner[:-1]]
                item = inner[-1] if inner else None
            steps.append(self.statement(item))
        self.names.scopes.pop()
        self.switches -= 1

        def run(f):
            start = cases.get(choose(f), cases.get(None))
            for step in steps[start:] if start is not None else ():
                end = step(f)
                if end:
                    return 0 if end == _BREAK else end
            return 0

        return run

    def _do_Break(self, node: c_ast.Break) -> Callable:
        if not self.depth and not self.switches:
            raise CceError(position_of(node), "break must be within a loop or a switch")
        return lambda f: _BREAK

    def _do_Continue(self, node: c_ast.Continue) -> Callable:
        if not self.depth:
            raise CceError(position_of(node), "continue must be within a loop")
        return lambda f: _CONTINUE

    def _do_Return(self, node: c_ast.Return) -> Callable:
        if node.expr is None or self.result is VOID:
            if node.expr is not None:
                raise CceError(position_of(node), "a function of type void must return no value")
            return lambda f: _RETURN
        get = self.converted(self.value(node.expr), self.result)

        def run(f):
            f[RESULT_SLOT] = get(f)
            return _RETURN

        return run


def _block(steps: list[Callable]) -> Callable:
    """Statements one after the other, until one says not to go on."""
    if len(steps) == 1:
        return steps[0]

    def run(f):
        for step in steps:
            end = step(f)
            if end:
                return end
        return 0

    return run
