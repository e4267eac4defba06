"""Cell libraries: the built-in 45 nm cells, Nangate45, IHP's SG13G2, or a liberty file."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitruvian.common.cache import cache_root, digest, storing
from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.common.validate import nearest, shortened
from vitruvian.flows.asic import liberty
from vitruvian.flows.asic.cells import nangate45, sg13g2, stages, vt45, writer

BUILT_IN = vt45.NAME
#: Libraries that need no file from the user, and the cells that drive inputs there.
DRIVERS = {vt45.NAME: "BUF_X4", "nangate45": "BUF_X4", sg13g2.NAME: "sg13g2_buf_4"}


@dataclass(frozen=True)
class CellLibrary:
    """A liberty file that was read without errors, and its name in reports."""

    name: str
    path: Path

    @cached_property
    def cells(self) -> liberty.Library:
        """The parsed library, in ps, fF and µm²."""
        return liberty.load(self.path)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the liberty file."""
        return digest(self.path.read_bytes())


def library(name: str = BUILT_IN, *, driving_cell: str = "BUF_X4") -> CellLibrary:
    """Return a cell library.

    Parameters
    ----------
    name : str
        ``vt45``, ``nangate45``, ``sg13g2`` or the path of a liberty file.
    driving_cell : str
        Cell that will drive the inputs of a design; it must have one input and a delay.

    Raises
    ------
    UserError
        If the library is unknown, if the file is not valid liberty, or if it lacks the driving
        cell or a flip-flop.
    """
    if name == vt45.NAME:
        result = CellLibrary(name, built_in_path())
    elif name in ("nangate45", sg13g2.NAME):
        source = sg13g2 if name == sg13g2.NAME else nangate45
        try:
            result = CellLibrary(name, source.fetch())
        except RuntimeError as error:
            raise UserError(str(error)) from error
    elif Path(name).is_file():
        stem = Path(name).stem
        reserved = stem in DRIVERS  # their baselines belong to other cells
        result = CellLibrary(Path(name).name if reserved else stem, Path(name))
    else:
        known, hint = ", ".join(DRIVERS), nearest(name, DRIVERS)
        raise UserError(f"liberty must be {known} or an existing file, not {name!r}{hint}")
    try:
        cells = result.cells.cells
    except liberty.LibertyError as error:
        raise UserError(str(error)) from error
    if driving_cell not in cells:
        buffers = sorted(c for c in cells if "BUF" in c.upper()) or sorted(cells)
        shown = ", ".join(buffers[:20])
        raise UserError(f"driving cell must be one of {shown}, not {shortened(driving_cell)}")
    pins = cells[driving_cell]
    if len(pins.caps) != 1 or not any(arc.kind == "delay" for arc in pins.arcs):
        raise UserError(f"driving cell must have one input and a delay, not {driving_cell!r}")
    if not any(cell.clock and cell.gate is None for cell in cells.values()):
        raise UserError(f"liberty {name} must hold a flip-flop with clock-to-output timing")
    return result


def built_in_path() -> Path:
    """Return the path of the built-in library in the cache; write it if its source has changed."""
    source = "".join(Path(str(m.__file__)).read_text() for m in (vt45, stages, writer))
    path = cache_root() / "liberty" / f"{vt45.NAME}-{digest(source)[:16]}.lib"
    if not path.exists():
        with storing():
            write_whole(path, writer.liberty())
    return path
