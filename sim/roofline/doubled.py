"""The gain of an operator if one component is twice as fast, by a second simulation.

The roofline tells which component works most. If its instructions wait for those of others, or the
start-up of each takes most of its time, a faster component gains little: dependences and latencies
bound the operator then.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.report.report import Report
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.davinci.timing.lowering import Lowered
from vitruvian.sim.roofline.components import Component, ComponentKind
from vitruvian.sim.roofline.model import Analysis, Savings

#: Components with at least this share of the time ratio of another one work about as long.
_NEAR = 0.8


def savings(report: Report, analysis: Analysis) -> Savings:
    """Time a program again with each component twice as fast.

    The instructions of the unit take half of their time, start-up and drain included, on all cores;
    flags and barriers take the same. A bus moves twice the bytes, but no transfer exceeds the rate
    of its own path. Contention follows from the changed times.

    Parameters
    ----------
    report : Report
        Its instructions are timed, without data.
    analysis : Analysis
        That of the report.
    """
    lowered = report.lowered
    begin = int(lowered.begin.min())
    total = report.times.total - begin

    def saved(components: Iterable[Component]) -> float:
        changed = lowered
        for component in components:
            changed = _faster(changed, component)
        return 1 - (run(changed).total - begin) / total

    cause = analysis.cause
    group = [r.component for r in analysis.rows if r.time_ratio >= _NEAR * cause.time_ratio]
    alone = {row.component.name: saved([row.component]) for row in analysis.rows}
    names = tuple(component.name for component in group)
    return Savings(alone, names, saved(group))


def _faster(lowered: Lowered, component: Component) -> Lowered:
    """Return a program with a component that is twice as fast."""
    if component.kind == ComponentKind.BUS:
        # The rates of the paths stay, so that a transfer alone is as fast as before.
        return replace(lowered, totals=2 * lowered.totals)
    chosen = (lowered.unit == Unit[component.name]) & (lowered.kind == Kind.NORMAL)

    def halved(times: np.ndarray) -> np.ndarray:
        # Whole attoseconds, rounded up: no time becomes 0.
        return np.where(chosen, (times + 1) // 2, times)

    return replace(
        lowered,
        init=halved(lowered.init),
        data=halved(lowered.data),
        drain=halved(lowered.drain),
        rate=np.where(chosen, 2 * lowered.rate, lowered.rate),
    )
