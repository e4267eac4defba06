"""Classes have the members that docstrings and pages describe."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.repo.rules import OURS
from vitruvian.hdl.cube import MatrixUnitConfig

SECTIONS = ("Parameters", "Attributes", "Members")


def documented(text: str) -> Iterator[str]:
    """Return the names that the sections of a class's docstring describe."""
    section, lines = "", text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"}:
            section = line
        elif section in SECTIONS and re.match(r"\w+(, \w+)*( :|$)", line):
            yield from line.partition(" :")[0].split(", ")


def own_names(node: ast.ClassDef) -> set[str]:
    """Return the fields and methods that stand in a class."""
    fields = {
        n.target.id
        for n in node.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    return fields | {n.name for n in node.body if isinstance(n, ast.FunctionDef)}


def missing(tree: ast.Module, bases: Mapping[str, ast.ClassDef] = {}) -> list[str]:
    """Return names that the docstring of a record describes although the record lacks them.

    Parameters
    ----------
    bases : mapping of str to ClassDef
        Classes of other files by name, whose fields a record may inherit.
    """
    bases = bases or {}
    violations = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        made_by = [ast.unparse(x) for x in (*node.decorator_list, *node.bases)]
        if not any("dataclass" in x or x == "NamedTuple" for x in made_by):
            continue
        fields, waiting = set[str](), [node]
        while waiting:
            record = waiting.pop()
            fields |= own_names(record)
            waiting += [
                bases[x.id] for x in record.bases if isinstance(x, ast.Name) and x.id in bases
            ]
        names = documented(ast.get_docstring(node) or "")
        violations += [f"{node.name}.{name}" for name in names if name not in fields]
    return violations


def test_records_have_the_fields_that_they_document(root: Path):
    paths = [path for package in OURS for path in sorted((root / package).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    bases = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {str(path.relative_to(root)): missing(tree, bases) for path, tree in trees.items()}
    assert not {path: names for path, names in found.items() if names}


def test_a_field_that_is_only_documented_is_found():
    text = """
@dataclass(frozen=True)
class Mapped:
    '''One.

    Members
    -------
    seconds, peak_mib : float
        Of the worker.
    '''

    peak_mib: float
"""
    assert missing(ast.parse(text)) == ["Mapped.seconds"]


def test_the_page_of_the_cube_calls_nothing_absent_that_the_generator_has(root: Path):
    text = (root / "docs" / "units" / "cube.md").read_text()
    (absent,) = re.findall(r"Not implemented: ([^.]*)\.", text)
    words = set(re.findall(r"\w+", absent))
    assert not words & set(MatrixUnitConfig.__dataclass_fields__)
    assert "`MatrixUnitConfig(sparsity=True)`" in text
