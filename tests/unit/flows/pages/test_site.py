"""Pages show parts of the README, tables and pictures; the site has what its pages need."""

import re

import pytest
import yaml
from mkdocs.config import load_config
from mkdocs.structure.files import Files

from vitruvian.common.charts import write_figure
from vitruvian.common.errors import UserError
from vitruvian.flows.pages import site
from vitruvian.sim.davinci.reference import PAGES

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


def test_a_link_to_a_csv_file_becomes_its_table(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text('unit,µm²\n"a, b|c",12\nd,3\n')
    page = "Text.\n\n[Table](data/x.csv)\n\nA [link](data/x.csv) in a line.\n"
    shown = site.with_tables(page, tmp_path)
    assert "\n| unit | µm² |\n| --- | ---: |\n| a, b\\|c | 12 |\n| d | 3 |\n" in shown
    assert shown.endswith("A [link](data/x.csv) in a line.\n")
    (tmp_path / "page.md").write_text(page)
    assert site.text_of(tmp_path / "page.md") == shown


def test_a_ragged_csv_file_is_refused(tmp_path):
    for text in ("a,b\n1\n", ""):
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises(UserError, match=r"x\.csv must have rows of equal length"):
            site.table(tmp_path / "x.csv")


def test_a_picture_is_drawn_from_the_chart_beside_the_page(tmp_path):
    write_figure(tmp_path / "a.json", lambda figure: figure.subplots().plot([1, 2]))
    (tmp_path / "x.md").write_text("![A](a.svg) ![B](b.svg)\n![A](a.svg)\n")
    (tmp_path / "b.svg").write_text("<svg/>")
    assert list(site.pictures(tmp_path)) == [tmp_path / "a.svg"]
    assert "<svg" in site.picture(tmp_path / "a.svg")
    config = load_config(config_file_path=None, site_name="x", docs_dir=str(tmp_path))
    config.plugins._current_plugin = "site"
    added = [file.src_uri for file in site.on_files(Files([]), config)]
    assert added == ["a.svg", *(f"api/{name}" for name in PAGES)]


def test_a_picture_without_data_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"picture must have a chart c\.json .*, not 'c\.svg'"):
        site.picture(tmp_path / "c.svg")


def test_every_csv_file_is_a_table_of_a_page(root):
    shown = set()
    for page in (root / "docs").rglob("*.md"):
        links = re.findall(r"^\[[^\]]*\]\((\S+\.csv)\)$", page.read_text(), re.MULTILINE)
        shown |= {(page.parent / link).resolve() for link in links}
        assert page.read_text() == site.text_of(page) or links
    assert shown == set((root / "docs").rglob("*.csv")) and len(shown) > 20


def test_the_first_page_has_facts_a_picture_and_three_entrances(root):
    page = (root / "docs" / "index.md").read_text()
    shown = site.on_page_markdown(page)
    assert "<!-- readme" not in shown and "](docs/" not in shown
    intro = site.parts(site.README.read_text())["intro"]
    assert intro in shown and intro.count(". ") == 1, "two sentences"
    assert len(re.findall(r"^\| .*\]\(\S+\.md\)\) \|", shown, re.MULTILINE)) == 7
    assert "make sim" in shown and len(re.findall(r"^### You ", shown, re.MULTILINE)) == 3
    picture = root / "docs" / re.findall(r"!\[.*\]\((\S+\.svg)\)", shown)[0]
    assert picture.is_file() or site.picture(picture)


def test_every_page_is_in_the_navigation(root):
    text = (root / "mkdocs.yml").read_text()
    nav = yaml.safe_load(text.partition("\nnav:")[2])
    named = set(re.findall(r"'([\w/-]+\.md)'", str(site.with_decisions(nav))))
    pages = {str(path.relative_to(root / "docs")) for path in (root / "docs").rglob("*.md")}
    assert named == pages | {f"api/{name}" for name in PAGES}
    assert text.count("toggle:") == 3 and "stylesheets/site.css" in text
