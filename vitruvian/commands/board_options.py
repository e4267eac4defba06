"""The units that a simulated board may have, and their options."""

from vitruvian.hdl.catalogue import serial, serial_core
from vitruvian.hdl.catalogue.unit import Option, named

# Each of these catalogues has one unit.
(SERIAL,), (CORE,) = serial.UNITS, serial_core.UNITS


def board_options() -> dict[str, Option]:
    """Return the options of the units that a simulated board may have.

    ``--core`` names the kind of the matrix unit, or a whole core.
    """
    kinds = [*SERIAL.options["core"].samples(), *CORE.options["preset"].samples()]
    memory = CORE.options["memory_kib"]
    return {**SERIAL.options, "core": named("core", kinds), "memory_kib": memory}
