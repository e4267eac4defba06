"""Counters from op_summary.csv of msprof: times of each unit, and the operations of two of them.

A row is an operator. Times are means over the cores that it ran on, and operations are sums over
these, so they are divided by their number. The file has no bytes: a transfer engine has a time
ratio and no utilisation. It does not tell the precision of vector operations either; they count as
FP16, so that the utilisation of the vector unit is a lower bound.

References
----------
MindStudio, msprof: "op_summary (Operator Details)".
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitruvian.sim.davinci.chip.model import Chip
from vitruvian.sim.davinci.report.counters import UNIT_NAMES, read_counters
from vitruvian.sim.roofline.components import components_of
from vitruvian.sim.roofline.counters import Count, Counters
from vitruvian.sim.roofline.model import CounterError

_NAMES = {unit.name: names[1] for unit, names in UNIT_NAMES.items()}
_TOTALS = {"aic": "aicore_time(us)", "aiv": "aiv_time(us)"}
_FOPS = {"M": "cube_fops", "V": "vector_fops"}
#: Half of the last digit of a time in µs: msprof prints three decimals.
_DIGITS_US = 0.5e-3

_LACKS = (
    "op_summary.csv has no bytes, so transfer engines have no utilisation, and vector operations "
    "count as FP16; times are means over {cores} cores"
)


def is_summary(path: str | Path) -> bool:
    """Return True if the first line of a file has the columns of op_summary.csv."""
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            names = [name.strip() for name in file.readline(1 << 16).split(",")]
    except (OSError, UnicodeDecodeError):
        return False
    return any(total in names for total in _TOTALS.values())


def read_summary(path: str | Path, chip: Chip) -> list[Counters]:
    """Read the counters of every operator in an op_summary.csv.

    Rows without a time on these cores, such as those of the host or of communication, are left out.

    Parameters
    ----------
    chip : Chip
        The chip that ran the operators. If it has two kinds of cores, the kind whose busiest unit
        works longest stands for an operator.

    Returns
    -------
    list of Counters

    Raises
    ------
    CounterError
        If the file is no such table, or has a value that is no number, or no row with times. The
        message is one line.
    """
    try:
        rows = read_counters(path)
    except (ValueError, OSError) as error:
        raise CounterError(f"{path}: counters must be a CSV file in UTF-8: {error}") from None
    found = []
    for number, row in enumerate(rows, 2):
        each = [_core(f"{path}:{number}", row, chip, p) for p in _TOTALS]
        each = [c for c in each if c is not None]
        if each:
            found.append(max(each, key=lambda c: max((x.active_s for x in c.counts), default=0)))
    if not found:
        columns = " or ".join(_TOTALS.values())
        raise CounterError(f"{path}: counters must have a row with {columns}")
    return found


def _core(where: str, row: Mapping[str, Any], chip: Chip, prefix: str) -> Counters | None:
    """Return the counters of one kind of core, or None if the operator did not run on it."""
    total_us = _number(where, row, _TOTALS[prefix])
    if not total_us:
        return None
    kinds = list(chip.kinds)
    # Columns of chips whose cores have all units have no prefix.
    start = f"{prefix}_" if any(name.startswith(f"{prefix}_mte2") for name in row) else ""
    blocks = "Block Dim"
    if prefix == "aiv" and _number(where, row, "Mix Block Dim"):
        blocks = "Mix Block Dim"
    cores = max(int(_number(where, row, blocks)), 1)
    counts = []
    for name, component in components_of(chip, kinds[0 if prefix == "aic" else -1]).items():
        active_us = _number(where, row, f"{start}{_NAMES[name]}_time(us)")
        work = _number(where, row, f"{start}{_FOPS[name]}") / cores if name in _FOPS else 0.0
        if active_us or work:
            counts.append(Count(component, {"fp16": work} if work else {}, active_us / 1e6))
    name = row.get("Op Name") or row.get("OP Type") or where
    return Counters(
        str(name),
        chip.name,
        f"mean of {cores} cores",
        total_us / 1e6,
        counts,
        _DIGITS_US / 1e6,
        _LACKS.format(cores=cores),
    )


def _number(where: str, row: Mapping[str, Any], column: str) -> float:
    """Return a value; 0 for a column or a value that is not there."""
    value = row.get(column)
    if value is None:
        return 0.0
    if not isinstance(value, float) or not 0 <= value < math.inf:
        raise CounterError(f"{where}: {column} must be a number, 0 or more, not {value!r}")
    return value
