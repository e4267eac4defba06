"""A row of ``vitruvian verify``, and its outcome."""

from collections.abc import Callable
from dataclasses import dataclass

from vitruvian.sim.verify.compare import Result


@dataclass(frozen=True, kw_only=True)
class Check:
    """A row of the table.

    Attributes
    ----------
    unit, configuration : str
        Name of the row; the two texts together are unique.
    run : callable
        Function of the number of vectors and the seed that returns a ``Result``. A row with a data
        set of fixed size ignores the number. If the function raises an exception, the row fails.
    weight : int
        Approximate duration of the first build in seconds; rows with a large weight start first.
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
    """The outcome of a check.

    Attributes
    ----------
    unit, configuration : str
        Name of the row.
    result : Result or None
        Result of the comparison; None if an error ended the check.
    error : str or None
        The error, in one line.
    seconds : float
        Duration of the check.
    """

    unit: str
    configuration: str
    result: Result | None
    error: str | None
    seconds: float

    @property
    def passed(self) -> bool:
        """True if at least one result was compared and none differs."""
        # A comparison of nothing shows nothing, so it fails.
        return self.result is not None and self.result.vectors > 0 and not self.result.mismatches
