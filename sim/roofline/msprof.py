"""Counters from a folder of msprof op's CSV files, the profiler of the chips.

PipeUtilization.csv has the time of each unit, ArithmeticUtilization.csv the operations, and
Memory.csv and MemoryL0.csv the bytes; only the last one may be missing. Each has a row for each
core. What the files do not tell is
filled in as follows:

- The operations of the vector unit are divided among FP16 and FP32 in proportion to the lanes that
  each could process in its share of the time. Operations on integers are not counted.
- The files count floating-point operations alone, so INT8 products have a time but no work.
- Scalar operations are not counted: the scalar unit has a time ratio and no utilisation.
- A kilobyte is 1024 bytes, and a gigabyte per second 10⁹ bytes.

References
----------
MindStudio, msprof op: "PipeUtilization", "ArithmeticUtilization", "Memory" and "MemoryL0".
"""

import csv
import io
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.report.counters import read_counters
from vitruvian.sim.roofline.components import components_of
from vitruvian.sim.roofline.counters import Count, Counters
from vitruvian.sim.roofline.model import CounterError

#: The files of the folder.
FILES = ("PipeUtilization.csv", "ArithmeticUtilization.csv", "Memory.csv", "MemoryL0.csv")

#: The names of the units in columns.
_UNITS = {
    "S": "scalar",
    "V": "vec",
    "M": "cube",
    "MTE1": "mte1",
    "MTE2": "mte2",
    "MTE3": "mte3",
    "FIX": "fixpipe",
}

#: Columns with the kilobytes of a path.
_AMOUNTS = {
    "GM->L1": "GM_to_L1_datas(KB)",
    "GM->UB": "GM_to_UB_datas(KB)",
    "UB->GM": "UB_to_GM_datas(KB)",
    "L1->GM": "L1_to_GM_datas(KB)(estimate)",
    "L0C->GM": "L0C_to_GM_datas(KB)",
    "L0C->L1": "L0C_to_L1_datas(KB)",
}

#: Columns with the gigabytes per second that reach a buffer, which MTE1 fills from L1.
_RATES = {"L1->L0A": "aic_l0a_write_bw(GB/s)", "L1->L0B": "aic_l0b_write_bw(GB/s)"}

_MOST_BYTES = 1 << 27

_LACKS = (
    "msprof op's files have no buses, no operations of S and on integers, no bytes of moves "
    "between L0C and UB and from L1 to UB, and the time of the core instead of the operator; "
    "bytes that Im2Col or nd2nz moves count at the ceiling of plain ones"
)


def read_msprof(folder: str | Path, chip: Chip) -> list[Counters]:
    """Read the counters of every core in a folder of msprof op.

    Parameters
    ----------
    chip : Chip
        The chip that ran the operator. If it has two kinds of cores, they are the cores with a Cube
        (``aic`` in the columns) and those without (``aiv``).

    Returns
    -------
    list of Counters
        One for each core, in the order of the files.

    Raises
    ------
    CounterError
        If a file is missing or is no table, lacks a column, has a value that is no number, or has
        other cores than PipeUtilization.csv. The message is one line with the file and the line.
    """
    folder = Path(folder)
    *found, last = (folder / name for name in FILES)
    tables = [_table(path) for path in found]
    cores = list(tables[0])
    # Cores without a Cube have nothing to report in the last file, which may then be missing.
    empty = {key: _MsprofRow(str(last), 1, {}) for key in cores}
    tables.append(_table(last) if last.exists() else empty)
    for path, table in zip((*found, last), tables, strict=True):
        if list(table) != cores:
            raise CounterError(f"{path}: cores must be those of {FILES[0]}")
    name = _name(folder)
    return [_core(name, chip, key, [table[key] for table in tables]) for key in cores]


