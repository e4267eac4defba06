"""Expressions to functions of the frame.

A frame is a list: the machine, the address of its variables in memory, and slots. Types are known
when an expression is compiled, constants are folded, so that what runs is short.
"""

from collections.abc import Callable

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.arithmetic import COMPARISONS, binary, shift
from vitruvian.sim.davinci.cce.compile.literals import literal
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.printing import unescaped
from vitruvian.sim.davinci.cce.compile.scope import Expr, Names, Place
from vitruvian.sim.davinci.cce.language.errors import CceError, Position, nearest
from vitruvian.sim.davinci.cce.language.keywords import CONSTANTS, TYPE_NAMES
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    INT64,
    PRIVATE,
    UINT64,
    VOID,
    Array,
    Pointer,
    Reference,
    Scalar,
    Structure,
    Type,
    common,
    converter,
    is_number,
    promoted,
)

__all__ = ["ADDRESS_SLOT", "MACHINE_SLOT", "Expressions", "constant"]

MACHINE_SLOT, ADDRESS_SLOT = 0, 1

_ENUMERATIONS = {
    name: Scalar("i", 4, name) for name in {enumeration for enumeration, _ in CONSTANTS.values()}
}


def constant(type: Type, value, position: Position) -> Expr:
    """An expression that is one value."""
    return Expr(type, lambda f: value, position, (value,))


