"""``list`` and ``verify``: everything that can be verified, by name."""

import argparse
import os
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sim.cli import UserError, write_json
from sim.verify import Check, Outcome, collect, run_checks

from .options import add_json, at_least

__all__ = ["register"]


def register(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("list", help="units that can be verified, DaVinci kernels")
    parser.add_argument("unit", nargs="?", default="*", help="unit or shell pattern; all if absent")
    add_json(parser, "the list")
    parser.set_defaults(run=_list)
    parser = commands.add_parser("verify", help="compare compiled RTL with golden")
    parser.add_argument("unit", nargs="?", default="*", help="unit or shell pattern; all if absent")
    parser.add_argument("--vectors", type=at_least(100), default=200_000, help="per row")
    parser.add_argument("--seed", type=at_least(0), default=1, help="of the random operands")
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count() or 1, help="processes")
    add_json(parser, "the rows")
    parser.set_defaults(run=_verify)


def _chosen(pattern: str) -> list[Check]:
    try:
        return collect(pattern)
    except ValueError as error:
        raise UserError(str(error)) from None


def _list(options: argparse.Namespace) -> int:
    from .davinci import kernel_line, kernel_rows

    kernels = kernel_rows(options.unit)
    try:
        checks = collect(options.unit)
    except ValueError as error:
        if not kernels:
            raise UserError(str(error)) from None
        checks = []
    if options.json:
        rows = [{"unit": c.unit, "configuration": c.configuration} for c in checks]
        write_json(options.json, [*rows, *kernels])
        if options.json == "-":
            return 0
    for check in checks:
        print(f"{check.unit:18} {check.configuration}")
    for row in kernels:
        print(f"{row['unit']:18} {kernel_line(row)}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from .table import as_json, report

    checks = _chosen(options.unit)
    outcomes: list[Outcome | None] = [None] * len(checks)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("verifying", total=len(checks))
        run = run_checks(
            checks,
            vectors=options.vectors,
            seed=options.seed,
            jobs=min(options.jobs, len(checks)),
        )
        for position, outcome in run:
            outcomes[position] = outcome
            progress.update(task, advance=1, description=f"{outcome.unit} done")
    done = [outcome for outcome in outcomes if outcome is not None]
    code = report(done, to_stderr=options.json == "-")
    if options.json:
        write_json(options.json, as_json(done))
    return code
