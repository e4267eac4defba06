"""Imports between folders have no cycles, not even imports for types only."""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.repo.rules import imports, modules


def folder(name: str, known: Mapping[str, Path]) -> str:
    return name if known[name].name == "__init__.py" else name.rpartition(".")[0]


def edges(known: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield (folder, imported folder) for folders of which neither contains the other.

    A package's face, ``__init__.py``, imports its parts and whatever its parts import.
    """
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        for _, target in imports(path.read_text(), name):
            while target and target not in known:
                target = target.rpartition(".")[0]
            if target:
                first, other = folder(name, known), folder(target, known)
                if not f"{first}.".startswith(f"{other}.") and not f"{other}.".startswith(
                    f"{first}."
                ):
                    yield first, other


def cycle(pairs: list[tuple[str, str]]) -> list[str]:
    """Return the folders of a cycle, or an empty list."""
    graph: dict[str, set[str]] = {}
    for first, other in pairs:
        graph.setdefault(first, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_folders_have_no_cycle(root):
    pairs = list(edges(modules(root)))
    assert (
        len(set(pairs)) > 50
        and ("vitruvian.sim.davinci.timing", "vitruvian.sim.davinci.isa") in pairs
    )
    assert not cycle(pairs)


def test_a_cycle_is_found():
    assert cycle([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    assert not cycle([("a", "b"), ("b", "c"), ("a", "c")])
