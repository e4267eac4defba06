"""A translation unit: the functions, variables and types of one source."""

from itertools import zip_longest
from typing import NoReturn

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.context import CompiledFunction, Context
from vitruvian.sim.davinci.cce.compile.function import FunctionCompiler
from vitruvian.sim.davinci.cce.compile.parse import SyntaxTree, position_of
from vitruvian.sim.davinci.cce.compile.scope import SymbolTable
from vitruvian.sim.davinci.cce.compile.storage import Globals
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import BRACKETS_DEEP
from vitruvian.sim.davinci.cce.language.types import EXACT, Type, fit
from vitruvian.sim.davinci.cce.rewrite.cplusplus import REFERENCE


class TranslationUnit:
    """The outermost level of a source; it is the ``FunctionTable`` of its functions.

    A function is compiled when it is first called, so that it may call a later one. An overloaded
    function has a key of its own for each overload: its name, ``name 1``, ``name 2`` and so on.

    Parameters
    ----------
    tree : SyntaxTree
        The parsed source.

    Attributes
    ----------
    symbols : SymbolTable
        The variables and types of the outermost level.
    globals : Globals
        The memory of variables that outlive a call.
    """

    def __init__(self, tree: SyntaxTree):
        self.tree = tree
        self.symbols = SymbolTable()
        self.globals = Globals()
        self._nodes: dict[str, c_ast.FuncDef] = {}  # by key
        self._overloads: dict[str, list[str]] = {}  # keys by name
        self._functions: dict[str, CompiledFunction] = {}  # by key; those that have been compiled
        self._deep = 0  # functions whose compilation has begun and not ended
        self._outer = FunctionCompiler(Context(self.symbols, self.globals, self))
        for node in tree.nodes:
            self._add(node)

    # The interface `FunctionTable`.

    def function(self, key: str) -> CompiledFunction | None:
        """Return the function of a key, compiled; None if there is no such function.

        Raises
        ------
        CceError
            If the function contains a mistake.
        """
        if key not in self._functions and key in self._nodes:
            self._deep += 1
            if self._deep > BRACKETS_DEEP:
                message = f"a chain of calls must have at most {BRACKETS_DEEP} functions"
                raise CceError(position_of(self._nodes[key]), message)
            self._compile(key, self._nodes[key])
            self._deep -= 1
        return self._functions.get(key)

    def needs_types(self, name: str) -> bool:
        """Return True for an overloaded function or a template."""
        return len(self._overloads.get(name, ())) > 1 or self._has_template(name)

    def resolve(self, name: str, types: list[Type], position: SourcePosition) -> str:
        """Return the key of the function that a call with these argument types names.

        Parameters
        ----------
        name : str
            The name in the call.
        types : list of Type
            The types of the arguments.
        position : SourcePosition
            The position of the call.

        Raises
        ------
        CceError
            If no overload fits or several fit equally well, or a template argument cannot be
            deduced.
        """
        key = self._overload(name, types, position)
        if key is not None:
            return key
        instance, nodes = self.tree.deduced(name, types, position)
        for node in nodes:
            self._add(node)
        return instance

    def has_function(self, name: str) -> bool:
        """Return True if the source has a function or function template of that name."""
        return name in self._overloads or self._has_template(name)

    def function_names(self) -> set[str]:
        """Return the names of all functions."""
        return set(self._overloads)

    # Declarations of the outermost level.

    def _add(self, node: c_ast.Node) -> None:
        """Add a function or another declaration."""
        count = self._outer.expressions.count
        if isinstance(node, c_ast.FuncDef):
            name = node.decl.name
            keys = self._overloads.setdefault(name, [])
            if keys and name == self.tree.entry:
                self._refuse_second(name, position_of(node), name)
            keys.append(f"{name} {len(keys)}" if keys else name)
            self._nodes[keys[-1]] = node
        elif isinstance(node, c_ast.Typedef):
            self.symbols.typedefs[node.name], _ = self.symbols.type_of(node, count)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            return  # a prototype
        elif isinstance(node, c_ast.Decl) and node.name is None:
            if getattr(node.type, "decls", ()) is not None:  # more than `struct S;`
                self.symbols.type_of(node, count)
        elif isinstance(node, c_ast.Decl):
            self._add_variable(node)
        elif not isinstance(node, c_ast.Pragma | c_ast.StaticAssert | c_ast.EmptyStatement):
            raise CceError(position_of(node), "this is neither a function nor a declaration")

    def _add_variable(self, node: c_ast.Decl) -> None:
        variable, initialise = self._outer.declarations.declared(node, static=True)
        self.symbols.scopes[0][node.name] = variable
        if initialise is not None:
            self.globals.initialisers.append(initialise)

    def _compile(self, key: str, node: c_ast.FuncDef) -> None:
        outer = self.symbols
        symbols = SymbolTable(
            [outer.scopes[0], {}], outer.typedefs, outer.structures, outer.extents
        )
        context = Context(symbols, self.globals, self, self._addressed(node))
        compiler = FunctionCompiler(context)
        function = compiler.function(node, is_entry=key == self.tree.entry)
        self._functions[key] = function
        compiler.compile(function, node)

    # Overloads, templates and references.

    def _has_template(self, name: str) -> bool:
        return self.tree.templates.called(name) is not None

    def _overload(self, name: str, types: list[Type], position: SourcePosition) -> str | None:
        """Return the key of the overload that fits best; None if a template fits better."""
        keys = self._overloads.get(name, [])
        has_template = self._has_template(name)
        if len(keys) < 2 and not (keys and has_template):
            return keys[0] if keys else None
        scores: dict[str, int] = {}
        seen: dict[tuple[Type, ...], str] = {}
        for key in keys:
            function = self.function(key)
            assert function is not None  # every key has a node
            parameters = tuple(type for _, type in function.parameters)
            if seen.setdefault(parameters, key) != key:
                self._refuse_second(seen[parameters], position_of(self._nodes[key]), name)
            score = fit(types, parameters)
            if score is not None:
                scores[key] = score
        best = max(scores.values(), default=0)
        # A template fits every argument exactly, and loses only to an exact overload.
        if has_template and best < EXACT * len(types):
            return None
        chosen = [key for key, score in scores.items() if score == best]
        if len(chosen) != 1:
            shown = ", ".join(map(str, types))
            quantity = "more than one" if chosen else "no"
            raise CceError(position, f"{quantity} overload of {name} takes ({shown})")
        return chosen[0]

    def _refuse_second(self, key: str, position: SourcePosition, name: str) -> NoReturn:
        first = position_of(self._nodes[key])
        message = f"{name} must be defined only once; it is also defined at {first}"
        raise CceError(position, message)

    def _references(self, name: str) -> list[bool]:
        """Return, for each parameter, True if it is a reference in some overload or template."""
        rows = [[p.is_reference for p in self.tree.templates.called(name) or []]]
        for key in self._overloads.get(name, ()):
            arguments = self._nodes[key].decl.type.args
            items = arguments.params if arguments is not None else []
            quals = [getattr(getattr(item, "type", None), "quals", None) for item in items]
            rows.append([REFERENCE in (words or ()) for words in quals])
        return [any(column) for column in zip_longest(*rows, fillvalue=False)]

    def _addressed(self, node: c_ast.Node) -> set[str]:
        """Return the variables of a function that must have an address."""
        visitor = _Addressed(self)
        visitor.visit(node)
        return visitor.names


class _Addressed(c_ast.NodeVisitor):
    """Collects the names that & is applied to, or that references refer to."""

    def __init__(self, unit: TranslationUnit):
        self.names: set[str] = set()
        self.unit = unit

    def visit_FuncCall(self, node: c_ast.FuncCall):
        """Collect arguments for parameters that are references."""
        references = self.unit._references(getattr(node.name, "name", ""))
        arguments = node.args.exprs if node.args is not None else []
        for is_reference, item in zip(references, arguments, strict=False):
            if is_reference and isinstance(item, c_ast.ID):
                self.names.add(item.name)
        self.generic_visit(node)

    def visit_Decl(self, node: c_ast.Decl):
        """Collect the variables to which references are bound."""
        quals = [*(node.quals or []), *(getattr(node.type, "quals", None) or [])]
        if REFERENCE in quals and isinstance(node.init, c_ast.ID):
            self.names.add(node.init.name)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: c_ast.UnaryOp):
        """Collect the operands of &."""
        if node.op == "&" and isinstance(node.expr, c_ast.ID):
            self.names.add(node.expr.name)
        self.generic_visit(node)
