"""Counters in a CSV file, from a profiler or from a report.

Each row holds the work of one item of one component. The columns are

``operator``
    Name of the operator; optional, if the file holds only one. Rows of one operator may stand
    anywhere.
``component``
    Name of the unit (``M``, ``V``, ``S``, ``MTE1``, ``MTE2``, ``MTE3``, ``FIX``), or its name in
    Zhou et al. 2025 (``Cube``, ``Vector``, ``Scalar``, ``MTE-L1``, ``MTE-GM``, ``MTE-UB``).
``item``
    A precision such as ``fp16`` (``scalar`` for the scalar unit), or a path such as ``GM->L1``.
``work``
    Operations (2 for a multiply-accumulate), or bytes.
``active_us``
    Microseconds during which the component worked, the same in all rows of the component.
``total_us``
    Microseconds of the operator, the same in all rows of the operator.

All counters are those of one core. Other columns are ignored.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.roofline.components import TITLES, Component, ComponentKind, components_of
from vitruvian.sim.roofline.counters import Count, Counters
from vitruvian.sim.roofline.model import CounterError

#: The columns that a file must have.
COLUMNS = ("component", "item", "work", "active_us", "total_us")

_UNITS = {title: name for name, title in TITLES.items()} | {name: name for name in TITLES}

#: The largest file in bytes; ten thousand operators have some ten megabytes.
_BYTES = 1 << 27


def read_profile(path: str | Path, chip: Chip) -> list[Counters]:
    """Read the counters of a file.

    Parameters
    ----------
    chip : Chip
        The chip that ran the operators; its ceilings judge them.

    Returns
    -------
    list of Counters
        One for each operator, in the order of their first rows.

    Raises
    ------
    CounterError
        If the file cannot be read, lacks a column, or has a value that is no number, an unknown
        component or item, or rows that contradict each other. The message is one line that names
        the file and the line.
    """
    file = str(path)
    rows = _rows(file)
    components: dict[str, Component] = {}
    for kind in chip.kinds:
        components = {**components_of(chip, kind), **components}
    operators: dict[str, dict[str, _ProfileRows]] = {}
    totals: dict[str, float] = {}
    for line, row in rows:
        where = f"{file}:{line}"
        operator = row.get("operator") or Path(file).stem
        unit = _UNITS.get((row["component"] or "").strip())
        if unit is None or unit not in components:
            allowed = ", ".join(components)
            raise CounterError(
                f"{where}: component must be one of {allowed}, not {row['component']!r}"
            )
        total = _number(where, "total_us", row["total_us"])
        if totals.setdefault(operator, total) != total:
            raise CounterError(
                f"{where}: total_us of {operator} must be {totals[operator]:g} as in its first "
                f"row, not {total:g}"
            )
        each = operators.setdefault(operator, {})
        each.setdefault(unit, _ProfileRows(components[unit])).add(where, row)
    return [
        Counters(
            name,
            chip.name,
            "one core",
            totals[name] / 1e6,
            [each[unit].count() for unit in TITLES if unit in each],
        )
        for name, each in operators.items()
    ]


class _ProfileRows:
    """The rows of one component of one operator."""

    def __init__(self, component: Component) -> None:
        self.component, self.work = component, {}
        self.active_us: float | None = None

    def add(self, where: str, row: Mapping[str, str]) -> None:
        active = _number(where, "active_us", row["active_us"])
        if self.active_us is None:
            self.active_us = active
        name = self.component.name
        if self.active_us != active:
            raise CounterError(
                f"{where}: active_us of {name} must be {self.active_us:g} as in its first row, "
                f"not {active:g}"
            )
        item = (row["item"] or "").strip()
        if item not in self.component.ceilings:
            allowed = ", ".join(self.component.ceilings)
            raise CounterError(f"{where}: item of {name} must be one of {allowed}, not {item!r}")
        if item in self.work:
            raise CounterError(f"{where}: item of {name} must occur once, not again: {item!r}")
        self.work[item] = _number(where, "work", row["work"])

    def count(self) -> Count:
        return Count(self.component, self.work, (self.active_us or 0.0) / 1e6)


def profile_text(operators: Iterable[Counters]) -> str:
    """Return the text of a file that ``read_profile`` reads; buses are left out.

    Parameters
    ----------
    operators : iterable of Counters
        Counters of one core each.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("operator", *COLUMNS))
    for counters in operators:
        for count in counters.counts:
            if count.component.kind == ComponentKind.BUS:
                continue
            times = repr(count.active_s * 1e6), repr(counters.total_s * 1e6)
            for item, work in count.work.items():
                row = (counters.name, count.component.name, item, f"{work:.0f}", *times)
                writer.writerow(row)
    return text.getvalue()


def _rows(file: str) -> Sequence[tuple[int, dict[str, str]]]:
    """Return (line, row) of a file that has the columns."""
    try:
        # A device has the size 0 and no end.
        if Path(file).exists() and not Path(file).is_file():
            raise CounterError(f"{file}: counters must be a file, not a folder, device or pipe")
        if Path(file).stat().st_size > _BYTES:
            raise CounterError(f"{file}: counters must be a file of at most {_BYTES:,} bytes")
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CounterError(f"{file}: counters must be a CSV file in UTF-8: {reason}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = header
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise CounterError(
                f"{file}:1: counters must have the columns {', '.join(COLUMNS)}; "
                f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            )
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise CounterError(f"{file}:{reader.line_num}: counters must be CSV: {error}") from None
    if not rows:
        raise CounterError(f"{file}: counters must have at least one row below the header")
    return rows


def _number(where: str, column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise CounterError(f"{where}: {column} must be a number, 0 or more, not {text!r}")
    return value
