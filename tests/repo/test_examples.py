"""The functions that users type have examples in their docstrings, and all examples run."""

import ast
import doctest
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import house
from tests.repo.rules import modules

FACES = ("vitruvian", "vitruvian.formats", "vitruvian.machines", "vitruvian.ops")
FACES += ("vitruvian.functions", "vitruvian.plans", "vitruvian.reductions", "vitruvian.sparse")

#: Functions that users type and that no face has.
MORE = (
    ("vitruvian.golden.m3xu", "gemm"),
    ("vitruvian.golden.scu", "im2col"),
    ("vitruvian.golden.scu", "col2im"),
    ("vitruvian.products", "gemm"),
)


def typed() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the name and the function of every function that a user types."""
    names = [(face, name) for face in FACES for name in importlib.import_module(face).__all__]
    if importlib.util.find_spec("vitruvian.sim.davinci"):
        names += [("vitruvian.sim.davinci", "load_chip"), ("vitruvian.sim.davinci", "simulate")]
    for module, name in (*names, *MORE):
        thing = getattr(importlib.import_module(module), name)
        if inspect.isroutine(inspect.unwrap(thing)):
            yield f"{module}.{name}", inspect.unwrap(thing)


FUNCTIONS = dict(typed())


def failures(name: str, thing: Any) -> int:
    """Run the examples of a docstring, and return how many fail; there must be some."""
    finder = doctest.DocTestFinder(recurse=False)
    known = dict(vars(inspect.getmodule(thing) or doctest))
    tests = [test for test in finder.find(thing, name, globs=known) if test.examples]
    assert tests, f"{name} must have an example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    return sum(runner.run(test).failed for test in tests)


def test_there_are_thirty_functions():
    assert len(FUNCTIONS) >= 30


def test_a_tenth_of_the_public_functions_has_an_example(root):
    """The public functions are those that the faces of packages offer."""
    offered, shown = house.offered(root)
    assert offered > 150 and shown >= offered / 10


def others(root: Path) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions with examples that are none of ``FUNCTIONS``."""
    for name, path in modules(root).items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or ""):
                thing = getattr(importlib.import_module(name), node.name)
                if thing not in FUNCTIONS.values():
                    yield f"{name}.{node.name}", thing


def test_the_other_examples_run(root):
    found = dict(others(root))
    assert found and not [name for name, thing in found.items() if failures(name, thing)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_runs(name):
    assert failures(name, FUNCTIONS[name]) == 0


@pytest.mark.parametrize(
    "face", ["formats", "functions", "machines", "plans", "reductions", "sparse"]
)
def test_the_example_of_a_face_runs(face):
    assert failures(face, importlib.import_module(f"vitruvian.{face}")) == 0


def test_a_wrong_example_is_noticed(capsys):
    def wrong() -> None:
        """Return nothing.

        >>> 1 + 1
        3
        """

    assert failures("wrong", wrong) == 1 and "Expected:" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="len must have an example"):
        failures("len", len)
