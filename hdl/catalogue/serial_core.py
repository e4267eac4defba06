"""The core with its memory at the end of a serial line: a design for boards."""

from typing import Any

from vitruvian.hdl.catalogue.unit import Configuration, Option, Unit, named, number
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.serial import SerialCore

_OPTIONS: dict[str, Option] = {
    "preset": named("preset", CORES),
    "memory_kib": number("memory_kib", 1, 1 << 16),
    "clock_hz": number("clock_hz", 100_000, 500_000_000),
    "baud": number("baud", 300, 50_000_000),
}


def _default(given: Configuration) -> dict[str, Any]:
    return {
        "preset": "tiny",
        "memory_kib": 128,
        "clock_hz": 25_000_000,
        "baud": 1_000_000,
        **given,
    }


UNITS = (
    Unit(
        name="core",
        summary="core with its global memory at the end of a serial line",
        package="hdl.core",
        options=_OPTIONS,
        default=_default,
        component=lambda c: (
            SerialCore,
            {
                "config": CORES[c["preset"]],
                "memory_bytes": c["memory_kib"] << 10,
                "clock_hz": c["clock_hz"],
                "baud": c["baud"],
            },
        ),
        macs=lambda c: CORES[c["preset"]].tile.macs,
        shared=SerialCore.shared,
    ),
)
