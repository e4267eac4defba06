"""Scoreboards, which compare results with expected ones in order and notice missing results."""

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Environment variable that names a file. Every finished scoreboard appends a line with its count.
COUNTS = "VITRUVIAN_COUNTS"


class ScoreboardError(AssertionError):
    """A result that is wrong, missing or surplus; the message contains all that reproduces it."""


@dataclass(frozen=True, kw_only=True)
class ExpectedResult:
    """An expected result.

    Attributes
    ----------
    value : object
        Golden's result, which is compared by equality.
    operation : str
        Name of the operation, for messages.
    operands : mapping
        Operands by name, for messages.
    """

    value: Any
    operation: str = "result"
    operands: Mapping[str, Any] = field(default_factory=dict)


class Scoreboard:
    """An ordered queue of expected results.

    Parameters
    ----------
    name : str
        Name of the output that is checked.
    seed : int
        Seed of the bench, for messages.
    digits : int
        Number of hexadecimal digits of a result.
    """

    def __init__(self, name: str, *, seed: int, digits: int = 8):
        self.name, self.seed, self.digits = name, seed, digits
        self.queue: deque[ExpectedResult] = deque()
        self.expected = 0
        self.checked = 0

    def expect(self, value: Any, operation: str = "result", **operands: Any) -> None:
        """Append an expected result to the queue."""
        self.queue.append(ExpectedResult(value=value, operation=operation, operands=operands))
        self.expected += 1

    def check(self, got: Any, cycle: int) -> None:
        """Compare a result of the RTL with the head of the queue.

        Raises
        ------
        ScoreboardError
            If they differ, or no result is expected.
        """
        if not self.queue:
            raise ScoreboardError(
                f"{self.name} gave {show(got, self.digits)} in cycle {cycle} with nothing expected "
                f"after {self.checked} results (seed {self.seed})"
            )
        head = self.queue.popleft()
        self.checked += 1
        if got != head.value:
            operands = "".join(
                f"\n  {name:9}{show(value, self.digits)}" for name, value in head.operands.items()
            )
            raise ScoreboardError(
                f"{self.name}: {head.operation} differs in result {self.checked}{operands}"
                f"\n  RTL      {show(got, self.digits)}"
                f"\n  golden   {show(head.value, self.digits)}"
                f"\n  cycle    {cycle}\n  seed     {self.seed}"
            )

    def forget(self) -> None:
        """Drop the results that are still expected, after a reset has cleared the unit."""
        self.expected -= len(self.queue)
        self.queue.clear()

    def finish(self, *, at_least: int = 1) -> None:
        """Check that all expected results have come.

        Raises
        ------
        ScoreboardError
            If results are missing, or fewer than ``at_least`` results were checked.
        """
        if self.queue or self.checked != self.expected:
            raise ScoreboardError(
                f"{self.name}: checked {self.checked} of {self.expected} expected results, "
                f"{len(self.queue)} still in the queue (seed {self.seed})"
            )
        if self.checked < at_least:
            raise ScoreboardError(
                f"{self.name}: number of checked results must be at least {at_least}, "
                f"not {self.checked}"
            )
        if os.environ.get(COUNTS):
            with Path(os.environ[COUNTS]).open("a") as file:
                file.write(f"{self.checked}\n")


def show(value: Any, digits: int = 8) -> str:
    """Return a value as text, with all numbers in hexadecimal, also in lists and mappings."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {show(inner, digits)}" for key, inner in value.items())
    if isinstance(value, str) or value is None:
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return " ".join(show(inner, digits) for inner in value)
    return f"-{-value:0{digits}x}" if value < 0 else f"{int(value):0{digits}x}"
