"""Outcomes of checks as a table, as JSON and as an exit code."""

import sys
from collections.abc import Sequence
from typing import Any

from vitruvian.common.table import open_console, print_table
from vitruvian.sim.verify.check import Outcome


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a dict for each row: the columns of the table, and examples of mismatches."""
    return [
        {
            "unit": o.unit,
            "configuration": o.configuration,
            "vectors": o.result.vectors if o.result else 0,
            "mismatches": o.result.mismatches if o.result else None,
            "examples": list(o.result.examples) if o.result else [],
            "error": o.error,
            "seconds": round(o.seconds, 2),
        }
        for o in outcomes
    ]


def report(outcomes: Sequence[Outcome], *, to_stderr: bool = False, of: int | None = None) -> int:
    """Print the table and every failure, and return the exit code of the command.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Rows of the table.
    to_stderr : bool
        If True, print on standard error, because JSON goes to standard output.
    of : int, optional
        Number of rows that were requested, if the command may have been interrupted before it
        finished all of them.

    Returns
    -------
    code : int
        1 if a row failed, else 0.
    """
    console = open_console(sys.stderr if to_stderr else sys.stdout)
    figures = ("vectors", "mismatches", "s")
    print_table(
        console,
        ("unit", "configuration", *figures),
        [_cells(o) for o in outcomes],
        right=figures,
        styles=[None if o.passed else "bold red" for o in outcomes],
    )
    failed = [o for o in outcomes if not o.passed]
    for o in failed:
        lines = o.result.examples if o.result else (o.error or "",)
        # A row that compared no vector fails, although it has no example of a mismatch.
        for line in lines or ("nothing was compared",):
            console.print(
                f"{o.unit} {o.configuration}: {line}", style="red", markup=False, soft_wrap=True
            )
    vectors = sum(o.result.vectors for o in outcomes if o.result)
    verdict = f"{len(failed)} of {len(outcomes)} rows failed" if failed else "0 mismatches"
    rows = f"{len(outcomes)} of {of}" if of and of > len(outcomes) else f"{len(outcomes)}"
    noun = "row" if rows == "1" else "rows"
    console.print(f"{rows} {noun}, {vectors:,} vectors: {verdict}")
    return 1 if failed else 0


def _cells(outcome: Outcome) -> tuple[str, ...]:
    result = outcome.result
    vectors = f"{result.vectors:,}" if result else "-"
    mismatches = f"{result.mismatches:,}" if result else "error"
    return outcome.unit, outcome.configuration, vectors, mismatches, f"{outcome.seconds:.1f}"
