"""Compile calls: of the source's functions and methods, of builtins, and of intrinsics."""

from collections.abc import Callable

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.builtins import BUILTINS, builtin
from vitruvian.sim.davinci.cce.compile.context import CompiledFunction
from vitruvian.sim.davinci.cce.compile.dumping import dump_tensor
from vitruvian.sim.davinci.cce.compile.expressions import ExpressionCompiler
from vitruvian.sim.davinci.cce.compile.intrinsic_calls import intrinsic
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.printing import printer
from vitruvian.sim.davinci.cce.compile.scope import Expr, LValue
from vitruvian.sim.davinci.cce.compile.storage import ADDRESS_SLOT, MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.values import cast, converted, decayed
from vitruvian.sim.davinci.cce.intrinsics.runtime import CceMachine
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition, nearest
from vitruvian.sim.davinci.cce.language.types import (
    INT,
    PRIVATE,
    VOID,
    Reference,
    Structure,
    Type,
    integer,
)
from vitruvian.sim.davinci.cce.rewrite.classes import SELF, method_name
from vitruvian.sim.davinci.cce.rewrite.cplusplus import DEFAULT_PREFIX
from vitruvian.sim.davinci.cce.rewrite.toplevel import CAST_PREFIX

#: Functions that print as C's printf does.
_PRINTING = ("printf", "cce_printf", "PRINTF")

#: Functions that print the elements of a memory.
_DUMPING = ("DumpTensor",)

#: Functions without effect in the simulator: assertions, and declarations of the kind of core.
_SILENT = frozenset("assert trap KERNEL_TASK_TYPE KERNEL_TASK_TYPE_DEFAULT InitSocState".split())


