"""The roofline of every step of a case study, beside the published figures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vitruvian.sim.davinci import Chip, simulate
from vitruvian.sim.papers.zhou25 import CaseStep, CaseStudy
from vitruvian.sim.papers.zhou25.published import PUBLISHED, SPEEDUPS, PublishedStep
from vitruvian.sim.roofline.components import TITLES
from vitruvian.sim.roofline.counters import counters_of
from vitruvian.sim.roofline.model import Analysis, Bound, RooflineRow, Thresholds, analyse


@dataclass(frozen=True)
class CaseRow:
    """A step of a case study.

    Attributes
    ----------
    case : CaseStudy
    step : CaseStep
    analysis : Analysis
    """

    case: CaseStudy
    step: CaseStep
    analysis: Analysis

    @property
    def metric(self) -> RooflineRow:
        """The component whose utilisation the paper follows."""
        unit = next(name for name, title in TITLES.items() if title == self.case.metric)
        return next(r for r in self.analysis.rows if r.component.name == unit)

    @property
    def published(self) -> PublishedStep:
        """The published figures of the step, which are all None if there are none."""
        return PUBLISHED.get(self.case.name, {}).get(self.step.name, PublishedStep())

    @property
    def published_speedup(self) -> float | None:
        """The published speedup of the whole case study, or None."""
        return SPEEDUPS.get(self.case.name)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures in types that JSON can hold."""
        p = self.published
        return {
            "step": self.step.name,
            "metric": self.case.metric,
            "metric_utilisation": self.metric.utilisation,
            **self.analysis.as_dict(),
            "published": {
                "utilisation": p.utilisation,
                "time_ratio": p.time_ratio,
                "time_us": p.time_us,
                "bound": p.bound.value if p.bound else None,
            },
        }


def case_rows(
    case: CaseStudy,
    chip: Chip | str | None = None,
    *,
    size: tuple[int, ...] | None = None,
    core: str = "busiest",
    thresholds: Thresholds | None = None,
) -> list[CaseRow]:
    """Simulate and analyse every step of a case study.

    Parameters
    ----------
    chip : Chip or str, optional
        By default that of the case.
    size : tuple of int, optional
        By default that of the case.
    core : str
        See ``counters_of``.
    thresholds : Thresholds, optional
    """
    rows = []
    for step in case.steps:
        program = case.build(step.name, chip, seed=None, size=size).program
        report = simulate(program, cube=None, checks=False)
        rows.append(CaseRow(case, step, analyse(counters_of(report, core), thresholds)))
    return rows


def case_table(
    case: CaseStudy, rows: Sequence[CaseRow]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the cells of a table with a row for each step.

    Parameters
    ----------
    rows : sequence of CaseRow
        Result of ``case_rows``.
    """
    header = ("step", "µs", "pub. µs", f"U({case.metric})", "pub. U")
    header += ("highest R", "pub. R", "class", "published class")
    cells = []
    for row in rows:
        a, p = row.analysis, row.published
        cells.append(
            (
                row.step.name,
                f"{a.counters.total_s * 1e6:,.3f}",
                "–" if p.time_us is None else f"{p.time_us:,.3f}",
                _percent(row.metric.utilisation),
                _percent(p.utilisation),
                f"{_percent(a.longest.time_ratio)} {a.longest.component.name}",
                _percent(p.time_ratio),
                a.label,
                p.bound.value if p.bound else "–",
            )
        )
    return header, cells


def distribution(bounds: Sequence[Bound]) -> dict[Bound, float]:
    """Return the share of each class among some operators, without classes that do not occur."""
    counts = Counter(bounds)
    return {bound: counts[bound] / len(bounds) for bound in Bound if counts[bound]}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.2f} %"
