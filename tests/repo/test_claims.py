"""Classes have the members that docstrings and pages describe."""

import ast
import re
from collections.abc import Iterator
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


def missing(tree: ast.Module) -> list[str]:
    """Return names that the docstring of a record describes although the record lacks them."""
    violations = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        made_by = [ast.unparse(x) for x in (*node.decorator_list, *node.bases)]
        if not any("dataclass" in x or x == "NamedTuple" for x in made_by):
            continue
        fields = {
            n.target.id
            for n in node.body
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        fields |= {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        names = documented(ast.get_docstring(node) or "")
        violations += [f"{node.name}.{name}" for name in names if name not in fields]
    return violations


def test_records_have_the_fields_that_they_document(root: Path):
    violations = {}
    for package in OURS:
        for path in sorted((root / package).rglob("*.py")):
            names = missing(ast.parse(path.read_text()))
            if names:
                violations[str(path.relative_to(root))] = names
    assert not violations


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
