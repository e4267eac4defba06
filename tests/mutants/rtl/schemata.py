"""All mutants in one design: a number on a port selects the one that is active.

While a component elaborates, the calls that ``sites`` has put into its source are evaluated here.
A call whose operands are hardware makes what the source says, and for each mutant that was chosen
at its site a multiplexer behind it. With the number 0 the design does what the source says.
"""

import importlib.abc
import importlib.machinery
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, ValueCastable

from .sites import HOOK, Site, rewrite

_PACKAGE = "vitruvian.hdl.core"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
#: The operator that replaces another one.
_OTHERS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "|",
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
}
#: Bits of the number of a mutant.
NUMBER_BITS = 12


@dataclass(frozen=True)
class Mutant:
    """A change of the hardware that one place of a source describes.

    Attributes
    ----------
    site : Site
    change : str
        What happens there.
    width : int
        Bits of the value there; of a change "bit", the inverted bit is one of them.
    """

    site: Site
    change: str
    width: int = 1

    def __str__(self) -> str:
        return f"{self.site.file}:{self.site.line}: {self.change}: {self.site.text}"


def _hardware(*values: Any) -> bool:
    return any(isinstance(value, Value | ValueCastable) for value in values)


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Dropped:
    """An assignment that some mutants leave out."""

    statement: Any
    numbers: tuple[int, ...]


