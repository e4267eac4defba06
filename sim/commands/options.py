"""Arguments that several commands take: what they may be, and what they become."""

import argparse
import re
from collections.abc import Callable

from sim.files import output_path

__all__ = ["GRAPH_PROBLEMS", "add_json", "at_least", "lanes", "numbers"]

#: Names of the problems that take a graph.
GRAPH_PROBLEMS = ("apsp", "aplp", "mcp", "maxrp", "minrp", "mst", "gtc", "knn")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option --json, which writes `what` and is checked before any work."""
    text = f"write {what} to this file as JSON (- for standard output)"
    parser.add_argument("--json", type=output_path(stdout=True), metavar="FILE", help=text)


def at_least(low: int) -> Callable[[str], int]:
    """Reader of a whole number from ``low`` on."""

    def number(text: str) -> int:
        try:
            value = int(text.replace("_", ""))
        except ValueError:
            value = None
        if value is None or value < low:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} on, not {text!r}")
        return value

    return number


def lanes(text: str) -> dict[str, int]:
    """Rows, columns and terms of a unit."""
    found = re.fullmatch(r"(\d{1,4})[x×](\d{1,4})[x×](\d{1,4})", text)
    if not found or "0" in (found[1], found[2], found[3]):
        raise argparse.ArgumentTypeError(f"must be MxNxK like 8x4x8, not {text!r}")
    return dict(zip("mnk", map(int, found.groups()), strict=True))


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with × or x or commas between."""
    if not re.fullmatch(r"\d{1,9}([x×,]\d{1,9})*", text):
        raise argparse.ArgumentTypeError(f"must be numbers like 256x256x256, not {text!r}")
    return tuple(int(part) for part in re.split("[x×,]", text))
