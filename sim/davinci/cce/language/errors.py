"""What is wrong with a kernel's text, with the place where it is."""

from difflib import get_close_matches
from typing import NamedTuple

__all__ = ["CceError", "Position", "nearest", "shown"]

_LONG = 80  # characters of a word that a message repeats


class Position(NamedTuple):
    """A place in a source file; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CceError(ValueError):
    """A mistake in a kernel, as one line that begins with file, line and column."""

    def __init__(self, position: Position, message: str):
        message = message if len(message) <= 1000 else f"{message[:1000]}..."
        super().__init__(_printable(f"{position}: {message}"))
        self.position = position
        self.message = message


def _printable(text: str) -> str:
    """A text in one line, without what a terminal obeys."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(word: str) -> str:
    """A word of the source in quotes, cut if it is long."""
    return repr(word if len(word) <= _LONG else f"{word[:_LONG]}...")


def nearest(name: str, names) -> str:
    """`; did you mean ...?` with the name most like a misspelt one, or nothing."""
    if len(name) > _LONG:
        return ""
    likely = [n for n in names if abs(len(n) - len(name)) < 40]
    found = get_close_matches(name, likely[:5000], n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
