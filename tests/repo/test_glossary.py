"""The glossary: its terms are in order, explained by sentences, and used somewhere."""

import re
import unicodedata
from pathlib import Path

import pytest


def entries(root: Path) -> dict[str, str]:
    """Return the meaning of each term of the glossary, in the order of the page."""
    text = (root / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| (.+) \|$", text, re.MULTILINE)
    return {term: meaning for term, meaning in rows if term != "term" and "---" not in term}


def plain(text: str) -> str:
    """Return a text in lower case, with spaces for hyphens, underscores and line ends.

    Superscript digits become plain ones, so that M³XU is in order.
    """
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", text).casefold())


def spellings(term: str) -> list[str]:
    """Return the words that a row explains: its term without brackets, cut at commas."""
    return [plain(word) for word in re.sub(r" \(.*?\)", "", term).split(", ")]


@pytest.fixture(scope="module")
def words(root) -> str:
    """Return the text of all pages and sources, without the glossary."""
    folders = ("docs", "golden", "hdl", "sim", "flows", "vitruvian", "tests", "examples")
    paths = [root / "README.md"]
    for folder in folders:
        paths += [p for p in sorted((root / folder).rglob("*")) if p.suffix in (".md", ".py")]
    used = [p for p in paths if p.name not in ("glossary.md", Path(__file__).name)]
    return plain("\n".join(p.read_text() for p in used))


def test_every_term_is_used(root, words):
    unused = [
        word
        for term in entries(root)
        for word in spellings(term)
        if not re.search(rf"\b{re.escape(word)}", words)
    ]
    assert not unused


def test_terms_are_in_order_and_explained_by_sentences(root):
    glossary = entries(root)
    assert len(glossary) > 100
    assert list(glossary) == sorted(glossary, key=plain)
    assert all(meaning[0].isupper() and meaning.endswith(".") for meaning in glossary.values())
