"""Compile declarations: where a variable is stored, and how it gets its initial value."""

from collections.abc import Callable, Iterator

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.calls import Calls
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.scope import Expr, LValue, Variable
from vitruvian.sim.davinci.cce.compile.storage import ADDRESS_SLOT, MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.values import assign, converted, copied
from vitruvian.sim.davinci.cce.intrinsics.runtime import STACK_BYTES
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.types import (
    PRIVATE,
    VOID,
    Array,
    Pointer,
    Reference,
    Scalar,
    Structure,
    Type,
    leaves,
)
from vitruvian.sim.davinci.cce.rewrite.cplusplus import REFERENCE
from vitruvian.sim.davinci.cce.rewrite.members import MEMBER_PREFIX


class Declarations:
    """The compiler of declarations.

    Parameters
    ----------
    calls : Calls
        The compiler of calls, which also binds references; its ``expressions`` compile the
        initial values.
    """

    def __init__(self, calls: Calls):
        self.calls = calls
        self.expressions = calls.expressions
        self.context = calls.context

    def parameter(self, name: str, type: Type, position: SourcePosition) -> Callable:
        """Declare a parameter; return the function that stores its value into a frame.

        Parameters
        ----------
        name : str
            The name of the parameter.
        type : Type
            Its type.
        position : SourcePosition
            The position of the function.
        """
        variable = self._local(name, type)
        self.context.symbols.scopes[-1][name] = variable
        if variable.slot is not None:
            slot = variable.slot

            def keep(f, value):
                f[slot] = value

            return keep
        offset = variable.offset or 0
        if isinstance(type, Structure):  # the value is the address of the caller's structure

            def copy(f, value):
                at, memory = f[ADDRESS_SLOT] + offset, f[MACHINE_SLOT].memory
                memory[at : at + type.size] = memory[value : value + type.size]

            return copy

        def store(f, value):
            f[MACHINE_SLOT].store(PRIVATE, f[ADDRESS_SLOT] + offset, type, value, position)

        return store

    def declared(
        self, node: c_ast.Decl, *, static: bool = False
    ) -> tuple[Variable, Callable | None]:
        """Declare a variable; return it and the function that initialises it, if any.

        Parameters
        ----------
        node : c_ast.Decl
            The declaration.
        static : bool
            If True, the variable outlives the call.

        Raises
        ------
        CceError
            If the type and the initial value do not fit each other, or the variable cannot be
            stored.
        """
        position = position_of(node)
        type, space = self._type(node, position)
        if type is VOID:
            raise CceError(position, f"{node.name} must have a type other than void")
        if space != PRIVATE:
            message = f"must be a pointer to an address in {space}, not a variable in {space}"
            raise CceError(position, f"{node.name} {message}")
        if isinstance(type, Reference):
            if static:
                message = "must be a variable of a function, and not static"
                raise CceError(position, f"reference {node.name} {message}")
            return self._reference(node, type, position)
        if isinstance(type, Array) and type.count == 0 and node.init is not None:
            type = Array(type.element, _length(node.init, position))
        # A structure without members has no bytes, but an array of many of them takes time.
        if max(type.size, self.context.symbols.extent(type)[1]) > STACK_BYTES:
            message = f"variables must fit {STACK_BYTES} bytes; {node.name} does not"
            raise CceError(position, message)
        constant = self._constant(node, type)
        if constant is not None:
            return Variable(type, constant=constant), None
        if static:
            variable = Variable(type, address=self.context.globals.reserve(type))
        else:
            variable = self._local(node.name, type)
        if node.init is None:
            # Static variables begin as zeros, all others are indeterminate (C11, 6.7.9).
            steps = [_zeroing(variable)] if static else []
            if isinstance(type, Structure | Array):
                steps += self._default_members(type, _lvalue(variable), 0, position)
            return variable, _sequence(steps) if steps else None
        return variable, self._initialised(variable, node.init, position)

    def _type(self, node: c_ast.Decl, position: SourcePosition) -> tuple[Type, str]:
        """Return the type of a variable and its memory; ``auto`` takes the initial value's type."""
        inferred = isinstance(node.type, c_ast.TypeDecl) and isinstance(
            node.type.type, c_ast.InferredType
        )
        if not inferred:
            return self.context.symbols.type_of(node, self.expressions.count)
        if REFERENCE in (node.quals or []):
            target = self.expressions.expression(node.init)
            space = PRIVATE if target.lvalue is None else target.lvalue.space
            return Reference(space, target.type), PRIVATE
        value = self.expressions.value(node.init)
        if not isinstance(value.type, Scalar | Pointer | Structure):
            raise CceError(position, f"auto must stand for a value, not {value.type}")
        return value.type, PRIVATE

    def _local(self, name: str, type: Type) -> Variable:
        """Place a variable in the frame: in a slot if possible, otherwise in bytes."""
        # A variable whose address nobody takes lives in a slot of the frame, which is faster than
        # memory.
        plain = isinstance(type, Scalar | Pointer) and name not in self.context.addressed
        if plain or isinstance(type, Reference):
            return Variable(type, slot=self.context.frame.new_slot())
        return Variable(type, offset=self.context.frame.new_bytes(type))

    def _reference(
        self, node: c_ast.Decl, type: Reference, position: SourcePosition
    ) -> tuple[Variable, Callable]:
        """Declare a reference; return it and the function that binds it."""
        slot = self.context.frame.new_slot()
        get = self.calls.argument(node.init, type, position)

        def bind(f):
            f[slot] = get(f)

        return Variable(type, slot=slot), bind

    def _constant(self, node: c_ast.Decl, type: Type) -> tuple | None:
        """Return the value of a constant number, which needs no storage, or None."""
        if "const" not in (node.quals or []) or not isinstance(type, Scalar) or node.init is None:
            return None
        if node.name in self.context.addressed or isinstance(node.init, c_ast.InitList):
            return None
        value = self.expressions.value(node.init)
        return None if value.constant is None else (converted(value, type)([]),)

    def _initialised(
        self, variable: Variable, init: c_ast.Node, position: SourcePosition
    ) -> Callable:
        """Return the function that gives a variable its initial value."""
        lvalue = _lvalue(variable)
        if isinstance(variable.type, Scalar | Pointer):
            while isinstance(init, c_ast.InitList):  # int a = {3}
                if not init.exprs:
                    init = c_ast.Constant("int", "0", init.coord)
                    break
                if len(init.exprs) != 1:
                    message = f"a {variable.type} must have one value, not {len(init.exprs)}"
                    raise CceError(position, message)
                init = init.exprs[0]
            get = converted(self.expressions.value(init), variable.type)
            return assign(lvalue, variable.type, get, position)
        if not isinstance(init, c_ast.InitList):
            if isinstance(variable.type, Structure):
                assert lvalue.address is not None  # a structure is never in a slot
                target = Expr(variable.type, lvalue.address, position, lvalue=lvalue)
                return copied(target, self.expressions.value(init), position).get
            raise CceError(position, f"{variable.type} must be initialised with a list")
        # Values that the list does not name are zero, or the default value of the member.
        steps = [_zeroing(variable)]
        steps += self._default_members(variable.type, lvalue, 0, position)
        steps += self._listed(variable.type, lvalue, 0, init)
        return _sequence(steps)

    def _default_members(
        self, type: Type, lvalue: LValue, offset: int, position: SourcePosition
    ) -> Iterator[Callable]:
        """Yield functions that store the initial values which structures give their members.

        ``offset`` is the offset of the value of type ``type`` from ``lvalue``.
        """
        if isinstance(type, Array):
            for i in range(type.count if isinstance(type.element, Structure | Array) else 0):
                at = offset + i * type.element.size
                yield from self._default_members(type.element, lvalue, at, position)
        for name, kind, at in type.members if isinstance(type, Structure) else ():
            word = f"{MEMBER_PREFIX}{type}_{name}".replace("struct ", "")
            if self.context.symbols.find(word) is not None:
                value = self.expressions.value(c_ast.ID(word))
                yield _storing(lvalue, offset + at, kind, converted(value, kind), position)
            else:
                yield from self._default_members(kind, lvalue, offset + at, position)

    def _listed(
        self, type: Type, lvalue: LValue, offset: int, init: c_ast.InitList
    ) -> Iterator[Callable]:
        """Yield functions that store the values of a list one by one."""
        index = 0
        for item in init.exprs or []:
            position = position_of(item)
            if isinstance(item, c_ast.NamedInitializer):
                index = self._designated(type, item)
                item = item.expr
            if isinstance(type, Array):
                if index >= type.count:
                    message = f"a list for {type} must have at most {type.count} values"
                    raise CceError(position, message)
                kind, at = type.element, offset + index * type.element.size
            elif isinstance(type, Structure):
                if index >= len(type.members):
                    message = f"a list for {type} must have at most {len(type.members)} values"
                    raise CceError(position, message)
                _, kind, at = type.members[index]
                at += offset
            else:
                kind, at = type, offset
            index += 1
            if isinstance(item, c_ast.InitList):
                yield from self._listed(kind, lvalue, at, item)
                continue
            # A value without braces initialises the first number inside a nested structure or array
            # (C11, 6.7.9).
            kind, at = next((leaf, at + inner) for leaf, inner in leaves(kind))
            get = converted(self.expressions.value(item), kind)
            yield _storing(lvalue, at, kind, get, position)

    def _designated(self, type: Type, item: c_ast.NamedInitializer) -> int:
        """Return the index that a designator such as ``.x =`` names."""
        name = item.name[0]
        if isinstance(type, Structure) and isinstance(name, c_ast.ID):
            names = [m[0] for m in type.members]
            if name.name in names:
                return names.index(name.name)
            raise CceError(position_of(item), f"{type} has no member {name.name}")
        return self.expressions.count(name)


