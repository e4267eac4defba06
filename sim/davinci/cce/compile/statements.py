"""Compile statements into functions of the frame that return how control continues."""

from collections.abc import Callable
from typing import Any

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.declarations import Declarations
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.storage import MACHINE_SLOT, RESULT_SLOT
from vitruvian.sim.davinci.cce.compile.values import converted
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.limits import PARTS_OF_A_STEP
from vitruvian.sim.davinci.cce.language.types import VOID, Structure, Type
from vitruvian.sim.davinci.cce.rewrite.classes import method_name

#: The result of a statement that does not continue with the next one; otherwise it is 0.
_BREAK, _CONTINUE, _RETURN = 1, 2, 3


class StatementCompiler:
    """The compiler of statements.

    Parameters
    ----------
    declarations : Declarations
        The compiler of declarations; its ``expressions`` and ``calls`` compile the rest.

    Attributes
    ----------
    result : Type
        The type of the function's result, which return statements convert to.
    """

    def __init__(self, declarations: Declarations):
        self.declarations = declarations
        self.calls = declarations.calls
        self.expressions = declarations.expressions
        self.context = declarations.context
        self.result: Type = VOID
        self.loops = 0  # nesting of loops
        self.switches = 0  # nesting of switches
        self._handlers: dict[str, Callable[[Any], Callable]] = {
            "Compound": self._compound,
            "Decl": self._declaration,
            "DeclList": self._declaration_list,
            "StaticAssert": self._static_assert,
            "Typedef": self._typedef,
            "If": self._if,
            "For": self._for,
            "While": self._while,
            "DoWhile": self._do_while,
            "Switch": self._switch,
            "Break": self._break,
            "Continue": self._continue,
            "Return": self._return,
        }

    def statement(self, node: c_ast.Node | None) -> Callable:
        """Compile a statement; None is the empty statement.

        Raises
        ------
        CceError
            If the statement is not part of the dialect, or contains a mistake.
        """
        if node is None or isinstance(node, c_ast.EmptyStatement | c_ast.Pragma):
            return lambda f: 0
        handler = self._handlers.get(type(node).__name__)
        if handler is not None:
            return handler(node)
        if self.expressions.handles(node):
            return _continuing(self.expressions.expression(node).get)
        raise CceError(position_of(node), f"{type(node).__name__} is not part of the dialect")

    def _compound(self, node: c_ast.Compound) -> Callable:
        self.context.symbols.scopes.append({})
        steps = [self.statement(x) for x in node.block_items or []]
        self.context.symbols.scopes.pop()
        return _block(steps)

    def _declaration(self, node: c_ast.Decl) -> Callable:
        if isinstance(node.type, c_ast.FuncDecl):
            return lambda f: 0
        if node.name is None:
            self.context.symbols.type_of(node, self.expressions.count)
            return lambda f: 0
        constructor = self._constructor_call(node)
        if constructor is not None:
            # The object is cleared before its constructor runs.
            zero = c_ast.InitList([], node.coord)
            node = c_ast.Decl(
                node.name, node.quals, [], node.storage, [], node.type, zero, None, node.coord
            )
        static = "static" in (node.storage or [])
        variable, start = self.declarations.declared(node, static=static)
        self.context.symbols.scopes[-1][node.name] = variable
        if constructor is not None:
            first, build = start, self.calls.call(constructor).get
            start = build if first is None else lambda f: (first(f), build(f))
        if start is None:
            return lambda f: 0
        if static:
            self.context.globals.initialisers.append(start)
            return lambda f: 0
        return _continuing(start)

    def _constructor_call(self, node: c_ast.Decl) -> c_ast.FuncCall | None:
        """Return the constructor call that a declaration implies, or None."""
        names = getattr(getattr(node.type, "type", None), "names", None)
        if not isinstance(node.type, c_ast.TypeDecl) or names is None:
            return None
        type, _ = self.context.symbols.type_of(node, self.expressions.count)
        if not isinstance(type, Structure):
            return None
        name = method_name(type.name, type.name)
        if not self.context.functions.has_function(name):
            return None
        values = [] if node.init is None else getattr(node.init, "exprs", None) or [node.init]
        if len(values) == 1 and not isinstance(node.init, c_ast.InitList):
            if self.expressions.expression(values[0]).type == type:  # a copy
                return None
        itself = c_ast.ID(node.name, node.coord)
        arguments = c_ast.ExprList([itself, *values], node.coord)
        return c_ast.FuncCall(c_ast.ID(name, node.coord), arguments, node.coord)

    def _static_assert(self, node: c_ast.StaticAssert) -> Callable:
        """Check a static assertion; a condition that is not a constant counts as true."""
        test = self.expressions.condition(node.cond)
        if test.constant == (0,):
            text = "" if node.message is None else f": {node.message.value}"
            raise CceError(position_of(node), f"a static assertion does not hold{text}")
        return lambda f: 0

    def _declaration_list(self, node: c_ast.DeclList) -> Callable:
        return _block([self.statement(x) for x in node.decls])

    def _typedef(self, node: c_ast.Typedef) -> Callable:
        self.context.symbols.typedefs[node.name], _ = self.context.symbols.type_of(
            node, self.expressions.count
        )
        return lambda f: 0

    def _if(self, node: c_ast.If) -> Callable:
        test = self.expressions.condition(node.cond)
        if test.constant is not None:  # the other branch is not compiled, as for `if constexpr`
            return self.statement(node.iftrue if test.constant[0] else node.iffalse)
        yes, no = self.statement(node.iftrue), self.statement(node.iffalse)
        choose = test.get
        return lambda f: yes(f) if choose(f) else no(f)

    def _loop(self, node: c_ast.Node) -> Callable:
        self.loops += 1
        body = self.statement(node)
        self.loops -= 1
        return body

    def _for(self, node: c_ast.For) -> Callable:
        position = position_of(node)
        self.context.symbols.scopes.append({})
        first, parts = self.statement(node.init), self.context.parts
        # An iteration over a long body counts as several steps, so that the limit on steps also
        # limits the time.
        test = None if node.cond is None else self.expressions.condition(node.cond).get
        after = self.statement(node.next)
        body = self._loop(node.stmt)
        self.context.symbols.scopes.pop()
        weight = 1 + (self.context.parts - parts) // PARTS_OF_A_STEP

        def run(f):
            first(f)
            step = f[MACHINE_SLOT].step
            while test is None or test(f):
                step(position, weight)
                end = body(f)
                if end == _BREAK:
                    break
                if end == _RETURN:
                    return end
                after(f)
            return 0

        return run

    def _while(self, node: c_ast.While) -> Callable:
        return self._for(c_ast.For(None, node.cond, None, node.stmt, node.coord))

    def _do_while(self, node: c_ast.DoWhile) -> Callable:
        position = position_of(node)
        parts = self.context.parts
        test, body = self.expressions.condition(node.cond).get, self._loop(node.stmt)
        weight = 1 + (self.context.parts - parts) // PARTS_OF_A_STEP

        def run(f):
            while True:
                f[MACHINE_SLOT].step(position, weight)
                end = body(f)
                if end == _BREAK:
                    return 0
                if end == _RETURN:
                    return end
                if not test(f):
                    return 0

        return run

    def _switch(self, node: c_ast.Switch) -> Callable:
        choose = self.expressions.number(node.cond, "the value of a switch").get
        # All statements form one list; `cases` holds the index at which each case begins (None is
        # the default), so that a case without break falls through to the next.
        cases: dict[int | None, int] = {}
        steps: list[Callable] = []
        self.switches += 1
        self.context.symbols.scopes.append({})
        items = node.stmt.block_items if isinstance(node.stmt, c_ast.Compound) else [node.stmt]
        for item in items or []:
            while isinstance(item, c_ast.Case | c_ast.Default):
                key = self.expressions.count(item.expr) if isinstance(item, c_ast.Case) else None
                cases[key] = len(steps)
                inner = item.stmts or []
                steps += [self.statement(x) for x in inner[:-1]]
                item = inner[-1] if inner else None
            steps.append(self.statement(item))
        self.context.symbols.scopes.pop()
        self.switches -= 1

        def run(f):
            start = cases.get(choose(f), cases.get(None))
            for step in steps[start:] if start is not None else ():
                end = step(f)
                if end:
                    return 0 if end == _BREAK else end
            return 0

        return run

    def _break(self, node: c_ast.Break) -> Callable:
        if not self.loops and not self.switches:
            raise CceError(position_of(node), "break must be within a loop or a switch")
        return lambda f: _BREAK

    def _continue(self, node: c_ast.Continue) -> Callable:
        if not self.loops:
            raise CceError(position_of(node), "continue must be within a loop")
        return lambda f: _CONTINUE

    def _return(self, node: c_ast.Return) -> Callable:
        if node.expr is None or self.result is VOID:
            if node.expr is not None:
                raise CceError(position_of(node), "a function of type void must return no value")
            return lambda f: _RETURN
        get = converted(self.expressions.value(node.expr), self.result)

        def run(f):
            f[RESULT_SLOT] = get(f)
            return _RETURN

        return run


def _continuing(get: Callable) -> Callable:
    """Return the statement that runs a function and continues with the next statement."""

    def run(f):
        get(f)
        return 0

    return run


def _block(steps: list[Callable]) -> Callable:
    """Return statements in sequence, which end early at break, continue or return."""
    if len(steps) == 1:
        return steps[0]

    def run(f):
        for step in steps:
            end = step(f)
            if end:
                return end
        return 0

    return run
