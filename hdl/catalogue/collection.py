"""All units, designs and parts by name: the catalogue's own, and those of the wings."""

from vitruvian.common.wings import registered
from vitruvian.hdl.catalogue import (
    blocks,
    bus,
    dots,
    machines,
    matrix,
    scu,
    serial,
    serial_core,
    small,
    tapeout,
    vector,
)
from vitruvian.hdl.catalogue.unit import CataloguedPart, Unit

_ALL = (
    *(*dots.UNITS, *matrix.UNITS, *small.UNITS, *scu.UNITS, *vector.UNITS),
    *(*serial.UNITS, *bus.UNITS, *blocks.UNITS, *machines.UNITS),
    *(unit for module in registered("units") for unit in module.UNITS),
)
UNITS: dict[str, Unit] = {unit.name: unit for unit in _ALL}
#: Whole designs for boards. They can be written, mapped and routed like a unit; what they are made
#: of is verified, balanced and measured by itself, so that no check of all units takes them.
DESIGNS: dict[str, Unit] = {unit.name: unit for unit in (*serial_core.UNITS, *tapeout.UNITS)}
PARTS: tuple[CataloguedPart, ...] = (*dots.PARTS, *matrix.PARTS, *scu.PARTS)
