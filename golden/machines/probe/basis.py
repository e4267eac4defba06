"""The evidence for each parameter of a rule that was inferred."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vitruvian.golden.machines.probe.score import Scorer, possible
from vitruvian.golden.machines.probe.space import changed, value_of, values
from vitruvian.golden.machines.table import Rule


@dataclass(frozen=True)
class Basis:
    """The evidence for one parameter.

    Attributes
    ----------
    name : str
        The parameter.
    value : object
        The value that explains all results.
    same : tuple
        Other values that explain all results as well; the outputs do not determine which is right.
    other : object
        The nearest value that does not, or None if every value explains the results.
    row : int or None
        The first row in which this nearest value would give another result.
    """

    name: str
    value: object
    same: tuple[object, ...]
    other: object
    row: int | None


def evidence(rule: Rule, scorer: Scorer) -> Iterator[Basis]:
    """Yield the evidence for each parameter."""
    for name, allowed in values(rule, scorer.data).items():
        value = value_of(rule, name)
        numbers = [v for v in allowed if isinstance(v, int) and not isinstance(v, bool)]
        if len(numbers) > 1 and name != "accumulators":
            others = _interval(rule, name, numbers, scorer)
            others += [v for v in allowed if v is None and value is not None]
        else:
            others = [v for v in allowed if v != value]
        same: list[object] = []
        told: list[tuple[int, object]] = []
        for other in others:
            rows = _first(rule, name, other, scorer)
            if rows is None:
                same.append(other)
            elif rows >= 0:
                told.append((rows, other))
        # The hardest neighbour to tell apart is the one that the value rests on.
        row, other = max(told, default=(None, None), key=lambda x: x[0])
        yield Basis(name, value, tuple(same), other, row)


def _first(rule: Rule, name: str, value: object, scorer: Scorer) -> int | None:
    """Return the first row that tells another value, None if none does, −1 if there is no rule."""
    other = changed(rule, name, value)
    if other is None or not possible(other):
        return -1
    rows = np.flatnonzero(scorer.differs(other))
    return int(rows[0]) if len(rows) else None


def _interval(rule: Rule, name: str, numbers: list[int], scorer: Scorer) -> list[object]:
    """Return the numbers around a value that do as well, and the nearest on both sides that do not.

    The values that do as well are taken to be an interval, whose ends are found by bisection.
    """
    value = value_of(rule, name)
    if value is None:
        # The interval begins at the least number, which changes least.
        below, above = list[int](), sorted(numbers)
    else:
        below = sorted((v for v in numbers if v < value), reverse=True)  # pyright: ignore
        above = sorted(v for v in numbers if v > value)  # pyright: ignore
    middle: list[int] = []
    for side in (below, above):
        low, high = 0, len(side)
        step = 1
        while low < high:  # gallop, then bisect
            probe = min(low + step - 1, high - 1)
            if _first(rule, name, side[probe], scorer) is None:
                low, step = probe + 1, step * 2
            else:
                high, step = probe, 1
        middle += side[: low + 1]
    return list(middle)
