"""The source text of a position: the line itself, and the function that contains it."""

import ast
import linecache
import re
from collections.abc import Mapping

__all__ = ["Sources"]

#: A function with its first and last line, from 1.
Extent = tuple[int, int, str]

#: A word, its parameters in brackets, and the brace that opens its body. The lengths are bounded,
#: so that a long text without a brace costs linear time.
_C_FUNCTION = re.compile(
    r"\b([A-Za-z_]\w{0,99})\s{0,9}\([^;{}()]{0,2000}\)\s{0,9}(?:const\s{0,9})?\{"
)
_NO_FUNCTION = frozenset(("if", "for", "while", "switch", "catch"))
#: Comments, strings and characters of C, in which brackets have no meaning.
_C_BLANK = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


class Sources:
    """The lines and functions of the files that the instructions of a program come from.

    Parameters
    ----------
    texts : mapping of str to str
        The texts of the files that are known by name, such as a kernel in CCE C. Any other file is
        read from the disk; a file that cannot be read has no lines and no functions.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._lines = {name: text.split("\n") for name, text in (texts or {}).items()}
        self._extents: dict[str, list[Extent]] = {}

    def line(self, file: str, number: int) -> str:
        """Return a line without the white space around it; "" if it cannot be read."""
        lines = self._all_lines(file)
        return lines[number - 1].strip() if 1 <= number <= len(lines) else ""

    def function(self, file: str, number: int) -> str:
        """Return the name of the innermost function that contains a line; "" if there is none."""
        if file not in self._extents:
            text = "\n".join(self._all_lines(file))
            self._extents[file] = _python(text) if file.endswith(".py") else _c(text)
        inside = [e for e in self._extents[file] if e[0] <= number <= e[1]]
        return max(inside, key=lambda e: (e[0], -e[1]))[2] if inside else ""

    def _all_lines(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = [line.rstrip("\n") for line in linecache.getlines(file)]
        return self._lines[file]


def _python(text: str) -> list[Extent]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (node.lineno, node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def _c(text: str) -> list[Extent]:
    """Return the functions of a text in C, found by their braces; macros are not expanded."""
    blank = _C_BLANK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = {m.end() - 1: m for m in _C_FUNCTION.finditer(blank) if m[1] not in _NO_FUNCTION}
    found: list[Extent] = []
    opened: list[tuple[int, str]] = []  # first line and name; the name is "" for other braces
    line, at = 1, 0
    for brace in re.finditer(r"[{}]", blank):
        line, at = line + blank.count("\n", at, brace.start()), brace.start()
        if brace[0] == "{":
            match = starts.get(brace.start())
            first = line - match[0].count("\n") if match else line
            opened.append((first, match[1] if match else ""))
        elif opened:
            first, name = opened.pop()
            if name:
                found.append((first, line, name))
    return found
