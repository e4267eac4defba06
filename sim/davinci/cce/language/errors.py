"""Source positions, and the exception for a mistake in a kernel's text."""

from difflib import get_close_matches
from typing import NamedTuple

from vitruvian.common.validate import printable

_LONG = 80  # the most characters of a word that a message repeats


class SourcePosition(NamedTuple):
    """A position in a source file; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CceError(ValueError):
    """A mistake in a kernel.

    The text is one line that begins with file, line and column.

    Parameters
    ----------
    position : SourcePosition
        The position of the mistake.
    message : str
        The message; only its first 1000 characters are kept.
    """

    def __init__(self, position: SourcePosition, message: str):
        message = message if len(message) <= 1000 else f"{message[:1000]}..."
        super().__init__(printable(f"{position}: {message}"))
        self.position = position
        self.message = message


def shown(word: str) -> str:
    """Return a word of the source in quotes, shortened to 80 characters."""
    return repr(word if len(word) <= _LONG else f"{word[:_LONG]}...")


def nearest(name: str, names) -> str:
    """Return ``; did you mean X?`` with the name most similar to a misspelt one, or ``""``."""
    if len(name) > _LONG:
        return ""
    # Hostile input may declare very many names, so the comparison is bounded.
    likely = [n for n in names if abs(len(n) - len(name)) < 40]
    matches = get_close_matches(name, likely[:5000], n=1, cutoff=0.6)
    return f"; did you mean {matches[0]}?" if matches else ""
