"""Notebooks of the tutorials: every page of docs/tutorials as a Jupyter notebook beside it."""

import json
import re
from pathlib import Path
from typing import Any

from vitruvian.common.files import write_whole
from vitruvian.flows.pages import docs

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def notebook(page: str) -> dict[str, Any]:
    """Return a page as a notebook: Python blocks become cells of code, the rest Markdown.

    Parameters
    ----------
    page : str
        The text of a page.

    Returns
    -------
    dict
        A document of nbformat 4.5, without outputs.
    """
    cells, end = [], 0
    for match in _BLOCK.finditer(page):
        cells += [("markdown", page[end : match.start()]), ("code", match[1])]
        end = match.end()
    cells.append(("markdown", page[end:]))
    # The numbers of the cells are their ids, so that equal pages give equal notebooks.
    kept = [(kind, text.strip()) for kind, text in cells if text.strip()]
    return {
        "cells": [_cell(number, kind, text) for number, (kind, text) in enumerate(kept)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | {"execution_count": None, "outputs": []} if kind == "code" else cell


def update(folder: Path, *, check: bool = False) -> list[Path]:
    """Write the notebook of every page in ``folder`` that has none or an old one.

    Parameters
    ----------
    folder : Path
        The folder of the tutorials.
    check : bool
        If True, write nothing.

    Returns
    -------
    list of Path
        The notebooks that were out of date.
    """
    stale = []
    for page in sorted(folder.glob("*.md")):
        text = (
            json.dumps(notebook(docs.filled(page.read_text())), indent=1, ensure_ascii=False) + "\n"
        )
        target = page.with_suffix(".ipynb")
        if not target.exists() or target.read_text() != text:
            stale.append(target)
            if not check:
                write_whole(target, text)
    return stale
