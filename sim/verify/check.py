"""A row of ``vitruvian verify``, and what became of it."""

from collections.abc import Callable
from dataclasses import dataclass

from vitruvian.sim.verify.compare import Result

__all__ = ["Check", "Outcome"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One row of the table.

    Attributes
    ----------
    unit, configuration : str
        What the row is called; together they are unique.
    run : callable
        Called with the number of vectors and the seed; data sets of a given size take all they
        have. May raise anything; that counts as a failed row.
    weight : int
        Rough seconds of the first build; heavy checks start first.
    """

    unit: str
    configuration: str
    run: Callable[[int, int], Result]
    weight: int = 5

    @property
    def name(self) -> str:
        """Unique name of the check."""
        return f"{self.unit} {self.configuration}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a check: its result or the error that ended it."""

    unit: str
    configuration: str
    result: Result | None
    error: str | None
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether something was compared and nothing differs."""
        return self.result is not None and self.result.vectors > 0 and not self.result.mismatches
