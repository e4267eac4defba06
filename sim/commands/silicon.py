"""``silicon``: golden and RTL against a file of outputs measured on a GPU."""

import argparse
import time
from pathlib import Path
from typing import Any

from sim.cli import UserError, write_json
from sim.verify import Outcome

from .options import add_json

__all__ = ["register"]


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("silicon", help="golden and RTL against measured GPU outputs")
    parser.add_argument("files", nargs="+", metavar="FILE", help="<preset>_<format>.npz")
    parser.add_argument("--preset", help="preset, if the file's name does not say it")
    parser.add_argument("--input", help="input format (or two joined by _), likewise")
    add_json(parser, "the rows")
    parser.set_defaults(run=_silicon)


def _silicon(options: argparse.Namespace) -> int:
    from sim.bench import silicon

    from .table import as_json, report

    outcomes = []
    for name in options.files:
        try:
            sets = silicon.load(Path(name), preset=options.preset, formats=options.input)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{name}: {error}") from None
        for data in sets:
            for unit, run in silicon.runs(data):
                started = time.monotonic()
                result = run(data)
                outcomes.append(
                    Outcome(
                        unit=unit,
                        configuration=f"{data.name} measured",
                        result=result,
                        error=None,
                        seconds=time.monotonic() - started,
                    )
                )
    code = report(outcomes, to_stderr=options.json == "-")
    if options.json:
        write_json(options.json, as_json(outcomes))
    return code
