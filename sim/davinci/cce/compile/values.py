"""Operations on typed expressions: load, assign, convert, and apply operators.

These functions compile: they take and return ``Expr`` objects, fold constants, and report type
errors. The closures that they build are functions of the frame.
"""

from collections.abc import Callable

from vitruvian.sim.davinci.cce.compile.arithmetic import COMPARISONS, binary, shift
from vitruvian.sim.davinci.cce.compile.scope import Expr, LValue
from vitruvian.sim.davinci.cce.compile.storage import MACHINE_SLOT
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import (
    BOOL,
    INT64,
    VOID,
    Array,
    Pointer,
    Scalar,
    Structure,
    Type,
    common,
    converter,
    is_number,
    leaves,
    promoted,
)


def constant(type: Type, value, position: SourcePosition) -> Expr:
    """Return an expression with a constant value."""
    return Expr(type, lambda f: value, position, (value,))


def load(type: Type, lvalue: LValue, position: SourcePosition) -> Expr:
    """Return the expression that reads a variable; an array or structure is its address."""
    if isinstance(type, Array | Structure):
        assert lvalue.address is not None  # arrays and structures are never in a slot
        return Expr(type, lvalue.address, position, lvalue=lvalue)
    if lvalue.slot is not None:
        slot = lvalue.slot
        return Expr(type, lambda f: f[slot], position, lvalue=lvalue)
    space, address = lvalue.space, lvalue.address
    assert address is not None  # an lvalue has a slot or an address

    def get(f):
        return f[MACHINE_SLOT].load(space, address(f), type, position)

    return Expr(type, get, position, lvalue=lvalue)


def assign(lvalue: LValue, type: Type, get: Callable, position: SourcePosition) -> Callable:
    """Return the function that stores the value of ``get`` and returns it.

    Parameters
    ----------
    lvalue : LValue
        The target.
    type : Type
        The type of the target, which the value has already.
    get : callable
        The function of the frame that gives the value.
    position : SourcePosition
        The position of the assignment.
    """
    if lvalue.slot is not None:
        slot = lvalue.slot

        def keep(f):
            f[slot] = value = get(f)
            return value

        return keep
    space, address = lvalue.space, lvalue.address
    assert address is not None  # an lvalue has a slot or an address

    def store(f):
        # The address comes first, as C leaves the order open and a kernel must give one result.
        at = address(f)
        value = get(f)
        f[MACHINE_SLOT].store(space, at, type, value, position)
        return value

    return store


def copied(target: Expr, source: Expr, position: SourcePosition) -> Expr:
    """Return the assignment of a structure, which is copied member by member.

    Raises
    ------
    CceError
        If the types differ.
    """
    if source.type != target.type or source.lvalue is None or target.lvalue is None:
        raise CceError(position, f"{source.type} cannot be converted to {target.type}")
    target_space, source_space = target.lvalue.space, source.lvalue.space
    members = list(leaves(target.type))

    def get(f):
        machine = f[MACHINE_SLOT]
        to, start = target.get(f), source.get(f)
        for kind, offset in members:
            value = machine.load(source_space, start + offset, kind, position)
            machine.store(target_space, to + offset, kind, value, position)
        return to

    return Expr(target.type, get, position)


def decayed(expr: Expr) -> Expr:
    """Return an array as a pointer to its first element, and any other expression as it is."""
    if isinstance(expr.type, Array) and expr.lvalue is not None:
        target = Pointer(expr.lvalue.space, expr.type.element)
        return Expr(target, expr.get, expr.position)
    return expr


def converted(expr: Expr, target: Type, *, explicit: bool = False) -> Callable:
    """Return the function that gives an expression's value as another type.

    Parameters
    ----------
    expr : Expr
        The expression.
    target : Type
        The type of the result.
    explicit : bool
        If True, also convert between integers and pointers, as a cast does.

    Raises
    ------
    CceError
        If C has no such conversion, or a pointer would change its memory.
    """
    source, position = expr.type, expr.position
    if source == target:
        return expr.get
    if isinstance(target, Pointer):
        # The constant 0 is the null pointer of every memory.
        null = expr.constant == (0,)
        if isinstance(source, Pointer):
            if source.space != target.space and not null:
                raise CceError(position, f"{source} cannot be converted to {target}")
            return expr.get
        if not isinstance(source, Scalar) or source.is_float or not (explicit or null):
            raise CceError(position, f"a value of type {target} must be a pointer, not {source}")
    elif isinstance(source, Pointer):
        allowed = isinstance(target, Scalar) and not target.is_float
        if not allowed or not (explicit or target == BOOL):
            raise CceError(position, f"a value of type {target} must be a number, not {source}")
    elif not isinstance(source, Scalar) or not isinstance(target, Scalar):
        raise CceError(position, f"{source} cannot be converted to {target}")
    convert = converter(source, target)
    if convert is None:
        return expr.get
    if expr.constant is not None:
        value = convert(expr.constant[0])
        return lambda f: value
    get = expr.get
    return lambda f: convert(get(f))


