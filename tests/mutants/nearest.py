"""The test files that import a module, directly or indirectly, ordered by distance."""

import ast
from functools import cache
from pathlib import Path

from tests.repo.rules import imports, module_name, modules

#: Folders with modules besides those of the packages.
_MORE = ("tests", "examples", "benchmarks")


@cache
def _edges(root: Path) -> dict[str, frozenset[str]]:
    """Return the modules that each module imports, or names in a string."""
    known = modules(root, *_MORE)
    edges = {}
    for name, path in known.items():
        source = path.read_text()
        named = {full for _, full in imports(source, name, package=path.name == "__init__.py")}
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
        targets = set()
        for full in named:
            while full:
                if full in known:
                    targets.add(full)
                    break
                full = full.rpartition(".")[0]
        edges[name] = frozenset(targets - {name})
    return edges


def _distances(root: Path, test: str) -> dict[str, int]:
    """Return the number of imports between a test module and each module that it reaches."""
    edges = _edges(root)
    steps, front = {test: 0}, [test]
    while front:
        following = []
        for name in front:
            for target in edges[name]:
                if target not in steps:
                    steps[target] = steps[name] + 1
                    following.append(target)
        front = following
    return steps


@cache
def _all_distances(root: Path) -> dict[str, dict[str, int]]:
    tests = [name for name in modules(root, *_MORE) if name.rpartition(".")[2].startswith("test_")]
    return {name: _distances(root, name) for name in tests if name.startswith("tests.")}


def ranked(root: Path, path: str) -> list[str]:
    """Return the test files that import ``path``, directly or indirectly, the nearest first.

    A test file is near when few imports lie between and when its name shares words with the
    module's; test files that start the command line in a process of its own import it by name.
    """
    parts = Path(path).with_suffix("").parts
    module = module_name(Path(path))
    words = set(module.replace("_", ".").split(".")) - {"vitruvian"}
    rows = []
    for test, steps in _all_distances(root).items():
        shared = len(words & set(test.replace("_", ".").split(".")))
        distance = steps.get(module)
        if distance is None:
            if "cli" not in test or parts[0] not in ("sim", "flows", "vitruvian"):
                continue
            distance = 6
        rows.append((distance - 1.5 * shared, test))
    return [test.replace(".", "/") + ".py" for _, test in sorted(rows)]
