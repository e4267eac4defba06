"""Processes with shapes: the technology, the cells' GDS, and what their licence allows."""

from dataclasses import dataclass
from pathlib import Path

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.cells import CellLibrary, nangate45, sg13g2
from vitruvian.flows.asic.layout import lef
from vitruvian.flows.asic.liberty import Library

#: Libraries that have shapes, and what everybody must know who receives the files.
LICENCES = {
    "nangate45": "the GDS contains the library's cells, which its licence forbids to pass on; "
    "DEF and picture contain none",
    sg13g2.NAME: "the GDS contains IHP's cells, which have the Apache License 2.0",
}


@dataclass(frozen=True)
class CellShapes:
    """What a layout needs of a process: LEF as a technology, GDS of the cells, and a notice."""

    technology: lef.Technology
    gds: Path
    licence: str


def load(library: CellLibrary) -> CellShapes:
    """Return the shapes of a library; fetch them if they are missing.

    Raises
    ------
    UserError
        If the library has no shapes, or if they cannot be had.
    """
    sources = {"nangate45": nangate45.fetch, sg13g2.NAME: sg13g2.fetch}
    if library.name not in sources:
        raise UserError(f"layout must have one of {', '.join(sources)}, not {library.name!r}")
    fetch = sources[library.name]
    try:
        technology, cells, gds = (fetch(kind) for kind in ("technology", "cells", "gds"))
    except RuntimeError as error:
        raise UserError(str(error)) from error
    known = lef.read(*(path.read_text(errors="replace") for path in (technology, cells)))
    known.ties = ties(library.cells)
    if library.name == sg13g2.NAME:
        metals = {metal.name for metal in known.metals}
        for name, number in sg13g2.LAYERS.items():
            label, pin = (sg13g2.LABELS, sg13g2.PINS) if name in metals else (0, None)
            known.gds[name] = lef.GdsLayer(number, label=label, pin=pin)
    return CellShapes(known, gds, LICENCES[library.name])


def ties(library: Library) -> dict[str, tuple[str, str]]:
    """Return constant -> cell that drives it, and its output, by the functions in the liberty."""
    found = {}
    for cell in library.cells.values():
        for pin, function in cell.outputs.items():
            if not cell.caps and function in ("0", "1"):
                found[function] = (cell.name, pin)
    return found
