# pyright: basic
"""The reader of a TOML file that describes hardware: each mistake is reported with its line."""

import re
import tomllib
from decimal import Decimal, InvalidOperation
from typing import Any

from vitruvian.common.toml_table import RANGE


def _decimal(text: str) -> Decimal | str:
    """Return a TOML number, or its text (which no key accepts as a number) if it is too large."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each table and key of a TOML text with one key per line."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?([^\]]*)\]", line):
            table = _parts(header[1])
            lines.setdefault(table, number)
        elif key := re.match(r"""\s*((?:"[^"]*"|'[^']*'|[\w\-.])+)\s*=""", line):
            lines.setdefault(table + _parts(key[1]), number)
    return lines


def _parts(name: str) -> tuple[str, ...]:
    parts = re.findall(r""""([^"]*)"|'([^']*)'|([\w\-]+)""", name)
    return tuple(a or b or c for a, b, c in parts)


#: An integer with more digits than Python converts.
_LONG_INTEGER = re.compile(r"[0-9][0-9_]{1000}")


class TomlReader:
    """The data of a TOML file, and the line of each key for messages.

    Parameters
    ----------
    file : str
        Name of the file that messages quote.
    thing : str
        What the file describes, such as "chip", for messages.
    error : type
        Class of the exceptions that mistakes raise.
    """

    def __init__(self, text: str, file: str, thing: str, error: type[ValueError]) -> None:
        self.file: str = file
        self.lines: dict[tuple[str, ...], int] = _lines(text)
        self.error: type[ValueError] = error
        self.sources: dict[str, str] = {}
        try:
            self.data: dict[str, Any] = tomllib.loads(text, parse_float=_decimal)
        except tomllib.TOMLDecodeError as mistake:
            place = re.search(r"line (\d+)", str(mistake))
            line = int(place[1]) if place else len(text.splitlines())
            reason = re.sub(r"\s*\(at .*\)$", "", str(mistake))
            raise error(f"{file}:{line}: {thing} must be a TOML file: {reason}") from None
        except ValueError:  # an integer of thousands of digits, or an invalid date
            lines = enumerate(text.splitlines(), 1)
            line = next((i for i, x in lines if _LONG_INTEGER.search(x)), 1)
            message = f"{thing} must be a TOML file with numbers {RANGE}"
            raise error(f"{file}:{line}: {message}") from None

    def fail(self, where: tuple[str, ...], message: str) -> Any:
        """Raise the reader's error with the line of the nearest enclosing table or key."""
        at = where
        while at and at not in self.lines:
            at = at[:-1]
        raise self.error(f"{self.file}:{self.lines.get(at, 1)}: {message}")
