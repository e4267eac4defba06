"""The component-based roofline: utilisation, efficiency, time ratio, and the class of an operator.

References
----------
Zhou et al. 2025, §4.1 (eq. 1 to 5) and §4.2 (eq. 6 to 9).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from vitruvian.sim.roofline.components import Component, ComponentKind
from vitruvian.sim.roofline.counters import Count, Counters

#: The share by which a counter may exceed its ceiling: files hold times with about seven digits,
#: and the simulator rounds every period to an attosecond. ``Counters.resolution_s`` allows more.
ROUNDING = 1e-6


#: A component that saves less than this share of its promise, half of its time ratio, if it is
#: twice as fast, does not bound the operator; the verdict says so.
PROMISED = 0.5


class CounterError(ValueError):
    """Counters that contradict each other or a ceiling; the message names the component."""


class Bound(Enum):
    """The classes of an operator (Zhou et al. 2025, §4.2)."""

    COMPUTE = "compute bound"
    MTE = "MTE bound"
    PARALLELISM = "insufficient parallelism"
    INEFFICIENT_MTE = "inefficient MTE"
    INEFFICIENT_COMPUTE = "inefficient compute"


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of the classification.

    Zhou et al. 2025 publish no values, but the verdicts of their case studies bound them:

    - An operator with a time ratio of 0.7769 lacks parallelism (§5.2), one with 0.8398 does not
      (§5.3), so the time ratio's threshold lies in (0.7769, 0.8398].
    - A vector operator is not bound at a utilisation of 0.5907 (§5.3) and is bound at 0.6624
      (§5.1), so their threshold lies in (0.5907, 0.6624].
    - A Cube operator is not bound at 0.7156 and is bound at 0.9354 (§5.2), so that threshold lies
      in (0.7156, 0.9354].

    The defaults are round numbers within these intervals.

    Attributes
    ----------
    cube_utilisation : float
        An operator with work for the Cube is bound by a component of at least this utilisation.
    vector_utilisation : float
        The same for an operator without work for the Cube. Vector operations work on small blocks,
        so they do not reach high utilisation (§5.1).
    time_ratio : float
        An operator lacks parallelism if all components have less than this time ratio.
    """

    cube_utilisation: float = 0.80
    vector_utilisation: float = 0.65
    time_ratio: float = 0.80

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value <= 1:
                raise ValueError(f"{name} must be more than 0 and at most 1, not {value!r}")


@dataclass(frozen=True)
class RooflineRow:
    """The figures of one component.

    Attributes
    ----------
    component : Component
    work : mapping of str to float
        Operations by precision, or bytes by path.
    total : float
        The work of all items: O in eq. 1. For a vector unit that also moves bytes, two of them
        count as one operation, which is a lane of FP16.
    ideal_s : float
        Seconds that the work takes at the ceilings: eq. 3.
    active_s : float
        Seconds during which the component worked: T_cube in eq. 6.
    actual : float
        Work per second of the operator: eq. 1.
    ideal : float
        Work per second at the ceilings, the harmonic mean that is weighted by the work: eq. 4.
    utilisation : float
        actual / ideal: eq. 5.
    efficiency : float
        ideal_s / active_s: eq. 7.
    time_ratio : float
        active_s / total: eq. 6.
    """

    component: Component
    work: Mapping[str, float]
    total: float
    ideal_s: float
    active_s: float
    actual: float
    ideal: float
    utilisation: float
    efficiency: float
    time_ratio: float

    @property
    def largest_item(self) -> str:
        """The precision or path whose work takes longest at its ceiling; "" without work.

        Zhou et al. 2025 (§4.2) advise to look at the largest item first.
        """
        ceilings = self.component.ceilings
        return max(self.work, key=lambda item: self.work[item] / ceilings[item], default="")


