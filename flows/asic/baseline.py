"""Compare new measurements with the checked-in figures.

Each library and unit has one file, ``flows/asic/baselines/LIBRARY/UNIT.json``. It maps label ->
target -> figures, and it also stores the recipe and the tool versions that produced the figures.
The figures of whole units (``--tile``) are in ``flows/asic/baselines/LIBRARY/tile/UNIT.json``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.flows.asic.measure import AreaRow, Settings

FOLDER = Path(__file__).with_name("baselines")
FIGURES = ("area_um2", "delay_ps")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The figures of one row at one target, before and after; None stands for a missing figure."""

    unit: str
    label: str
    target: int
    before: dict[str, float | None] | None
    after: dict[str, float | None]

    def change(self, figure: str) -> float | None:
        """Return after − before, or None if either figure is missing."""
        before, after = (self.before or {}).get(figure), self.after.get(figure)
        return None if before is None or after is None else after - before

    @property
    def same(self) -> bool:
        """True if a baseline exists and every figure equals it within the stored precision."""
        return self.before is not None and all(
            (self.before.get(f) is None) == (self.after[f] is None)
            and abs(self.change(f) or 0.0) < 0.051  # figures are stored to 0.1
            for f in FIGURES
        )


def path(library: str, unit: str, *, tile: bool = False) -> Path:
    """Return the path of the baseline file of ``unit`` with the cells of ``library``."""
    return FOLDER / library / ("tile" if tile else "") / f"{unit}.json"


def load(
    library: str, unit: str, *, tile: bool = False
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return label -> target -> figures; the mapping is empty if no baseline has been stored.

    Raises
    ------
    UserError
        If the file exists but is not a baseline.
    """
    file = path(library, unit, tile=tile)
    if not file.exists():
        return {}
    try:
        return json.loads(file.read_text())["rows"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"baseline {file} must be JSON with rows, not malformed: {error}") from None


def figures(row: AreaRow, target: int) -> dict[str, float | None]:
    """Return the figures of ``row`` that a baseline keeps, rounded to 0.1."""
    delay = row.delay_ps(target)
    return {
        "area_um2": round(row.area_um2(target), 1),
        "delay_ps": None if delay is None else round(delay, 1),
    }


def compare(rows: Sequence[AreaRow], library: str, *, tile: bool = False) -> list[Difference]:
    """Return one ``Difference`` for every row and target; ``tile`` if the rows are whole units."""
    units = {row.variant.unit.name for row in rows}
    stored = {unit: load(library, unit, tile=tile) for unit in units}
    return [
        Difference(
            unit=row.variant.unit.name,
            label=row.variant.label,
            target=target,
            before=stored[row.variant.unit.name].get(row.variant.label, {}).get(str(target)),
            after=figures(row, target),
        )
        for row in rows
        for target in row.targets_ps
    ]


def update(rows: Sequence[AreaRow], settings: Settings) -> list[Path]:
    """Store the figures of ``rows`` and keep those of the variants that were not measured."""
    written = []
    for unit in dict.fromkeys(row.variant.unit.name for row in rows):
        known = load(settings.library.name, unit, tile=settings.tile)
        for row in rows:
            if row.variant.unit.name == unit:
                known[row.variant.label] = {
                    str(target): figures(row, target) for target in row.targets_ps
                }
        document: dict[str, Any] = {
            "library": settings.library.name,
            "recipe": settings.recipe.as_dict(),
            # Other versions of these tools can change the figures.
            "tools": {name: version(name) for name in ("amaranth", "pyosys")},
            "rows": dict(sorted(known.items())),
        }
        file = path(settings.library.name, unit, tile=settings.tile)
        write_whole(file, json.dumps(document, indent=1) + "\n")
        written.append(file)
    return written


def table(differences: Sequence[Difference]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: area and delay of each row before, after and their difference."""
    header = ["unit", "configuration", "target ps", "µm² before", "µm²", "Δ", "Δ %"]
    header += ["ps before", "ps", "Δ", "Δ %"]
    lines = []
    for d in differences:
        line = [d.unit, d.label, str(d.target)]
        for figure in FIGURES:
            before, after, change = (d.before or {}).get(figure), d.after[figure], d.change(figure)
            line += [
                "new" if before is None else f"{before:.1f}",
                "–" if after is None else f"{after:.1f}",
                "–" if change is None else f"{change:+.1f}",
                "–" if change is None or not before else f"{100 * change / before:+.2f}",
            ]
        lines.append(line)
    return header, lines
