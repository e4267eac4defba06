"""Imports have no cycles, neither between folders nor between files.

Imports inside functions and imports for types only count as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.repo.rules import imports, modules


def folder(name: str, known: Mapping[str, Path]) -> str:
    return name if known[name].name == "__init__.py" else name.rpartition(".")[0]


def file_edges(known: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield (module, imported module) for the modules that are no package's face.

    A face, ``__init__.py``, imports its parts and whatever its parts import.
    """
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        for _, target in imports(path.read_text(), name):
            while target and target not in known:
                target = target.rpartition(".")[0]
            if target and target != name:
                yield name, target


def folder_edges(known: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield (folder, imported folder) for folders of which neither contains the other."""
    for name, target in file_edges(known):
        first, other = folder(name, known), folder(target, known)
        if not f"{first}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{first}."):
            yield first, other


def cycle(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the members of a cycle, or an empty list."""
    graph: dict[str, set[str]] = {}
    for first, other in pairs:
        graph.setdefault(first, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.fixture(scope="module")
def pairs(root):
    return set(file_edges(modules(root)))


def test_folders_have_no_cycle(root):
    pairs = list(folder_edges(modules(root)))
    assert (
        len(set(pairs)) > 50
        and ("vitruvian.sim.davinci.timing", "vitruvian.sim.davinci.isa") in pairs
    )
    assert not cycle(pairs)


def test_files_have_no_cycle(pairs):
    assert len(pairs) > 2000
    # an import at the head of a file, and one inside a function
    assert ("vitruvian.golden.fp.dot", "vitruvian.golden.fp.general") in pairs
    assert ("vitruvian.golden.fp.plain", "vitruvian.golden.fp.dot_compiled") in pairs
    assert not cycle(pairs)


def test_a_cycle_is_found():
    assert cycle([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert not cycle([("a", "b"), ("b", "c"), ("a", "c")])


def test_a_cycle_through_a_function_or_a_type_is_found(tmp_path):
    texts = {
        "a": "from vitruvian.golden import b",
        "b": "def f():\n    import vitruvian.golden.c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import A",
    }
    known: dict[str, Path] = {}
    for name, text in texts.items():
        known[f"vitruvian.golden.{name}"] = tmp_path / f"{name}.py"
        known[f"vitruvian.golden.{name}"].write_text(text)
    assert set(cycle(file_edges(known))) == set(known)
