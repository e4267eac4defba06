"""The options ``--errors`` and ``--area`` of the command ``machines``."""

import argparse
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_liberty, add_no_cache
from vitruvian.common.cache import ResultCache, digest
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, write_whole
from vitruvian.common.progress import Progress
from vitruvian.common.table import csv_text, open_console, print_table

if TYPE_CHECKING:
    from vitruvian.flows.pages.machines.costs import RuleCost
    from vitruvian.flows.pages.machines.results import Accuracy
    from vitruvian.golden.machines import Machine
    from vitruvian.golden.machines.accuracy import Listed

_ROWS = 200  # dot products of each distribution


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add the options of the results to the parser."""
    parser.add_argument(
        "--errors",
        action="store_true",
        help="Compute the errors of the rules on random operands, compared with the exact sums.",
    )
    parser.add_argument(
        "--area",
        action="store_true",
        help="Measure the area and the delay of the rules' units, without registers.",
    )
    add_liberty(parser)
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write pictures of errors and areas into this folder, and the tables into its "
        "machines.md if it exists.",
    )
    add_no_cache(parser, "compute and measure again")


def refuse_results_options(options: argparse.Namespace) -> None:
    """Raise UserError if an option of the results is given without ``--errors`` or ``--area``."""
    # argparse does not tell a default from the same word typed by the user.
    if options.liberty != "vt45":
        raise UserError("--liberty must come with --area")
    for name in ("out", "no_cache"):
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} must come with --errors or --area")


def run_results(options: argparse.Namespace, rows: "list[Machine]") -> int:
    """Print the tables of these rows, and write what is asked for."""
    from vitruvian.flows.pages.machines import results
    from vitruvian.golden.machines.accuracy import listed

    if options.liberty != "vt45" and not options.area:
        raise UserError("--liberty must come with --area")
    stems = {row.stem for row in rows}
    # Several rows share a rule, which is computed once.
    chosen = [entry for entry in listed() if stems & set(entry.stems)]
    if not chosen:
        raise UserError("NAME must be a row with floating point and one format for both operands")
    tables: dict[str, tuple[list[str], list[list[str]]]] = {}
    pictures: dict[str, str] = {}
    document: dict[str, Any] = {}
    if options.errors:
        accuracy = _accuracy(chosen, cache=not options.no_cache)
        for maker in dict.fromkeys(entry.row.maker for entry in chosen):
            own = [entry for entry in accuracy if entry.listed.row.maker == maker]
            tables[f"ulps {maker}"] = results.accuracy_table(own, relative=False)
            tables[f"relative {maker}"] = results.accuracy_table(own, relative=True)
        if options.out:
            pictures["machines_accuracy.json"] = results.chart(accuracy)
        document["accuracy"] = [entry.as_json() for entry in accuracy]
    if options.area:
        measured = _costs(chosen, options)
        entries = list(zip(chosen, measured, strict=True))
        tables["area"] = results.cost_table(entries)
        if options.out:
            pictures["machines_area.json"] = results.cost_chart(entries)
        document["library"] = options.liberty
        document["area"] = [cost.as_json() for cost in measured]
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    for title, (header, lines) in tables.items():
        print_table(console, header, lines, title=title)
    if options.out:
        _write(Path(options.out), tables, pictures)
    if options.json:
        write_json(options.json, document)
    return 0


def _accuracy(chosen: "list[Listed]", *, cache: bool) -> "list[Accuracy]":
    """Return the errors of every rule, from the cache where it has them."""
    from vitruvian import golden
    from vitruvian.flows.pages.machines.results import Accuracy
    from vitruvian.golden.machines.accuracy import DISTRIBUTIONS, Errors, errors

    folder = Path(str(golden.__file__)).parent
    files = sorted(p for name in ("fp", "machines") for p in (folder / name).rglob("*"))
    # Errors depend on the rules and on the models that compute them, and on nothing else.
    sources = digest(*(file.read_bytes() for file in files if file.suffix in (".py", ".toml")))
    store = ResultCache(kind="accuracy", enabled=cache)
    found: list[Accuracy] = []
    with Progress("compute errors", len(chosen), after_s=2.0) as progress:
        for number, entry in enumerate(chosen):
            progress(entry.row.stem, number, len(chosen))
            own: dict[str, Errors] = {}
            for name in DISTRIBUTIONS:
                key = digest(sources, entry.row.stem, name, _ROWS)
                stored = store.get(key)
                if stored is None:
                    stored = asdict(errors(entry.row, name, rows=_ROWS))
                    store.put(key, stored)
                own[name] = Errors(**stored)
            found.append(Accuracy(entry, own))
    return found


def _costs(chosen: "list[Listed]", options: argparse.Namespace) -> "list[RuleCost]":
    from vitruvian.flows.asic import cells
    from vitruvian.flows.asic.measure import Settings
    from vitruvian.flows.pages.machines.costs import costs

    settings = Settings(library=cells.library(options.liberty), cache=not options.no_cache)
    with Progress() as progress:
        return costs([entry.row for entry in chosen], settings, progress=progress)


def _write(
    folder: Path,
    tables: dict[str, tuple[list[str], list[list[str]]]],
    pictures: dict[str, str],
) -> None:
    """Write the charts, and the tables as CSV into the folder ``data`` within."""
    for name, picture in pictures.items():
        write_whole(folder / name, picture)
    for name, (header, lines) in tables.items():
        file = re.sub("[^a-z]+", "_", name.lower())
        write_whole(folder / "data" / f"machines_{file}.csv", csv_text(header, lines))
