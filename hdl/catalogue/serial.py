"""The matrix unit at the end of a serial line."""

from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue.cores import CORE, PRESET, WIDTH, core_of
from vitruvian.hdl.catalogue.matrix import UNITS as MATRIX_UNITS
from vitruvian.hdl.catalogue.options import MULTIPLIER, PIPELINE, SHAPE
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, number
from vitruvian.hdl.cube.choices import PRECISIONS


def _precisions(text: str) -> str:
    """Return names of precisions, joined by dashes, in the order of the unit's codes."""
    words = text.split("-")
    if len(set(words)) != len(words) or not set(words) <= set(PRECISIONS):
        raise UserError(
            f"precisions must be different names of {', '.join(PRECISIONS)}, joined by dashes, "
            f"not {text[:60]!r}"
        )
    return "-".join(name for name in PRECISIONS if name in words)


def _default(given: Configuration) -> dict[str, Any]:
    """Complete a configuration; only a core of the kind ``cube`` has a preset by default."""
    cube = given.get("core") in (None, "cube")
    c = dict.fromkeys(_OPTIONS) | {"clock_hz": 12_000_000, "baud": 1_000_000}
    c |= {"preset": "tiny" if cube else None, **given}
    # The default, cube, is stored as None, so that labels do not mention it.
    return c | {"core": None if cube else c["core"]}


#: The options of the matrix unit by itself.
_CUBE = next(unit for unit in MATRIX_UNITS if unit.name == "cube").options

_OPTIONS: dict[str, Option] = {
    "preset": PRESET,
    **SHAPE,
    "precisions": Option(
        _precisions, "names joined by dashes, such as fp16-int8", samples=lambda: tuple(PRECISIONS)
    ),
    "dataflow": _CUBE["dataflow"],
    "accuracy": _CUBE["accuracy"],
    "pipeline": PIPELINE,
    "slots": number("slots", 1, 64),
    "multiplier": MULTIPLIER,
    "operations": _CUBE["operations"],
    "clock_hz": number("clock_hz", 100_000, 500_000_000),
    "baud": number("baud", 300, 50_000_000),
    "core": CORE,
    "width": WIDTH,
}

UNITS = (
    Unit(
        name="serial",
        summary="matrix unit behind registers at the end of a serial line",
        package="hdl.bus",
        options=_OPTIONS,
        default=_default,
        component=lambda c: (
            SerialUnit,
            {
                "core": core_of(c),
                "clock_hz": c["clock_hz"],
                "baud": c["baud"],
            },
        ),
        macs=lambda c: core_of(c).config.macs,
        rows=lambda: (),  # its matrix unit is reported as cube, and the rest is small
        more=lambda: ({},),
        checked=(
            {},
            # One precision and one slot: some signals of this unit have no bits.
            {"m": 2, "n": 2, "k": 1, "precisions": "int8", "slots": 1, "pipeline": 0},
            {"k": 1, "precisions": "fp16", "operations": "mma-minplus"},
            {"core": "simd2-int", "m": 2, "n": 1, "k": 2, "width": 8},
        ),
        documented={"tiny": {}},
        shared=SerialUnit.shared,
    ),
)
