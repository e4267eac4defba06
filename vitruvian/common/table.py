"""Tables on a terminal and in Markdown pages; commands that print rows use this module."""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from vitruvian.common.validate import printable


class SafeConsole(Console):
    """A console that escapes the control characters of texts, which may come from hostile files."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of an object; only those of rich itself control the terminal."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text, keep="\n\t"), style, control)


def open_console(stream: TextIO | None = None, *, plain_width: int) -> Console:
    """Return a console on ``stream`` that does not colour numbers and paths by itself.

    Parameters
    ----------
    stream : text file, optional
        Standard output by default.
    plain_width : int
        Smallest number of columns if the stream is not a terminal. A file or a pipe has no width
        of its own, and tables for the narrow default of 80 columns would wrap.
    """
    console = SafeConsole(file=stream, highlight=False)
    if console.is_terminal:
        return console
    return SafeConsole(file=stream, highlight=False, width=max(console.width, plain_width))


def print_table(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    note: str | None = None,
    right: Collection[str] | None = None,
    styles: Sequence[str | None] = (),
    wrap: bool = False,
) -> None:
    """Print a header and rows in a frame.

    Parameters
    ----------
    console : rich.console.Console
        Result of ``open_console``.
    header : sequence of str
        One name for each column.
    rows : sequence of sequences of str
        One cell for each column. A cell is printed as it is, without markup.
    title, note : str, optional
        Lines above and below the table.
    right : collection of str, optional
        Names of the columns that are aligned to the right. By default these are the columns
        whose cells are all numbers.
    styles : sequence of str or None
        One rich style for each row, or nothing for plain rows.
    wrap : bool
        If True, a cell that is too wide continues on the next line instead of being cut off.
    """
    title, note = (text and printable(text, keep="\n\t") for text in (title, note))
    table = Table(title=title, caption=note, title_justify="left", caption_justify="left")
    for index, name in enumerate(printable(name, keep="\n\t") for name in header):
        numeric = (
            all(is_number(row[index]) for row in rows) if right is None else header[index] in right
        )
        table.add_column(name, justify="right" if numeric else "left", no_wrap=not wrap)
    for index, row in enumerate(rows):
        # rich would read brackets in a plain str as markup.
        cells = (Text(printable(cell, keep="\n\t")) for cell in row)
        table.add_row(*cells, style=styles[index] if styles else None)
    console.print(table)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 row", "2 rows"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def is_number(text: str) -> bool:
    """Return whether a cell holds a number, a percentage, or the dash of a missing figure."""
    return text.replace(".", "").replace("–", "0").replace(" %", "").lstrip("+-−").isdigit()


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as CSV with lines that end in a newline, as `flows.pages.site` reads it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def filled(page: str, kind: str, tables: Mapping[str, str]) -> str:
    """Return a Markdown page with tables between their marks.

    Parameters
    ----------
    page : str
        The text, with marks like ``<!-- pooling: strides -->`` … ``<!-- /pooling -->``.
    kind : str
        The first word of the marks, here ``"pooling"``.
    tables : mapping of str to str
        Second word of a mark -> the text that replaces what stands behind it. Other marks keep
        their text.
    """

    def replaced(match: re.Match[str]) -> str:
        return f"{match[1]}{tables.get(match[2], match[3])}{match[4]}"

    marks = rf"(<!-- {kind}: ([^>]+) -->\n)(.*?)(<!-- /{kind} -->)"
    return re.sub(marks, replaced, page, flags=re.DOTALL)
