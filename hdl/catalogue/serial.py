"""The matrix unit at the end of a serial line."""

from dataclasses import replace

from vitruvian.errors import UserError
from vitruvian.hdl.bus.core import Core
from vitruvian.hdl.bus.serial import SerialUnit
from vitruvian.hdl.catalogue.matrix import UNITS as MATRIX_UNITS
from vitruvian.hdl.catalogue.options import (
    MULTIPLIER,
    NO_SHAPE,
    PIPELINE,
    SHAPE,
    given,
    with_defaults,
)
from vitruvian.hdl.catalogue.semirings import operations_of
from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, number
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig
from vitruvian.hdl.cube.choices import PRECISIONS

__all__ = ["UNITS", "serial_config"]


def _precisions(text: str) -> str:
    """Return names of precisions, joined by dashes, in the order of the unit's codes."""
    words = text.split("-")
    if len(set(words)) != len(words) or not set(words) <= set(PRECISIONS):
        raise UserError(
            f"precisions must be different names of {', '.join(PRECISIONS)}, joined by dashes, "
            f"not {text[:60]!r}"
        )
    return "-".join(name for name in PRECISIONS if name in words)


def serial_config(c: Configuration) -> MatrixUnitConfig:
    """Return the parameters of the matrix unit of a complete configuration."""
    changes = given(c, "m", "n", "k", "dataflow", "pipeline", "slots", "multiplier")
    if c["accuracy"] is not None:
        changes["preset"] = c["accuracy"]
    if c["precisions"] is not None:
        changes["precisions"] = tuple(c["precisions"].split("-"))
    if c["operations"] is not None:
        changes["operations"] = tuple(op.mnemonic for op in operations_of(c["operations"]))
    if c["precisions"] is not None or c["operations"] is not None:
        changes["assignment"] = None  # which follows from both
    return replace(CONFIGS[c["preset"]], **changes)


#: The options of the matrix unit by itself.
_CUBE = next(unit for unit in MATRIX_UNITS if unit.name == "cube").options

UNITS = (
    Unit(
        name="serial",
        summary="matrix unit behind registers at the end of a serial line",
        package="hdl.bus",
        options={
            "preset": _CUBE["preset"],
            **SHAPE,
            "precisions": Option(_precisions, "names joined by dashes, such as fp16-int8"),
            "dataflow": _CUBE["dataflow"],
            "accuracy": _CUBE["accuracy"],
            "pipeline": PIPELINE,
            "slots": number("slots", 1, 64),
            "multiplier": MULTIPLIER,
            "operations": _CUBE["operations"],
            "clock_hz": number("clock_hz", 100_000, 500_000_000),
            "baud": number("baud", 300, 50_000_000),
        },
        default=with_defaults(
            preset="tiny",
            **NO_SHAPE,
            precisions=None,
            dataflow=None,
            accuracy=None,
            pipeline=None,
            slots=None,
            multiplier=None,
            operations=None,
            clock_hz=12_000_000,
            baud=1_000_000,
        ),
        component=lambda c: (
            SerialUnit,
            {
                "core": Core(config=serial_config(c)),
                "clock_hz": c["clock_hz"],
                "baud": c["baud"],
            },
        ),
        macs=lambda c: serial_config(c).macs,
        rows=lambda: (),  # its matrix unit is reported as cube, and the rest is small
        more=lambda: ({},),
        documented={"tiny": {}},
        shared=SerialUnit.shared,
    ),
)
