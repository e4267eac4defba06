"""All units and parts by name: those of the catalogue's modules, and those of the wings."""

from vitruvian.common.wings import registered
from vitruvian.hdl.catalogue import (
    blocks,
    bus,
    dots,
    machines,
    matrix,
    scu,
    serial,
    small,
    vector,
)
from vitruvian.hdl.catalogue.unit import CataloguedPart, Unit

_ALL = (
    *(*dots.UNITS, *matrix.UNITS, *small.UNITS, *scu.UNITS, *vector.UNITS),
    *(*serial.UNITS, *bus.UNITS, *blocks.UNITS, *machines.UNITS),
    *(unit for module in registered("units") for unit in module.UNITS),
)
UNITS: dict[str, Unit] = {unit.name: unit for unit in _ALL}
PARTS: tuple[CataloguedPart, ...] = (*dots.PARTS, *matrix.PARTS, *scu.PARTS)
