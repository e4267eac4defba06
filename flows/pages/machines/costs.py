"""Area and delay of the units that realise the rules of machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vitruvian.flows.asic.measure import AreaRow, Settings, measure
from vitruvian.golden.machines import Machine
from vitruvian.hdl.catalogue.unit import Unit, Variant
from vitruvian.hdl.machines import NoUnit, Realisation, realise


@dataclass(frozen=True)
class RuleCost:
    """The cost of one rule.

    Attributes
    ----------
    row : Machine
    unit : str
        Name of the component, or "" if no unit has the rule.
    reason : str
        The reason why there is no unit, or "".
    terms, steps : int
        Products that the unit takes at once, and the steps that it needs for them.
    figures : tuple of (int, float, float)
        Delay target in ps, area in µm² and longest path in ps, for each target.
    """

    row: Machine
    unit: str = ""
    reason: str = ""
    terms: int = 0
    steps: int = 1
    figures: tuple[tuple[int, float, float], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        targets = {
            str(target): {"area_um2": round(area, 1), "delay_ps": round(delay, 1)}
            for target, area, delay in self.figures
        }
        return {
            "stem": self.row.stem,
            "unit": self.unit or None,
            "reason": self.reason or None,
            "terms": self.terms,
            "steps": self.steps,
            "targets": targets,
        }


def unit_of(row: Machine) -> Variant | str:
    """Return the unit of a row without registers, or the reason why there is none."""
    try:
        # Without registers, area and delay are those of the arithmetic alone.
        found = realise(row.rule, pipeline=0)
    except NoUnit as error:
        return str(error)
    return Variant(_unit(row, found), {"rule": row.stem})


def _unit(row: Machine, found: Realisation) -> Unit:
    return Unit(
        name=found.name,
        summary=f"the rule of {row.stem}",
        package=found.component.__module__,
        options={},
        default=dict,
        component=lambda _: (found.component, found.parameters),  # type: ignore[return-value]
        macs=lambda _: found.k,
        shared=getattr(found.component, "shared", ()),
    )


def costs(
    rows: Sequence[Machine],
    settings: Settings,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[RuleCost]:
    """Measure the units of rows of the table of machines.

    All rules are mapped without ABC's SAT sweeping, which takes very long on some of them. A chain
    of small units is mapped one small unit at a time and timed as a whole.

    Parameters
    ----------
    progress : callable
        Called with (description of the finished step, steps done, steps known so far).

    Returns
    -------
    list of RuleCost
        One for each row, in the same order; a row without a unit has no figures.
    """
    units = [unit_of(row) for row in rows]
    # A unit with shared parts is a chain: its small unit stands once and is instantiated many
    # times.
    chains = [unit for unit in units if isinstance(unit, Variant) and unit.unit.shared]
    others = [unit for unit in units if isinstance(unit, Variant) and not unit.unit.shared]
    quick = replace(settings, recipe=replace(settings.recipe, sweep=False))
    together = replace(quick, tile=True)
    measured = {
        row.variant.label: row
        for variants, how in ((others, quick), (chains, together))
        for row in measure(variants, how, progress=progress)
    }
    return [
        RuleCost(row, reason=unit) if isinstance(unit, str) else _cost(row, measured[unit.label])
        for row, unit in zip(rows, units, strict=True)
    ]


def _cost(row: Machine, measured: AreaRow) -> RuleCost:
    figures: list[tuple[int, float, float]] = []
    for target in measured.targets_ps:
        delay = measured.delay_ps(target)
        assert delay is not None, "a unit without registers has a path"
        figures.append((target, measured.area_um2(target), delay))
    unit, terms = measured.variant.unit.name, measured.variant.macs
    steps = realise(row.rule, pipeline=0).phases
    return RuleCost(row, unit=unit, terms=terms, steps=steps, figures=tuple(figures))
