"""Symbols in scope, and the types that declarations denote."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pycparser import c_ast

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.compile.parse import position_of
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
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

_PARTS = 1 << 20  # the most numbers and pointers in a structure


class LValue(NamedTuple):
    """A storage location: a slot of the frame, or bytes at an address in the memory ``space``.

    ``address`` is a function of the frame; exactly one of ``slot`` and ``address`` is not None.
    """

    slot: int | None
    space: str = PRIVATE
    address: Callable[[list], int] | None = None


class Expr(NamedTuple):
    """A compiled expression.

    Attributes
    ----------
    type : Type
        The type of the value.
    get : callable
        The function of the frame that gives the value; for an array or structure, its address.
    position : SourcePosition
        The position in the source.
    constant : tuple or None
        A tuple with the value if it is known when the expression is compiled.
    lvalue : LValue or None
        The storage location, if the expression has one.
    """

    type: Type
    get: Callable[[list], Any]
    position: SourcePosition
    constant: tuple | None = None
    lvalue: LValue | None = None


@dataclass
class Variable:
    """A variable: a slot or byte offset of the frame, a fixed address, or a constant in a tuple."""

    type: Type
    slot: int | None = None
    offset: int | None = None
    address: int | None = None
    constant: tuple | None = None


@dataclass
class SymbolTable:
    """The scopes of variables, and the types that the source defines.

    Attributes
    ----------
    scopes : list of dict
        The variables by name, one dict per scope; the outermost level first.
    typedefs : dict
        The types by name.
    structures : dict
        The structures and unions by tag.
    extents : dict
        The result of ``extent`` for each structure.
    """

    scopes: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    typedefs: dict[str, Type] = field(default_factory=lambda: dict(NAMED))
    structures: dict[str, Type] = field(default_factory=dict)
    extents: dict[str, tuple[int, int]] = field(default_factory=dict)

    def find(self, name: str) -> Variable | None:
        """Return the innermost variable of that name, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def names(self) -> set[str]:
        """Return the names of all variables in scope."""
        return set().union(*self.scopes)

    def extent(self, type: Type) -> tuple[int, int]:
        """Return the nesting depth of a type, and the count of numbers and pointers in a value."""
        # A pointer counts as one value, however large its target is.
        levels, count = 0, 1
        while isinstance(type, Pointer | Array):
            count = count * type.count if isinstance(type, Array) else 1
            type, levels = type.element if isinstance(type, Array) else type.target, levels + 1
        if isinstance(type, Structure):
            inner, parts = self.extents.get(type.name, (1, 1))
            return levels + inner, count * parts
        return levels, count

    def checked(self, type: Type, position: SourcePosition) -> Type:
        """Return the type.

        Raises
        ------
        CceError
            If the type nests too deeply.
        """
        if self.extent(type)[0] > TYPE_LEVELS:
            raise CceError(position, f"types must nest at most {TYPE_LEVELS} deep")
        return type

    def type_of(self, node: c_ast.Node, count: Callable) -> tuple[Type, str]:
        """Return the type that a node denotes, and the memory that its qualifiers name.

        Parameters
        ----------
        node : c_ast.Node
            The type in a declaration, a cast or sizeof.
        count : callable
            The function that evaluates the length of an array: it takes a node and returns an int.

        Raises
        ------
        CceError
            If the type is unknown or exceeds a limit.
        """
        position = position_of(node)
        if isinstance(node, c_ast.Decl | c_ast.Typename | c_ast.Typedef):
            return self.type_of(node.type, count)
        if isinstance(node, c_ast.TypeDecl):
            return self._named(node.type, position, count), _space(node.quals)
        if isinstance(node, c_ast.PtrDecl):
            target, space = self.type_of(node.type, count)
            if REFERENCE in (node.quals or ()):
                return Reference(space, target), PRIVATE
            return self.checked(Pointer(space, target), position), _space(node.quals)
        if isinstance(node, c_ast.ArrayDecl):
            element, space = self.type_of(node.type, count)
            length = 0 if node.dim is None else count(node.dim)
            if length < 0:
                raise CceError(position, f"the length of an array must be 0 or more, not {length}")
            return self.checked(Array(element, length), position), space
        if isinstance(node, c_ast.FuncDecl):
            raise CceError(position, "a function cannot be used as a value")
        return self._named(node, position, count), PRIVATE

    def _named(self, node: c_ast.Node, position: SourcePosition, count: Callable) -> Type:
        if isinstance(node, c_ast.Struct | c_ast.Union):
            return self._structure(node, position, count)
        if isinstance(node, c_ast.Enum):  # enumerations of a source are plain integers
            if node.values is not None:
                self._enumerators(node, count)
            return INT
        if isinstance(node, c_ast.IdentifierType):
            words = list(node.names)
            if len(words) == 1 and words[0] in self.typedefs:
                return self.typedefs[words[0]]
            number = integer(words)
            if number is not None:
                return number
            raise CceError(position, f"{' '.join(words)} is not a known type")
        raise CceError(position, f"a {type(node).__name__} is not a type of the dialect")

    def _enumerators(self, node: c_ast.Enum, count: Callable) -> None:
        value = 0
        for item in node.values.enumerators:
            # Enumerators without a value count on from the one before.
            value = value if item.value is None else count(item.value)
            get = (value,)
            self.scopes[0][item.name] = Variable(INT, constant=get)
            value += 1

    def _structure(self, node, position: SourcePosition, count: Callable) -> Type:
        name = node.name or f"at {position}"
        if node.decls is None:
            if name not in self.structures:
                raise CceError(position, f"struct {name} is not defined")
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
                raise CceError(position, f"types must nest at most {TYPE_LEVELS} deep")
            if parts > _PARTS:
                raise CceError(position, f"a structure must have at most {_PARTS} numbers")
            if isinstance(node, c_ast.Struct):  # members of a union stay at offset 0
                # Members are aligned as a C compiler aligns them, since kernels copy structures as
                # bytes.
                offset = round_up(offset, kind.align)
            # The members of an unnamed structure are members of the outer one.
            if item.name is None and isinstance(kind, Structure):
                members += [(name, type, offset + at) for name, type, at in kind.members]
            elif item.name is not None:
                members.append((item.name, kind, offset))
            size = max(size, offset + kind.size)
            if isinstance(node, c_ast.Struct):
                offset += kind.size
            align = max(align, kind.align)
        structure = Structure(name, tuple(members), round_up(size, align), align)
        self.structures[name] = structure
        self.extents[name] = (levels + 1, parts)
        return structure


def _space(quals: list[str] | None) -> str:
    """Return the memory that type qualifiers name."""
    for word in quals or ():
        if word in SPACES:
            return SPACES[word]
    return PRIVATE


def both(first: Callable | None, second: Callable) -> Callable:
    """Return the function that runs two others and returns the value of the second."""
    if first is None:
        return second

    def run(f):
        first(f)
        return second(f)

    return run
