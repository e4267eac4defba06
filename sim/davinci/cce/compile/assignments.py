"""Assignments, and the steps ++ and --."""

from collections.abc import Callable

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.expressions import MACHINE_SLOT, Expressions, constant
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.scope import Expr, Place, both
from vitruvian.sim.davinci.cce.intrinsics.runtime import Machine
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.types import INT, Array, Pointer, Scalar, Structure, leaves

__all__ = ["Assignments"]


class Assignments(Expressions):
    """Compiles what gives a variable a value."""

    def _target(self, node: c_ast.Node, sign: str) -> Expr:
        target = self.expression(node)
        if target.place is None or isinstance(target.type, Array):
            raise CceError(position_of(node), f"the left side of {sign} must be a variable")
        return target

    def _on_Assignment(self, node: c_ast.Assignment) -> Expr:
        here, target = position_of(node), self._target(node.lvalue, node.op)
        assert target.place is not None  # _target has seen to it
        right = self.value(node.rvalue)
        if isinstance(target.type, Structure):
            return self._copy(target, right, here)
        if node.op == "=":
            get = self.converted(right, target.type)
            return Expr(target.type, self.assign(target.place, target.type, get, here), here)
        target, prepare = self._held(target)
        moved = self.apply(node.op[:-1], target, right, here)
        return Expr(target.type, both(prepare, self._update(target, moved, here)), here)

    def _update(self, target: Expr, moved: Expr, here: Position) -> Callable:
        assert target.place is not None  # a target has one
        get = self.cast(moved, target.type).get
        return self.assign(target.place, target.type, get, here)

    def _held(self, target: Expr) -> tuple[Expr, Callable | None]:
        """A target whose address is worked out once, and the function that does so."""
        place = target.place
        if place is None or place.address is None:
            return target, None
        slot, address = self.new_slot(), place.address

        def prepare(f):
            f[slot] = address(f)

        held = Place(None, place.space, lambda f: f[slot])
        return self._at(target.type, held, target.position), prepare

    def _copy(self, target: Expr, source: Expr, here: Position) -> Expr:
        """A structure, member by member."""
        if source.type != target.type or source.place is None or target.place is None:
            raise CceError(here, f"a {target.type} must not be given a {source.type}")
        to, off = target.place.space, source.place.space
        members = list(leaves(target.type))

        def get(f):
            machine: Machine = f[MACHINE_SLOT]
            at, where = target.get(f), source.get(f)
            for kind, offset in members:
                value = machine.load(off, where + offset, kind, here)
                machine.store(to, at + offset, kind, value, here)
            return at

        return Expr(target.type, get, here)

    def _on_UnaryOp(self, node: c_ast.UnaryOp) -> Expr:
        if node.op in ("++", "--", "p++", "p--"):
            return self._step(node, position_of(node))
        return super()._on_UnaryOp(node)

    def _step(self, node: c_ast.UnaryOp, here: Position) -> Expr:
        """++ and --, before and after."""
        target = self._target(node.expr, node.op.strip("p"))
        if not isinstance(target.type, Scalar | Pointer):
            raise CceError(here, f"the operand of {node.op} must be a number, not {target.type}")
        target, prepare = self._held(target)
        moved = self.apply(node.op[-1], target, constant(INT, 1, here), here)
        store = self._update(target, moved, here)
        if node.op[0] != "p":
            return Expr(target.type, both(prepare, store), here)
        read = target.get

        def after(f):
            old = read(f)
            store(f)
            return old

        return Expr(target.type, both(prepare, after), here)
