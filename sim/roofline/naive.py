"""The naive roofline, which compares every precision with every transfer independently.

It is here for contrast only. It takes each item of a component as if it had the component for
itself during the whole operator, so it reports idle time where items take turns.

References
----------
Zhou et al. 2025, §2.3 and Fig. 3.
"""

from dataclasses import dataclass

from vitruvian.sim.roofline.components import ComponentKind
from vitruvian.sim.roofline.counters import Counters


@dataclass(frozen=True)
class NaivePoint:
    """A precision of a compute unit against a path.

    Attributes
    ----------
    precision, path : str
        With the component, such as "M fp16" and "MTE2 GM->L0A".
    intensity : float
        Operations of this precision per byte on this path.
    performance : float
        Operations of this precision per second of the operator.
    ceiling : float
        Operations per second of this precision.
    bandwidth : float
        Bytes per second of this path.
    """

    precision: str
    path: str
    intensity: float
    performance: float
    ceiling: float
    bandwidth: float

    @property
    def utilisation(self) -> float:
        """The ratio of the performance to the lower one of the two ceilings."""
        return self.performance / min(self.ceiling, self.intensity * self.bandwidth)


def naive_utilisations(counters: Counters) -> dict[str, float]:
    """Return the share of its own ceiling that each precision and each path reaches.

    Returns
    -------
    dict of str to float
        Keyed by component and item, such as "MTE2 GM->L0A".
    """
    return {
        name: work / counters.total_s / ceiling
        for name, work, ceiling, _ in _items(counters)
        if work
    }


def naive_points(counters: Counters) -> list[NaivePoint]:
    """Return the performance points of all pairs of a precision and a path that had work."""
    items = [(name, w, c, compute) for name, w, c, compute in _items(counters) if w]
    return [
        NaivePoint(
            precision, path, work / nbytes, work / counters.total_s, float(ceiling), bandwidth
        )
        for precision, work, ceiling, compute in items
        if compute
        for path, nbytes, bandwidth, other in items
        if not other
    ]


def _items(counters: Counters) -> list[tuple[str, float, float, bool]]:
    """Return (name, work, ceiling, is a precision) for each item of each component."""
    return [
        (f"{count.component.name} {item}", work, count.component.ceilings[item], "->" not in item)
        for count in counters.counts
        if count.component.kind != ComponentKind.BUS
        for item, work in count.work.items()
    ]