class Schemata:
    """The calls that stand in rewritten sources.

    Attributes
    ----------
    sites : dict of str to list of Site
        Of each file that was imported.
    found : dict of (str, int, str) to int
        Each possible mutant by file, number of the site and change, with the bits of its value.
    """

    def __init__(self) -> None:
        self.sites: dict[str, list[Site]] = {}
        self.found: dict[tuple[str, int, str], int] = {}
        self._chosen: dict[tuple[str, int, str], list[tuple[int, int]]] = {}
        self._select = Signal(NUMBER_BITS)
        self.paused = False

    def begin(self, mutants: Sequence[tuple[Mutant, int]], select: Signal) -> None:
        """Make these mutants in what elaborates from now on: the n-th for number n + 1.

        Parameters
        ----------
        mutants : sequence of (Mutant, int)
            With the bit that is inverted.
        select : Signal
            The number of the active mutant.
        """
        self.found.clear()
        self._select, self._chosen = select, {}
        for number, (mutant, bit) in enumerate(mutants, start=1):
            key = (mutant.site.file, self._place(mutant.site), mutant.change)
            self._chosen.setdefault(key, []).append((number, bit))

    def _place(self, site: Site) -> int:
        return self.sites[site.file].index(site)

    def mutants(self) -> list[Mutant]:
        """Return all mutants that were possible in what has elaborated, in the order of sources."""
        return [
            Mutant(self.sites[file][place], change, width)
            for (file, place, change), width in sorted(self.found.items())
        ]

    def _numbers(self, key: tuple[str, int], change: str, width: int) -> list[tuple[int, int]]:
        if self.paused:
            return []
        full = (*key, change)
        self.found[full] = max(width, self.found.get(full, 0))
        return self._chosen.get(full, [])

    def _active(self, number: int) -> Value:
        return self._select == number

    def _replace(self, key: tuple[str, int], value: Value, changes: dict[str, Callable]) -> Value:
        """Return a value that a chosen mutant replaces by that of its change."""
        shape, result = value.shape(), value
        if not shape.width:
            return value
        assert isinstance(shape, Shape)
        for change, make in changes.items():
            for number, _ in self._numbers(key, change, shape.width):
                result = Mux(self._active(number), make(), result)
        if result is value:
            return value
        # The width of the source must not change, as slices and inversions depend on it.
        result = result[: shape.width]
        return result.as_signed() if shape.signed else result

    def _binary(self, key: tuple[str, int], sign: str, left: Any, right: Any) -> Any:
        result = _OPERATORS[sign](left, right)
        if not isinstance(result, Value) or not _hardware(left, right):
            return result
        changes = {"operator": lambda: _OPERATORS[_OTHERS[sign]](left, right)}
        if sign in ("<<", ">>") and isinstance(right, Value) and len(right) > 6:
            del changes["operator"]
        if _number(left):
            changes["constant"] = lambda: _OPERATORS[sign](left + 1, right)
        elif _number(right):
            changes["constant"] = lambda: _OPERATORS[sign](left, right + 1)
        return self._replace(key, result, changes)

    binary = compare = _binary

    def invert(self, key: tuple[str, int], value: Any) -> Any:
        """Return the inverse; a mutant forgets to invert."""
        result = ~value
        if not isinstance(result, Value):
            return result
        return self._replace(key, result, {"no inversion": lambda: Value.cast(value)})

    def condition(self, key: tuple[str, int], value: Any) -> Any:
        """Return a condition; mutants invert it, or take it as always or never true."""
        bit = Value.cast(value)
        bit = bit if len(bit) == 1 else bit.bool()
        changes = {"inverted": lambda: ~bit, "always": lambda: 1, "never": lambda: 0}
        return self._replace(key, bit[0] if bit.shape().signed else bit, changes)

    def index(self, key: tuple[str, int], value: Any) -> Any:
        """Return an index or a selector; a mutant takes the next one."""
        if not _hardware(value):
            return value
        return self._replace(key, Value.cast(value), {"next": lambda: Value.cast(value) + 1})

    def mux(self, key: tuple[str, int], chosen: Any, one: Any, zero: Any) -> Any:
        """Return a multiplexer; a mutant has its inputs swapped."""
        result = Mux(chosen, one, zero)
        return self._replace(key, result, {"swapped": lambda: Mux(chosen, zero, one)})

    def reduction(self, key: tuple[str, int], name: str, value: Any) -> Any:
        """Return 1 if any bit, or all bits are set; a mutant takes the other."""
        result = getattr(value, name)()
        if not isinstance(result, Value) or not _hardware(value):
            return result
        other = "all" if name == "any" else "any"
        return self._replace(key, result, {other: lambda: getattr(value, other)()})

    def assign(self, key: tuple[str, int], target: Any, value: Any) -> Any:
        """Return an assignment; mutants leave it out, or assign another value."""
        if not _hardware(target):
            return target.eq(value)
        width = len(Value.cast(target))
        if width and _number(value):
            for number, _ in self._numbers(key, "constant", width):
                value = Mux(self._active(number), int(value) ^ 1, value)
        elif width and _hardware(value):
            assigned = Value.cast(value)
            size = min(width, len(assigned))
            for number, bit in self._numbers(key, "bit", size) if size else ():
                flip = Mux(self._active(number), 1 << bit, 0)
                flipped = (assigned ^ flip)[: len(assigned)]
                value = assigned = flipped.as_signed() if assigned.shape().signed else flipped
        result = target.eq(value)
        dropped = tuple(number for number, _ in self._numbers(key, "dropped", 1)) if width else ()
        return _Dropped(result, dropped) if dropped else result

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Make no mutants in what elaborates meanwhile."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def install(self, files: Sequence[str], skipped: Sequence[str]) -> None:
        """Rewrite modules of ``hdl.core`` when they are imported, which must not have happened.

        Parameters
        ----------
        files : sequence of str
            Names of the modules.
        skipped : sequence of str
            Classes that are left as they are.
        """
        if _PACKAGE in sys.modules:
            raise RuntimeError(f"{_PACKAGE} must not be imported before its mutants are made")
        sys.meta_path.insert(0, _Finder(self, tuple(files), tuple(skipped)))

    @contextmanager
    def statements(self) -> Iterator[None]:
        """Let Amaranth take assignments that mutants drop, while the block runs."""
        original = getattr(Module, "_add_statement")  # noqa: B009

        def add(module: Any, assigns: Any, domain: str, depth: int) -> None:
            for statement in _flat(assigns):
                if not isinstance(statement, _Dropped):
                    original(module, statement, domain=domain, depth=depth)
                    continue
                dropped = Cat(*(self._active(number) for number in statement.numbers))
                with module.If(~dropped.any()):
                    module.d[domain] += statement.statement

        setattr(Module, "_add_statement", add)  # noqa: B010
        try:
            yield
        finally:
            setattr(Module, "_add_statement", original)  # noqa: B010


def _flat(statements: Any) -> Iterator[Any]:
    if hasattr(statements, "__iter__"):
        for each in statements:
            yield from _flat(each)
    else:
        yield statements


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, schemata: Schemata, files: tuple[str, ...], skipped: tuple[str, ...]):
        self.schemata, self.files, self.skipped = schemata, files, skipped

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        package, _, name = fullname.rpartition(".")
        if package != _PACKAGE or name not in self.files:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, finder: _Finder):
        super().__init__(fullname, path)
        self.finder = finder

    def get_code(self, fullname: str) -> Any:
        name = f"{fullname.rpartition('.')[2]}.py"
        tree, sites = rewrite(name, self.get_data(self.path), self.finder.skipped)
        self.finder.schemata.sites[name] = sites
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        setattr(module, HOOK, self.finder.schemata)
        super().exec_module(module)
