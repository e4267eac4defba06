"""The state that the parts of a function's compiler share."""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Protocol

from vitruvian.sim.davinci.cce.compile.scope import SymbolTable
from vitruvian.sim.davinci.cce.compile.storage import FrameLayout, Globals
from vitruvian.sim.davinci.cce.language.errors import SourcePosition
from vitruvian.sim.davinci.cce.language.types import Type


@dataclass
class CompiledFunction:
    """A compiled function of the source.

    Attributes
    ----------
    name : str
        The name in the source.
    result : Type
        The type of the result.
    parameters : list of (str, Type)
        The parameters, in order.
    position : SourcePosition
        The position of the definition.
    run : callable
        The function itself; its arguments are a machine, the list of argument values, and the
        position of the call.
    """

    name: str
    result: Type
    parameters: list[tuple[str, Type]]
    position: SourcePosition
    run: Callable


class FunctionTable(Protocol):
    """The functions of the source that a call can name."""

    def function(self, key: str) -> CompiledFunction | None:
        """Return the function of a key (its name, unless it is overloaded), compiled."""
        ...

    def needs_types(self, name: str) -> bool:
        """Return True if the callee depends on the argument types: overloads, templates."""
        ...

    def resolve(self, name: str, types: list[Type], position: SourcePosition) -> str:
        """Return the key of the overload or template instance for these argument types."""
        ...

    def has_function(self, name: str) -> bool:
        """Return True if the source has a function or function template of that name."""
        ...

    def function_names(self) -> set[str]:
        """Return the names of all functions, for suggestions in messages."""
        ...


@dataclass
class Context:
    """The state that the parts of one function's compiler share.

    Attributes
    ----------
    symbols : SymbolTable
        The variables and types in scope.
    globals : Globals
        The memory of variables that outlive a call.
    functions : FunctionTable
        The functions that a call can name.
    addressed : set of str
        The variables whose address is taken, which must be in memory.
    frame : FrameLayout
        The frame of the function.
    parts : int
        The number of compiled expressions, a measure of the function's size.
    """

    symbols: SymbolTable
    globals: Globals
    functions: FunctionTable
    addressed: Set[str] = frozenset()
    frame: FrameLayout = field(default_factory=FrameLayout)
    parts: int = 0
