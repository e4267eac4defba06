"""Hook of mkdocs: what the site has and Git has not, so that no fact stands in two places.

- The README marks a part by ``<!-- part: NAME -->`` and ``<!-- /part -->``. A page of ``docs``
  shows it where it has ``<!-- readme: NAME -->``. With ``<!-- readme: NAME 5 -->``, it shows the
  header and the first five rows of the table that is the part.
- A line that is nothing but a link to a CSV file becomes the table of that file. The first row of
  the file is the header.
- A part of `flows.pages.docs` that is generated, as ``<!-- ports: hdl.fp -->``, is put in.
- A picture ``NAME.svg`` that a page shows and that is not in Git is drawn: from the data in
  ``NAME.json`` beside the page, which is a chart (`vitruvian.common.charts`) unless its ``kind`` is
  one of ``DRAWN``, or by the function that `flows.pages.docs` has for the name.
- The navigation has every decision record, in the place of ``decisions/*.md``.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vitruvian.common import charts, timing_diagram
from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.common.wings import registered
from vitruvian.flows.fpga import floorplan
from vitruvian.flows.pages import docs, house

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"

#: Kind of a picture's data -> function that returns its SVG text.
DRAWN: dict[str, Callable[[Any], str]] = {
    "chart": charts.draw,
    "floorplan": floorplan.draw,
    "packages": house.draw,
    "timing diagram": timing_diagram.draw,
}

_PART = re.compile(r"^<!-- part: (\w+) -->\n(.*?)^<!-- /part -->$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"<!-- readme: (\w+)(?: (\d+))? -->")
_TABLE = re.compile(r"^\[[^\]]*\]\(([\w./-]+\.csv)\)$", re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([\w./-]+\.svg)\)")


def parts(readme: str) -> dict[str, str]:
    """Return the parts of the README by their names, with links as a page of ``docs`` has them.

    Parameters
    ----------
    readme : str
        The text of the README.
    """
    return {name: re.sub(r"\]\(docs/", "](", text).strip() for name, text in _PART.findall(readme)}


def included(page: str, readme: str) -> str:
    """Return the text of a page with the parts of the README that it shows.

    Parameters
    ----------
    page, readme : str
        The texts of both files.

    Raises
    ------
    UserError
        If the README lacks a part, or if the part has too few rows.
    """
    known = parts(readme)

    def part(match: re.Match[str]) -> str:
        text = known[one_of("part of the README", match[1], known)]
        if match[2] is None:
            return text
        lines = text.splitlines()
        most = len(lines) - 2  # the header and the line below it
        if int(match[2]) > most:
            raise UserError(f"rows of the part {match[1]} must be at most {most}, not {match[2]}")
        return "\n".join(lines[: int(match[2]) + 2])

    return _SHOWN.sub(part, page)


def table(path: Path) -> str:
    """Return a CSV file as a Markdown table. Columns whose cells are numbers are set to the right.

    Raises
    ------
    UserError
        If the file is empty, or if a row has other cells than the header.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    if not rows or {len(row) for row in rows} != {len(rows[0])}:
        raise UserError(f"{path.name} must have rows of equal length")
    header, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    right = [body and all(_is_number(row[i]) for row in body) for i in range(len(header))]
    rule = ["---:" if each else "---" for each in right]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def _is_number(cell: str) -> bool:
    # A minus sign or a hyphen, commas between thousands; an empty cell fits any column.
    return bool(re.fullmatch(r"[−+-]?[\d.,]+(e[−+-]?\d+)?( %)?|", cell))


def with_tables(page: str, folder: Path) -> str:
    """Return the text of a page of ``folder`` with the tables of its CSV files."""
    return _TABLE.sub(lambda match: f"\n{table(folder / match[1])}\n", page)


def text_of(path: Path) -> str:
    """Return a page of ``docs`` as it is read: with its CSV tables."""
    return with_tables(path.read_text(encoding="utf-8"), path.parent)


def picture(path: Path) -> str:
    """Return the SVG text of a picture of ``docs`` that is not in Git.

    Raises
    ------
    UserError
        If there is neither a chart nor a function for it.
    """
    chart = path.with_suffix(".json")
    if chart.exists():
        document = json.loads(chart.read_text(encoding="utf-8"))
        return DRAWN[one_of("kind", document.get("kind", "chart"), DRAWN)](document)
    drawn = docs.picture(path.name)
    if drawn is None:
        raise UserError(f"picture must have a chart {chart.name} or a function, not {path.name!r}")
    return drawn


def pictures(folder: Path = DOCS) -> Iterator[Path]:
    """Yield the pictures that pages show and that are not in Git, each once."""
    found = {}
    for page in sorted(folder.rglob("*.md")):
        for name in _PICTURE.findall(page.read_text(encoding="utf-8")):
            found[(page.parent / name).resolve()] = True
    yield from (path for path in found if not path.exists())


def with_decisions(nav: list[Any], folder: Path = DOCS) -> list[Any]:
    """Return a navigation in which every pattern, as ``decisions/*.md``, is the files it names."""
    known = []
    for entry in nav:
        if isinstance(entry, dict):
            known.append(
                {
                    title: with_decisions(inner, folder) if isinstance(inner, list) else inner
                    for title, inner in entry.items()
                }
            )
        elif "*" in entry:
            known += sorted(path.relative_to(folder).as_posix() for path in folder.glob(entry))
        else:
            known.append(entry)
    return known


def on_config(config: Any) -> Any:
    """Put the decision records into the navigation; mkdocs calls this function."""
    config.nav = with_decisions(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the drawn pictures and the written pages to the site; mkdocs calls this function."""
    from mkdocs.structure.files import File

    for path in pictures(Path(config.docs_dir)):
        name = path.relative_to(config.docs_dir).as_posix()
        files.append(File.generated(config, name, content=picture(path)))
    for module in registered("pages"):
        files = module.on_files(files, config)
    return files


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Return the text of a page for mkdocs, which calls this function before it reads the page."""
    text = docs.filled(included(markdown, README.read_text(encoding="utf-8")))
    return text if page is None else with_tables(text, (DOCS / page.file.src_uri).parent)
