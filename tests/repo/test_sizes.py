"""Functions fit on a screen or two, and no two classes have the same name."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.repo.rules import OURS

#: Most lines of a function without its docstring.
LINES = 80

#: Functions that may be longer: loops that are compiled as one, and tables of declarations.
LONG = {
    "sim/davinci/timing/engine_compiled.py: run",
    "sim/sparse/engine_compiled.py: run",
}

#: Names that several classes still have. In the hardware these are the names of enumerations and of
#: modules, which netlists contain.
SHARED = set(
    """
    Core Fragment Graph Instruction Kind Machine Operation Problem ProcessingElement Reader
    Reduction Result Source Unit _Operand _Rule
    """.split()
)


def sources(root: Path) -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the product by its path."""
    paths = [
        path for folder in (*OURS, "vitruvian") for path in sorted((root / folder).rglob("*.py"))
    ]
    return {
        path.relative_to(root).as_posix(): ast.parse(path.read_text())
        for path in paths
        # The packages are links in this folder as well.
        if path.relative_to(root).parts[:2] not in {("vitruvian", name) for name in OURS}
    }


def long_functions(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield every function whose lines behind the docstring are more than ``LINES``."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                start = node.lineno - 1
                if ast.get_docstring(node) is not None:
                    start = node.body[0].end_lineno or start
                if (node.end_lineno or start) - start > LINES:
                    yield f"{path}: {node.name}"


def shared_names(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names of classes at the top of several modules, with these modules."""
    names: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].append(path)
    return {name: paths for name, paths in names.items() if len(paths) > 1}


def test_functions_are_short(root):
    found = set(long_functions(sources(root)))
    assert not found - LONG, "split them by their meaning"
    assert not LONG - found, "these are short now; take them from the list"


def test_class_names_are_unique(root):
    found = shared_names(sources(root))
    new = {name: paths for name, paths in found.items() if name not in SHARED}
    assert not new, "an index or a traceback cannot tell these classes apart"
    assert not SHARED - found.keys(), "these are unique now; take them from the list"


def test_a_long_function_is_found_whatever_its_docstring_has():
    lines = "\n".join("    x = 1" for _ in range(LINES))
    docstring = '    """One.\n\n    Two.\n    """\n'
    short, long = f"def f():\n{docstring}{lines}\n", f"def f():\n{lines}\n    x = 2\n"
    assert not list(long_functions({"a.py": ast.parse(short)}))
    assert list(long_functions({"a.py": ast.parse(long)})) == ["a.py: f"]


def test_a_shared_name_is_found():
    trees = {"a.py": ast.parse("class A: ..."), "b.py": ast.parse("class A: ...\nclass B: ...")}
    assert shared_names(trees) == {"A": ["a.py", "b.py"]}
