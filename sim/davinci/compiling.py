"""Whether a loop runs as it is written or compiled: compiling pays for large programs only.

Numba takes half a second to get ready in a process, even when all is in its cache. A small program
is done by then with the same functions as plain Python, which give the same results.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["SMALL", "compiled", "fitting"]

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
