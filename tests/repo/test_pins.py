"""Every pinned package can be installed with the oldest Python that the project allows."""

import tomllib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

OLDEST = "3.11.0"


def demands(names: Iterable[str]) -> dict[str, str]:
    """Return what the installed packages among them demand of Python, by name."""
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):  # of an extra that is not installed
            found[name] = metadata(name)["Requires-Python"] or ""
    return found


def too_new(names: Iterable[str]) -> dict[str, str]:
    """Return the demands of the packages among them that refuse the oldest Python."""
    given = demands(names).items()
    return {name: text for name, text in given if not SpecifierSet(text).contains(OLDEST)}


@pytest.fixture
def pinned(root) -> list[str]:
    lines = (root / "constraints.txt").read_text().splitlines()
    return [Requirement(line).name for line in lines if line and not line.startswith("#")]


def test_no_pinned_package_needs_a_newer_python(root, pinned):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert SpecifierSet(project["requires-python"]).contains(OLDEST)
    assert not too_new(pinned)
    assert len(demands(pinned)) > 80


def test_a_newer_demand_is_noticed(monkeypatch):
    monkeypatch.setitem(globals(), "metadata", lambda _name: {"Requires-Python": ">=3.11.5"})
    assert too_new(["some"]) == {"some": ">=3.11.5"}
