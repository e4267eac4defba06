"""The commands ``list`` and ``verify``: the rows that compare RTL with golden."""

import argparse
import sys
from contextlib import closing
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_jobs, add_json, add_seed, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.extras import MissingLibraryError
from vitruvian.common.interrupt import at_hard_end
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console, print_text
from vitruvian.common.wings import registered
from vitruvian.sim.verify.check import Check, Outcome
from vitruvian.sim.verify.run import collect, run_checks

_PATTERN = "Take the rows of this unit, or all that match a shell pattern (default: all)."


def register(name: str, commands: Any) -> None:
    """Add the command ``list`` or ``verify`` to the parser."""
    {"list": _register_list, "verify": _register_verify}[name](commands)


def _register_list(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        description="List the rows that verify compares, and the kernels of DaVinci cores.",
        epilog="Example: vitruvian list 'cube*'",
    )
    parser.add_argument("unit", nargs="?", default="*", metavar="UNIT", help=_PATTERN)
    add_json(parser, "the list")
    parser.set_defaults(run=_list)


def _register_verify(commands: Any) -> None:
    parser = commands.add_parser(
        "verify",
        description="Compile units with Verilator and compare them with golden, bit for bit.\n"
        "Without a terminal, every row is printed as it finishes. Models are kept in the cache.",
        epilog="Example: vitruvian verify 'fp.DotProduct*a100*' --vectors 1_000_000",
    )
    parser.add_argument("unit", nargs="?", default="*", metavar="UNIT", help=_PATTERN)
    parser.add_argument(
        "--vectors",
        type=at_least(100, 10_000_000),
        default=200_000,
        metavar="N",
        help="Compare this many vectors in each row; rows with a fixed data set compare all "
        "of it (default: %(default)s).",
    )
    add_seed(parser)
    add_jobs(parser)
    add_json(parser, "the rows")
    parser.set_defaults(run=_verify)


def _chosen(pattern: str) -> list[Check]:
    try:
        return collect(pattern)
    except ValueError as error:
        raise UserError(str(error)) from None


def _list(options: argparse.Namespace) -> int:
    more: list[tuple[Any, dict[str, Any]]] = []
    for module in registered("listed"):
        try:
            more += [(module.line, row) for row in module.rows(options.unit)]
        except MissingLibraryError as error:
            print(f"left out: {error}", file=sys.stderr)
    try:
        checks = collect(options.unit)
    except ValueError as error:
        # A pattern may name nothing but rows of wings.
        if not more:
            raise UserError(str(error)) from None
        checks = []
    if options.json:
        rows = [{"unit": c.unit, "configuration": c.configuration} for c in checks]
        write_json(options.json, [*rows, *(row for _, row in more)])
        if options.json == "-":
            return 0
    console = open_console()
    for check in checks:
        print_text(console, f"{check.unit:18} {check.configuration}", indent=19)
    for line, row in more:
        print_text(console, f"{row['unit']:18} {line(row)}", indent=19)
    return 0


def _verify(options: argparse.Namespace) -> int:
    from vitruvian.commands.table import as_json, report
    from vitruvian.common.cache import check_cache, sweep
    from vitruvian.common.extras import check
    from vitruvian.sim.rtl.toolchain import verilator

    checks = _chosen(options.unit)
    verilator()
    check("cocotb")
    check_cache(write=False)
    outcomes: list[Outcome | None] = [None] * len(checks)
    progress = _RowProgress(checks, to_stderr=options.json == "-")
    run = run_checks(
        checks,
        vectors=options.vectors,
        seed=options.seed,
        jobs=min(options.jobs, len(checks)),
        compiling=progress.compiling,
    )

    def done() -> list[Outcome]:
        return [outcome for outcome in outcomes if outcome is not None]

    def report_done() -> int:
        return report(done(), to_stderr=options.json == "-", of=len(checks))

    try:
        # Closing the generator ends its workers, also after an exception in this block.
        with progress.bar, at_hard_end(report_done), closing(run):
            for position, outcome in run:
                outcomes[position] = outcome
                progress.finished(position, outcome)
    # The workers were killed and may have left partial folders in the cache.
    except BaseException as stop:
        sweep()
        if done() and isinstance(stop, KeyboardInterrupt):
            report_done()
        raise
    code = report_done()
    if options.json:
        write_json(options.json, as_json(done()))
    return code


class _RowProgress:
    """Progress of the rows.

    On a terminal this is a bar. Elsewhere, each row prints a line when it finishes, and another
    one when its model must be compiled.
    """

    def __init__(self, checks: list[Check], *, to_stderr: bool):
        self._checks = checks
        # A dict keeps the order in which the compilations began; a set would not.
        self._building: dict[int, None] = {}
        self._stream = sys.stderr if to_stderr else sys.stdout
        self.bar = Progress("verifying", len(checks), lines=False)
        # Lines would disturb the bar if both went to a terminal.
        self._lines = not (self.bar.terminal and self._stream.isatty())

    def compiling(self, position: int) -> None:
        """Show, once for each row, that a model of the row is being compiled."""
        if position in self._building:
            return
        self._building[position] = None
        if not self.bar.terminal:
            print(f"compiling {self._checks[position].name} …", file=sys.stderr, flush=True)
        self._describe("verifying")

    def finished(self, position: int, outcome: Outcome) -> None:
        """Show the outcome of a row."""
        self._building.pop(position, None)
        if self._lines:
            result = outcome.result
            text = f"{result.vectors:,} vectors, {result.mismatches:,} mismatches" if result else ""
            line = f"{self._checks[position].name}: {text or 'error'}, {outcome.seconds:.1f} s"
            print(line, file=self._stream, flush=True)
        self.bar.advance()
        self._describe(f"{outcome.unit} done")

    def _describe(self, default: str) -> None:
        names = [self._checks[position].name for position in self._building]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        text = f"compiling {names[0]}{more}" if names else default
        self.bar.update(text)
