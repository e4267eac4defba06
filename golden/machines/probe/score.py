"""Compare rules with results, row by row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.probe.cases import Results
from vitruvian.golden.machines.run import compute
from vitruvian.golden.machines.table import Rule

#: Terms that a block has a multiple of, for the ways to group them
_GROUPS = {"together": 1, "parity": 2, "halves": 4, "sixteens": 16}


def possible(rule: Rule) -> bool:
    """Return True if golden can compute a combination of parameters."""
    if not isinstance(rule, DotSpec) or rule.is_plain:
        return True
    # Late additions and halves are made of plain sums, if nothing else is changed. The general
    # steps keep sums in 64 bits, so they need a window; groups have a multiple of their size.
    inner = rule.replace(
        accumulate="tree" if rule.addend.how == "late" else rule.addend.how,
        lanes="together" if rule.sum.lanes == "halves" else rule.sum.lanes,
    )
    return (
        (rule.sum.window is not None or inner.is_plain)
        and rule.k % _GROUPS[rule.sum.lanes] == 0
        and (rule.sum.lanes != "parity" or rule.addend.how == "aligned")
        and (rule.sum.lanes != "sixteens" or rule.scales is not None)
    )


@dataclass
class Tally:
    """The number of comparisons of a rule with rows, which a search reports as its progress.

    Attributes
    ----------
    report : callable
        Function that is called with ``step`` and ``count`` after each change.
    step : str
        Phrase for the step of the search.
    count : int
    """

    report: Callable[[str, int], object]
    step: str = ""
    count: int = 0

    def begin(self, step: str) -> None:
        """Begin a step of the search."""
        self.step = step
        self.report(step, self.count)

    def add(self) -> None:
        """Count one more comparison."""
        self.count += 1
        self.report(self.step, self.count)


class Scorer:
    """Rows with their results, and the number of them that a rule does not explain.

    Two NaNs are equal, whatever their codes, because ``nan_codes`` tells the code.

    Parameters
    ----------
    tally : Tally, optional
        Counter of the comparisons, which scorers of some of the rows share.
    """

    def __init__(self, data: Results, tally: Tally | None = None) -> None:
        self.data = data
        self._tally = tally
        self._nan = _nan(data.d, data)
        self._known: dict[Rule, np.ndarray] = {}

    @property
    def nan_codes(self) -> list[int]:
        """The codes of all NaN results, without repetition."""
        return [int(code) for code in np.unique(self.data.d[self._nan])]

    def differs(self, rule: Rule) -> np.ndarray:
        """Return in which rows a rule gives another result; all, if the rule cannot be computed."""
        if rule not in self._known:
            x = self.data
            if not possible(rule):
                return np.ones(len(x.d), bool)
            if self._tally is not None:
                self._tally.add()
            try:
                got = compute(rule, x.a, x.b, x.c, x.scale_a, x.scale_b)
            except ValueError:  # a K or a width that this rule does not have
                return np.ones(len(x.d), bool)
            self._known[rule] = (got != x.d) & ~(_nan(got, x) & self._nan)
        return self._known[rule]

    def count(self, rule: Rule) -> int:
        """Return in how many rows a rule gives another result."""
        return int(self.differs(rule).sum())

    def zero_signs(self, rule: Rule) -> np.ndarray:
        """Return in which rows a rule gives a zero of the other sign."""
        x = self.data
        assert isinstance(x.output, FloatFormat)
        got = compute(rule, x.a, x.b, x.c, x.scale_a, x.scale_b)
        zeros = [x.output.zero, x.output.negative_zero]
        return np.isin(got, zeros) & np.isin(x.d, zeros) & (got != x.d)

    def part(self, chosen: np.ndarray) -> "Scorer":
        """Return a scorer of some of the rows."""
        return Scorer(self.data.rows(chosen), self._tally)


def _nan(codes: np.ndarray, data: Results) -> np.ndarray:
    if not isinstance(data.output, FloatFormat):
        return np.zeros(len(codes), bool)
    return unpack(codes, data.output).nan
