"""The command ``formats``: list number formats, or the values of one."""

import argparse
import sys
from typing import Any

import numpy as np

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json
from vitruvian.common.table import open_console, print_table

_DESCRIPTION = """\
List the number formats with their bits for each value, layout, exponent bias, special codes,
largest number, least normal number and least positive number. Block formats come last: their
layout says what a block holds. With NAME, print the facts of one format, and all values if it has
at most eight bits."""

_EPILOG = """\
Example: vitruvian formats
         vitruvian formats fp4e2m1
         vitruvian formats nvfp4 --json nvfp4.json"""

#: Values in a line
_COLUMNS = 8


def register(name: str, commands: Any) -> None:
    """Add the command ``formats`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("format", nargs="?", metavar="NAME", help="Print only this format.")
    add_json(parser, "the formats, with the values of a small one,")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.golden.fp.catalogue import facts, table

    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    if options.format is None:
        rows = table()
        header = [name for name in rows[0] if name not in ("kind", "checked")]
        cells = [[_word(row[name]) for name in header] for row in rows]
        for row, line in zip(rows, cells, strict=True):
            line[0] += "" if row["checked"] else "*"
        note = f"{len(rows)} formats; * to be checked before use"
        print_table(console, header, cells, note=note)
        data: dict[str, object] = {"formats": rows}
    else:
        row = facts(options.format)
        print_table(console, ("fact", "value"), [(name, _word(v)) for name, v in row.items()])
        data = {"formats": [row]}
        if row["kind"] != "block" and row["bits"] <= 8:
            values = _values(row["name"], row["bits"])
            header = ("code", *(f"+{i}" for i in range(_COLUMNS)))
            lines = [
                (f"{start:#04x}", *values[start : start + _COLUMNS])
                for start in range(0, len(values), _COLUMNS)
            ]
            print_table(console, header, lines, right=header)
            data["values"] = values
    if options.json:
        write_json(options.json, data)
    return 0


def _values(name: str, bits: int) -> list[str]:
    """Return the values of all codes as text, because JSON has neither NaN nor infinities."""
    from vitruvian.golden.fp.catalogue import decode

    return [_word(float(x)) for x in decode(np.arange(1 << bits), name)]


def _word(value: object) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.5g}" if np.isfinite(value) else str(value)
