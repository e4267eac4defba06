"""Code that the parameter objects of several units share."""

from dataclasses import fields
from typing import Any

__all__ = ["without_booth"]


def without_booth(self: Any) -> str:
    """Return the ``repr`` of a dataclass, but omit ``multiplier`` if it is ``booth``.

    The names of modules and of compiled models are derived from this text
    (``hdl.elaborate.state_of``). Units with Booth multipliers therefore keep the names that they
    had before other multipliers existed.
    """
    shown = [
        f"{field.name}={value!r}"
        for field in fields(self)
        if (value := getattr(self, field.name)) != "booth" or field.name != "multiplier"
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
