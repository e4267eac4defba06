"""Table 3.5 of Zhang 2024 from measured rows, completed by checked-in figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitruvian.flows.asic import baseline
from vitruvian.flows.asic.measure import AreaRow
from vitruvian.flows.units import reported
from vitruvian.hdl.catalogue.semirings import PUBLISHED

Table = tuple[str, tuple[list[str], list[list[str]]]]

_TARGET = 10000
_UNITS = {"simd2": "FP16", "simd2-int": "integer"}
_HEADER = ["operations", "bits", "µm²", "ns", "ratio", "published", ""]


def tables(rows: Sequence[AreaRow], library: str, *, everything: bool = False) -> list[Table]:
    """Return the parts (a), (b) and (c) of Table 3.5 for integer and for FP16 units.

    Ratios are relative to the 16-bit matrix-product unit of the same kind; the published ratios
    are of integer units. A row that was not measured now is marked ``checked in``.

    Parameters
    ----------
    rows : sequence of AreaRow
        The measured rows, of any unit.
    library : str
        Name of the cell library whose checked-in figures complete the table.
    everything : bool
        If True, include a kind of unit that has no measured row.

    Returns
    -------
    list of (title, (header, lines))
        Parts without a figure are left out.
    """
    result: list[Table] = []
    for unit, kind in _UNITS.items():
        measured = {
            row.variant.label: baseline.figures(row, _TARGET)
            for row in rows
            if row.variant.unit.name == unit and _TARGET in row.targets_ps
        }
        if not measured and not everything:
            continue
        result += _parts(kind, _figures(unit, measured, library))
    return result


def _figures(unit: str, measured: Mapping[str, Any], library: str) -> dict[Any, tuple[Any, bool]]:
    """Return (operations, width) -> (figures, True if they were measured now)."""
    stored = baseline.load(library, unit)
    rows: dict[Any, tuple[Any, bool]] = {}
    for variant in reported(unit):
        c, label = variant.configuration, variant.label
        key = c["operations"], c.get("width", 16)
        if c["size"] != 4 or key in rows:  # the rows of the table come first
            continue
        old = stored.get(label, {}).get(str(_TARGET))
        if label in measured or old:
            rows[key] = measured.get(label, old), label in measured
    return rows


def _parts(kind: str, figures: Mapping[Any, tuple[Any, bool]]) -> list[Table]:
    base = figures.get(("mma", 16))
    if base is None:
        return []
    area = base[0]["area_um2"]
    parts: dict[str, list[list[str]]] = {
        "(a) beside the matrix product": [],
        "(b) alone": [],
        "(c) widths": [],
    }
    for (operations, width), (row, now) in figures.items():
        line = [
            operations,
            str(width),
            f"{row['area_um2']:.0f}",
            f"{row['delay_ps'] / 1000:.2f}",
            f"{row['area_um2'] / area:.2f}",
            # All published ratios are relative to mma at 16 bits, which therefore has no entry.
            str(PUBLISHED.get((operations, width), 1)),
            "" if now else "checked in",
        ]
        both = operations in ("mma", "all")
        if width == 16 and (both or operations.startswith("mma-")):
            parts["(a) beside the matrix product"].append(line)
        if width == 16 and not both and not operations.startswith("mma-"):
            parts["(b) alone"].append(line)
        if both and kind == "integer":
            parts["(c) widths"].append(line)
    return [
        (f"Table 3.5 {name}, {kind}, ratios over mma at 16 bits", (_HEADER, lines))
        for name, lines in parts.items()
        if lines
    ]