def cast(expr: Expr, target: Type) -> Expr:
    """Return an expression explicitly converted to another type."""
    if target is VOID:
        return Expr(VOID, expr.get, expr.position)
    get = converted(decayed(expr), target, explicit=True)
    # A constant needs no frame.
    known = None if expr.constant is None else (get([]),)
    return Expr(target, get, expr.position, known)


def folded(type: Type, operands: list[Expr], compute: Callable, position: SourcePosition) -> Expr:
    """Return an operation on one or two values, computed now if all of them are constants."""
    if all(x.constant is not None for x in operands):
        return constant(type, compute(*(x.constant[0] for x in operands if x.constant)), position)
    a = operands[0].get
    if len(operands) == 1:
        return Expr(type, lambda f: compute(a(f)), position)
    b = operands[1].get
    if operands[1].constant is not None:
        # x << 3 and the like are frequent in address computations: this saves a call for each.
        right = operands[1].constant[0]
        return Expr(type, lambda f: compute(a(f), right), position)
    return Expr(type, lambda f: compute(a(f), b(f)), position)


def deref(pointer: Expr, position: SourcePosition) -> Expr:
    """Return the object that a pointer points to, as an expression.

    Raises
    ------
    CceError
        If the expression is not a pointer, or points to void.
    """
    if not isinstance(pointer.type, Pointer) or pointer.type.target is VOID:
        raise CceError(
            position, f"the operand of * must be a pointer to a value, not {pointer.type}"
        )
    return load(pointer.type.target, LValue(None, pointer.type.space, pointer.get), position)


def offset_pointer(base: Expr, index: Expr, sign: str, position: SourcePosition) -> Expr:
    """Return a pointer moved by ``index`` elements.

    Parameters
    ----------
    base, index : Expr
        The pointer and the number of elements.
    sign : {"+", "-"}
        The direction.
    position : SourcePosition
        The position of the operator.

    Raises
    ------
    CceError
        If ``base`` is not a pointer to elements with a size, or ``index`` is not an integer.
    """
    if not isinstance(base.type, Pointer):
        raise CceError(
            position, f"the operand of [] must be a pointer or an array, not {base.type}"
        )
    if not isinstance(index.type, Scalar) or index.type.is_float:
        raise CceError(position, f"the offset of a pointer must be an integer, not {index.type}")
    # Pointers move by elements, addresses by bytes.
    size = base.type.target.size * (1 if sign == "+" else -1)
    if size == 0:
        raise CceError(position, f"the elements of a {base.type} must have at least 1 byte")
    get, by = base.get, index.get
    if index.constant is not None:
        step = index.constant[0] * size
        if base.constant is not None:
            return constant(base.type, base.constant[0] + step, position)
        return Expr(base.type, (lambda f: get(f) + step) if step else get, position)
    return Expr(base.type, lambda f: get(f) + by(f) * size, position)


def apply(sign: str, left: Expr, right: Expr, position: SourcePosition) -> Expr:
    """Return a binary operator applied to two values.

    Parameters
    ----------
    sign : str
        The operator; not && or ||, which do not always evaluate their right side.
    left, right : Expr
        The operands.
    position : SourcePosition
        The position of the operator.

    Raises
    ------
    CceError
        If the operator is not defined for the types.
    """
    if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
        return _apply_to_pointers(sign, left, right, position)
    for side in (left, right):
        if not is_number(side.type):
            raise CceError(position, f"an operand of {sign} must be a number, not {side.type}")
    assert isinstance(left.type, Scalar) and isinstance(right.type, Scalar)
    if sign in ("<<", ">>"):
        # Unlike other operators, a shift has the type of its left operand (C11, section 6.5.7).
        type = promoted(left.type)
        if type.is_float or right.type.is_float:
            raise CceError(position, f"an operand of {sign} must be an integer")
        left = _as_type(left, type)
        return folded(type, [left, right], shift(sign, type, position), position)
    type = common(left.type, right.type)
    left, right = _as_type(left, type), _as_type(right, type)
    if sign in COMPARISONS:
        compare = COMPARISONS[sign]
        return folded(BOOL, [left, right], lambda a, b: int(compare(a, b)), position)
    return folded(type, [left, right], binary(sign, type, position), position)


def _as_type(expr: Expr, type: Type) -> Expr:
    return expr if expr.type == type else cast(expr, type)


def _apply_to_pointers(sign: str, left: Expr, right: Expr, position: SourcePosition) -> Expr:
    if sign in COMPARISONS:
        for pointer, other in ((left, right), (right, left)):
            if isinstance(pointer.type, Pointer):
                converted(other, pointer.type, explicit=False)  # raises if they do not compare
        compare = COMPARISONS[sign]
        return folded(BOOL, [left, right], lambda a, b: int(compare(a, b)), position)
    if sign == "-" and isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
        if left.type != right.type:
            raise CceError(position, f"{right.type} cannot be subtracted from {left.type}")
        size = left.type.target.size
        return folded(INT64, [left, right], lambda a, b: (a - b) // size, position)
    if sign == "+" and isinstance(right.type, Pointer):
        # i + p is p + i.
        left, right = right, left
    if sign not in "+-" or not isinstance(left.type, Pointer):
        raise CceError(position, f"{sign} is not defined for {left.type} and {right.type}")
    return offset_pointer(left, right, sign, position)
