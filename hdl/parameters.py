"""Code that the parameter objects of several units share."""

from dataclasses import fields
from typing import Any

#: The options that units got later, and the values with which a unit is as before.
_LATER = {"multiplier": "booth", "fast": False, "slot_memory": False, "buffered": False}


def without_later_options(self: Any) -> str:
    """Return the ``repr`` of a dataclass, but omit options in ``_LATER`` that have their default.

    The names of modules and of compiled models are derived from this text
    (``hdl.elaborate.state_of``). Units without these options therefore keep the names that they had
    before the options existed.
    """
    values = {field.name: getattr(self, field.name) for field in fields(self)}
    shown = [
        f"{name}={value!r}"
        for name, value in values.items()
        if name not in _LATER or value != _LATER[name]
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"
