"""What parameter objects of units have in common."""

from dataclasses import fields
from typing import Any

__all__ = ["without_booth"]


def without_booth(self: Any) -> str:
    """Name the fields of a dataclass, a multiplier only where it is not Booth's.

    Names of modules and of compiled models are made of it (`hdl.elaborate.state_of`): those of
    units with Booth's multipliers are what they were before there were others.
    """
    shown = [
        f"{field.name}={value!r}"
        for field in fields(self)
        if (value := getattr(self, field.name)) != "booth" or field.name != "multiplier"
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
