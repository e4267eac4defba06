"""Tables on a terminal and in Markdown pages; commands that print rows use this module."""

import csv
import io
import os
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from vitruvian.common.validate import printable

#: Columns of tables that are not printed on a terminal.
PLAIN_WIDTH = 120


class SafeConsole(Console):
    """A console that escapes the control characters of texts, which may come from hostile files."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of an object; only those of rich itself control the terminal."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text, keep="\n\t"), style, control)


def open_console(stream: TextIO | None = None) -> Console:
    """Return a console on ``stream`` that does not colour numbers and paths by itself.

    A file or a pipe has no width of its own: tables are at most ``PLAIN_WIDTH`` columns wide there,
    or as many as the variable COLUMNS says.

    Parameters
    ----------
    stream : text file, optional
        Standard output by default.
    """
    console = SafeConsole(file=stream, highlight=False)
    if console.is_terminal:
        return console
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else PLAIN_WIDTH
    return SafeConsole(file=stream, highlight=False, width=width)


def print_table(
    console: Console,
    header: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    note: str | None = None,
    right: Collection[str] | None = None,
    styles: Sequence[str | None] = (),
) -> None:
    """Print a header and rows in a frame; a cell that is too wide continues on the next line.

    Parameters
    ----------
    console : rich.console.Console
        Result of ``open_console``.
    header : sequence of str or None
        One name for each column. With None, the table has no header and its texts are aligned to
        the left.
    rows : sequence of sequences of str
        One cell for each column. A cell is printed as it is, without markup.
    title, note : str, optional
        Lines above and below the table.
    right : collection of str, optional
        Names of the columns that are aligned to the right. By default these are the columns
        whose cells are all numbers.
    styles : sequence of str or None
        One rich style for each row, or nothing for plain rows.
    """
    title, note = (text and printable(text, keep="\n\t") for text in (title, note))
    body = [[printable(cell, keep="\n\t") for cell in row] for row in rows]
    names = [""] * len(body[0]) if header is None else [printable(n, keep="\n\t") for n in header]
    columns = [[names[i], *(row[i] for row in body)] for i in range(len(names))]
    padding, widths = _layout(columns, console.width)
    table = Table(
        title=title,
        caption=note,
        title_justify="left",
        caption_justify="left",
        show_header=header is not None,
        padding=(0, padding),
    )
    for index, name in enumerate(names):
        if header is None:
            numeric = False
        elif right is None:
            numeric = all(is_number(row[index]) for row in rows)
        else:
            numeric = header[index] in right
        justify = "right" if numeric else "left"
        table.add_column(name, justify=justify, overflow="fold", width=widths[index])
    for index, row in enumerate(body):
        # rich would read brackets in a plain str as markup.
        table.add_row(*map(Text, row), style=styles[index] if styles else None)
    console.print(table)


def _layout(columns: Sequence[Sequence[str]], width: int) -> tuple[int, list[int | None]]:
    """Return the spaces beside each cell, and the widths of columns that must be narrower.

    The widest columns become narrower, but no column narrower than its longest word. If the words
    do not fit, there are no spaces beside the cells; if they do not fit then, rich breaks them.
    """
    lines = [max(cell_len(line) for cell in c for line in cell.split("\n")) for c in columns]
    words = [max((cell_len(w) for cell in c for w in cell.split()), default=0) for c in columns]
    for padding in (1, 0):
        space = width - 1 - (1 + 2 * padding) * len(columns)
        if sum(lines) <= space:
            return padding, [None] * len(columns)
        if sum(words) <= space:
            limit = max(
                limit
                for limit in range(1 + max(lines))
                if sum(map(max, words, (min(line, limit) for line in lines))) <= space
            )
            return padding, [max(w, min(x, limit)) for w, x in zip(words, lines, strict=True)]
    return 0, [None] * len(columns)


def print_text(console: Console, text: str, *, indent: int = 0) -> None:
    """Print a paragraph in lines as wide as the console's tables.

    Parameters
    ----------
    console : rich.console.Console
        Result of ``open_console``.
    text : str
        Words, which are printed as they are, without markup.
    indent : int
        Number of spaces at the beginning of all lines but the first.
    """
    lines = textwrap.wrap(
        printable(text, keep="\t"),
        console.width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines or [""]:
        console.print(line, markup=False, soft_wrap=True)


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