def _length(init: c_ast.Node, position: SourcePosition) -> int:
    if not isinstance(init, c_ast.InitList):
        raise CceError(position, "an array without a length must be initialised with a list")
    return len(init.exprs or [])


def _lvalue(variable: Variable) -> LValue:
    if variable.slot is not None:
        return LValue(variable.slot)
    if variable.address is not None:
        fixed = variable.address
        return LValue(None, PRIVATE, lambda f: fixed)
    offset = variable.offset or 0
    return LValue(None, PRIVATE, lambda f: f[ADDRESS_SLOT] + offset)


def _zeroing(variable: Variable) -> Callable:
    """Return the function that clears the bytes of a variable in memory."""
    size, address = variable.type.size, _lvalue(variable).address
    assert address is not None  # callers pass only variables in memory

    def clear(f):
        at = address(f)
        f[MACHINE_SLOT].memory[at : at + size] = bytes(size)

    return clear


def _storing(
    lvalue: LValue, offset: int, kind: Type, get: Callable, position: SourcePosition
) -> Callable:
    """Return the function that stores a value at an offset within a variable in memory."""
    base = lvalue.address
    assert base is not None  # callers pass only variables in memory
    target = LValue(None, PRIVATE, lambda f: base(f) + offset)
    return assign(target, kind, get, position)


def _sequence(steps: list[Callable]) -> Callable:
    """Return the function that runs others one after the other."""

    def run(f):
        for step in steps:
            step(f)

    return run