class Calls:
    """The compiler of calls.

    Parameters
    ----------
    expressions : ExpressionCompiler
        The compiler of the arguments; this object registers itself there.
    """

    def __init__(self, expressions: ExpressionCompiler):
        self.expressions = expressions
        self.context = expressions.context
        expressions.handlers["FuncCall"] = self.call

    def call(self, node: c_ast.FuncCall) -> Expr:
        """Compile a call.

        Raises
        ------
        CceError
            If the function is unknown, or the arguments do not fit its parameters.
        """
        position = position_of(node)
        nodes = node.args.exprs if node.args is not None else []
        if isinstance(node.name, c_ast.StructRef):
            name, nodes = self._method_of_object(node.name, nodes, position)
        elif isinstance(node.name, c_ast.ID):
            name = node.name.name
            method = self._method_of_self(name)
            if method is not None:
                name, nodes = method, [c_ast.ID(SELF, node.name.coord), *nodes]
        else:
            raise CceError(position, "a call must name its function")
        key = self._callee(name, nodes, position)
        function = self.context.functions.function(key)
        if function is not None:
            return self._call_function(key, function, nodes, position)
        if name.startswith(CAST_PREFIX):
            return self._functional_cast(name.removeprefix(CAST_PREFIX), nodes, position)
        if name in _PRINTING:
            return self._print(name, nodes, position)
        if name in _SILENT:
            return Expr(VOID, lambda f: None, position)
        arguments = [self.expressions.value(x) for x in nodes]
        if name in _DUMPING:
            return dump_tensor(name, arguments, position)
        if name in intrinsic_table():
            return intrinsic(name, arguments, position)
        result = builtin(name, arguments, position)
        if result is not None:
            return result
        known = {
            *intrinsic_table(),
            *BUILTINS,
            *_PRINTING,
            *_DUMPING,
        } | self.context.functions.function_names()
        raise CceError(position, f"{name} is not a known function{nearest(name, known)}")

    def argument(self, node: c_ast.Node, type: Type, position: SourcePosition) -> Callable:
        """Return the function that gives an argument: its value, or its address for a reference.

        Parameters
        ----------
        node : c_ast.Node
            The argument.
        type : Type
            The type of the parameter.
        position : SourcePosition
            The position of the call.

        Raises
        ------
        CceError
            If the argument does not fit the type.
        """
        if not isinstance(type, Reference):
            expr = self.expressions.value(node)
            in_private = expr.lvalue is not None and expr.lvalue.space == PRIVATE
            if isinstance(type, Structure) and not in_private:
                raise CceError(position, f"{type} must be copied to a variable before it is passed")
            return converted(expr, type)
        expr = self.expressions.expression(node)
        lvalue = expr.lvalue
        if lvalue is not None and lvalue.address is not None and expr.type == type.target:
            if lvalue.space != type.space:
                message = f"a reference {type} cannot refer to a value in {lvalue.space}"
                raise CceError(position, message)
            return lvalue.address
        if type.space != PRIVATE:
            raise CceError(position, f"a reference {type} must refer to a value in {type.space}")
        # Any other value gets a temporary variable, as a reference to const does in C++.
        get = converted(decayed(expr), type.target)
        offset = self.context.frame.new_bytes(type.target)

        def keep(f):
            at = f[ADDRESS_SLOT] + offset
            f[MACHINE_SLOT].store(PRIVATE, at, type.target, get(f), position)
            return at

        return keep

    def _callee(self, name: str, nodes: list[c_ast.Node], position: SourcePosition) -> str:
        """Return the key of the function that a call names: an overload or an instance."""
        if not self.context.functions.needs_types(name):
            return name
        types = [self.expressions.type_of(x) for x in nodes]
        return self.context.functions.resolve(name, types, position)

    def _method_of_object(
        self, node: c_ast.StructRef, nodes: list[c_ast.Node], position: SourcePosition
    ) -> tuple[str, list[c_ast.Node]]:
        """Return the function and the arguments of ``x.f(...)`` or ``p->f(...)``."""
        target = node.name if node.type == "." else c_ast.UnaryOp("*", node.name, node.coord)
        type, name = self.expressions.type_of(target, decay=False), node.field.name
        function = method_name(type.name, name) if isinstance(type, Structure) else ""
        if not self.context.functions.has_function(function):
            raise CceError(position, f"{type} has no method {name}")
        return function, [target, *nodes]

    def _method_of_self(self, name: str) -> str | None:
        """Return the function of the method that a plain name means inside another method."""
        structure = self.expressions.self_structure()
        function = method_name(structure.name, name) if structure is not None else ""
        return function if self.context.functions.has_function(function) else None

    def _call_function(
        self,
        key: str,
        function: CompiledFunction,
        nodes: list[c_ast.Node],
        position: SourcePosition,
    ) -> Expr:
        types = [type for _, type in function.parameters]
        # Omitted arguments are constants that `rewrite.cplusplus` has put before the function.
        nodes = nodes + self._defaults(key, len(nodes), len(types))
        if len(nodes) != len(types):
            message = f"{key} must have {len(types)} arguments, not {len(nodes)}"
            raise CceError(position, message)
        pairs = zip(nodes, types, strict=True)
        gets = tuple(self.argument(n, type, position) for n, type in pairs)

        def get(f):
            return function.run(f[MACHINE_SLOT], [g(f) for g in gets], position)

        result = function.result
        if not isinstance(result, Structure):
            return Expr(result, get, position)
        # A structure is returned as the address of a variable of the callee. Its bytes are copied
        # at once, since the next call reuses them.
        offset, size = self.context.frame.new_bytes(result), result.size

        def keep(f):
            start, memory = get(f), f[MACHINE_SLOT].memory
            at = f[ADDRESS_SLOT] + offset
            memory[at : at + size] = memory[start : start + size]
            return at

        return Expr(result, keep, position, lvalue=LValue(None, PRIVATE, keep))

    def _defaults(self, key: str, first: int, count: int) -> list[c_ast.Node]:
        """Return the default values of the parameters from ``first`` to ``count - 1``."""
        names = [f"{DEFAULT_PREFIX}{key}_{i}" for i in range(first, count)]
        if not all(self.context.symbols.find(x) for x in names):
            return []
        return [c_ast.ID(x) for x in names]

    def _functional_cast(
        self, name: str, nodes: list[c_ast.Node], position: SourcePosition
    ) -> Expr:
        """Compile ``T(x)``, and ``T()``, which is zero."""
        type = self.context.symbols.typedefs.get(name) or integer([name])
        if type is None:
            raise CceError(position, f"{name} is not a known type")
        if len(nodes) > 1:
            raise CceError(position, f"{name}(...) must have 1 argument, not {len(nodes)}")
        if not nodes:
            return cast(Expr(INT, lambda f: 0, position, (0,)), type)
        return cast(self.expressions.value(nodes[0]), type)._replace(position=position)

    def _print(self, name: str, nodes: list[c_ast.Node], position: SourcePosition) -> Expr:
        """Compile a call that prints; the text goes to the sink in program order."""
        literal = nodes[0] if nodes else None
        if not isinstance(literal, c_ast.Constant) or literal.type != "string":
            message = f"the first argument of {name} must be a string in quotes"
            raise CceError(position, message)
        arguments = [self.expressions.value(x) for x in nodes[1:]]
        text = printer(name, literal.value, [a.type for a in arguments], position)
        gets = tuple(a.get for a in arguments)

        def get(f):
            machine: CceMachine = f[MACHINE_SLOT]
            machine.step(position)
            machine.print(text(machine, [g(f) for g in gets]), position)

        return Expr(VOID, get, position)
