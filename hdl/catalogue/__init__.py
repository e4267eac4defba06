"""Every unit by name: its options, and the configurations that others verify, measure and document.

A new unit needs one new entry in one of these modules. Benches (``checked``, ``simulated``), flows
(``rows``, ``more``) and the generated documentation (``documented``) all read it.
"""

from vitruvian.hdl.catalogue import (
    blocks,
    bus,
    dots,
    machines,
    matrix,
    scu,
    serial,
    small,
    sparse,
    sparse_oei,
    vector,
)
from vitruvian.hdl.catalogue.unit import CataloguedPart, Unit

__all__ = ["PARTS", "UNITS"]

_ALL = (
    *(*dots.UNITS, *matrix.UNITS, *small.UNITS, *scu.UNITS, *vector.UNITS),
    *(*sparse.UNITS, *sparse_oei.UNITS, *serial.UNITS, *bus.UNITS),
    *(*blocks.UNITS, *machines.UNITS),
)
UNITS: dict[str, Unit] = {unit.name: unit for unit in _ALL}
PARTS: tuple[CataloguedPart, ...] = (*dots.PARTS, *matrix.PARTS, *scu.PARTS)
