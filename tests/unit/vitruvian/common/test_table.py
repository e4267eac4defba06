"""Tables: alignment, width, and cells that look like markup."""

import io

import pytest

from vitruvian.common.table import (
    SafeConsole,
    filled,
    is_number,
    open_console,
    print_table,
    print_text,
)


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)


def printed(*args, **options) -> list[str]:
    stream = io.StringIO()
    print_table(open_console(stream), *args, **options)
    return stream.getvalue().splitlines()


def test_columns_of_numbers_are_aligned_to_the_right():
    lines = printed(("name", "µm²"), [("a", "7"), ("long name", "1234.5")])
    assert "│ a         │      7 │" in lines


def test_the_caller_may_say_which_columns_are_aligned_to_the_right():
    lines = printed(("vectors", "note"), [("error", "x"), ("1,000", "longer")], right=("vectors",))
    assert "│   error │ x      │" in lines


def test_brackets_are_no_markup():
    assert "bus[red]" in "".join(printed(("net",), [("bus[red]",)]))


def letters(lines, letter: str) -> int:
    return sum(line.count(letter) for line in lines)


def test_a_cell_that_is_too_wide_continues_on_the_next_line():
    for cell in ("x" * 300, "xxxxx " * 60):
        lines = printed(("net", "number"), [(cell, "1234")])
        assert letters(lines, "x") == 300 and not letters(lines, "…")
        assert max(map(len, lines)) == 120 and any("1234" in line for line in lines)


def test_words_stay_whole_if_the_table_has_room_for_them():
    header = [f"instruction{i}" for i in range(9)]
    lines = printed(header, [["word " * 5, *["1.5"] * 8]])
    assert max(map(len, lines)) <= 120 and all(any(name in s for s in lines) for name in header)
    assert letters(lines, "word") == 5


@pytest.mark.parametrize(("columns", "wide"), [("40", 40), ("250", 250), ("0", 120), ("x", 120)])
def test_columns_say_how_wide_a_file_is(monkeypatch, columns, wide):
    monkeypatch.setenv("COLUMNS", columns)
    lines = printed(("net", "note"), [("x" * 300, "y" * 300)])
    assert max(map(len, lines)) == wide
    assert (letters(lines, "x"), letters(lines, "y")) == (300, 300)


def test_a_table_may_have_no_header():
    lines = printed(None, [("name", "a long text"), ("b", "12")])
    assert len(lines) == 4 and "│ b    │ 12          │" in lines


def test_a_paragraph_is_folded_between_words():
    stream = io.StringIO()
    print_text(open_console(stream), "unit  " + "[word] " * 30, indent=6)
    first, second = stream.getvalue().splitlines()
    assert first.startswith("unit  [word] [word]") and len(first) <= 120
    assert second.startswith("      [word]") and (first + second).count("[word]") == 30


def test_a_title_and_a_note_surround_the_table():
    lines = printed(("area of a cell",), [("1",)], title="Area", note="in µm²")
    assert lines[0].strip() == "Area" and lines[-1].strip() == "in µm²"


def test_numbers_are_recognised():
    assert all(map(is_number, ("12", "-1.5", "–", "3.1 %", "+4")))
    assert not any(map(is_number, ("", "x", "1x")))


def test_tables_are_filled_in_between_their_marks():
    page = "a\n<!-- area: one -->\nold\n<!-- /area -->\n<!-- area: two -->\nkept\n<!-- /area -->\n"
    page += "<!-- errors: one -->\nother\n<!-- /errors -->\n"
    fresh = page.replace("old", "\\1 new")
    assert filled(page, "area", {"one": "\\1 new\n", "three": "nowhere"}) == fresh
    assert filled("text\n", "area", {"one": "| a |\n"}) == "text\n"


def test_control_characters_of_a_file_do_not_reach_the_terminal():
    hostile = "a\x1b[2J\x07\r\u202eb"
    stream = io.StringIO()
    console = open_console(stream)
    print_table(console, ("name", hostile), [("one name", hostile)], title=hostile, note=hostile)
    console.print(hostile)
    text = stream.getvalue()
    assert not set("\x1b\x07\r\u202e") & set(text)
    # rich itself drops some of these characters from titles.
    assert text.count(r"a\x1b[2J") == 5 and r"a\x1b[2J\x07\r\u202eb" in text
    # The frame fits the text as it is shown; line breaks and other spaces stay.
    lines = printed(("name", "value"), [(hostile, "1"), ("a\u202fb\nc", "2")])
    assert len({len(line) for line in lines}) == 1 and any("a\u202fb" in line for line in lines)
    stream = io.StringIO()
    coloured = SafeConsole(file=stream, force_terminal=True, color_system="standard")
    coloured.print("[red]a\x1b[2J[/red]")
    assert "\x1b[31m" in stream.getvalue() and "\x1b[2J" not in stream.getvalue()
