"""Count what a reader of the project meets: packages, imports, words, lines, comments, examples.

python benchmarks/house.py [--csv FILE] [FOLDER ...]

A folder is a checkout of the project, by default this one; each gets a column of the table. With
``--drawing FILE``, the packages of the first folder are written as the data of a picture.

Packages are the folders with an ``__init__.py``, arrows are the imports between packages of which
neither contains the other, and the imports of ``__init__.py`` itself are left out. A circle of
files is a set of files that import each other, directly or through others. Layers are, from below,
``vitruvian.common``, golden, hdl, sim, flows and the rest of ``vitruvian``: an arrow from one of
them to a later one leads upwards, and so does one between two packages that import each other.
The floor of a package is one more than the highest floor below it, without such arrows.
"""

import argparse
import ast
import csv
import importlib.metadata
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the tests have the definitions of circles and of long functions

from tests.repo import test_cycles, test_sizes  # noqa: E402
from tests.repo.rules import modules  # noqa: E402
from vitruvian.flows.pages import rooms  # noqa: E402

#: Beginnings of the packages of each layer, from below; the last one has the rest.
LAYERS = ("vitruvian/common", "golden", "hdl", "sim", "flows", "vitruvian")


def layer(package: str) -> int:
    """Return the place of a package's layer in ``LAYERS``."""
    return next(i for i, top in enumerate(LAYERS) if f"{package}/".startswith(f"{top}/"))


