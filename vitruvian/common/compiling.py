# pyright: basic
"""The choice between compiled and interpreted loops: compilation pays for large programs only.

Numba takes half a second to start in a process, even when its cache holds everything. A small
program finishes sooner than that if the same functions run as plain Python, with equal results.
"""

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Programs with fewer instructions than this run as plain Python.
SMALL = 256


#: Functions that ``allocates_nothing`` was applied to.
_NOTHING: set[Callable[..., Any]] = set()


def allocates_nothing(function: F) -> F:
    """Mark a function, and those that it calls, as making and returning no arrays.

    It is compiled without the counts of references that Numba keeps for the arrays it is given.
    """
    _NOTHING.add(function)
    return function


@lru_cache(None)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of NumPy arrays, or load it from Numba's cache on disk.

    The plain functions of its own module that it calls are compiled with it.
    """
    import numba

    options: dict[str, Any] = {"_nrt": False} if function in _NOTHING else {}
    return _forgiving(numba.njit(cache=True, nogil=True, **options)(_bound(function, options)))


def _forgiving(dispatcher: Any) -> Any:
    """Return a dispatcher that compiles anew if an older version of its module left the index.

    Numba reads the index before it looks at the date of the source, and the index names the classes
    of the arguments, which may have been renamed since.
    """
    index = getattr(dispatcher._cache, "_cache_file", None)
    if index is not None:
        load = index._load_index

        def load_index() -> dict[Any, Any]:
            try:
                return load()
            except (AttributeError, ImportError):
                return {}

        index._load_index = load_index
    return dispatcher


def _bound(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Return a copy of a function that calls compiled forms of the functions of its module.

    A decorator on those functions would load Numba together with their module, even if only small
    programs are run. LLVM inlines the small ones; ``inline="always"`` is no faster.
    """
    import numba

    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = names.get(name)
        if isinstance(helper, FunctionType) and helper.__module__ == function.__module__:
            names[name] = numba.njit(_bound(helper, options), **options)
    return FunctionType(function.__code__, names, function.__name__)


def fitting(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Return the compiled form of a function for programs of at least ``SMALL`` instructions.

    For a smaller ``size``, return the plain function, which finishes before Numba has started.
    """
    return function if size < SMALL else compiled(function)


def tell_on_terminal() -> None:
    """Print a line on a terminal when Numba compiles, unless ``tell_compiling`` was called.

    Compiling all parts takes some 20 seconds, in which a user of Python would see nothing.
    """
    if not _told:
        tell_compiling(_line_on_terminal)


def _line_on_terminal(name: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"compiling the simulator (once): {name}", file=sys.stderr, flush=True)


def tell_compiling(tell: Callable[[str], object]) -> None:
    """Call ``tell`` with a function's name whenever Numba compiles it in this process.

    A later call of this function replaces ``tell``.

    ``tell`` is not called for a function that comes from the cache on disk, nor for the functions
    that a compiled one calls. This does not load Numba, as most commands do without it.
    """
    _told.append(tell)
    if len(_told) > 1:
        return
    if _EVENTS in sys.modules:
        _listen(sys.modules[_EVENTS], lambda name: _told[-1](name))
    else:
        sys.meta_path.insert(0, _AtImport(lambda name: _told[-1](name)))


#: The functions that ``tell_compiling`` was called with; the last one is the one that is called.
_told: list[Callable[[str], object]] = []

_EVENTS = "numba.core.event"


class _AtImport:
    """An import hook that registers the listener once Numba's event module has been imported.

    It finds no module itself: it wraps the loader that the ordinary finders return.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.tell = tell

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _EVENTS:
            return None
        sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType]
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def listening(module: ModuleType) -> None:
                execute(module)
                _listen(module, self.tell)

            spec.loader.exec_module = listening  # type: ignore[method-assign]
        return spec


def _listen(events: Any, tell: Callable[[str], object]) -> None:
    depth = 0

    class Listener(events.Listener):
        def on_start(self, event: Any) -> None:
            nonlocal depth
            depth += 1
            if depth == 1:
                tell(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            nonlocal depth
            depth -= 1

    events.register("numba:compile", Listener())
