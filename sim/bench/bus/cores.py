"""The units that the benches of the buses drive, from parameters that JSON can represent."""

from dataclasses import replace
from typing import Any

from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.cube import CONFIGS
from vitruvian.hdl.elaborate import only_described


def component_of(values: dict[str, Any], unit: str) -> Any:
    """Return the component that a bench's parameters describe.

    Parameters
    ----------
    values : dict
        ``configuration``, a partial configuration of the unit in the catalogue; or ``changes`` of
        the preset ``tiny``, for configurations that the catalogue's options do not reach; and
        ``ahead``, for a core that runs instructions.
    unit : str
        Name of the unit in the catalogue.
    """
    catalogued = UNITS[unit]
    component, arguments = catalogued.component(catalogued.default(values.get("configuration", {})))
    if "changes" in values:
        config = replace(CONFIGS["tiny"], **values["changes"])
        arguments["core"] = BusCore(config=config, ahead=values.get("ahead"))
    return only_described(component(**arguments))
