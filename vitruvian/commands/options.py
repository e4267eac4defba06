"""Options and argument types that several commands share."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.validate import shortened
from vitruvian.common.workers import listening

#: A whole number, or a power of two.
_NUMBER = re.compile(r"(\d+)|2(?:\*\*|\^)(\d+)", re.ASCII)
#: Largest number of a size. A problem of that size fits into no machine.
_MOST = 999_999_999


def add_chip(parser: Any) -> None:
    """Add the option ``--chip`` to a parser or to a group of its options."""
    parser.add_argument(
        "--chip",
        default="ascend310",
        metavar="CHIP",
        help="Simulate the chip of this name, or of a TOML file that describes it "
        "(default: %(default)s).",
    )


def add_json(parser: argparse.ArgumentParser, content: str) -> None:
    """Add the option ``--json FILE``, whose file is checked before any work begins.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Parser of the command.
    content : str
        Noun phrase for the help text, such as "the rows".
    """
    text = f"Write {content} to this file as JSON (- for standard output)."
    parser.add_argument("--json", type=output_path(stdout=True), metavar="FILE", help=text)


def add_liberty(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--liberty`` for the cells of a measurement."""
    parser.add_argument(
        "--liberty",
        default="vt45",
        metavar="LIBRARY",
        help="Use the cells of vt45, nangate45, sg13g2 or a liberty file (default: vt45).",
    )


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--library`` and ``--block`` for the cells and the size of a layout."""
    parser.add_argument(
        "--library",
        dest="liberty",
        choices=("nangate45", "sg13g2"),
        metavar="LIBRARY",
        default="nangate45",
        help="Take the cells of this library (default: %(default)s).",
    )
    parser.add_argument(
        "--block",
        type=_block,
        metavar="WIDTHxHEIGHT",
        help="Make the block this large, in µm (default: a square for the utilisation).",
    )


def _block(text: str) -> tuple[float, float]:
    """Return width and height of a block in µm."""
    sizes = re.fullmatch(r"(\d{1,4}(?:\.\d{1,4})?)x(\d{1,4}(?:\.\d{1,4})?)", text, re.ASCII)
    if sizes is None:
        raise argparse.ArgumentTypeError(
            f"must be width and height in µm, such as 202.08x154.98, not {shortened(text)}"
        )
    return float(sizes[1]), float(sizes[2])


def add_markdown(parser: argparse.ArgumentParser, content: str) -> None:
    """Add the option ``--markdown FILE``; ``content`` is a noun phrase such as "the table"."""
    text = f"Write {content} as Markdown to this file (- for standard output; .csv: as CSV)."
    parser.add_argument("--markdown", type=output_path(stdout=True), metavar="FILE", help=text)


def add_no_cache(parser: argparse.ArgumentParser, instead: str) -> None:
    """Add the option ``--no-cache``; ``instead`` is an imperative such as "synthesise again"."""
    parser.add_argument("--no-cache", action="store_true", help=f"Ignore the cache and {instead}.")


def add_svg(parser: argparse.ArgumentParser, content: str, *, data: bool = False) -> None:
    """Add the option ``--svg FILE``; ``content`` is a noun phrase such as "a bar chart"."""
    more = "; .json: its data" if data else ""
    text = f"Write {content} as SVG to this file (- for standard output{more})."
    parser.add_argument("--svg", type=output_path(stdout=True), metavar="FILE", help=text)


def at_least(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return an argument type for whole numbers from ``low`` to ``high``.

    Parameters
    ----------
    low : int
        Smallest allowed number.
    high : int, optional
        Largest allowed number; there is none by default.
    """
    allowed = f"from {low} on" if high is None else f"from {low} to {high}"

    def number(text: str) -> int:
        try:
            value = int(text.replace("_", ""))
        except ValueError:
            value = None
        if value is None or value < low or (high is not None and value > high):
            shown = text if len(text) < 50 else f"{text[:40]}…"
            raise argparse.ArgumentTypeError(f"must be a whole number {allowed}, not {shown!r}")
        return value

    return number


def add_seed(parser: Any, *, default: int = 1) -> None:
    """Add the option ``--seed`` to a parser or to a group of its options."""
    parser.add_argument(
        "--seed",
        type=at_least(0, 2**63 - 1),
        default=default,
        metavar="N",
        help="Start the random operands at this seed (default: %(default)s).",
    )


def add_size(parser: Any, text: str) -> None:
    """Add the option ``--size`` to a parser or to a group of its options.

    The parsed value is a tuple of the given numbers; see ``numbers``.

    Parameters
    ----------
    parser : argparse.ArgumentParser or argument group
        Parser of the command.
    text : str
        Help text, which says how many numbers the command takes and what they mean.
    """
    parser.add_argument("--size", type=numbers, metavar="AxBx…", help=text)


def add_jobs(
    parser: argparse.ArgumentParser, text: str = "Run N processes", *, known: bool = True
) -> None:
    """Add the option ``--jobs``, whose default is one job for each core of this machine.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Parser of the command.
    text : str
        First part of the help text; the default follows it in parentheses.
    known : bool
        If False, the parsed value is None unless the option is given, so that the command can
        tell a given number from the default.
    """
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--jobs",
        type=at_least(1, 256),
        default=cores if known else None,
        metavar="N",
        help=f"{text} (default: one for each core, here {cores}).",
    )


@contextmanager
def compiling(name: str) -> Generator[None]:
    """Print one line on standard error if the block has to compile a model of ``name``."""
    printed = False

    def say(_: object) -> None:
        nonlocal printed
        if not printed:
            printed = True
            print(f"compiling {name} …", file=sys.stderr, flush=True)

    # The cache calls ``tell`` when it begins to build an entry.
    with listening(say):
        yield


def refuse_others(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raise UserError if one of these options is given together with ``--list``."""
    for name in names:
        if getattr(options, name):
            raise UserError(f"--list must come without --{name.replace('_', '-')}")


def lanes(text: str) -> dict[str, int]:
    """Return the rows, columns and terms of a unit from a text like 8x4x8.

    This function is an argument type. The keys of the result are m, n and k.
    """
    match = re.fullmatch(r"(\d{1,4})[x×](\d{1,4})[x×](\d{1,4})", text)
    if not match or "0" in (match[1], match[2], match[3]):
        raise argparse.ArgumentTypeError(f"must be MxNxK like 8x4x8, not {text!r}")
    return dict(zip("mnk", map(int, match.groups()), strict=True))


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a text like 256x256x256 or 2**10, which ×, x or commas separate.

    This function is an argument type.
    """
    parts = re.split("[x×,]", text.replace("_", ""))
    matches = [match for part in parts if (match := _NUMBER.fullmatch(part))]
    if len(matches) < len(parts):
        raise argparse.ArgumentTypeError(
            f"must be numbers like 256x256x256 or 2**10, not {shortened(text)}"
        )
    # The digits are counted first, because Python refuses to convert thousands of them.
    few = all(len(match[1] or match[2]) <= 9 for match in matches)
    # A power is compared by its exponent, because 2**999999999 would not fit into the memory.
    few = few and all(not match[2] or int(match[2]) < _MOST.bit_length() for match in matches)
    found = tuple(int(m[1]) if m[1] else 1 << int(m[2]) for m in matches) if few else ()
    if not few or max(found) > _MOST:
        raise argparse.ArgumentTypeError(f"must be numbers up to {_MOST:,}, not {shortened(text)}")
    return found
