"""Compare the built-in cells with Nangate45 on units of this project."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vitruvian.flows.asic.cells import library
from vitruvian.flows.asic.measure import TARGETS_PS, AreaRow, Settings, measure
from vitruvian.flows.units import variants
from vitruvian.hdl.catalogue.unit import Variant

# (unit, option values): one unit of each kind, both combinational and pipelined.
UNITS_COMPARED: tuple[tuple[str, dict[str, list[Any]]], ...] = (
    ("dot", {"preset": ["a100"], "k": [4, 8], "pipeline": [0, 3]}),
    ("dot", {"preset": ["ieee"], "k": [4], "pipeline": [0, 3]}),
    ("dot", {"preset": ["h100"], "input": ["fp8e4m3"], "k": [8], "pipeline": [3]}),
    ("dot", {"preset": ["a100"], "input": ["bf16", "tf32"], "k": [4], "pipeline": [2]}),
    ("intdot", {"pipeline": [0, 1]}),
)


@dataclass(frozen=True)
class CellComparison:
    """The figures of one variant at one target with both libraries."""

    variant: Variant
    target: int
    ours: AreaRow
    theirs: AreaRow

    @property
    def area_percent(self) -> float:
        """Difference of the built-in cells' area, in percent of Nangate45's."""
        theirs = self.theirs.area_um2(self.target)
        return 100 * (self.ours.area_um2(self.target) / theirs - 1)

    @property
    def delay_percent(self) -> float | None:
        """Difference of the built-in cells' delay, in percent; None without a path."""
        ours, theirs = self.ours.delay_ps(self.target), self.theirs.delay_ps(self.target)
        return None if ours is None or theirs is None else 100 * (ours / theirs - 1)


def compare(
    *, progress: Callable[[str, int, int], None] = lambda what, done, total: None
) -> list[CellComparison]:
    """Measure the units in ``UNITS_COMPARED`` with both libraries, at both delay targets."""
    chosen = [v for unit, values in UNITS_COMPARED for v in variants(unit, values)]
    ours = measure(chosen, Settings(library=library()), progress=progress)
    theirs = measure(chosen, Settings(library=library("nangate45")), progress=progress)
    return [
        CellComparison(variant, target, a, b)
        for variant, a, b in zip(chosen, ours, theirs, strict=True)
        for target in TARGETS_PS
    ]


def table(comparison: list[CellComparison]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: area and delay with both libraries, and the differences."""
    header = ["unit", "configuration", "target ps"]
    header += ["µm² ours", "µm² Nangate45", "Δ %", "ns ours", "ns Nangate45", "Δ %"]
    lines = []
    for c in comparison:
        delays = [(row.delay_ps(c.target) or float("nan")) / 1000 for row in (c.ours, c.theirs)]
        lines.append(
            [
                c.variant.unit.name,
                c.variant.label,
                str(c.target),
                f"{c.ours.area_um2(c.target):.0f}",
                f"{c.theirs.area_um2(c.target):.0f}",
                f"{c.area_percent:+.2f}",
                f"{delays[0]:.2f}",
                f"{delays[1]:.2f}",
                "–" if c.delay_percent is None else f"{c.delay_percent:+.1f}",
            ]
        )
    return header, lines


def summary(comparison: list[CellComparison]) -> str:
    """Return one sentence with the largest differences in area and in delay."""
    area = max(comparison, key=lambda c: abs(c.area_percent))
    delay = max(comparison, key=lambda c: abs(c.delay_percent or 0.0))
    return (
        f"largest difference in area {area.area_percent:+.2f} % ({area.variant.label} at "
        f"{area.target} ps), in delay {delay.delay_percent or 0.0:+.1f} % ({delay.variant.label} "
        f"at {delay.target} ps)"
    )


def as_json(comparison: list[CellComparison]) -> list[dict[str, Any]]:
    """Return the comparison as plain data."""
    return [
        {
            "unit": c.variant.unit.name,
            "label": c.variant.label,
            "target_ps": c.target,
            "area_um2": {
                "vt45": c.ours.area_um2(c.target),
                "nangate45": c.theirs.area_um2(c.target),
            },
            "delay_ps": {
                "vt45": c.ours.delay_ps(c.target),
                "nangate45": c.theirs.delay_ps(c.target),
            },
            "area_percent": round(c.area_percent, 3),
            "delay_percent": None if c.delay_percent is None else round(c.delay_percent, 2),
        }
        for c in comparison
    ]
