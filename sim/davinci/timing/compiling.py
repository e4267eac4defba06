"""Whether a loop runs as it is written or compiled: compiling pays for large programs only.

Numba takes half a second to get ready in a process, even when all is in its cache. A small program
is done by then with the same functions as plain Python, which give the same results.
"""

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["SMALL", "compiled", "fitting", "tell_compiling"]

#: Instructions of a program from which on it is compiled.
SMALL = 256


@lru_cache(None)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays, compiled; from the cache on disk if it is there."""
    import numba

    return numba.njit(cache=True, nogil=True)(function)


def fitting(function: Callable[..., Any], size: int) -> Callable[..., Any]:
    """The form of a function that is right for a program of ``size`` instructions."""
    return function if size < SMALL else compiled(function)


def tell_compiling(tell: Callable[[str], object]) -> None:
    """Call ``tell`` with a function's name whenever Numba compiles it in this process.

    What comes from the cache on disk is not told, nor are the functions that the told one calls.
    Numba is not loaded for this: most commands do without it.
    """
    if _EVENTS in sys.modules:
        _listen(sys.modules[_EVENTS], tell)
    else:
        sys.meta_path.insert(0, _AtImport(tell))


_EVENTS = "numba.core.event"


class _AtImport:
    """A finder that finds nothing itself, and listens as soon as Numba's events are there."""

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
