"""The INT8 dot product as a project for Tiny Tapeout."""

from vitruvian.hdl.bus.tapeout import TinyTapeoutDot
from vitruvian.hdl.catalogue.unit import Unit, number

UNITS = (
    Unit(
        name="tt_um_vitruvian",
        summary="INT8 dot product with the pins of a Tiny Tapeout project",
        package="hdl.bus",
        options={"k": number("k", 1, 8)},
        default=lambda given: {"k": 4, **given},
        component=lambda c: (TinyTapeoutDot, {"k": c["k"]}),
        macs=lambda c: c["k"],
    ),
)
