"""The command ``help``: the commands in groups, or the help of one of them."""

import argparse
import sys
from typing import Any

from vitruvian.cli import build_parser, write_json
from vitruvian.commands.listing import COMMANDS, GROUPS, listing, overview
from vitruvian.commands.options import add_json
from vitruvian.common.validate import one_of


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="List the commands, those of a group, or the options of one command.",
        epilog="Examples:\n  vitruvian help --all\n  vitruvian help cores\n"
        "  vitruvian help verilog dot",
    )
    parser.add_argument(
        "word",
        nargs="?",
        metavar="WORD",
        help=f"Explain this command, or list the commands of this group: {', '.join(GROUPS)}.",
    )
    parser.add_argument(
        "unit",
        nargs="*",
        metavar="UNIT",
        help="Explain the command with the options of these units.",
    )
    parser.add_argument("--all", action="store_true", help="List the commands of all groups.")
    add_json(parser, "the commands")
    parser.set_defaults(run=_help)


def _help(options: argparse.Namespace) -> int:
    word: str = options.word or ""
    groups = list(GROUPS)
    if word:
        one_of("WORD", word, [*GROUPS, *COMMANDS])
        # A word is a group or a command; no name is both.
        groups = [word] if word in GROUPS else []
    if options.json:
        rows = [
            {"command": name, "group": command.group, "text": command.text}
            for name, command in COMMANDS.items()
            if command.group in groups or name == word
        ]
        write_json(options.json, rows)
        # Text would mix with the document.
        if options.json == "-":
            return 0
    if not word and not options.all:
        sys.stdout.write(overview())
    elif groups:
        sys.stdout.write(listing(groups))
    else:
        # The command prints its own help and exits.
        build_parser([word]).parse_args([word, *options.unit, "--help"])
    return 0
