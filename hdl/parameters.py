"""Code that the parameter objects of several units share."""

from dataclasses import fields
from typing import Any

__all__ = ["without_fpga_options"]

#: The options for FPGAs and the values that generate a unit for standard cells.
_STANDARD_CELLS = {"multiplier": "booth", "slot_memory": False, "buffered": False}


def without_fpga_options(self: Any) -> str:
    """Return the ``repr`` of a dataclass, but omit options for FPGAs that are not in use.

    The names of modules and of compiled models are derived from this text
    (``hdl.elaborate.state_of``). Units for standard cells therefore keep the names that they had
    before these options existed.
    """
    values = {field.name: getattr(self, field.name) for field in fields(self)}
    shown = [
        f"{name}={value!r}"
        for name, value in values.items()
        if name not in _STANDARD_CELLS or value != _STANDARD_CELLS[name]
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
