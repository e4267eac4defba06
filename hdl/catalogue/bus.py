"""The matrix units behind AXI ports."""

from vitruvian.hdl.bus.axi import StreamUnit
from vitruvian.hdl.bus.core import SHARED
from vitruvian.hdl.bus.lite import LiteUnit
from vitruvian.hdl.catalogue.cores import CORE, PRESET, WIDTH, core_of
from vitruvian.hdl.catalogue.options import NO_SHAPE, with_defaults
from vitruvian.hdl.catalogue.serial import UNITS as SERIAL_UNITS
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, flag

_SERIAL = SERIAL_UNITS[0].options
_FROM_CUBE = ("precisions", "dataflow", "accuracy", "pipeline", "slots", "multiplier")
_OPTIONS: dict[str, Option] = {
    "core": CORE,
    "preset": PRESET,
    **{name: _SERIAL[name] for name in ("m", "n", "k", *_FROM_CUBE, "operations")},
    "width": WIDTH,
}
_DEFAULTS = dict.fromkeys(_OPTIONS) | NO_SHAPE | {"core": "cube"}


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