class Expressions:
    """Compiles expressions; functions and statements are added by those who derive from it."""

    def __init__(self, names: Names):
        self.names = names
        self.parts = 0  # expressions that have been compiled
        self.types: dict[tuple[int, bool], tuple[c_ast.Node, Type]] = {}

    def call(self, node: c_ast.FuncCall) -> Expr:
        """Compile a call."""
        raise NotImplementedError

    def kept(self, content: bytes) -> int:
        """Give the address of bytes that are there from the start."""
        raise NotImplementedError

    def new_slot(self) -> int:
        """Give a slot of the frame that nothing else uses."""
        raise NotImplementedError

    # Entry points.

    def expression(self, node: c_ast.Node) -> Expr:
        """Compile an expression."""
        handler = getattr(self, f"_on_{type(node).__name__}", None)
        if handler is None:
            raise CceError(position_of(node), f"{type(node).__name__} is not an expression here")
        self.parts += 1
        return handler(node)

    def type_of(self, node: c_ast.Node, *, decayed: bool = True) -> Type:
        """The type of an expression, which is compiled for it only once."""
        key = (id(node), decayed)
        if key not in self.types:  # the node is kept, so that its id is not used again
            found = self.value(node) if decayed else self.expression(node)
            self.types[key] = (node, found.type)
        return self.types[key][1]

    def value(self, node: c_ast.Node) -> Expr:
        """As `expression`, an array being the address of its first element."""
        return self._decayed(self.expression(node))

    def number(self, node: c_ast.Node, what: str) -> Expr:
        """As `value`, of a number."""
        found = self.value(node)
        if not is_number(found.type):
            raise CceError(found.position, f"{what} must be a number, not {found.type}")
        return found

    def condition(self, node: c_ast.Node) -> Expr:
        """As `value`, of what can be true: a number or a pointer."""
        found = self.value(node)
        if not isinstance(found.type, Scalar | Pointer):
            raise CceError(found.position, f"a condition must be a number, not {found.type}")
        return found

    def count(self, node: c_ast.Node) -> int:
        """The value of a constant integer."""
        found = self.value(node)
        if found.constant is None or not isinstance(found.constant[0], int):
            raise CceError(found.position, "this must be a constant integer")
        return found.constant[0]

    def converted(self, expr: Expr, target: Type, *, explicit: bool = False) -> Callable:
        """The function for an expression's value as one of another type.

        Raises
        ------
        CceError
            For a pointer to one memory as one to another, and what C does not convert.
        """
        source, here = expr.type, expr.position
        if source == target:
            return expr.get
        if isinstance(target, Pointer):
            null = expr.constant == (0,)
            if isinstance(source, Pointer):
                if source.space != target.space and not null:
                    raise CceError(here, f"a {source} must not become a {target}")
                return expr.get
            if not isinstance(source, Scalar) or source.is_float or not (explicit or null):
                raise CceError(here, f"a {target} must be given a pointer, not {source}")
        elif isinstance(source, Pointer):
            allowed = isinstance(target, Scalar) and not target.is_float
            if not allowed or not (explicit or target == BOOL):
                raise CceError(here, f"a {target} must be given a number, not {source}")
        elif not isinstance(source, Scalar) or not isinstance(target, Scalar):
            raise CceError(here, f"a {target} must not be given a {source}")
        convert = converter(source, target)
        if convert is None:
            return expr.get
        if expr.constant is not None:
            value = convert(expr.constant[0])
            return lambda f: value
        get = expr.get
        return lambda f: convert(get(f))

    def cast(self, expr: Expr, target: Type) -> Expr:
        """An expression as one of another type, as if the source had said so."""
        if target is VOID:
            return Expr(VOID, expr.get, expr.position)
        get = self.converted(self._decayed(expr), target, explicit=True)
        known = None if expr.constant is None else (get([]),)
        return Expr(target, get, expr.position, known)

    def load(self, type: Type, place: Place, position: Position) -> Expr:
        """What is at a place."""
        if place.slot is not None:
            slot = place.slot
            return Expr(type, lambda f: f[slot], position, place=place)
        space, address = place.space, place.address
        assert address is not None  # a place has one of the two

        def get(f):
            return f[MACHINE_SLOT].load(space, address(f), type, position)

        return Expr(type, get, position, place=place)

    def assign(self, place: Place, type: Type, get: Callable, position: Position) -> Callable:
        """Function of the frame that puts a value at a place and gives it back."""
        if place.slot is not None:
            slot = place.slot

            def keep(f):
                f[slot] = value = get(f)
                return value

            return keep
        space, address = place.space, place.address
        assert address is not None  # a place has one of the two

        def store(f):
            at = address(f)
            value = get(f)
            f[MACHINE_SLOT].store(space, at, type, value, position)
            return value

        return store

    # Leaves.

    def _on_Constant(self, node: c_ast.Constant) -> Expr:
        if node.type == "string":
            return self._string(node)
        return constant(*literal(node), position_of(node))

    def _string(self, node: c_ast.Constant) -> Expr:
        """The address of a string's characters, which have a place of their own."""
        content = unescaped(node.value).encode(errors="replace") + b"\0"
        type = Pointer(PRIVATE, Scalar("i", 1, "char"))
        return constant(type, self.kept(content), position_of(node))

    def _on_ID(self, node: c_ast.ID) -> Expr:
        here, name = position_of(node), node.name
        found = self.names.find(name)
        if found is not None and isinstance(found.type, Reference):
            slot, target = found.slot, found.type.target
            return self._at(target, Place(None, found.type.space, lambda f: f[slot]), here)
        if found is not None:
            if found.constant is not None:
                return constant(found.type, found.constant[0], here)
            if found.slot is not None:
                place = Place(found.slot)
            elif found.address is not None:
                fixed = found.address
                place = Place(None, PRIVATE, lambda f: fixed)
            else:
                offset = found.offset or 0
                place = Place(None, PRIVATE, lambda f: f[ADDRESS_SLOT] + offset)
            return self._at(found.type, place, here)
        if name in ("block_idx", "block_num"):
            return Expr(INT64, lambda f: getattr(f[MACHINE_SLOT], name), here)
        if name in CONSTANTS:
            enumeration, value = CONSTANTS[name]
            return constant(_ENUMERATIONS[enumeration], value, here)
        known = self.names.every() | CONSTANTS.keys() | {"block_idx", "block_num"}
        raise CceError(here, f"{name} is not declared{nearest(name, known)}")

    def _at(self, type: Type, place: Place, position: Position) -> Expr:
        """What is at a place: of an array or structure the address."""
        if isinstance(type, Array | Structure):
            assert place.address is not None  # neither is in a slot
            return Expr(type, place.address, position, place=place)
        return self.load(type, place, position)

    def _decayed(self, expr: Expr) -> Expr:
        if isinstance(expr.type, Array) and expr.place is not None:
            target = Pointer(expr.place.space, expr.type.element)
            return Expr(target, expr.get, expr.position)
        return expr

    # Memory.

    def _on_ArrayRef(self, node: c_ast.ArrayRef) -> Expr:
        base, index = self.value(node.name), self.value(node.subscript)
        if isinstance(index.type, Pointer):
            base, index = index, base
        return self._deref(self._offset(base, index, "+", position_of(node)), position_of(node))

    def _deref(self, pointer: Expr, here: Position) -> Expr:
        if not isinstance(pointer.type, Pointer) or pointer.type.target is VOID:
            raise CceError(here, f"* must be given a pointer to something, not {pointer.type}")
        return self._at(pointer.type.target, Place(None, pointer.type.space, pointer.get), here)

    def _on_StructRef(self, node: c_ast.StructRef) -> Expr:
        here = position_of(node)
        base = self.value(node.name) if node.type == "->" else self.expression(node.name)
        if node.type == "->":
            base = self._deref(base, here)
        if not isinstance(base.type, Structure) or base.place is None:
            raise CceError(here, f"{node.type} must be given a structure, not {base.type}")
        members = {member: (kind, offset) for member, kind, offset in base.type.members}
        name, get = node.field.name, base.get
        if name not in members:
            raise CceError(here, f"{base.type} has no member {name}{nearest(name, members)}")
        kind, offset = members[name]
        return self._at(kind, Place(None, base.place.space, lambda f: get(f) + offset), here)

    def _offset(self, base: Expr, index: Expr, sign: str, here: Position) -> Expr:
        """A pointer some elements further."""
        if not isinstance(base.type, Pointer):
            raise CceError(here, f"[] must be given a pointer or an array, not {base.type}")
        if not isinstance(index.type, Scalar) or index.type.is_float:
            raise CceError(here, f"a pointer must move by an integer, not {index.type}")
        size = base.type.target.size * (1 if sign == "+" else -1)
        if size == 0:
            raise CceError(here, f"a {base.type} has no elements to move over")
        get, by = base.get, index.get
        if index.constant is not None:
            step = index.constant[0] * size
            if base.constant is not None:
                return constant(base.type, base.constant[0] + step, here)
            return Expr(base.type, (lambda f: get(f) + step) if step else get, here)
        return Expr(base.type, lambda f: get(f) + by(f) * size, here)

    # Operators.

    def _on_UnaryOp(self, node: c_ast.UnaryOp) -> Expr:
        here, sign = position_of(node), node.op
        if sign == "sizeof":
            return self._sizeof(node, here)
        if sign == "*":
            return self._deref(self.value(node.expr), here)
        if sign == "&":
            expr = self.expression(node.expr)
            if expr.place is None or expr.place.address is None:
                raise CceError(here, "& must be given something in memory")
            type = self.names.checked(Pointer(expr.place.space, expr.type), here)
            return Expr(type, expr.place.address, here)
        if sign == "!":
            expr = self.condition(node.expr)
            get = expr.get
            if expr.constant is not None:
                return constant(BOOL, int(not expr.constant[0]), here)
            return Expr(BOOL, lambda f: int(not get(f)), here)
        expr = self.number(node.expr, f"the operand of {sign}")
        assert isinstance(expr.type, Scalar)  # it is a number
        type = promoted(expr.type)
        if sign == "+":
            return Expr(type, expr.get, here, expr.constant)
        if sign == "-":
            if type.is_float:
                return self._folded(type, [expr], lambda x: -x, here)
            minus = binary("-", type, here)
            return self._folded(type, [expr], lambda x: minus(0, x), here)
        if sign == "~" and not type.is_float:
            mask = 0 if type.kind == "i" else (1 << 8 * type.size) - 1
            return self._folded(type, [expr], lambda x: ~x & mask if mask else ~x, here)
        raise CceError(here, f"the operand of {sign} must be an integer, not {type}")

    def _folded(self, type: Type, operands: list[Expr], apply: Callable, here: Position) -> Expr:
        """An operation on one or two values, done now if they are constants."""
        if all(x.constant is not None for x in operands):
            return constant(type, apply(*(x.constant[0] for x in operands if x.constant)), here)
        a = operands[0].get
        if len(operands) == 1:
            return Expr(type, lambda f: apply(a(f)), here)
        b = operands[1].get
        if operands[1].constant is not None:
            right = operands[1].constant[0]
            return Expr(type, lambda f: apply(a(f), right), here)
        return Expr(type, lambda f: apply(a(f), b(f)), here)

    def _sizeof(self, node: c_ast.UnaryOp, here: Position) -> Expr:
        if isinstance(node.expr, c_ast.Typename):
            type, _ = self.names.type_of(node.expr, self.count)
        elif isinstance(node.expr, c_ast.ID) and node.expr.name in TYPE_NAMES:
            type = self.names.typedefs[node.expr.name]
        else:
            type = self.expression(node.expr).type
        return constant(UINT64, type.size, here)

    def _on_BinaryOp(self, node: c_ast.BinaryOp) -> Expr:
        here, sign = position_of(node), node.op
        if sign in ("&&", "||"):
            return self._logical(sign, self.condition(node.left), self.condition(node.right), here)
        return self.apply(sign, self.value(node.left), self.value(node.right), here)

    def _logical(self, sign: str, left: Expr, right: Expr, here: Position) -> Expr:
        a, b = left.get, right.get
        if left.constant is not None:
            if bool(left.constant[0]) == (sign == "||"):
                return constant(BOOL, int(sign == "||"), here)
            known = None if right.constant is None else (int(bool(right.constant[0])),)
            return Expr(BOOL, lambda f: int(bool(b(f))), here, known)
        if sign == "&&":
            return Expr(BOOL, lambda f: int(bool(a(f) and b(f))), here)
        return Expr(BOOL, lambda f: int(bool(a(f) or b(f))), here)

    def apply(self, sign: str, left: Expr, right: Expr, here: Position) -> Expr:
        """An operator on two values."""
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            return self._on_pointers(sign, left, right, here)
        for side in (left, right):
            if not is_number(side.type):
                raise CceError(here, f"an operand of {sign} must be a number, not {side.type}")
        assert isinstance(left.type, Scalar) and isinstance(right.type, Scalar)
        if sign in ("<<", ">>"):
            type = promoted(left.type)
            if type.is_float or right.type.is_float:
                raise CceError(here, f"an operand of {sign} must be an integer")
            left = self._as(left, type)
            return self._folded(type, [left, right], shift(sign, type, here), here)
        type = common(left.type, right.type)
        left, right = self._as(left, type), self._as(right, type)
        if sign in COMPARISONS:
            compare = COMPARISONS[sign]
            return self._folded(BOOL, [left, right], lambda a, b: int(compare(a, b)), here)
        return self._folded(type, [left, right], binary(sign, type, here), here)

    def _as(self, expr: Expr, type: Type) -> Expr:
        return expr if expr.type == type else self.cast(expr, type)

    def _on_pointers(self, sign: str, left: Expr, right: Expr, here: Position) -> Expr:
        if sign in COMPARISONS:
            for one, other in ((left, right), (right, left)):
                if isinstance(one.type, Pointer):
                    self.converted(other, one.type, explicit=False)
            compare = COMPARISONS[sign]
            return self._folded(BOOL, [left, right], lambda a, b: int(compare(a, b)), here)
        if sign == "-" and isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
            if left.type != right.type:
                raise CceError(here, f"a {right.type} must not be taken from a {left.type}")
            size = left.type.target.size
            return self._folded(INT64, [left, right], lambda a, b: (a - b) // size, here)
        if sign == "+" and isinstance(right.type, Pointer):
            left, right = right, left
        if sign not in "+-" or not isinstance(left.type, Pointer):
            raise CceError(here, f"{sign} is not defined for a {left.type} and a {right.type}")
        return self._offset(left, right, sign, here)

    def _on_TernaryOp(self, node: c_ast.TernaryOp) -> Expr:
        here = position_of(node)
        test = self.condition(node.cond)
        yes, no = self.value(node.iftrue), self.value(node.iffalse)
        if isinstance(yes.type, Scalar) and isinstance(no.type, Scalar):
            type: Type = yes.type if yes.type == no.type else common(yes.type, no.type)
        else:
            type = no.type if yes.constant == (0,) else yes.type
        yes, no = self._as_result(yes, type), self._as_result(no, type)
        if test.constant is not None:
            return (yes if test.constant[0] else no)._replace(place=None)
        choose, a, b = test.get, yes.get, no.get
        return Expr(type, lambda f: a(f) if choose(f) else b(f), here)

    def _as_result(self, expr: Expr, type: Type) -> Expr:
        if expr.type == type:
            return expr
        get = self.converted(expr, type)
        return Expr(type, get, expr.position, None if expr.constant is None else (get([]),))

    def _on_Cast(self, node: c_ast.Cast) -> Expr:
        type, _ = self.names.type_of(node.to_type, self.count)
        return self.cast(self.value(node.expr), type)._replace(position=position_of(node))

    def _on_CompoundLiteral(self, node: c_ast.CompoundLiteral) -> Expr:
        raise CceError(position_of(node), "compound literals are not part of the dialect")

    def _on_ExprList(self, node: c_ast.ExprList) -> Expr:
        parts = [self.value(x) for x in node.exprs]
        gets = [x.get for x in parts[:-1]]
        last = parts[-1]

        def get(f):
            for each in gets:
                each(f)
            return last.get(f)

        return Expr(last.type, get, position_of(node))

    def _on_FuncCall(self, node: c_ast.FuncCall) -> Expr:
        return self.call(node)
