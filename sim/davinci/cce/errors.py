"""What is wrong with a kernel's text, with the place where it is."""

from difflib import get_close_matches
from typing import NamedTuple

__all__ = ["CceError", "Position", "nearest"]


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
        super().__init__(f"{position}: {message}")
        self.position = position
        self.message = message


def nearest(name: str, names) -> str:
    """`; did you mean ...?` with the name most like a misspelt one, or nothing."""
    found = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""
