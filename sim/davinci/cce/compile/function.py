"""Functions and programs, compiled to functions of the frame."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import zip_longest
from typing import NoReturn

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.declarations import RESULT_SLOT
from vitruvian.sim.davinci.cce.compile.expressions import MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.parse import Tree, position_of
from vitruvian.sim.davinci.cce.compile.scope import Names
from vitruvian.sim.davinci.cce.compile.statements import Statements
from vitruvian.sim.davinci.cce.intrinsics.runtime import Machine
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP, PARTS_OF_A_STEP
from vitruvian.sim.davinci.cce.language.types import EXACT, PRIVATE, VOID, Array, Pointer, Type, fit
from vitruvian.sim.davinci.cce.rewrite.cplusplus import REFERENCE

__all__ = ["Function", "Program"]

_DEEPEST = 100  # calls within each other


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
        self.strings: dict[bytes, int] = {}
        self.starts: list[Callable] = []  # put values into variables of the outermost level
        self.nodes: dict[str, c_ast.FuncDef] = {}
        self.overloads: dict[str, list[str]] = {}  # keys of the nodes of each name
        self.made: dict[str, Function] = {}
        self.deep = 0  # functions that are being compiled for each other
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

    def kept(self, content: bytes) -> int:
        """Give the address of bytes that are there from the start; equal ones are kept once."""
        if content not in self.strings:
            address = -(-self.globals_size // 16) * 16
            self.globals_size = address + len(content)

            def start(f):
                f[MACHINE_SLOT].memory[address : address + len(content)] = content

            self.strings[content] = address
            self.starts.append(start)
        return self.strings[content]

    def function(self, name: str) -> Function | None:
        """The function of that name, compiled."""
        if name not in self.made and name in self.nodes:
            self.deep += 1
            if self.deep > BRACKETS_DEEP:
                here = position_of(self.nodes[name])
                raise CceError(here, f"functions must call at most {BRACKETS_DEEP} in a row")
            self._compile(name, self.nodes[name])
            self.deep -= 1
        return self.made.get(name)

    def _compile(self, key: str, node: c_ast.FuncDef) -> None:
        outer = self.names
        names = Names([outer.scopes[0], {}], outer.typedefs, outer.structures, outer.extents)
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
    weight = 1 + body.parts // PARTS_OF_A_STEP

    def run(machine: Machine, arguments: list, position: Position):
        machine.step(position, weight)
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


class _Body(Statements):
    """Compiles the statements of one function, with the program's names."""

    def __init__(self, program: Program, names: Names, addressed: Set[str] = frozenset()):
        super().__init__(names, addressed, program.starts)
        self.program = program

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
        types = [self.type_of(x) for x in nodes]
        key = program.fitting(name, types, position)
        return program.deduced(name, types, position) if key is None else key

    def has_function(self, name: str) -> bool:
        program = self.program
        return name in program.overloads or program.tree.templates.called(name) is not None

    def known(self) -> set[str]:
        return set(self.program.overloads)

    def reserve(self, type: Type) -> int:
        return self.program.reserve(type)

    def kept(self, content: bytes) -> int:
        return self.program.kept(content)
