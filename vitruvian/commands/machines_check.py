"""The option ``--check`` of the command ``machines``: golden and RTL against sets of results."""

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from vitruvian.cli import write_json
from vitruvian.commands.options import add_jobs, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.table import counted, open_console, print_table

if TYPE_CHECKING:
    from vitruvian.sim.machines.check import Checked, Source
    from vitruvian.sim.machines.sets import Differences


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the options of the comparison to the parser."""
    parser.add_argument(
        "--check", action="store_true", help="Compare golden and RTL with sets of results."
    )
    parser.add_argument(
        "--rows",
        type=at_least(1),
        metavar="N",
        help="Compare at most this many rows of each set (default: all).",
    )
    parser.add_argument(
        "--no-rtl", action="store_true", help="Compare golden only, which compiles nothing."
    )
    add_jobs(parser, known=False)


def refuse_check_options(options: argparse.Namespace) -> None:
    """Raise UserError if an option of the comparison is given without ``--check``."""
    for name in ("rows", "no_rtl", "jobs"):
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} must come with --check")


def run_check(options: argparse.Namespace) -> int:
    """Compare, print the table, and return the exit code."""
    from vitruvian.sim.machines.check import check, present

    sources = _sources([Path(name) for name in options.names]) if options.names else present()
    found: dict[int, Checked] = {}
    jobs = options.jobs or os.cpu_count() or 1
    run = check(sources, rows=options.rows, rtl=not options.no_rtl, jobs=jobs)
    # Closing the generator ends its processes, after an error or Ctrl-C, too.
    with Progress("comparing sets", len(sources), after_s=2.0) as progress, closing(run):
        for position, one in run:
            found[position] = one
            progress.advance()
    # Sets end in any order; the table has that of the names.
    outcomes = [found[position] for position in range(len(sources))]
    _report(outcomes, rtl=not options.no_rtl, to_stderr=options.json == "-")
    if options.json:
        write_json(options.json, {"sets": [_record(one) for one in outcomes]})
    return int(any(one.failed for one in outcomes))


def _sources(given: list[Path]) -> "list[Source]":
    """Return the files, and the files in the folders, that the user named."""
    from vitruvian.sim.machines.check import Source

    sources: list[Source] = []
    for path in given:
        files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
        if not files:
            raise UserError(f"NAME must be a set or a folder with sets, not {str(path)!r}")
        sources += [Source(path=file) for file in files]
    return sources


def _report(outcomes: "list[Checked]", *, rtl: bool, to_stderr: bool) -> None:
    """Print the table, the sums, and why some sets have no unit."""
    header = ("set", "evidence", "rows", "golden", *(("RTL", "unit") if rtl else ()))
    cells = [
        (
            one.name,
            one.evidence,
            str(one.golden.rows),
            _cell(one.golden),
            *(("–" if one.rtl is None else _cell(one.rtl), one.unit or "–") if rtl else ()),
        )
        for one in outcomes
    ]
    console = open_console(sys.stderr if to_stderr else sys.stdout)
    print_table(
        console,
        header,
        cells,
        right=("rows", "golden", "RTL"),
        styles=["bold red" if one.failed else None for one in outcomes],
    )
    lines = [_sum("golden", [(one, one.golden) for one in outcomes])]
    if rtl:
        lines.append(_sum("RTL", [(one, one.rtl) for one in outcomes if one.rtl is not None]))
        reasons: dict[str, list[str]] = {}
        for one in outcomes:
            if one.reason:
                # A line for each reason, not for each set.
                reasons.setdefault(one.reason, []).append(one.name)
        for reason, names in reasons.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            lines.append(f"no unit for {names[0]}{more}: {reason}")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _cell(found: "Differences") -> str:
    """Return the number of rows that differ; signs of zeros are counted apart."""
    signs = f" + {found.zero_signs} signs" if found.zero_signs else ""
    return f"{found.values}{signs}"


def _sum(side: str, compared: "list[tuple[Checked, Differences]]") -> str:
    rows = sum(found.rows for _, found in compared)
    values = sum(found.values for _, found in compared)
    # Some makers do not document the sign of a zero: a difference there is told, but is no failure.
    asserted = sum(found.zero_signs for one, found in compared if one.zero_known)
    others = sum(found.zero_signs for one, found in compared if not one.zero_known)
    text = f"{side}: {counted(len(compared), 'set')}, {counted(rows, 'row')}: "
    text += f"{counted(values, 'value')} and {counted(asserted, 'sign')} of zero differ"
    return (
        f"{text}; {counted(others, 'sign')} that are not asserted differ, too" if others else text
    )


def _record(one: "Checked") -> dict[str, object]:
    """Return what a JSON file says of a set."""
    sides = {"golden": one.golden, "rtl": one.rtl}
    record: dict[str, object] = {
        "set": one.name,
        "evidence": one.evidence,
        "rows": one.golden.rows,
        "asserted": "all" if one.zero_known else "all but zero signs",
        "unit": one.unit or None,
        "reason": one.reason or None,
    }
    for side, found in sides.items():
        record[side] = found and {
            "values": found.values,
            "zero signs": found.zero_signs,
            "first": found.first,
        }
    return record
