"""The units that the benches of the buses use, from parameters that JSON can represent."""

from dataclasses import replace
from typing import Any

from vitruvian.hdl.bus.core import Core
from vitruvian.hdl.cube import CONFIGS
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.hdl.simd2.mode import operations_of

__all__ = ["core_of"]


def core_of(values: dict[str, Any]) -> Core:
    """Return the unit that a bench's parameter ``core`` describes.

    Parameters
    ----------
    values : dict
        ``preset``, a name in ``CONFIGS``, or ``"int"`` for an integer tile; ``changes`` of its
        configuration; and ``ahead``, for a unit that runs instructions.
    """
    changes = dict(values.get("changes", {}))
    if values["preset"] == "int":
        if "operations" in changes:
            changes["operations"] = operations_of(changes["operations"])
        return Core(config=IntConfig(**changes))
    config = replace(CONFIGS[values["preset"]], **changes)
    return Core(config=config, ahead=values.get("ahead"))
