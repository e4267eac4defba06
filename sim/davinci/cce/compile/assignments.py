"""Compile assignments, ++ and --."""

from collections.abc import Callable

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.expressions import ExpressionCompiler
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.scope import Expr, LValue, both
from vitruvian.sim.davinci.cce.compile.values import (
    apply,
    assign,
    cast,
    constant,
    converted,
    copied,
    load,
)
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import INT, Array, Pointer, Scalar, Structure


class Assignments:
    """The compiler of expressions that change a variable.

    Parameters
    ----------
    expressions : ExpressionCompiler
        The compiler of the operands; this object registers itself there.
    """

    def __init__(self, expressions: ExpressionCompiler):
        self.expressions = expressions
        self.frame = expressions.context.frame
        expressions.handlers |= {"Assignment": self._assignment, "UnaryOp": self._unary}

    def _assignment(self, node: c_ast.Assignment) -> Expr:
        position, target = position_of(node), self._target(node.lvalue, node.op)
        assert target.lvalue is not None  # _target has checked it
        right = self.expressions.value(node.rvalue)
        if isinstance(target.type, Structure):
            return copied(target, right, position)
        if node.op == "=":
            get = converted(right, target.type)
            return Expr(target.type, assign(target.lvalue, target.type, get, position), position)
        target, prepare = self._evaluated_once(target)
        result = apply(node.op[:-1], target, right, position)
        return Expr(target.type, both(prepare, _update(target, result, position)), position)

    def _unary(self, node: c_ast.UnaryOp) -> Expr:
        """Compile ++ and -- before or after an operand; pass on every other unary operator."""
        if node.op not in ("++", "--", "p++", "p--"):  # pycparser's names; p is for postfix
            return self.expressions.unary(node)
        position = position_of(node)
        target = self._target(node.expr, node.op.strip("p"))
        if not isinstance(target.type, Scalar | Pointer):
            message = f"the operand of {node.op} must be a number, not {target.type}"
            raise CceError(position, message)
        target, prepare = self._evaluated_once(target)
        result = apply(node.op[-1], target, constant(INT, 1, position), position)
        store = _update(target, result, position)
        if node.op[0] != "p":
            return Expr(target.type, both(prepare, store), position)
        read = target.get

        def postfix(f):
            old = read(f)
            store(f)
            return old

        return Expr(target.type, both(prepare, postfix), position)

    def _target(self, node: c_ast.Node, sign: str) -> Expr:
        target = self.expressions.expression(node)
        if target.lvalue is None or isinstance(target.type, Array):
            raise CceError(position_of(node), f"the left side of {sign} must be a variable")
        return target

    def _evaluated_once(self, target: Expr) -> tuple[Expr, Callable | None]:
        """Return a target whose address is computed once, and the function that computes it.

        ``a[i++] += 1`` reads and writes its target, but must increment ``i`` only once.
        """
        lvalue = target.lvalue
        if lvalue is None or lvalue.address is None:
            return target, None
        slot, address = self.frame.new_slot(), lvalue.address

        def prepare(f):
            f[slot] = address(f)

        kept = LValue(None, lvalue.space, lambda f: f[slot])
        return load(target.type, kept, target.position), prepare


def _update(target: Expr, result: Expr, position: SourcePosition) -> Callable:
    """Return the function that stores a result, converted to the type of its target."""
    assert target.lvalue is not None  # _target has checked it
    get = cast(result, target.type).get
    return assign(target.lvalue, target.type, get, position)
