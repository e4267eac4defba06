"""Checks of arguments that every package shares; each message says what is allowed."""

from collections.abc import Iterable
from typing import Any, TypeVar

from vitruvian.errors import UserError

__all__ = ["check_int", "one_of", "shortened"]

T = TypeVar("T")


def check_int(thing: str, value: Any, low: int, high: int | None = None) -> int:
    """Return ``value`` if it is an int between ``low`` and ``high``, both included.

    Raises
    ------
    TypeError
        If ``value`` is not an int.
    UserError
        If ``value`` is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{thing} must be an int, not {value!r}")
    if value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise UserError(f"{thing} must be {allowed}, not {value!r}")
    return value


def one_of(thing: str, value: T, allowed: Iterable[object]) -> T:
    """Return ``value`` if it is one of ``allowed``.

    Raises
    ------
    UserError
        If it is not; the message lists ``allowed``. A bool never counts as an int.
    """
    names = list(allowed)
    if value not in names or (isinstance(value, bool) and bool not in map(type, names)):
        shown = shortened(value) if isinstance(value, str) else repr(value)
        raise UserError(f"{thing} must be one of {', '.join(map(str, names))}, not {shown}")
    return value


def shortened(value: str, most: int = 60) -> str:
    """Return ``value`` in quotes for a message, cut off after ``most`` characters."""
    return repr(value if len(value) <= most else value[:most] + "…")
