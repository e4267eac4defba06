"""Tables: alignment, width, and cells that look like markup."""

import io

from vitruvian.common.table import SafeConsole, filled, is_number, open_console, print_table


def printed(*args, **options) -> list[str]:
    stream = io.StringIO()
    print_table(open_console(stream, plain_width=120), *args, **options)
    return stream.getvalue().splitlines()


def test_columns_of_numbers_are_aligned_to_the_right():
    lines = printed(("name", "µm²"), [("a", "7"), ("long name", "1234.5")])
    assert "│ a         │      7 │" in lines


def test_the_caller_may_say_which_columns_are_aligned_to_the_right():
    lines = printed(("vectors", "note"), [("error", "x"), ("1,000", "longer")], right=("vectors",))
    assert "│   error │ x      │" in lines


def test_brackets_are_no_markup():
    assert "bus[red]" in "".join(printed(("net",), [("bus[red]",)]))


def test_a_file_is_wide_enough_for_a_long_cell():
    assert "x" * 110 in "".join(printed(("net",), [("x" * 110,)]))


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
    console = open_console(stream, plain_width=120)
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
