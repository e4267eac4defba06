"""Compile expressions into functions of the frame.

Types are known when an expression is compiled and constants are folded, so that the closures that
run are short.
"""

from collections.abc import Callable
from typing import Any

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.arithmetic import binary
from vitruvian.sim.davinci.cce.compile.context import Context
from vitruvian.sim.davinci.cce.compile.literals import literal
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.printing import unescaped
from vitruvian.sim.davinci.cce.compile.scope import Expr, LValue, Variable
from vitruvian.sim.davinci.cce.compile.storage import ADDRESS_SLOT, MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.values import (
    apply,
    cast,
    constant,
    converted,
    decayed,
    deref,
    folded,
    load,
    offset_pointer,
)
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition, nearest
from vitruvian.sim.davinci.cce.language.keywords import CONSTANTS, TYPE_NAMES
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    INT64,
    PRIVATE,
    UINT64,
    Pointer,
    Reference,
    Scalar,
    Structure,
    Type,
    common,
    is_number,
    promoted,
)
from vitruvian.sim.davinci.cce.rewrite.classes import SELF

_ENUMERATIONS = {
    name: Scalar("i", 4, name) for name in {enumeration for enumeration, _ in CONSTANTS.values()}
}


class ExpressionCompiler:
    """The compiler of expressions.

    Parameters
    ----------
    context : Context
        The state of the function that is compiled.

    Attributes
    ----------
    handlers : dict of str to callable
        The function that compiles each kind of node, by the name of the node's class. Other parts
        of the compiler add theirs (calls, assignments).
    """

    def __init__(self, context: Context):
        self.context = context
        self._types: dict[tuple[int, bool], tuple[c_ast.Node, Type]] = {}
        self.handlers: dict[str, Callable[[Any], Expr]] = {
            "Constant": self._constant,
            "ID": self._identifier,
            "ArrayRef": self._subscript,
            "StructRef": self._member,
            "UnaryOp": self.unary,
            "BinaryOp": self._binary,
            "TernaryOp": self._conditional,
            "Cast": self._cast,
            "CompoundLiteral": self._compound_literal,
            "ExprList": self._comma,
        }

    # Entry points.

    def handles(self, node: c_ast.Node) -> bool:
        """Return True if the node is an expression."""
        return type(node).__name__ in self.handlers

    def expression(self, node: c_ast.Node) -> Expr:
        """Compile an expression.

        Raises
        ------
        CceError
            If the node is not an expression, or the expression contains a mistake.
        """
        handler = self.handlers.get(type(node).__name__)
        if handler is None:
            raise CceError(
                position_of(node), f"{type(node).__name__} is not supported as an expression"
            )
        self.context.parts += 1
        return handler(node)

    def type_of(self, node: c_ast.Node, *, decay: bool = True) -> Type:
        """Return the type of an expression; if ``decay`` is True, an array is a pointer.

        The result is remembered: compiling the arguments of nested overloaded calls again at every
        level would take exponential time.
        """
        key = (id(node), decay)
        if key not in self._types:  # the node is kept, so that its id is not reused
            expr = self.value(node) if decay else self.expression(node)
            self._types[key] = (node, expr.type)
        return self._types[key][1]

    def value(self, node: c_ast.Node) -> Expr:
        """Compile an expression; an array becomes a pointer to its first element."""
        return decayed(self.expression(node))

    def number(self, node: c_ast.Node, subject: str) -> Expr:
        """Compile an expression that must be a number; ``subject`` names it in the message."""
        expr = self.value(node)
        if not is_number(expr.type):
            raise CceError(expr.position, f"{subject} must be a number, not {expr.type}")
        return expr

    def condition(self, node: c_ast.Node) -> Expr:
        """Compile a condition: a number or a pointer."""
        expr = self.value(node)
        if not isinstance(expr.type, Scalar | Pointer):
            raise CceError(expr.position, f"a condition must be a number, not {expr.type}")
        return expr

    def count(self, node: c_ast.Node) -> int:
        """Return the value of a constant integer expression."""
        expr = self.value(node)
        if expr.constant is None or not isinstance(expr.constant[0], int):
            raise CceError(expr.position, "this must be a constant integer")
        return expr.constant[0]

    def self_structure(self) -> Structure | None:
        """Return the structure whose method is compiled, or None in a plain function."""
        variable = self.context.symbols.find(SELF)
        if variable is None or not isinstance(variable.type, Reference):
            return None
        target = variable.type.target
        return target if isinstance(target, Structure) else None

    # Constants and names.

    def _constant(self, node: c_ast.Constant) -> Expr:
        if node.type != "string":
            return constant(*literal(node), position_of(node))
        content = unescaped(node.value).encode(errors="replace") + b"\0"
        type = Pointer(PRIVATE, Scalar("i", 1, "char"))
        return constant(type, self.context.globals.string(content), position_of(node))

    def _identifier(self, node: c_ast.ID) -> Expr:
        """Compile a name. Inside a method, members shadow names outside of the function."""
        structure = self.self_structure() if node.name != SELF else None
        local_scopes = self.context.symbols.scopes[1:]
        # A local variable of the method hides a member of its name.
        if structure is not None and not any(node.name in scope for scope in local_scopes):
            itself = c_ast.ID(SELF, node.coord)
            if node.name == "this":
                return self.expression(c_ast.UnaryOp("&", itself, node.coord))
            if any(node.name == member for member, _, _ in structure.members):
                field = c_ast.ID(node.name, node.coord)
                return self.expression(c_ast.StructRef(itself, ".", field, node.coord))
        position, name = position_of(node), node.name
        variable = self.context.symbols.find(name)
        if variable is not None:
            return self._variable(variable, position)
        if name in ("block_idx", "block_num"):
            return Expr(INT64, lambda f: getattr(f[MACHINE_SLOT], name), position)
        if name in CONSTANTS:
            enumeration, value = CONSTANTS[name]
            return constant(_ENUMERATIONS[enumeration], value, position)
        known = self.context.symbols.names() | CONSTANTS.keys() | {"block_idx", "block_num"}
        raise CceError(position, f"{name} is not declared{nearest(name, known)}")

    def _variable(self, variable: Variable, position: SourcePosition) -> Expr:
        if isinstance(variable.type, Reference):  # its slot holds the address of its target
            slot, target = variable.slot, variable.type.target
            return load(target, LValue(None, variable.type.space, lambda f: f[slot]), position)
        if variable.constant is not None:
            return constant(variable.type, variable.constant[0], position)
        if variable.slot is not None:
            lvalue = LValue(variable.slot)
        elif variable.address is not None:
            fixed = variable.address
            lvalue = LValue(None, PRIVATE, lambda f: fixed)
        else:
            offset = variable.offset or 0
            lvalue = LValue(None, PRIVATE, lambda f: f[ADDRESS_SLOT] + offset)
        return load(variable.type, lvalue, position)

    # Memory.

    def _subscript(self, node: c_ast.ArrayRef) -> Expr:
        position = position_of(node)
        base, index = self.value(node.name), self.value(node.subscript)
        if isinstance(index.type, Pointer):  # C allows 3[a] for a[3]
            base, index = index, base
        return deref(offset_pointer(base, index, "+", position), position)

    def _member(self, node: c_ast.StructRef) -> Expr:
        position = position_of(node)
        base = self.value(node.name) if node.type == "->" else self.expression(node.name)
        if node.type == "->":
            base = deref(base, position)
        if not isinstance(base.type, Structure) or base.lvalue is None:
            message = f"the left side of {node.type} must be a structure, not {base.type}"
            raise CceError(position, message)
        members = {member: (kind, offset) for member, kind, offset in base.type.members}
        name, get = node.field.name, base.get
        if name not in members:
            raise CceError(position, f"{base.type} has no member {name}{nearest(name, members)}")
        kind, offset = members[name]
        return load(kind, LValue(None, base.lvalue.space, lambda f: get(f) + offset), position)

    # Operators.

    def unary(self, node: c_ast.UnaryOp) -> Expr:
        """Compile a unary operator other than ++ and --."""
        position, sign = position_of(node), node.op
        if sign == "sizeof":
            return self._sizeof(node, position)
        if sign == "*":
            return deref(self.value(node.expr), position)
        if sign == "&":
            expr = self.expression(node.expr)
            if expr.lvalue is None or expr.lvalue.address is None:
                raise CceError(position, "the operand of & must be in memory")
            type = Pointer(expr.lvalue.space, expr.type)
            return Expr(self.context.symbols.checked(type, position), expr.lvalue.address, position)
        if sign == "!":
            expr = self.condition(node.expr)
            get = expr.get
            if expr.constant is not None:
                return constant(BOOL, int(not expr.constant[0]), position)
            return Expr(BOOL, lambda f: int(not get(f)), position)
        expr = self.number(node.expr, f"the operand of {sign}")
        assert isinstance(expr.type, Scalar)  # it is a number
        type = promoted(expr.type)
        if sign == "+":
            return Expr(type, expr.get, position, expr.constant)
        if sign == "-":
            if type.is_float:
                return folded(type, [expr], lambda x: -x, position)
            # 0 − x wraps as C's subtraction does.
            minus = binary("-", type, position)
            return folded(type, [expr], lambda x: minus(0, x), position)
        if sign == "~" and not type.is_float:
            mask = 0 if type.kind == "i" else (1 << 8 * type.size) - 1
            return folded(type, [expr], lambda x: ~x & mask if mask else ~x, position)
        raise CceError(position, f"the operand of {sign} must be an integer, not {type}")

    def _sizeof(self, node: c_ast.UnaryOp, position: SourcePosition) -> Expr:
        symbols = self.context.symbols
        if isinstance(node.expr, c_ast.Typename):
            type, _ = symbols.type_of(node.expr, self.count)
        elif isinstance(node.expr, c_ast.ID) and node.expr.name in TYPE_NAMES:
            type = symbols.typedefs[node.expr.name]
        else:
            type = self.expression(node.expr).type
        return constant(UINT64, type.size, position)

    def _binary(self, node: c_ast.BinaryOp) -> Expr:
        position, sign = position_of(node), node.op
        if sign in ("&&", "||"):
            left, right = self.condition(node.left), self.condition(node.right)
            return _logical(sign, left, right, position)
        return apply(sign, self.value(node.left), self.value(node.right), position)

    def _conditional(self, node: c_ast.TernaryOp) -> Expr:
        position = position_of(node)
        test = self.condition(node.cond)
        yes, no = self.value(node.iftrue), self.value(node.iffalse)
        if isinstance(yes.type, Scalar) and isinstance(no.type, Scalar):
            type: Type = yes.type if yes.type == no.type else common(yes.type, no.type)
        else:
            # A null pointer takes the type of the other branch.
            type = no.type if yes.constant == (0,) else yes.type
        yes, no = _implicitly(yes, type), _implicitly(no, type)
        if test.constant is not None:
            # The result of a conditional is a value and not a variable.
            return (yes if test.constant[0] else no)._replace(lvalue=None)
        choose, a, b = test.get, yes.get, no.get
        return Expr(type, lambda f: a(f) if choose(f) else b(f), position)

    def _cast(self, node: c_ast.Cast) -> Expr:
        type, _ = self.context.symbols.type_of(node.to_type, self.count)
        return cast(self.value(node.expr), type)._replace(position=position_of(node))

    def _compound_literal(self, node: c_ast.CompoundLiteral) -> Expr:
        raise CceError(position_of(node), "compound literals are not part of the dialect")

    def _comma(self, node: c_ast.ExprList) -> Expr:
        parts = [self.value(x) for x in node.exprs]
        gets = [x.get for x in parts[:-1]]
        last = parts[-1]

        def get(f):
            for each in gets:
                each(f)
            return last.get(f)

        return Expr(last.type, get, position_of(node))


def _logical(sign: str, left: Expr, right: Expr, position: SourcePosition) -> Expr:
    """Return ``left && right`` or ``left || right``."""
    a, b = left.get, right.get
    if left.constant is not None:
        if bool(left.constant[0]) == (sign == "||"):  # the left side decides
            return constant(BOOL, int(sign == "||"), position)
        known = None if right.constant is None else (int(bool(right.constant[0])),)
        return Expr(BOOL, lambda f: int(bool(b(f))), position, known)
    if sign == "&&":
        return Expr(BOOL, lambda f: int(bool(a(f) and b(f))), position)
    return Expr(BOOL, lambda f: int(bool(a(f) or b(f))), position)


def _implicitly(expr: Expr, type: Type) -> Expr:
    """Return an expression implicitly converted to a type."""
    if expr.type == type:
        return expr
    get = converted(expr, type)
    return Expr(type, get, expr.position, None if expr.constant is None else (get([]),))
