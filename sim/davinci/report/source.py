"""The source text of a position: the line itself, and the function that contains it."""

import ast
import linecache
import re
from collections.abc import Mapping

#: A word, its parameters in brackets, and the brace that opens its body. The lengths are bounded,
#: so that a long text without a brace costs linear time.
_C_FUNCTION = re.compile(
    r"\b([A-Za-z_]\w{0,99})\s{0,9}\([^;{}()]{0,2000}\)\s{0,9}(?:const\s{0,9})?\{"
)
_NO_FUNCTION = frozenset(("if", "for", "while", "switch", "catch"))
#: Comments, strings and characters of C, in which brackets have no meaning. One that is not closed
#: reaches to the end of the text or of the line, so that no text is searched twice.
_C_BLANK = re.compile(
    r"//[^\n]*|/\*(?:.*?\*/|.*)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?", re.DOTALL
)


class ProgramSources:
    """The lines and functions of the files that the instructions of a program come from.

    Parameters
    ----------
    texts : mapping of str to str
        The texts of the files that are known by name, such as a kernel in CCE C. Any other file is
        read from the disk; a file that cannot be read has no lines and no functions.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._lines = {name: text.split("\n") for name, text in (texts or {}).items()}
        self._functions: dict[str, dict[int, str]] = {}  # names by line

    def line(self, file: str, number: int) -> str:
        """Return a line without the white space around it; "" if it cannot be read."""
        lines = self._all_lines(file)
        return lines[number - 1].strip() if 1 <= number <= len(lines) else ""

    def function(self, file: str, number: int) -> str:
        """Return the name of the innermost function that contains a line; "" if there is none."""
        if file not in self._functions:
            text = "\n".join(self._all_lines(file))
            self._functions[file] = _python(text) if file.endswith(".py") else _c(text)
        return self._functions[file].get(number, "")

    def _all_lines(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = [line.rstrip("\n") for line in linecache.getlines(file)]
        return self._lines[file]


def _python(text: str) -> dict[int, str]:
    """Return the innermost function of each line that a function contains."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    names: dict[int, str] = {}
    for node in sorted(nodes, key=lambda node: node.lineno):  # an inner function overwrites
        names |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), node.name)
    return names


def _c(text: str) -> dict[int, str]:
    """Return the innermost function of each line, found by braces; macros are not expanded.

    The text may be hostile: the time is linear in its length.
    """
    blank = _C_BLANK.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = {m.end() - 1: m for m in _C_FUNCTION.finditer(blank) if m[1] not in _NO_FUNCTION}
    names: dict[int, str] = {}
    depths: dict[int, int] = {}  # of the functions in ``names``
    functions: list[str] = []  # that are open
    opened: list[bool] = []  # for each open brace, whether it is that of a function

    def mark(first: int, last: int) -> None:
        for line in range(first, last + 1):
            if len(functions) > depths.get(line, 0):
                names[line], depths[line] = functions[-1], len(functions)

    line, at = 1, 0
    for brace in re.finditer(r"[{}]", blank):
        before, line = line, line + blank.count("\n", at, brace.start())
        at = brace.start()
        mark(before, line)
        if brace[0] == "{":
            match = starts.get(at)
            opened.append(match is not None)
            if match is not None:
                functions.append(match[1])
                mark(line - match[0].count("\n"), line)
        elif opened and opened.pop():
            functions.pop()
    return names
