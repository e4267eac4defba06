"""Hook of mkdocs: a page can show parts of the README, so that no fact stands in two places.

The README marks a part by ``<!-- part: NAME -->`` and ``<!-- /part -->``. A page of ``docs`` shows
it where it has ``<!-- readme: NAME -->``. With ``<!-- readme: NAME 5 -->``, it shows the header and
the first five rows of the table that is the part.
"""

import re
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of

README = Path(__file__).resolve().parents[2] / "README.md"

_PART = re.compile(r"^<!-- part: (\w+) -->\n(.*?)^<!-- /part -->$", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"<!-- readme: (\w+)(?: (\d+))? -->")


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


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the text of a page for mkdocs, which calls this function before it reads the page."""
    return included(markdown, README.read_text(encoding="utf-8"))