class _MsprofRow:
    """A row of a file, whose columns are numbers or N/A."""

    def __init__(self, file: str, line: int, cells: Mapping[str, str]) -> None:
        self.file, self.line, self.cells = file, line, cells

    def has(self, column: str) -> bool:
        """Return True if the row has a value in this column."""
        return (self.cells.get(column) or "N/A").strip() not in ("", "N/A", "NA")

    def number(self, column: str, *, needed: bool = False) -> float:
        """Return a value; one that the core does not have is 0 unless it is needed."""
        if needed and column not in self.cells:
            raise CounterError(f"{self.file}:1: columns must include {column}")
        if not needed and not self.has(column):
            return 0.0
        text = self.cells[column]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise CounterError(
                f"{self.file}:{self.line}: {column} must be a number, 0 or more, not {text!r}"
            )
        return value


def _table(path: Path) -> dict[tuple[str, str], _MsprofRow]:
    """Return the rows of a file by block and part of the block."""
    try:
        # A device has the size 0 and no end.
        if path.exists() and not path.is_file():
            raise CounterError(f"{path}: counters must be a file, not a folder, device or pipe")
        if path.stat().st_size > _MOST_BYTES:
            raise CounterError(f"{path}: counters must be a file of at most {_MOST_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CounterError(f"{path}: counters must be a CSV file in UTF-8: {reason}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows: dict[tuple[str, str], _MsprofRow] = {}
    try:
        reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        if "block_id" not in reader.fieldnames:
            raise CounterError(f"{path}:1: columns must include block_id")
        for cells in reader:
            key = cells["block_id"] or "", cells.get("sub_block_id") or ""
            rows[key] = _MsprofRow(str(path), reader.line_num, cells)
    except csv.Error as error:
        raise CounterError(f"{path}:{reader.line_num}: counters must be CSV: {error}") from None
    if not rows:
        raise CounterError(f"{path}: counters must have at least one row below the header")
    return rows


def _core(name: str, chip: Chip, key: tuple[str, str], rows: list[_MsprofRow]) -> Counters:
    pipes, arithmetic, memory, level0 = rows
    prefix = "aic" if pipes.has("aic_time(us)") else "aiv"
    total_us = pipes.number(f"{prefix}_time(us)", needed=True)
    kinds = list(chip.kinds)
    # A chip with two kinds of cores names the one with a Cube first.
    components = components_of(chip, kinds[0] if prefix == "aic" else kinds[-1])
    counts = []
    for unit, component in components.items():
        active_us = pipes.number(f"{prefix}_{_UNITS[unit]}_time(us)")
        work: dict[str, float] = {}
        if unit == "M":
            work = {"fp16": arithmetic.number(f"{prefix}_cube_fops", needed=True)}
        elif unit == "V":
            work = _lanes(arithmetic, prefix, component.ceilings)
        else:
            for path, column in _AMOUNTS.items():
                if path in component.ceilings:
                    work[path] = 1024 * memory.number(column)
            for path, column in _RATES.items():
                if path in component.ceilings:
                    work[path] = 1e9 * level0.number(column) * total_us / 1e6
        work = {item: amount for item, amount in work.items() if amount}
        if active_us or work:
            counts.append(Count(component, work, active_us / 1e6))
    scope = " ".join(("block", *filter(None, key)))
    # Times are rounded to their last digit.
    digits = pipes.cells[f"{prefix}_time(us)"].strip().partition(".")[2]
    resolution_s = 0.5e-6 * 10.0 ** -len(digits)
    return Counters(name, chip.name, scope, total_us / 1e6, counts, resolution_s, _LACKS)


def _name(folder: Path) -> str:
    """Return the operator's name, which op_summary.csv has if it is there too."""
    path = folder / "op_summary.csv"
    if path.is_file():
        with suppress(ValueError, OSError):
            (row,) = read_counters(path)
            return str(row.get("Op Name") or folder.resolve().name)
    return folder.resolve().name


def _lanes(row: _MsprofRow, prefix: str, ceilings: Mapping[str, float]) -> dict[str, float]:
    """Divide the operations of a vector unit among its precisions."""
    total = row.number(f"{prefix}_vec_fops", needed=True)
    lanes = {p: row.number(f"{prefix}_vec_{p}_ratio") * ceilings[p] for p in ("fp16", "fp32")}
    if not sum(lanes.values()):
        return {"fp32": total} if total else {}
    return {p: total * each / sum(lanes.values()) for p, each in lanes.items()}
