"""Pages show parts of the README, and the site has the settings that its pages need."""

import re

import pytest

from vitruvian.common.errors import UserError
from vitruvian.flows.pages import site

README = """# X

<!-- part: intro -->
Text with [a link](docs/units/fp.md).
<!-- /part -->
<!-- part: facts -->
| a | b |
|---|---|
| 1 | 2 |
| 3 | 4 |
<!-- /part -->
"""


def test_a_page_shows_a_part_of_the_readme():
    text = site.included("# Y\n\n<!-- readme: intro -->\nend\n", README)
    assert text == "# Y\n\nText with [a link](units/fp.md).\nend\n"


def test_a_page_shows_the_first_rows_of_a_table():
    text = site.included("<!-- readme: facts 1 -->", README)
    assert text == "| a | b |\n|---|---|\n| 1 | 2 |"
    with pytest.raises(UserError, match="rows of the part facts must be at most 2, not 3"):
        site.included("<!-- readme: facts 3 -->", README)


def test_an_unknown_part_is_refused():
    with pytest.raises(UserError, match="part of the README must be one of intro, facts, not 'x'"):
        site.included("<!-- readme: x -->", README)


def test_the_first_page_has_facts_a_picture_and_three_entrances(root):
    page = (root / "docs" / "index.md").read_text()
    shown = site.on_page_markdown(page)
    assert "<!-- readme" not in shown and "](docs/" not in shown
    intro = site.parts(site.README.read_text())["intro"]
    assert intro in shown and intro.count(". ") == 2, "three sentences"
    assert len(re.findall(r"^\| .*\]\(\S+\.md\)\) \|", shown, re.MULTILINE)) == 5
    assert "make sim" in shown and len(re.findall(r"^### You ", shown, re.MULTILINE)) == 3
    assert (root / "docs" / re.findall(r"!\[.*\]\((\S+\.svg)\)", shown)[0]).is_file()
    # The facts of the page stand in the README alone.
    facts = [line for line in shown.splitlines() if line.startswith("| ")]
    assert facts and not set(facts) & set(page.splitlines())


def test_every_page_is_in_the_navigation(root):
    text = (root / "mkdocs.yml").read_text()
    named = set(re.findall(r"[\w/-]+\.md", text.partition("\nnav:")[2]))
    pages = {str(path.relative_to(root / "docs")) for path in (root / "docs").rglob("*.md")}
    assert named == pages
    assert text.count("toggle:") == 3 and "stylesheets/site.css" in text
