"""Statements and functions, compiled to functions of the frame."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import zip_longest
from typing import NoReturn

from pycparser import c_ast

from .classes import method_name
from .cplusplus import REFERENCE
from .declarations import RESULT_SLOT, Declarations
from .errors import CceError, Position
from .expressions import MACHINE_SLOT
from .machine import Machine
from .parse import Tree, position_of
from .scope import Names
from .types import EXACT, PRIVATE, VOID, Array, Pointer, Structure, Type, fit

__all__ = ["Function", "Program"]

_DEEPEST = 100  # calls within each other

#: What a statement gives back when it does not go on with the next one.
_BREAK, _CONTINUE, _RETURN = 1, 2, 3


@dataclass
class Function:
    """A function of the source, ready to run.

    Attributes
    ----------
    name : str
    result : Type
    parameters : list of (str, Type)
    position : Position
    run : callable
        Of a machine, the arguments, and the position of the call.
    """

    name: str
    result: Type
    parameters: list[tuple[str, Type]]
    position: Position
    run: Callable


class Program:
    """Everything at the outermost level of a source.

    Functions are compiled when they are first called for, so that one may call a later one.
    """

    def __init__(self, tree: Tree):
        self.tree = tree
        self.names = Names()
        self.globals_size = 64  # address 0 is nothing's
        self.starts: list[Callable] = []  # put values into variables of the outermost level
        self.nodes: dict[str, c_ast.FuncDef] = {}
        self.overloads: dict[str, list[str]] = {}  # keys of the nodes of each name
        self.made: dict[str, Function] = {}
        self.outer = _Body(self, self.names)
        for node in tree.nodes:
            self._outermost(node)

    def _outermost(self, node: c_ast.Node) -> None:
        """Take a function or a declaration of the outermost level in."""
        outer = self.outer
        if isinstance(node, c_ast.FuncDef):
            name = node.decl.name
            keys = self.overloads.setdefault(name, [])
            if keys and name == self.tree.entry:
                self._twice(name, position_of(node), name)
            keys.append(f"{name} {len(keys)}" if keys else name)
            self.nodes[keys[-1]] = node
        elif isinstance(node, c_ast.Typedef):
            self.names.typedefs[node.name], _ = self.names.type_of(node, outer.count)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            return  # a prototype
        elif isinstance(node, c_ast.Decl) and node.name is None:
            if getattr(node.type, "decls", ()) is not None:  # it is more than a name
                self.names.type_of(node, outer.count)
        elif isinstance(node, c_ast.Decl):
            self._global(node, outer)
        elif not isinstance(node, c_ast.Pragma | c_ast.StaticAssert | c_ast.EmptyStatement):
            raise CceError(position_of(node), "this is neither a function nor a declaration")

    def deduced(self, name: str, types: list[Type], position: Position) -> str:
        """The name of the instance that a call of a template is of."""
        instance, nodes = self.tree.deduced(name, types, position)
        for node in nodes:
            self._outermost(node)
        return instance

    def fitting(self, name: str, types: list[Type], position: Position) -> str | None:
        """The key of the function that a call is of, by the types it gives; None for a template.

        Raises
        ------
        CceError
            When none of several fits, or two fit as well.
        """
        keys = self.overloads.get(name, [])
        has_template = self.tree.templates.called(name) is not None
        if len(keys) < 2 and not (keys and has_template):
            return keys[0] if keys else None
        scores: dict[str, int] = {}
        seen: dict[tuple[Type, ...], str] = {}
        for key in keys:
            found = self.function(key)
            assert found is not None  # keys are those of nodes
            wanted = tuple(t for _, t in found.parameters)
            if seen.setdefault(wanted, key) != key:
                self._twice(seen[wanted], position_of(self.nodes[key]), name)
            score = fit(types, wanted)
            if score is not None:
                scores[key] = score
        best = max(scores.values(), default=0)
        if has_template and best < EXACT * len(types):
            return None
        chosen = [key for key, score in scores.items() if score == best]
        if len(chosen) != 1:
            shown = ", ".join(map(str, types))
            which = "more than one" if chosen else "no"
            raise CceError(position, f"{which} {name} takes ({shown})")
        return chosen[0]

    def _twice(self, key: str, position: Position, name: str) -> NoReturn:
        here = position_of(self.nodes[key])
        raise CceError(position, f"{name} must be defined once; it is at {here} too")

    def references(self, name: str) -> list[bool]:
        """Which parameters of a function or a template are references, in one of its overloads."""
        rows = [[g.is_reference for g in self.tree.templates.called(name) or []]]
        for key in self.overloads.get(name, ()):
            arguments = self.nodes[key].decl.type.args
            items = arguments.params if arguments is not None else []
            quals = [getattr(getattr(item, "type", None), "quals", None) for item in items]
            rows.append([REFERENCE in (words or ()) for words in quals])
        return [any(column) for column in zip_longest(*rows, fillvalue=False)]

    def _global(self, node: c_ast.Decl, outer: "_Body") -> None:
        variable, start = outer.declared(node, fixed=True)
        self.names.scopes[0][node.name] = variable
        if start is not None:
            self.starts.append(start)

    def reserve(self, type: Type) -> int:
        """An address for a variable of the outermost level."""
        address = -(-self.globals_size // 16) * 16
        self.globals_size = address + type.size
        return address

    def function(self, name: str) -> Function | None:
        """The function of that name, compiled."""
        if name not in self.made and name in self.nodes:
            self._compile(name, self.nodes[name])
        return self.made.get(name)

    def _compile(self, key: str, node: c_ast.FuncDef) -> None:
        names = Names([self.names.scopes[0], {}], self.names.typedefs, self.names.structures)
        body = _Body(self, names, _addressed(node, self))
        result, _ = names.type_of(node.decl.type.type, body.count)
        is_entry = key == self.tree.entry
        parameters: list[tuple[str, Type]] = list(_parameters(node, names, body, is_entry))
        here = position_of(node)

        def not_yet(machine, arguments, position):
            raise CceError(position, f"{node.decl.name} must not be called while it is declared")

        made = Function(node.decl.name, result, parameters, here, not_yet)
        self.made[key] = made
        stores = [body.parameter(name, type, here) for name, type in parameters]
        body.result = result
        statement = body.statement(node.body)
        made.run = _runner(made, statement, stores, body)


def _parameters(node: c_ast.FuncDef, names: Names, body: "_Body", is_entry: bool):
    """(name, type) of each; a plain pointer of the entry is one to global memory."""
    arguments = node.decl.type.args
    for index, item in enumerate(arguments.params if arguments else []):
        if isinstance(item, c_ast.EllipsisParam):
            raise CceError(position_of(item), "a function must have a fixed number of parameters")
        type, _ = names.type_of(item, body.count)
        if type is VOID:
            continue
        if isinstance(type, Array):
            type = Pointer(PRIVATE, type.element)
        if is_entry and isinstance(type, Pointer) and type.space == PRIVATE:
            type = Pointer("GM", type.target)
        yield getattr(item, "name", None) or f"parameter {index}", type


def _runner(made: Function, statement: Callable, stores: list[Callable], body: "_Body"):
    def run(machine: Machine, arguments: list, position: Position):
        machine.step(position)
        machine.depth += 1
        if machine.depth > _DEEPEST:
            raise CceError(position, f"calls must be at most {_DEEPEST} deep")
        top = machine.top
        f = [machine, machine.reserve(body.bytes, position)] + [0] * body.slots
        for store, value in zip(stores, arguments, strict=True):
            store(f, value)
        statement(f)
        machine.top = top
        machine.depth -= 1
        return f[RESULT_SLOT]

    return run


class _Names(c_ast.NodeVisitor):
    def __init__(self, program: Program):
        self.found: set[str] = set()
        self.program = program

    def visit_FuncCall(self, node: c_ast.FuncCall):
        """What is given to a reference must have an address."""
        references = self.program.references(getattr(node.name, "name", ""))
        given = node.args.exprs if node.args is not None else []
        for is_reference, item in zip(references, given, strict=False):
            if is_reference and isinstance(item, c_ast.ID):
                self.found.add(item.name)
        self.generic_visit(node)

    def visit_Decl(self, node: c_ast.Decl):
        """What a reference is of must have an address."""
        quals = [*(node.quals or []), *(getattr(node.type, "quals", None) or [])]
        if REFERENCE in quals and isinstance(node.init, c_ast.ID):
            self.found.add(node.init.name)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: c_ast.UnaryOp):
        if node.op == "&" and isinstance(node.expr, c_ast.ID):
            self.found.add(node.expr.name)
        self.generic_visit(node)


def _addressed(node: c_ast.Node, program: Program) -> set[str]:
    """Names that & is applied to, or that are given to references."""
    visitor = _Names(program)
    visitor.visit(node)
    return visitor.found


class _Body(Declarations):
    """Compiles the statements of one function."""

    def __init__(self, program: Program, names: Names, addressed: Set[str] = frozenset()):
        super().__init__(names, addressed)
        self.program = program
        self.result: Type = VOID
        self.depth = 0  # of loops
        self.switches = 0

    def function(self, name: str):
        found = self.program.function(name)
        if found is None:
            return None
        return (
            found.result,
            [t for _, t in found.parameters],
            lambda machine, arguments, position: found.run(machine, arguments, position),
        )

    def chosen(self, name: str, nodes: list[c_ast.Node], position: Position) -> str:
        program = self.program
        has_template = program.tree.templates.called(name) is not None
        if len(program.overloads.get(name, ())) < 2 and not has_template:
            return name
        types = [self.value(x).type for x in nodes]
        key = program.fitting(name, types, position)
        return program.deduced(name, types, position) if key is None else key

    def has_function(self, name: str) -> bool:
        program = self.program
        return name in program.overloads or program.tree.templates.called(name) is not None

    def known(self) -> set[str]:
        return set(self.program.overloads)

    def reserve(self, type: Type) -> int:
        return self.program.reserve(type)

    # Statements.

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
            self.program.starts.append(start)
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
        first = self.statement(node.init)
        test = None if node.cond is None else self.condition(node.cond).get
        after = self.statement(node.next)
        body = self._loop(node.stmt)
        self.names.scopes.pop()

        def run(f):
            first(f)
            step = f[MACHINE_SLOT].step
            while test is None or test(f):
                step(here)
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
        test, body = self.condition(node.cond).get, self._loop(node.stmt)

        def run(f):
            while True:
                f[MACHINE_SLOT].step(here)
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
