"""Results of checks as a table, as JSON and as an exit code."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from vitruvian.sim.verify.check import Outcome

__all__ = ["as_json", "report"]


def as_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Rows with the columns of the table, and the examples of what differs."""
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
    """Print the table and every failure; return the exit code.

    Parameters
    ----------
    of : int, optional
        How many rows there were to be, if some may be missing.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else 120, highlight=False)
    table = Table()
    table.add_column("unit")
    table.add_column("configuration")
    for name in ("vectors", "mismatches", "s"):
        table.add_column(name, justify="right")
    for o in outcomes:
        style = None if o.passed else "bold red"
        vectors = f"{o.result.vectors:,}" if o.result else "-"
        mismatches = f"{o.result.mismatches:,}" if o.result else "error"
        row = (o.unit, o.configuration, vectors, mismatches, f"{o.seconds:.1f}")
        table.add_row(*row, style=style)
    console.print(table)
    failed = [o for o in outcomes if not o.passed]
    for o in failed:
        lines = o.result.examples if o.result else (o.error or "",)
        for line in lines or ("nothing was compared",):
            console.print(
                f"{o.unit} {o.configuration}: {line}", style="red", markup=False, soft_wrap=True
            )
    vectors = sum(o.result.vectors for o in outcomes if o.result)
    verdict = f"{len(failed)} of {len(outcomes)} rows failed" if failed else "0 mismatches"
    rows = f"{len(outcomes)} of {of}" if of and of > len(outcomes) else f"{len(outcomes)}"
    console.print(f"{rows} rows, {vectors:,} vectors: {verdict}")
    return 1 if failed else 0
