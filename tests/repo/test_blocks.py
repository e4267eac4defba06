"""Every Python block of README and docs runs by itself in the folder of the repository."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[tuple[int, str]]:
    """Return (line, source) of every Python block of a page."""
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start()) + 2, match[1]) for match in found]


BLOCKS = [
    pytest.param(page, line, source, id=f"{page.relative_to(ROOT)}:{line}")
    for page in PAGES
    for line, source in blocks(page.read_text())
]


def run(page: Path, line: int, source: str) -> None:
    """Run a block in its own namespace; a failure shows the line of the page."""
    exec(compile("\n" * (line - 1) + source, str(page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("page", "line", "source"), BLOCKS)
def test_a_block_runs_as_it_is_printed(page, line, source, monkeypatch):
    monkeypatch.chdir(ROOT)
    run(page, line, source)


def test_there_are_blocks_and_a_broken_one_is_noticed():
    assert len(BLOCKS) >= 12
    page = "text\n\n```python\nx = 1\n```\n\n```python\nprint(y)\n```\n"
    assert blocks(page) == [(4, "x = 1\n"), (8, "print(y)\n")]
    with pytest.raises(NameError):
        run(Path("page.md"), *blocks(page)[1])
