"""The packages of the project and its decision records, as tables written from the files."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from vitruvian.flows.asic.report import markdown

#: The folders of the packages, in the order of the table.
TOPS = ("golden", "hdl", "sim", "flows", "vitruvian")


def packages(root: Path) -> dict[str, str]:
    """Return the folder of each package -> the first line of its docstring, without the full stop.

    Raises
    ------
    ValueError
        If a package has no docstring.
    """
    found = {}
    for top in TOPS:
        for path in sorted((root / top).rglob("__init__.py")):  # does not follow the links
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
            folder = path.parent.relative_to(root).as_posix()
            if not text:
                raise ValueError(f"{folder}/__init__.py must have a docstring")
            found[folder] = text.partition("\n")[0].rstrip(".")
    return found


def arrows(root: Path) -> set[tuple[str, str]]:
    """Return (package, imported package) for packages of which neither contains the other.

    The imports of a package's face, ``__init__.py``, are left out: it imports its parts.
    """
    known = packages(root)
    pairs = set()
    for first in known:
        for path in sorted((root / first).glob("*.py")):
            if path.name != "__init__.py":
                for name in _imports(path.read_text(encoding="utf-8"), first):
                    other = _package(name, known)
                    if other and not _nested(first, other):
                        pairs.add((first, other))
    return pairs


def _nested(first: str, other: str) -> bool:
    return f"{first}/".startswith(f"{other}/") or f"{other}/".startswith(f"{first}/")


def _package(module: str, known: dict[str, str]) -> str | None:
    """Return the folder of the package that has a module, or None for one of another project."""
    parts = module.split(".")
    if parts[0] != "vitruvian":
        return None
    if len(parts) > 1 and parts[1] in TOPS:
        parts = parts[1:]
    while parts and "/".join(parts) not in known:
        parts.pop()
    return "/".join(parts) or None


def _imports(source: str, folder: str) -> Iterator[str]:
    """Yield the dotted names of the modules that a file imports."""
    inside = (["vitruvian"] if not folder.startswith("vitruvian") else []) + folder.split("/")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)


def floors(root: Path) -> dict[str, int]:
    """Return the floor of each package: 0 if it imports no other, else one above the highest.

    Raises
    ------
    ValueError
        If the imports of packages have a cycle.
    """
    below: dict[str, set[str]] = {name: set() for name in packages(root)}
    for first, other in arrows(root):
        below[first].add(other)
    waiting: list[str] = []

    @cache
    def floor(name: str) -> int:
        if name in waiting:
            raise ValueError(f"packages must not import in a cycle: {' → '.join(waiting)}")
        waiting.append(name)
        found = max((floor(other) + 1 for other in sorted(below[name])), default=0)
        waiting.pop()
        return found

    return {name: floor(name) for name in below}


def table(root: Path) -> str:
    """Return a Markdown table of all packages with their floors.

    A package below the second level has no row: the row of the one that contains it names it.
    """
    levels = floors(root)
    rows: dict[str, list[str]] = {}
    for name, line in packages(root).items():
        outer = "/".join(name.split("/")[:2])
        if name != outer:
            rows[outer][3] += f", `{name.removeprefix(outer + '/')}` {levels[name]}"
            continue
        line = re.sub(r"``([^`]*)``", r"`\1`", line)
        rows[name] = [f"`{name}`", str(levels[name]), line, ""]
    cells = [[*row, inside.removeprefix(", ")] for *row, inside in rows.values()]
    return markdown((["package", "floor", "what it is", "inside, with floors"], cells))


def decisions(folder: Path) -> str:
    """Return a Markdown table of the decision records of a folder, from their headings.

    Raises
    ------
    ValueError
        If the heading of a record does not begin with the number of its file.
    """
    rows = []
    for path in sorted(folder.glob("*.md")):
        heading = path.read_text(encoding="utf-8").partition("\n")[0]
        match = re.fullmatch(r"# (\d{4}) (.+)", heading)
        if match is None or match[1] != path.name[:4]:
            raise ValueError(f"{path.name} must begin with '# {path.name[:4]} ', not {heading!r}")
        rows.append([match[1], f"[{match[2]}](decisions/{path.name})"])
    return markdown((["number", "decision"], rows))
