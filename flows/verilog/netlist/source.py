"""Say which part of the source a net comes from, in the words of that part's docstring."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: Characters of docstrings and their ASCII text.
_ASCII = {"…": "...", "·": "*", "×": "x", "≤": "<=", "≥": ">=", "−": "-", "–": "-", "²": "^2"}
_PACKAGES = ("vitruvian", "amaranth")
#: Methods that a class describes.
_OF_CLASS = ("__init__", "elaborate")


class SourcePart(NamedTuple):
    """A function of the source: its name, the first sentence of its docstring and its file."""

    name: str
    text: str
    file: str


def part_of(location: str) -> SourcePart:
    """Return the part of the source at a location.

    Parameters
    ----------
    location : str
        File and line as Amaranth's attribute ``src`` has them (``…/unpack.py:66``), or nothing.
    """
    path, _, line = location.rpartition(":")
    if not path or not line.isdecimal():
        return SourcePart("", "", "")
    for first, last, part in _parts(path):
        if first <= int(line) <= last:
            return part
    return SourcePart("", "", _short(path))


@cache
def _parts(path: str) -> list[tuple[int, int, SourcePart]]:
    """Return first line, last line and description of the functions of a file."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        (
            node.lineno,
            node.end_lineno or node.lineno,
            SourcePart(*_described(node, owner), _short(path)),
        )
        for owner in [None, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
        for node in (owner or tree).body
        if isinstance(node, ast.FunctionDef)
    ]


def _described(node: ast.FunctionDef, owner: ast.ClassDef | None) -> tuple[str, str]:
    """Return the name of a function in words, and what it makes; some methods are their class."""
    described = owner if owner is not None and node.name in _OF_CLASS else node
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", described.name).strip("_")
    name = re.sub(r"^(_*build|_*make)_", "", name).replace("_", " ").lower()
    lines = (ast.get_docstring(described) or "").split("\n\n")[0].split()
    sentence = re.match(r"(.*?)(?:\.(?:\s|$)|[:;] |$)", " ".join(lines))
    text = re.sub(r"^(Return|Yield|Build|Write) ", "", sentence[1] if sentence else "")
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("`", "")
    for old, new in _ASCII.items():
        text = text.replace(old, new)
    # A class may begin with its name.
    text = re.sub(rf"^{re.escape(name)} ", "", text, flags=re.IGNORECASE)
    return name, text if text.isascii() else ""


def _short(path: str) -> str:
    """Return the path of a file below its package, or its name."""
    names = Path(path).parts
    for package in _PACKAGES:
        if package in names:
            place = len(names) - 1 - names[::-1].index(package)
            return "/".join(names[place + (package == "vitruvian") :])
    return names[-1]
