"""Names and what they stand for; types as a declaration writes them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pycparser import c_ast

from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.language.errors import CceError, Position
from vitruvian.sim.davinci.cce.language.keywords import SPACES
from vitruvian.sim.davinci.cce.language.limits import TYPE_LEVELS
from vitruvian.sim.davinci.cce.language.types import (
    INT,
    NAMED,
    PRIVATE,
    Array,
    Pointer,
    Reference,
    Structure,
    Type,
    integer,
)
from vitruvian.sim.davinci.cce.rewrite.cplusplus import REFERENCE

__all__ = ["Expr", "Names", "Place", "Variable", "both"]

_PARTS = 1 << 20  # numbers and pointers in a structure


class Place(NamedTuple):
    """What can be assigned to: a slot of the frame, or bytes at an address."""

    slot: int | None
    space: str = PRIVATE
    address: Callable[[list], int] | None = None


class Expr(NamedTuple):
    """An expression: its type, and a function of the frame that gives its value.

    `constant` is its value where that is known, in a tuple; `place` where it can be assigned to.
    """

    type: Type
    get: Callable[[list], Any]
    position: Position
    constant: tuple | None = None
    place: Place | None = None


@dataclass
class Variable:
    """A name for a value: in a slot of the frame, at an offset in it, or at an address."""

    type: Type
    slot: int | None = None
    offset: int | None = None
    address: int | None = None
    constant: tuple | None = None


@dataclass
class Names:
    """Scopes of names, innermost last, and the types that the source has made."""

    scopes: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    typedefs: dict[str, Type] = field(default_factory=lambda: dict(NAMED))
    structures: dict[str, Type] = field(default_factory=dict)
    extents: dict[str, tuple[int, int]] = field(default_factory=dict)  # of structures

    def find(self, name: str) -> Variable | None:
        """The innermost variable of that name."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def every(self) -> set[str]:
        """All names that can be used here."""
        return set().union(*self.scopes)

    def extent(self, type: Type) -> tuple[int, int]:
        """Levels of types within each other, and numbers and pointers in something of a type."""
        levels, count = 0, 1
        while isinstance(type, Pointer | Array):
            count = count * type.count if isinstance(type, Array) else 1
            type, levels = type.element if isinstance(type, Array) else type.target, levels + 1
        if isinstance(type, Structure):
            inner, parts = self.extents.get(type.name, (1, 1))
            return levels + inner, count * parts
        return levels, count

    def checked(self, type: Type, position: Position) -> Type:
        """Give the type back.

        Raises
        ------
        CceError
            When it has too many levels.
        """
        if self.extent(type)[0] > TYPE_LEVELS:
            raise CceError(position, f"types must nest at most {TYPE_LEVELS} deep")
        return type

    def type_of(self, node: c_ast.Node, count: Callable) -> tuple[Type, str]:
        """A type, and the memory that something of it is in.

        Parameters
        ----------
        node : c_ast.Node
            What stands for the type in a declaration, a cast or sizeof.
        count : callable
            Evaluates the length of an array: a node to an int.
        """
        here = position_of(node)
        if isinstance(node, c_ast.Decl | c_ast.Typename | c_ast.Typedef):
            return self.type_of(node.type, count)
        if isinstance(node, c_ast.TypeDecl):
            return self._named(node.type, here, count), _space(node.quals)
        if isinstance(node, c_ast.PtrDecl):
            target, space = self.type_of(node.type, count)
            if REFERENCE in (node.quals or ()):
                return Reference(space, target), PRIVATE
            return self.checked(Pointer(space, target), here), _space(node.quals)
        if isinstance(node, c_ast.ArrayDecl):
            element, space = self.type_of(node.type, count)
            length = 0 if node.dim is None else count(node.dim)
            if length < 0:
                raise CceError(here, f"the length of an array must be 0 or more, not {length}")
            return self.checked(Array(element, length), here), space
        if isinstance(node, c_ast.FuncDecl):
            raise CceError(here, "a function is no value here")
        return self._named(node, here, count), PRIVATE

    def _named(self, node: c_ast.Node, here: Position, count: Callable) -> Type:
        if isinstance(node, c_ast.Struct | c_ast.Union):
            return self._structure(node, here, count)
        if isinstance(node, c_ast.Enum):
            if node.values is not None:
                self._enumerators(node, count)
            return INT
        if isinstance(node, c_ast.IdentifierType):
            words = list(node.names)
            if len(words) == 1 and words[0] in self.typedefs:
                return self.typedefs[words[0]]
            found = integer(words)
            if found is not None:
                return found
            raise CceError(here, f"{' '.join(words)} is not a type known here")
        raise CceError(here, f"a {type(node).__name__} is not a type of the dialect")

    def _enumerators(self, node: c_ast.Enum, count: Callable) -> None:
        value = 0
        for item in node.values.enumerators:
            value = value if item.value is None else count(item.value)
            get = (value,)
            self.scopes[0][item.name] = Variable(INT, constant=get)
            value += 1

    def _structure(self, node, here: Position, count: Callable) -> Type:
        name = node.name or f"at {here}"
        if node.decls is None:
            if name not in self.structures:
                raise CceError(here, f"struct {name} is not known here")
            return self.structures[name]
        members, offset, align, size = [], 0, 1, 0
        levels, parts = 0, 1
        for item in node.decls:
            if getattr(item, "bitsize", None) is not None:
                raise CceError(position_of(item), "bit fields are not part of the dialect")
            kind, _ = self.type_of(item, count)
            inner, more = self.extent(kind)
            levels, parts = max(levels, inner), parts + more
            if levels >= TYPE_LEVELS:
                raise CceError(here, f"types must nest at most {TYPE_LEVELS} deep")
            if parts > _PARTS:
                raise CceError(here, f"a structure must have at most {_PARTS} numbers")
            if isinstance(node, c_ast.Struct):
                offset = -(-offset // kind.align) * kind.align
            if item.name is None and isinstance(kind, Structure):
                members += [(name, type, offset + at) for name, type, at in kind.members]
            elif item.name is not None:
                members.append((item.name, kind, offset))
            size = max(size, offset + kind.size)
            if isinstance(node, c_ast.Struct):
                offset += kind.size
            align = max(align, kind.align)
        made = Structure(name, tuple(members), -(-size // align) * align, align)
        self.structures[name] = made
        self.extents[name] = (levels + 1, parts)
        return made


def _space(quals: list[str] | None) -> str:
    for word in quals or ():
        if word in SPACES:
            return SPACES[word]
    return PRIVATE


def both(first: Callable | None, second: Callable) -> Callable:
    """One function of the frame after the other; the value is the second's."""
    if first is None:
        return second

    def run(f):
        first(f)
        return second(f)

    return run
