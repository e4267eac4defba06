"""Code that the parameter objects of several units share."""

from dataclasses import fields
from typing import Any

__all__ = ["without_booth"]

#: The options that units got later, and their defaults.
_LATER = {"multiplier": "booth", "fast": False}


def without_booth(self: Any) -> str:
    """Return the ``repr`` of a dataclass, but omit options in ``_LATER`` that have their default.

    The names of modules and of compiled models are derived from this text
    (``hdl.elaborate.state_of``). Units with Booth multipliers therefore keep the names that they
    had before other multipliers existed, and so do units that are not ``fast``.
    """
    shown = [
        f"{field.name}={value!r}"
        for field in fields(self)
        if (value := getattr(self, field.name)) != _LATER.get(field.name, ...)
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
