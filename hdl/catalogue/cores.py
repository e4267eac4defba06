"""The matrix units behind buses and at serial lines, by their options."""

from dataclasses import replace
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.hdl.bus.core import KINDS, BusCore
from vitruvian.hdl.catalogue.matrix import UNITS as MATRIX_UNITS
from vitruvian.hdl.catalogue.matrix import mma_config
from vitruvian.hdl.catalogue.options import given
from vitruvian.hdl.catalogue.semirings import int_config, operations_of
from vitruvian.hdl.catalogue.unit import Configuration, Option, named
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.hdl.mma.unit import UNITS as MMA_UNITS

_INT = next(unit for unit in MATRIX_UNITS if unit.name == "simd2-int")
_MMA = next(unit for unit in MATRIX_UNITS if unit.name == "mma")
CORE: Option = named("core", KINDS)
PRESET: Option = named("preset", dict.fromkeys([*CONFIGS, *MMA_UNITS]))
WIDTH: Option = _INT.options["width"]
#: Option -> kinds of cores that have it; all kinds have the others.
_KINDS = {
    "preset": ("cube", "mma"),
    "precisions": ("cube",),
    "dataflow": ("cube", "mma"),
    "accuracy": ("cube",),
    "slots": ("cube", "mma"),
    "operations": ("cube", "simd2-int"),
    "width": ("simd2-int",),
}


def core_of(c: Configuration) -> BusCore:
    """Return the matrix unit of a complete configuration.

    Raises
    ------
    UserError
        If an option or a preset does not belong to the kind of the core.
    """
    kind = c["core"] or "cube"
    for name, kinds in _KINDS.items():
        if c[name] is not None and kind not in kinds:
            raise UserError(
                f"--{name} must come with --core {' or '.join(kinds)}, not with --core {kind}"
            )
    if kind == "simd2-int":
        names = ("m", "n", "k", "operations", "width", "pipeline", "multiplier")
        return BusCore(config=int_config(_INT.default(given(c, *names))))
    names = ("preset", "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    if kind == "mma":
        complete = _MMA.default(given(c, *names))
        one_of("preset of mma", complete["preset"], MMA_UNITS)
        return BusCore(config=mma_config(complete), ahead=complete["ahead"] or 4)
    complete = {**c, "preset": c["preset"] or "tiny"}
    one_of("preset of cube", complete["preset"], CONFIGS)
    return BusCore(config=_cube_config(complete))


def _cube_config(c: Configuration) -> MatrixUnitConfig:
    """Return the parameters of a core of the kind ``cube``."""
    changes: dict[str, Any] = given(c, "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    if c["accuracy"] is not None:
        changes["preset"] = c["accuracy"]
    if c["precisions"] is not None:
        changes["precisions"] = tuple(c["precisions"].split("-"))
    if c["operations"] is not None:
        changes["operations"] = tuple(op.mnemonic for op in operations_of(c["operations"]))
    if c["precisions"] is not None or c["operations"] is not None:
        changes["assignment"] = None  # which follows from both
    return replace(CONFIGS[c["preset"]], **changes)
