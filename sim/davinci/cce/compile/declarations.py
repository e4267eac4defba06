"""Variables: where they are, and how they get their first values."""

from collections.abc import Callable, Set

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.calls import Calls
from vitruvian.sim.davinci.cce.compile.expressions import ADDRESS_SLOT, MACHINE_SLOT
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.compile.scope import Expr, Names, Place, Variable
from vitruvian.sim.davinci.cce.intrinsics.runtime import STACK_BYTES
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
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

__all__ = ["RESULT_SLOT", "Declarations"]

RESULT_SLOT, _FIRST_SLOT = 2, 3


class Declarations(Calls):
    """Compiles declarations. `addressed` are names whose variables must be in memory."""

    def __init__(self, names: Names, addressed: Set[str]):
        super().__init__(names)
        self.addressed = addressed
        self.slots, self.bytes = 1, 0  # the result's slot

    def reserve(self, type: Type) -> int:
        """Give an address for a variable that outlives the call."""
        raise NotImplementedError

    def new_slot(self) -> int:
        """Give a slot of the frame that nothing else uses."""
        self.slots += 1
        return _FIRST_SLOT + self.slots - 2

    def parameter(self, name: str, type: Type, position: Position) -> Callable:
        """Declare a parameter; the function of a frame and a value that gives it its value."""
        variable = self._variable(name, type)
        self.names.scopes[-1][name] = variable
        if variable.slot is not None:
            slot = variable.slot

            def keep(f, value):
                f[slot] = value

            return keep
        offset = variable.offset or 0
        if isinstance(type, Structure):

            def copy(f, value):
                at, memory = f[ADDRESS_SLOT] + offset, f[MACHINE_SLOT].memory
                memory[at : at + type.size] = memory[value : value + type.size]

            return copy

        def store(f, value):
            f[MACHINE_SLOT].store(PRIVATE, f[ADDRESS_SLOT] + offset, type, value, position)

        return store

    def _variable(self, name: str, type: Type) -> Variable:
        plain = isinstance(type, Scalar | Pointer) and name not in self.addressed
        if plain or isinstance(type, Reference):
            return Variable(type, slot=self.new_slot())
        return Variable(type, offset=self.new_bytes(type))

    def new_bytes(self, type: Type) -> int:
        """Give an offset in the frame's memory that nothing else uses."""
        offset = -(-self.bytes // 16) * 16
        self.bytes = offset + type.size
        return offset

    def declared(
        self, node: c_ast.Decl, *, fixed: bool = False
    ) -> tuple[Variable, Callable | None]:
        """A variable, and the function that gives it its first value."""
        here = position_of(node)
        inferred = isinstance(node.type, c_ast.TypeDecl) and isinstance(
            node.type.type, c_ast.InferredType
        )
        if inferred and REFERENCE in (node.quals or []):
            named = self.expression(node.init)
            space = PRIVATE if named.place is None else named.place.space
            type, space = Reference(space, named.type), PRIVATE
        elif inferred:
            first = self.value(node.init)
            if not isinstance(first.type, Scalar | Pointer | Structure):
                raise CceError(here, f"auto must stand for a value, not {first.type}")
            type, space = first.type, PRIVATE
        else:
            type, space = self.names.type_of(node, self.count)
        if type is VOID:
            raise CceError(here, f"{node.name} must have a type other than void")
        if space != PRIVATE:
            raise CceError(
                here,
                f"{node.name} must be a pointer to {space} with an address, not a variable in it",
            )
        if isinstance(type, Reference):
            if fixed:
                raise CceError(
                    here, f"reference {node.name} must be within a function, and not static"
                )
            return self._referring(node, type, here)
        if isinstance(type, Array) and type.count == 0 and node.init is not None:
            type = Array(type.element, self._length(node.init, here))
        if max(type.size, self.names.extent(type)[1]) > STACK_BYTES:
            raise CceError(here, f"variables must fit {STACK_BYTES} bytes; {node.name} does not")
        constant = self._constant(node, type)
        if constant is not None:
            return Variable(type, constant=constant), None
        if fixed:
            variable = Variable(type, address=self.reserve(type))
        else:
            variable = self._variable(node.name, type)
        if node.init is None:
            steps = [self._zeroed(variable, here)] if fixed else []
            if isinstance(type, Structure | Array):
                steps += self._from_members(type, self._place(variable), 0, here)
            return variable, _sequence(steps) if steps else None
        return variable, self._initial(variable, node.init, here)

    def _referring(
        self, node: c_ast.Decl, type: Reference, here: Position
    ) -> tuple[Variable, Callable]:
        """A reference, and the function that binds it."""
        slot, get = self.new_slot(), self.argument(node.init, type, here)

        def bind(f):
            f[slot] = get(f)

        return Variable(type, slot=slot), bind

    def _constant(self, node: c_ast.Decl, type: Type) -> tuple | None:
        """The value of a constant number."""
        if "const" not in (node.quals or []) or not isinstance(type, Scalar) or node.init is None:
            return None
        if node.name in self.addressed or isinstance(node.init, c_ast.InitList):
            return None
        first = self.value(node.init)
        return None if first.constant is None else (self.converted(first, type)([]),)

    def _length(self, init: c_ast.Node, here: Position) -> int:
        if not isinstance(init, c_ast.InitList):
            raise CceError(here, "an array without a length must be given a list")
        return len(init.exprs or [])

    def _place(self, variable: Variable) -> Place:
        if variable.slot is not None:
            return Place(variable.slot)
        if variable.address is not None:
            fixed = variable.address
            return Place(None, PRIVATE, lambda f: fixed)
        offset = variable.offset or 0
        return Place(None, PRIVATE, lambda f: f[ADDRESS_SLOT] + offset)

    def _initial(self, variable: Variable, init: c_ast.Node, here: Position) -> Callable:
        place = self._place(variable)
        if isinstance(variable.type, Scalar | Pointer):
            while isinstance(init, c_ast.InitList):
                if not init.exprs:
                    init = c_ast.Constant("int", "0", init.coord)
                    break
                if len(init.exprs) != 1:
                    raise CceError(here, f"one value is needed here, not {len(init.exprs)}")
                init = init.exprs[0]
            get = self.converted(self.value(init), variable.type)
            return self.assign(place, variable.type, get, here)
        if not isinstance(init, c_ast.InitList):
            if isinstance(variable.type, Structure):
                target = Expr(variable.type, place.address, here, place=place)  # pyright: ignore[reportArgumentType]
                return self._copy(target, self.value(init), here).get
            raise CceError(here, f"a {variable.type} must be given a list")
        steps = [self._zeroed(variable, here)]
        steps += self._from_members(variable.type, place, 0, here)
        steps += list(self._listed(variable.type, place, 0, init))
        return _sequence(steps)

    def _zeroed(self, variable: Variable, here: Position) -> Callable:
        """What the list does not name is zero."""
        size, address = variable.type.size, self._place(variable).address
        assert address is not None  # only what is in memory comes here

        def clear(f):
            at = address(f)
            f[MACHINE_SLOT].memory[at : at + size] = bytes(size)

        return clear

    def _from_members(self, type: Type, place: Place, offset: int, here: Position):
        """Values that the members of structures have in their declaration."""
        if isinstance(type, Array):
            for i in range(type.count if isinstance(type.element, Structure | Array) else 0):
                yield from self._from_members(
                    type.element, place, offset + i * type.element.size, here
                )
        for name, kind, at in type.members if isinstance(type, Structure) else ():
            word = f"{MEMBER_PREFIX}{type}_{name}".replace("struct ", "")
            if self.names.find(word) is not None:
                value = self.value(c_ast.ID(word))
                yield self._put(place, offset + at, kind, self.converted(value, kind), here)
            else:
                yield from self._from_members(kind, place, offset + at, here)

    def _put(self, place: Place, at: int, kind: Type, get: Callable, here: Position) -> Callable:
        """The function that puts a value into a part of something in memory."""
        base = place.address
        assert base is not None  # it is no slot
        target = Place(None, PRIVATE, lambda f: base(f) + at)
        return self.assign(target, kind, get, here)

    def _listed(self, type: Type, place: Place, offset: int, init: c_ast.InitList):
        """A list's values, put one by one."""
        index = 0
        for item in init.exprs or []:
            here = position_of(item)
            if isinstance(item, c_ast.NamedInitializer):
                index = self._designated(type, item)
                item = item.expr
            if isinstance(type, Array):
                if index >= type.count:
                    raise CceError(here, f"a {type} must have at most {type.count} values")
                kind, at = type.element, offset + index * type.element.size
            elif isinstance(type, Structure):
                if index >= len(type.members):
                    raise CceError(here, f"{type} must have at most {len(type.members)} values")
                _, kind, at = type.members[index]
                at += offset
            else:
                kind, at = type, offset
            index += 1
            if isinstance(item, c_ast.InitList):
                yield from self._listed(kind, place, at, item)
                continue
            kind, at = next((leaf, at + inner) for leaf, inner in leaves(kind))
            yield self._put(place, at, kind, self.converted(self.value(item), kind), here)

    def _designated(self, type: Type, item: c_ast.NamedInitializer) -> int:
        name = item.name[0]
        if isinstance(type, Structure) and isinstance(name, c_ast.ID):
            names = [m[0] for m in type.members]
            if name.name in names:
                return names.index(name.name)
            raise CceError(position_of(item), f"{type} has no member {name.name}")
        return self.count(name)


def _sequence(steps: list[Callable]) -> Callable:
    """Functions one after the other."""

    def run(f):
        for step in steps:
            step(f)

    return run
