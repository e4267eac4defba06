"""Who computes the instructions of a `Machine`."""

from collections.abc import Callable
from typing import Any

from vitruvian.golden.simd2 import mmo as golden_mmo
from vitruvian.golden.simd2 import mmo_sparse as golden_mmo_sparse

__all__ = ["BACKENDS", "SPARSE_BACKENDS", "register_backend"]

#: Back ends by name: callables with the interface of `golden.simd2.mmo`.
BACKENDS: dict[str, Callable[..., Any]] = {"golden": golden_mmo}

#: Those that take a compressed A, too: callables with the interface of `golden.simd2.mmo_sparse`.
SPARSE_BACKENDS: dict[str, Callable[..., Any]] = {"golden": golden_mmo_sparse}


def register_backend(
    name: str, mmo: Callable[..., Any], mmo_sparse: Callable[..., Any] | None = None
) -> None:
    """Let machines compute with ``mmo``, which has the interface of `golden.simd2.mmo`.

    If it has a method ``on(unit)``, machines call what that gives instead: a callable with the same
    parameters that returns D and the clock cycles it took on the unit.

    Parameters
    ----------
    name : str
        A name that was there is given to the new one.
    mmo : callable
    mmo_sparse : callable, optional
        The same for A in 2:4 form, with the interface of `golden.simd2.mmo_sparse`.

    Raises
    ------
    TypeError
        If one of them cannot be called.
    """
    if not callable(mmo):
        raise TypeError(f"mmo must be a callable like golden.simd2.mmo, not {mmo!r}")
    if mmo_sparse is not None and not callable(mmo_sparse):
        raise TypeError(
            f"mmo_sparse must be a callable like golden.simd2.mmo_sparse, not {mmo_sparse!r}"
        )
    BACKENDS[name] = mmo
    SPARSE_BACKENDS.pop(name, None)
    if mmo_sparse is not None:
        SPARSE_BACKENDS[name] = mmo_sparse
