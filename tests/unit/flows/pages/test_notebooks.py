"""The notebooks of the tutorials are what their pages say."""

import json

from vitruvian.flows.pages import notebooks

PAGE = "# Title\n\nText.\n\n```python\nx = 1\n\nprint(x)\n```\nMore.\n\n```\nno code\n```\n"


def test_blocks_become_cells():
    cells = notebooks.notebook(PAGE)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert "".join(cells[1]["source"]) == "x = 1\n\nprint(x)"
    assert "no code" in "".join(cells[2]["source"])


def test_an_old_notebook_is_written_again(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    target = tmp_path / "page.ipynb"
    assert notebooks.update(tmp_path, check=True) == [target] and not target.exists()
    assert notebooks.update(tmp_path) == [target] and not notebooks.update(tmp_path)
    assert json.loads(target.read_text())["nbformat"] == 4
    (tmp_path / "page.md").write_text(PAGE + "New.\n")
    assert notebooks.update(tmp_path) == [target]


def test_the_tutorials_have_their_notebooks(root):
    folder = root / "docs" / "tutorials"
    assert len(list(folder.glob("*.ipynb"))) == len(list(folder.glob("*.md"))) == 5
    assert not notebooks.update(folder, check=True)
