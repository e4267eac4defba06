"""Every Python block of README and docs runs as printed, in the repository's folder.

A block runs alone, but those of a tutorial run one after the other, as a reader types them.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[tuple[int, str]]:
    """Return (line, source) of every Python block of a page, but for quoted sources of the RTL."""
    quoted = r"<!-- source: .*?<!-- /source -->"
    text = re.sub(quoted, lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    matches = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start()) + 2, match[1]) for match in matches]


TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCKS = [
    pytest.param(page, line, source, id=f"{page.relative_to(ROOT)}:{line}")
    for page in PAGES
    if page not in TUTORIALS
    for line, source in blocks(page.read_text())
]


def run(page: Path, line: int, source: str, names: dict[str, object] | None = None) -> None:
    """Run a block in a namespace of its own, or in ``names``; a failure shows the page's line."""
    scope = {"__name__": "__main__"} if names is None else names
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), scope)


@pytest.mark.parametrize(("page", "line", "source"), BLOCKS)
def test_a_block_runs_as_it_is_printed(page, line, source, monkeypatch):
    monkeypatch.chdir(ROOT)
    run(page, line, source)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_blocks_of_a_tutorial_run_in_turn(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = blocks(page.read_text())
    assert len(examples) >= 3
    names: dict[str, object] = {"__name__": "__main__"}
    for line, source in examples:
        run(page, line, source, names)


def test_there_are_blocks_and_a_broken_one_is_noticed():
    assert len(BLOCKS) >= 12
    page = "text\n\n```python\nx = 1\n```\n\n```python\nprint(y)\n```\n"
    assert blocks(page) == [(4, "x = 1\n"), (8, "print(y)\n")]
    source = "<!-- source: a.B -->\n```python\nz\n```\n<!-- /source -->\n"
    assert blocks(source + page) == [(9, "x = 1\n"), (13, "print(y)\n")]
    with pytest.raises(NameError):
        run(Path("page.md"), *blocks(page)[1])
