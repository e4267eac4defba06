"""Rules for the text of all files: names, lengths, docstrings, pins and citations."""

import ast
import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from tests.repo.rules import OURS

LIMIT = 500
TEXT = {
    ".py",
    ".cpp",
    ".inc",
    ".md",
    ".toml",
    ".ipynb",
    ".cff",
    ".yaml",
    ".txt",
    ".json",
    ".v",
    ".vlt",
    ".svg",
    ".cfg",
    ".yml",
    "",
}

# The names are concatenated, so that this file does not contain them itself.
FOREIGN = [
    r"(?<![\w.$}])/" + name + r"\b(?=/|\s|$|['\"`)])"
    for name in ("wor" + "k", "tm" + "p", "roo" + "t", "hom" + "e", "op" + "t/py" + "pi")
] + ["work" + "place", r"\.lib" + "rary/", "issues " + r"show \d"]


def files(root: Path) -> list[Path]:
    """Return all files of the project: those that Git tracks, or all except build results."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True
        ).stdout.split("\0")
        return [root / name for name in listed if name and (root / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        skipped = {".venv", "build", ".git", "__pycache__"}
        return [
            path
            for path in root.rglob("*")
            if path.is_file() and not skipped & set(path.relative_to(root).parts)
        ]


def foreign(text: str) -> list[str]:
    """Return names in ``text`` that belong to a machine and not to the project."""
    return [match[0] for pattern in FOREIGN for match in re.finditer(pattern, text, re.MULTILINE)]


def test_no_file_names_a_machine(root):
    violations = {
        str(path.relative_to(root)): names
        for path in files(root)
        if path.suffix in TEXT and (names := foreign(path.read_text(errors="replace")))
    }
    assert not violations


@pytest.mark.parametrize("text", ["x = '/tm" + "p/x'", "cd /wor" + "k/main", "`/roo" + "t/.cache`"])
def test_a_machine_is_noticed(text):
    assert foreign(text)


@pytest.mark.parametrize("text", ["a/tm" + "p", "../wor" + "k/x", 'folder / "wor' + 'k"', "home/x"])
def test_other_paths_pass(text):
    assert not foreign(text)


def undocumented(source: str) -> list[str]:
    """Return public classes and functions without a docstring, and the module if it has none."""
    tree = ast.parse(source)
    if not tree.body:  # an empty __init__.py
        return []
    violations = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # An overload has the docstring of the function that follows.
            overload = any(ast.unparse(d) == "overload" for d in node.decorator_list)
            if not node.name.startswith("_") and not ast.get_docstring(node) and not overload:
                violations.append(node.name)
    return violations


@pytest.mark.parametrize("package", [*OURS, "vitruvian"])
def test_everything_public_has_a_docstring(root, package):
    violations = {
        str(path.relative_to(root)): names
        for path in sorted((root / package).rglob("*.py"))
        if (names := undocumented(path.read_text()))
    }
    assert not violations


def test_a_missing_docstring_is_noticed():
    assert undocumented("def f(): pass\nclass C: pass\ndef _g(): pass") == ["the module", "f", "C"]
    assert not undocumented('"""M."""\ndef f():\n    """Do."""')
    one = '"""M."""\n@overload\ndef f(): ...\ndef f():\n    """Do."""'
    assert not undocumented(one) and undocumented(one.replace('"""Do."""', "pass")) == ["f"]


def length(text: str) -> int:
    """Count the lines of a source; comments have no limit, as a file is no harder for them."""
    return sum(not line.lstrip().startswith(("# ", "#: ")) for line in text.splitlines())


def test_no_file_is_too_long(root):
    lengths = {
        str(path.relative_to(root)): length(path.read_text())
        for path in files(root)
        if path.suffix in (".py", ".cpp", ".inc")
    }
    assert not {name: length for name, length in lengths.items() if length > LIMIT}


def test_the_classifiers_are_those_of_a_public_package(root):
    """An index refuses a package whose classifiers are unknown or begin with ``Private ::``."""
    import tomllib

    given = tomllib.loads((root / "pyproject.toml").read_text())["project"]["classifiers"]
    known = pytest.importorskip("trove_classifiers").classifiers
    assert len(given) > 1 and given == sorted(set(given))
    assert set(given) <= known and not [c for c in given if c.startswith("Private ::")]
    assert "Typing :: Typed" in given and (root / "vitruvian" / "py.typed").is_file()


def test_everything_installed_is_pinned(root):
    import importlib.metadata
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    # An extra may consist of other extras of the project itself.
    requirements = [each for each in requirements if not each.startswith(f"{project['name']}[")]
    lines = (root / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {_plain(name): version for name, version in pins.items()}
    for requirement in requirements:
        assert _plain(re.split(r"[\[<>=]", requirement)[0]) in pins, requirement
    for installed in importlib.metadata.distributions():
        name = _plain(installed.metadata["Name"])
        if name in pins:  # PyTorch's builds have the same version with a suffix, as "+cpu"
            assert installed.version.split("+")[0] == pins[name], name


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_sources_are_cited_by_author_and_year(root):
    """Private file numbers say nothing to a reader; docs/references.md has every work cited."""
    private = re.compile(r"[Tt]hesis 00\d|\b00\d,? (§|Table|Fig\.|Alg\.|eq\.|ch\.|chapter)")
    assert private.search("thesis 004") and private.search("(002, §3.1)")
    cited, works = set(), (root / "docs" / "references.md").read_text()
    for path in files(root):
        if path.suffix in (".py", ".md", ".toml") and path.name != "test_text.py":
            text = path.read_text()
            assert not private.search(text), f"{path}: {private.search(text)}"
            cited |= set(re.findall(r"\b(?:Zhang|Tang|Rohwedder) 20\d\d\b", text))
    assert len(cited) == 3 and all(f"| {work} |" in works for work in cited), cited
