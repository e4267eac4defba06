"""Back ends: the functions that compute matrix operations for the models of matrix units.

``sim.studies`` and ``sim.simd2`` each keep their back ends in a dict by name. This module defines
what such a function may offer, so that both use it in the same way.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from vitruvian.sim.matrix_unit import Unit

#: A function with the parameters of a golden function such as ``golden.m3xu.gemm``; it returns D.
#: It may also implement ``MeasuresCycles`` or ``ChecksUnits``.
Backend = Callable[..., Any]


@runtime_checkable
class MeasuresCycles(Protocol):
    """A back end that computes on a unit of a given size and measures the clock cycles."""

    def on(self, unit: Unit) -> Callable[..., tuple[Any, int]]:
        """Return a function with the same parameters that returns D and the clock cycles."""
        ...


@runtime_checkable
class ChecksUnits(Protocol):
    """A back end that cannot compute on every unit."""

    def check(self, unit: Unit, precision: str) -> None:
        """Raise ValueError if the back end cannot compute in this precision on the unit."""
        ...


def compute(backend: Backend, unit: Unit, operands: tuple, settings: dict) -> tuple[Any, int]:
    """Compute on a back end.

    Parameters
    ----------
    unit : Unit
        Unit for a back end that measures cycles; other back ends only receive ``settings``.
    operands : tuple
        Positional arguments of the back end.
    settings : dict
        Keyword arguments of the back end.

    Returns
    -------
    d : ndarray
    cycles : int
        Measured clock cycles; 0 if the back end does not measure them.
    """
    if isinstance(backend, MeasuresCycles):
        return backend.on(unit)(*operands, **settings)
    return backend(*operands, **settings), 0


def check_unit(backend: Backend | None, unit: Unit, precision: str) -> None:
    """Check that a back end can compute in a precision on a unit.

    Parameters
    ----------
    backend : callable or None
        A back end that is None or does not implement ``ChecksUnits`` accepts everything.

    Raises
    ------
    ValueError
        If the back end cannot compute.
    """
    if isinstance(backend, ChecksUnits):
        backend.check(unit, precision)


def check_name(name: str, backends: Iterable[str], register: str) -> None:
    """Check the name of a back end.

    Parameters
    ----------
    backends : iterable of str
        Registered names.
    register : str
        Name of the function that registers more, for the error message.

    Raises
    ------
    ValueError
        If ``name`` is not registered.
    """
    if name not in backends:
        raise ValueError(
            f"backend must be one of {', '.join(backends)}, not {name!r} "
            f"(others are added by {register})"
        )


def check_callable(thing: str, interface: str, value: Any) -> None:
    """Check that an argument can be a back end.

    Parameters
    ----------
    thing, interface : str
        Name of the argument and of the golden function that it replaces, for the error message.

    Raises
    ------
    TypeError
        If ``value`` is not callable.
    """
    if not callable(value):
        raise TypeError(f"{thing} must be a callable like {interface}, not {value!r}")
