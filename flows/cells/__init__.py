"""Cell libraries: our own 45 nm cells (default), Nangate45 on request, or any liberty file."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitruvian.cache import cache_root, digest
from vitruvian.errors import UserError
from vitruvian.files import write_whole
from vitruvian.flows import liberty
from vitruvian.flows.cells import nangate45, stages, vt45, writer
from vitruvian.validate import shortened

BUILT_IN = vt45.NAME


@dataclass(frozen=True)
class CellLibrary:
    """A liberty file that was read successfully, and what it is called in reports."""

    name: str
    path: Path

    @cached_property
    def cells(self) -> liberty.Library:
        return liberty.load(self.path)

    @cached_property
    def sha256(self) -> str:
        return digest(self.path.read_bytes())


def library(name: str = BUILT_IN, *, driving_cell: str = "BUF_X4") -> CellLibrary:
    """Return the library called `name`: ``vt45``, ``nangate45`` or the path of a liberty file.

    Raises
    ------
    UserError
        No such library or file, or the file is no liberty file or lacks what mapping needs.
    """
    if name == vt45.NAME:
        found = CellLibrary(name, built_in_path())
    elif name == "nangate45":
        try:
            found = CellLibrary(name, nangate45.fetch())
        except RuntimeError as error:
            raise UserError(str(error)) from error
    elif Path(name).is_file():
        stem = Path(name).stem
        own = stem in (vt45.NAME, "nangate45")  # has baselines, which are of other cells
        found = CellLibrary(Path(name).name if own else stem, Path(name))
    else:
        raise UserError(f"liberty must be vt45, nangate45 or an existing file, not {name!r}")
    try:
        cells = found.cells.cells
    except liberty.LibertyError as error:
        raise UserError(str(error)) from error
    if driving_cell not in cells:
        buffers = sorted(c for c in cells if "BUF" in c.upper()) or sorted(cells)
        shown = ", ".join(buffers[:20])
        raise UserError(f"driving cell must be one of {shown}, not {shortened(driving_cell)}")
    pins = cells[driving_cell]
    if len(pins.caps) != 1 or not any(arc.kind == "delay" for arc in pins.arcs):
        raise UserError(f"driving cell must have one input and a delay, not {driving_cell!r}")
    if not any(cell.clock for cell in cells.values()):
        raise UserError(f"liberty {name} must hold a flip-flop with clock-to-output timing")
    return found


def built_in_path() -> Path:
    """Return the path of the generated library in the cache; written when its source changed."""
    source = "".join(Path(str(m.__file__)).read_text() for m in (vt45, stages, writer))
    path = cache_root() / "liberty" / f"{vt45.NAME}-{digest(source)[:16]}.lib"
    if not path.exists():
        write_whole(path, writer.liberty())
    return path
