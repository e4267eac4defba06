"""GDS of a layout, written by KLayout together with the cells of the library."""

from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.flows.asic.layout.lef import GdsLayer, Technology
from vitruvian.flows.asic.layout.shapes import Layout, metal_rects

#: Layer of the lowest metal in GDS; cuts and metals above it follow one by one.
_FIRST = 11
#: Number of the property that has the name of an instance.
NAME = 1


def layer_numbers(technology: Technology) -> dict[str, GdsLayer]:
    """Return the layer in GDS of every metal and cut: 11 for metal 1, 12 for its cut, by default.

    Layers that a library with numbers of its own leaves out are left out here, too.
    """
    if technology.gds:
        return technology.gds
    numbers = {metal.name: _FIRST + 2 * n for n, metal in enumerate(technology.metals)}
    numbers |= {cut.name: _FIRST + 1 + 2 * n for n, cut in enumerate(technology.cuts)}
    return {name: GdsLayer(number) for name, number in numbers.items()}


def write(layout: Layout, top: str, cells: Path, out: Path) -> None:
    """Write the GDS ``out`` of a layout whose cells are in the GDS ``cells``.

    Raises
    ------
    UserError
        If the library's GDS lacks a cell, or has another unit of length that does not fit.
    """
    db: Any = need("klayout.db", "layout")
    book = db.Layout()
    book.read(str(cells))
    per_unit = round(1 / (layout.technology.per_micron * book.dbu))
    if per_unit < 1 or abs(per_unit * layout.technology.per_micron * book.dbu - 1) > 1e-9:
        raise UserError(f"unit of the library's GDS must divide that of its LEF, not {book.dbu} µm")
    used = {cell.macro.name for cell in layout.cells}
    missing = sorted(name for name in used if book.cell(name) is None)
    if missing:
        raise UserError(f"GDS of the library must have the cell {missing[0]}")
    for cell in [c for c in book.each_cell() if c.name not in used]:
        book.delete_cell(cell.cell_index())
    block = book.create_cell(top)
    for cell in layout.cells:
        x, y = cell.at[0] * per_unit, cell.at[1] * per_unit
        turn = (
            db.Trans(db.Trans.M0, x, y + cell.macro.height * per_unit)
            if cell.flipped
            else db.Trans(x, y)
        )
        index = book.cell(cell.macro.name).cell_index()
        name = book.properties_id([[NAME, cell.name]])
        block.insert(db.CellInstArray(index, turn), name)
    numbers = layer_numbers(layout.technology)

    def draw(name: str, rect: Any) -> None:
        number = numbers[name]
        index = book.layer(number.layer, number.datatype)
        block.shapes(index).insert(db.Box(*(v * per_unit for v in rect)))

    def label(name: str, text: str, rect: Any) -> None:
        number = numbers[name]
        middle = ((rect[0] + rect[2]) // 2 * per_unit, (rect[1] + rect[3]) // 2 * per_unit)
        index = book.layer(number.layer, number.label)
        block.shapes(index).insert(db.Text(text, db.Trans(*middle)))
        if number.pin is not None:
            index = book.layer(number.layer, number.pin)
            block.shapes(index).insert(db.Box(*(v * per_unit for v in rect)))

    metals = [metal.name for metal in layout.technology.metals]
    for _, rect in layout.rails:
        draw(metals[0], rect)
    for supply, rect in layout.rails[-2:]:
        label(metals[0], supply, rect)
    for port, (metal, rect) in zip(layout.design.ports, layout.ports, strict=True):
        draw(metals[metal], rect)
        label(metals[metal], port.name, rect)
    for net in range(len(layout.nets)):
        for name, rect in metal_rects(layout, net):
            draw(name, rect)
    # Without a time stamp, equal layouts give equal files.
    options = db.SaveLayoutOptions()
    options.gds2_write_timestamps = False
    options.gds2_write_cell_properties = True
    book.write(str(out), options)


def opened(db: Any, path: Path, top: str) -> tuple[Any, Any]:
    """Return the layout of a GDS, read by ``klayout.db``, and its cell ``top``.

    Raises
    ------
    UserError
        If the file has no such cell.
    """
    book = db.Layout()
    book.read(str(path))
    if book.cell(top) is None:
        raise UserError(f"{path} must have the cell {top}")
    return book, book.cell(top)