def components(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the sets of names that reach each other, with more than one name each (Tarjan)."""
    graph: dict[str, set[str]] = {}
    for first, other in pairs:
        graph.setdefault(first, set()).add(other)
        graph.setdefault(other, set())
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            group = set(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(group)

    sys.setrecursionlimit(20_000)
    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def packages(root: Path) -> tuple[dict[str, int], set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the floor of each package, all arrows, and the arrows that lead upwards."""
    arrows = rooms.arrows(root)
    upward = {(a, b) for a, b in arrows if layer(b) > layer(a)}
    for group in components(arrows - upward):
        upward |= {(a, b) for a, b in arrows if {a, b} <= group}
    below = arrows - upward

    @cache
    def floor(name: str) -> int:
        return max((floor(b) + 1 for a, b in below if a == name), default=0)

    return {name: floor(name) for name in rooms.packages(root)}, arrows, upward


def sources(root: Path) -> dict[str, str]:
    """Return the text of every file of the packages by its path."""
    trees = test_sizes.sources(root)
    return {path: (root / path).read_text(encoding="utf-8") for path in trees}


def docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of all docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                if isinstance(first.value.value, str):
                    yield first


def comments_and_code(text: str) -> tuple[int, int]:
    """Return the lines with a comment, and the lines of code.

    Comments for tools (``noqa``, ``pyright``, ``type``, ``pragma``) do not count. Lines of code
    are those that are left without empty lines, docstrings and lines that are only a comment.
    """
    lines = text.splitlines()
    left = {n for n, line in enumerate(lines, 1) if line.strip()}
    for node in docstrings(ast.parse(text)):
        left -= set(range(node.lineno, node.end_lineno + 1))  # pyright: ignore
    comments = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if not re.match(r"#!?:?\s*(noqa|pyright|type:|pragma|ruff)", token.string):
                comments += 1
            if token.line.strip().startswith("#"):
                left.discard(token.start[0])
    return comments, len(left)


def public_functions(texts: dict[str, str]) -> tuple[int, int]:
    """Return the functions at the top of files without ``_``, and those with an example."""
    functions = [
        node
        for text in texts.values()
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    return len(functions), sum(">>>" in (ast.get_docstring(node) or "") for node in functions)


_FACES = """
import importlib, inspect, json, pkgutil, sys, vitruvian
faces = ("formats", "machines", "ops", "products", "sparse")
names = ["vitruvian"] + [f"vitruvian.{name}" for name in faces]
for top in ("golden", "hdl", "sim", "flows"):
    package = importlib.import_module(f"vitruvian.{top}")
    names += [package.__name__]
    inner = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    names += [each.name for each in inner if each.ispkg]
found = {}
for name in names:
    module = importlib.import_module(name)
    for word in getattr(module, "__all__", ()):
        thing = getattr(module, word)
        thing = inspect.unwrap(thing) if callable(thing) else thing
        if inspect.isroutine(thing):
            found[f"{thing.__module__}.{thing.__qualname__}"] = ">>>" in (thing.__doc__ or "")
print(json.dumps([len(found), sum(found.values())]))
"""


def offered(root: Path) -> tuple[int, int]:
    """Return the functions that the faces of packages offer, and those with an example."""
    number, shown = json.loads(_python(root, "-c", _FACES).stdout)
    return number, shown


def _python(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def modules_loaded(root: Path) -> int:
    """Return the number of modules that ``import vitruvian`` loads."""
    code = (
        "import sys; before = set(sys.modules); import vitruvian;"
        "print(len(set(sys.modules) - before))"
    )
    return int(_python(root, "-c", code).stdout)


def import_times(roots: Sequence[Path]) -> list[float]:
    """Return the time of ``import vitruvian`` in ms, the shortest of 25 in turn."""
    times: list[list[float]] = [[] for _ in roots]
    for _ in range(25):
        for root, found in zip(roots, times, strict=True):
            lines = _python(root, "-X", "importtime", "-c", "import vitruvian").stderr.splitlines()
            (line,) = [line for line in lines if line.rpartition("|")[2].strip() == "vitruvian"]
            found.append(int(line.split("|")[1]) / 1000)
    return list(map(min, times))


def installed(root: Path) -> tuple[int, int]:
    """Return the number of dependencies, and the MB of them and theirs in this environment."""
    from packaging.requirements import Requirement

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    done: dict[str, int] = {}
    while waiting:
        wanted = waiting.pop()
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if name in done or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found = importlib.metadata.distribution(name)
        files = [Path(str(found.locate_file(file))) for file in found.files or ()]
        done[name] = sum(file.stat().st_size for file in files if file.is_file())
        waiting += [Requirement(line) for line in found.requires or ()]
    return len(project["dependencies"]), round(sum(done.values()) / 1e6)


def wheel(root: Path) -> int:
    """Return the kB of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder)
        _python(root, *words, str(root))
        (file,) = Path(folder).glob("*.whl")
        return round(file.stat().st_size / 1000)


def name(root: Path) -> str:
    """Return the commit of a checkout, or the name of its folder."""
    words = ["git", "-C", str(root), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout.strip() or root.resolve().name


def figures(root: Path) -> dict[str, str]:
    """Return every figure of a checkout by its name."""
    floors, arrows, upward = packages(root)
    circles = components(set(test_cycles.file_edges(modules(root))))
    texts = sources(root)
    trees = {path: ast.parse(text) for path, text in texts.items()}
    comments, code = (sum(c) for c in zip(*map(comments_and_code, texts.values()), strict=True))
    functions, with_example = public_functions(texts)
    number, shown = offered(root)
    pages = [path.read_text(encoding="utf-8") for path in (root / "docs").rglob("*.md")]
    svg = [path for path in root.rglob("*.svg") if not {"build", ".venv"} & {*path.parts}]
    tests = sorted((root / "tests").rglob("*.py"))
    dependencies, megabytes = installed(root)
    flat = sum(1 for path in (root / "flows").glob("*.py") if path.name != "__init__.py")
    return {
        "packages": f"{len(floors)}",
        "files directly in flows": f"{flat}",
        "floors of packages": f"{1 + max(floors.values())}",
        "imports between packages": f"{len(arrows)}",
        "of these, upwards": f"{len(upward)}",
        "circles of files": f"{len(circles)}",
        "files in circles": f"{sum(map(len, circles))}",
        "words of docs": f"{sum(len(page.split()) for page in pages)}",
        "lines of source": f"{sum(len(text.splitlines()) for text in texts.values())}",
        "lines of tests": f"{sum(len(path.read_text().splitlines()) for path in tests)}",
        "lines of code": f"{code}",
        "comments in 100 lines of code": f"{100 * comments / code:.1f}",
        "functions longer than 80 lines": f"{len(list(test_sizes.long_functions(trees)))}",
        "names that several classes have": f"{len(test_sizes.shared_names(trees))}",
        "functions that faces offer": f"{number}",
        "of these, with an example": f"{shown}",
        "functions without _": f"{functions}",
        "of these, with an example ": f"{with_example}",
        "lines of SVG in Git": f"{sum(len(path.read_text().splitlines()) for path in svg)}",
        "modules that import vitruvian loads": f"{modules_loaded(root)}",
        "dependencies": f"{dependencies}",
        "MB of them and theirs": f"{megabytes}",
        "kB of the wheel": f"{wheel(root)}",
    }


def drawing(root: Path, title: str) -> str:
    """Return the packages of a checkout as the data of a picture, as JSON."""
    floors, arrows, upward = packages(root)
    names = list(floors)
    place = {name: i for i, name in enumerate(names)}
    document = {
        "kind": "packages",
        "title": title,
        "packages": [[name, floor] for name, floor in floors.items()],
        "arrows": sorted([place[a], place[b]] for a, b in arrows - upward),
        "upwards": sorted([place[a], place[b]] for a, b in upward),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items()]
    return "{" + ",\n".join(lines) + "}\n"


def main(argv: list[str] | None = None) -> int:
    """Print the table, and write what is asked for."""
    parser = argparse.ArgumentParser(description="Count what a reader of the project meets.")
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT], metavar="FOLDER")
    parser.add_argument("--csv", metavar="FILE", help="write the table there")
    parser.add_argument("--drawing", metavar="FILE", help="write the first folder's packages there")
    parser.add_argument("--title", default="", help="title of the drawing")
    options = parser.parse_args(argv)
    if options.drawing:
        Path(options.drawing).write_text(drawing(options.folders[0].resolve(), options.title))
        return 0
    columns = [figures(folder.resolve()) for folder in options.folders]
    for column, time in zip(
        columns, import_times([f.resolve() for f in options.folders]), strict=True
    ):
        column["ms of import vitruvian"] = f"{time:.1f}"
    header = ["count", *map(name, options.folders)]
    rows = [[row.strip(), *(column[row] for column in columns)] for row in columns[0]]
    for row in (header, *rows):
        print(f"{row[0]:36}", *(f"{cell:>12}" for cell in row[1:]))
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
