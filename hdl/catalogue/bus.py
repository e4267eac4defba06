"""The matrix units behind AXI ports."""

from typing import Any

from vitruvian.errors import UserError
from vitruvian.hdl.bus.axi import StreamUnit
from vitruvian.hdl.bus.core import KINDS, SHARED, Core
from vitruvian.hdl.bus.lite import LiteUnit
from vitruvian.hdl.catalogue.matrix import UNITS as MATRIX_UNITS
from vitruvian.hdl.catalogue.matrix import mma_config
from vitruvian.hdl.catalogue.options import NO_SHAPE, with_defaults
from vitruvian.hdl.catalogue.semirings import int_config
from vitruvian.hdl.catalogue.serial import UNITS as SERIAL_UNITS
from vitruvian.hdl.catalogue.serial import serial_config
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, flag, named
from vitruvian.hdl.cube import CONFIGS
from vitruvian.hdl.mma.unit import UNITS as MMA_UNITS
from vitruvian.validate import one_of

__all__ = ["UNITS", "core_of"]

_SERIAL = SERIAL_UNITS[0].options
_INT = next(unit for unit in MATRIX_UNITS if unit.name == "simd2-int")
_MMA = next(unit for unit in MATRIX_UNITS if unit.name == "mma")
_FROM_CUBE = ("precisions", "dataflow", "accuracy", "pipeline", "slots", "multiplier")
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
_OPTIONS: dict[str, Option] = {
    "core": named("core", KINDS),
    "preset": named("preset", dict.fromkeys([*CONFIGS, *MMA_UNITS])),
    **{name: _SERIAL[name] for name in ("m", "n", "k", *_FROM_CUBE, "operations")},
    "width": _INT.options["width"],
}
_DEFAULTS = dict.fromkeys(_OPTIONS) | NO_SHAPE | {"core": "cube"}


def core_of(c: Configuration) -> Core:
    """Return the matrix unit of a complete configuration.

    Raises
    ------
    UserError
        If an option or a preset does not belong to the kind of the core.
    """
    kind = c["core"]
    for name, kinds in _KINDS.items():
        if c[name] is not None and kind not in kinds:
            raise UserError(
                f"--{name} must come with --core {' or '.join(kinds)}, not with --core {kind}"
            )
    if kind == "simd2-int":
        names = ("m", "n", "k", "operations", "width", "pipeline", "multiplier")
        return Core(config=int_config(_INT.default(_given(c, names))))
    names = ("preset", "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    if kind == "mma":
        complete = _MMA.default(_given(c, names))
        one_of("preset of mma", complete["preset"], MMA_UNITS)
        return Core(config=mma_config(complete), ahead=complete["ahead"] or 4)
    complete = {**c, "preset": c["preset"] or "tiny"}
    one_of("preset of cube", complete["preset"], CONFIGS)
    return Core(config=serial_config(complete))


def _given(c: Configuration, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: c[name] for name in names if c[name] is not None}


def _macs(c: Configuration) -> int:
    return core_of(c).config.macs


#: The units in the table of checks; the sizes are small because cocotb drives them.
_CHECKED = (
    {},
    {"core": "simd2-int", "m": 2, "n": 2, "k": 2, "width": 16},
)

UNITS = (
    Unit(
        name="axi-stream",
        summary="matrix unit between AXI4-Stream ports with the names of Vivado",
        package="hdl.bus.axi",
        options={**_OPTIONS, "direct": flag("no buffers at the ports")},
        default=with_defaults(**_DEFAULTS, direct=False),
        component=lambda c: (StreamUnit, {"core": core_of(c), "direct": c["direct"]}),
        macs=_macs,
        rows=lambda: (),  # its matrix unit is reported as cube
        more=lambda: ({},),
        checked=(*_CHECKED, {"direct": True}),
        documented={"tiny": {}},
        shared=SHARED,
    ),
    Unit(
        name="axi-lite",
        summary="matrix unit behind registers at an AXI4-Lite port with the names of Vivado",
        package="hdl.bus.axi",
        options=dict(_OPTIONS),
        default=with_defaults(**_DEFAULTS),
        component=lambda c: (LiteUnit, {"core": core_of(c)}),
        macs=_macs,
        rows=lambda: (),
        more=lambda: ({},),
        checked=_CHECKED,
        documented={"every core": {}},
        shared=SHARED,
    ),
)