@dataclass(frozen=True)
class Point:
    """A performance point: a compute unit against a transfer engine (Zhou et al. 2025, Fig. 6).

    Attributes
    ----------
    compute, transfer : RooflineRow
    intensity : float
        Operations per byte.
    """

    compute: RooflineRow
    transfer: RooflineRow
    intensity: float

    @property
    def performance(self) -> float:
        """Operations per second."""
        return self.compute.actual

    @property
    def roof(self) -> float:
        """Operations per second that the lower one of the two ceilings allows."""
        return min(self.compute.ideal, self.intensity * self.transfer.ideal)

    @property
    def utilisation(self) -> float:
        """The ratio of the performance to its roof: the larger one of the two utilisations."""
        return self.performance / self.roof


@dataclass(frozen=True)
class Savings:
    """The shares of the total time that components save if they are twice as fast.

    Attributes
    ----------
    alone : mapping of str to float
        That of each component by itself; 0 for no gain, and at most about 0.5.
    group : tuple of str
        The component that the class names, and those that work about as long.
    together : float
        That of the group.
    """

    alone: Mapping[str, float]
    group: tuple[str, ...]
    together: float


@dataclass(frozen=True)
class Analysis:
    """The result of ``analyse``.

    Attributes
    ----------
    counters : Counters
    thresholds : Thresholds
    rows : sequence of RooflineRow
        The components in the order of the counters; those without work and time are left out.
    bound : Bound
        The class of the operator.
    cause : RooflineRow
        The component that bounds the operator, the inefficient one, or, if parallelism is
        insufficient, the one with the highest time ratio.
    savings : Savings, optional
        The shares of the time that components save if they are twice as fast (``doubled``). The
        simulator can tell them, a file of counters cannot.
    """

    counters: Counters
    thresholds: Thresholds
    rows: Sequence[RooflineRow]
    bound: Bound
    cause: RooflineRow
    savings: Savings | None = None

    @property
    def utilisation_threshold(self) -> float:
        """The threshold of the utilisation for this operator, with or without Cube work."""
        return _utilisation_threshold(self.rows, self.thresholds)

    @property
    def highest(self) -> RooflineRow:
        """The component of the highest utilisation."""
        return max(self.rows, key=lambda row: row.utilisation)

    @property
    def longest(self) -> RooflineRow:
        """The component of the highest time ratio; buses are left out."""
        return _longest(self.rows)

    @property
    def points(self) -> list[Point]:
        """The performance points of the compute units and transfer engines that had work.

        An engine that loads L0A and L0B alone feeds the Cube alone, so it is left out against the
        other compute units (Zhou et al. 2025, §4.3).
        """
        of = ComponentKind
        compute = [r for r in self.rows if r.component.kind == of.COMPUTE and r.total]
        transfer = [r for r in self.rows if r.component.kind == of.TRANSFER and r.total]
        return [
            Point(c, t, c.total / t.total)
            for c in compute
            for t in transfer
            if c.component.name == "M" or not all(_to_cube(item) for item in t.work)
        ]

    @property
    def label(self) -> str:
        """The class with the name of the component that causes it."""
        name = self.cause.component.name
        if self.bound == Bound.PARALLELISM:
            return self.bound.value
        return f"{self.bound.value} ({name.split(' ')[0]})"

    def verdict(self) -> str:
        """Return the class of the operator and its figures, with a doubt in a second sentence.

        The class follows from thresholds, as Zhou et al. 2025 have it. It is in doubt if the
        component that it names would save little if it were twice as fast.
        """
        doubt = self.doubt()
        return f"{self._verdict()} {doubt}" if doubt else self._verdict()

    def doubt(self) -> str:
        """Return a sentence if the named component does not bound the operator, else ""."""
        row = self.cause
        if self.savings is None or self.bound == Bound.PARALLELISM:
            return ""
        alone, promise = self.savings.alone[row.component.name], row.time_ratio / 2
        # Half of the active time is the most that a component twice as fast can save.
        if alone >= PROMISED * promise:
            return ""
        title, others = row.component.title, self._others()
        text = f"However, {title} alone would save {_percent(alone)} if it were twice as fast"
        if others:
            work = "works" if len(others) == 1 else "work"
            named, together = " and ".join(others), _percent(self.savings.together)
            text += f"; {named} {work} about as long, and together they would save {together}"
        if self.savings.together >= PROMISED * promise:
            return f"{text}."
        return f"{text}: dependences and latencies bound the operator."

    def _others(self) -> list[str]:
        """Return the titles of the components that work about as long as the named one."""
        group = self.savings.group if self.savings else ()
        named = self.cause.component.name
        rows = (row.component for row in self.rows)
        return [c.title for c in rows if c.name in group and c.name != named]

    def _verdict(self) -> str:
        c, row = self.counters, self.cause
        time = f"{c.name} on {c.chip} ({c.scope}) takes {c.total_s * 1e6:,.3f} µs"
        ratio = f"time ratio {_percent(row.time_ratio)}"
        used = f"utilisation {_percent(row.utilisation)}"
        limits = self.utilisation_threshold, self.thresholds.time_ratio
        if self.bound in (Bound.COMPUTE, Bound.MTE):
            return (
                f"{time} and is {self.bound.value}: {row.component.title} has {used} "
                f"(threshold {_percent(limits[0])}), {ratio}, "
                f"efficiency {_percent(row.efficiency)}."
            )
        top = self.highest
        highest = f"the highest utilisation is {_percent(top.utilisation)} of {top.component.title}"
        highest = f"{highest} (threshold {_percent(limits[0])})"
        if not top.total:
            highest = "the counters have no work, so that utilisations are unknown"
        if self.bound == Bound.PARALLELISM:
            # A utilisation is at most the time ratio, and only one above its threshold is a bound.
            unknown = not row.total and row.time_ratio >= limits[0]
            doubt = "; the counters have no work of it, so that it may be the bound instead"
            return (
                f"{time} and has {self.bound.value}: {highest}, and the highest {ratio} of "
                f"{row.component.title} (threshold {_percent(limits[1])})"
                f"{doubt if unknown else ''}."
            )
        why = f"its efficiency is only {_percent(row.efficiency)}, mostly in {row.largest_item}"
        if not row.total:
            why = "the counters have no work of it, so that it may be the bound instead"
        return (
            f"{time} and has {self.bound.value}: {highest}, although {row.component.title} has "
            f"{ratio} (threshold {_percent(limits[1])}); {why}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures in types that JSON can hold."""
        c = self.counters
        return {
            "name": c.name,
            "chip": c.chip,
            "scope": c.scope,
            "total_us": c.total_s * 1e6,
            "bound": self.bound.value,
            "cause": self.cause.component.name,
            "verdict": self.verdict(),
            "thresholds": vars(self.thresholds),
            **({} if self.savings is None else {"saved_if_twice_as_fast": asdict(self.savings)}),
            "components": [
                {
                    "component": r.component.name,
                    "title": r.component.title,
                    "kind": r.component.kind.value,
                    "work": dict(r.work),
                    "active_us": r.active_s * 1e6,
                    "actual_per_s": r.actual,
                    "ideal_per_s": r.ideal,
                    "utilisation": r.utilisation,
                    "efficiency": r.efficiency,
                    "time_ratio": r.time_ratio,
                }
                for r in self.rows
            ],
        }


def analyse(counters: Counters, thresholds: Thresholds | None = None) -> Analysis:
    """Compute the figures of every component and classify the operator.

    Parameters
    ----------
    thresholds : Thresholds, optional

    Returns
    -------
    Analysis

    Raises
    ------
    CounterError
        If the operator took no time or had no work, a component was active for longer than the
        operator took, or did more work than its ceilings allow in its active time.
    """
    limits = thresholds or Thresholds()
    if not counters.total_s > 0:
        raise CounterError(
            f"total time of {counters.name} must be more than 0 s, not {counters.total_s!r}"
        )
    rows = [_row(counters, count) for count in counters.counts]
    rows = [row for row in rows if row.active_s > 0]
    # A file of times alone has no work, and says so.
    if not rows or not (counters.lacks or any(row.total for row in rows)):
        raise CounterError(f"counters of {counters.name} must have a component with work")
    bound, cause = _classify(rows, limits)
    return Analysis(counters, limits, rows, bound, cause)


def _row(counters: Counters, count: Count) -> RooflineRow:
    component, name = count.component, f"{counters.name}, {count.component.name}"
    total = ideal_s = 0.0
    for item, work in count.work.items():
        if item not in component.ceilings:
            allowed = ", ".join(component.ceilings) or "nothing"
            raise CounterError(f"{name}: work must be in one of {allowed}, not {item!r}")
        if not 0 <= work < float("inf"):
            raise CounterError(f"{name}: work of {item} must be 0 or more, not {work!r}")
        ideal_s += work / component.ceilings[item]
        # Two bytes that the vector unit moves count as a lane of FP16.
        moved = component.kind == ComponentKind.COMPUTE and "->" in item
        total += work / 2 if moved else work
    if not 0 <= count.active_s < float("inf"):
        raise CounterError(f"{name}: active time must be 0 s or more, not {count.active_s!r}")
    # A profiler rounds the times that it writes, here two of them.
    slack = counters.resolution_s
    if count.active_s > counters.total_s * (1 + ROUNDING) + 2 * slack:
        raise CounterError(
            f"{name}: active time must be at most the total of {counters.total_s * 1e6:.6g} µs, "
            f"not {count.active_s * 1e6:.6g} µs"
        )
    if ideal_s > count.active_s * (1 + ROUNDING) + slack:
        raise CounterError(
            f"{name}: work must be within the ceilings, which need {ideal_s * 1e6:.6g} µs for "
            f"{_amounts(count)}, but the component was active for {count.active_s * 1e6:.6g} µs"
        )
    return RooflineRow(
        component=component,
        work=count.work,
        total=total,
        ideal_s=ideal_s,
        active_s=count.active_s,
        actual=total / counters.total_s,
        ideal=total / ideal_s if ideal_s else 0.0,
        # Rounded times may exceed 1 by what was accepted above.
        utilisation=min(ideal_s / counters.total_s, 1.0),
        efficiency=min(ideal_s / count.active_s, 1.0) if count.active_s else 0.0,
        time_ratio=min(count.active_s / counters.total_s, 1.0),
    )


def _longest(rows: Sequence[RooflineRow]) -> RooflineRow:
    """Return the component of the highest time ratio."""
    # A bus is active while any of its users is, so it may be active all the time although the
    # users take turns: its time ratio says nothing about parallelism.
    units = [row for row in rows if row.component.kind != ComponentKind.BUS]
    return max(units, key=lambda row: row.time_ratio)


def _amounts(count: Count) -> str:
    unit = "operations" if count.component.kind == ComponentKind.COMPUTE else "bytes"
    return ", ".join(f"{work:,.0f} {unit} of {item}" for item, work in count.work.items())


def _utilisation_threshold(rows: Sequence[RooflineRow], limits: Thresholds) -> float:
    cube = any(row.component.name == "M" and row.total for row in rows)
    return limits.cube_utilisation if cube else limits.vector_utilisation


def _classify(rows: Sequence[RooflineRow], limits: Thresholds) -> tuple[Bound, RooflineRow]:
    """Return the class and the component that causes it (Zhou et al. 2025, §4.2)."""
    top = max(rows, key=lambda row: row.utilisation)
    compute = ComponentKind.COMPUTE
    if top.utilisation >= _utilisation_threshold(rows, limits):
        return (Bound.COMPUTE if top.component.kind == compute else Bound.MTE), top
    longest = _longest(rows)
    if longest.time_ratio < limits.time_ratio:
        return Bound.PARALLELISM, longest
    # Its utilisation is below the threshold, so its efficiency is below U_threshold / R_threshold.
    # (The text prints this quotient upside down.)
    inefficient = longest.component.kind == compute
    return (Bound.INEFFICIENT_COMPUTE if inefficient else Bound.INEFFICIENT_MTE), longest


def _to_cube(path: str) -> bool:
    """Return True if a path leads to an operand buffer of the Cube."""
    return path.split("->")[1].split(" ")[0] in ("L0A", "L0B")


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"
