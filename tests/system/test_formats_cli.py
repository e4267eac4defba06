"""The command ``vitruvian formats``."""

import json

import pytest

from vitruvian import formats
from vitruvian.cli import main


def test_all_formats_are_listed(capsys, tmp_path):
    path = tmp_path / "formats.json"
    assert main(["formats", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    rows = json.loads(path.read_text())["formats"]
    assert [row["name"] for row in rows] == [row["name"] for row in formats.table()]
    assert all(row["name"] in out for row in rows) and "…" not in out
    assert {row["name"] for row in rows if not row["checked"]} == {"hifloat8", "hif4", "ue6m2"}
    assert out.count("*") == 4  # three marks and the note


def test_the_values_of_a_small_format(capsys, tmp_path):
    path = tmp_path / "e2m1.json"
    assert main(["formats", "e2m1", "--json", str(path)]) == 0
    lines = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines()]
    grid = [[cell.strip() for cell in line] for line in lines if len(line) == 9]
    assert grid == [
        ["0x00", "0", "0.5", "1", "1.5", "2", "3", "4", "6"],
        ["0x08", "-0", "-0.5", "-1", "-1.5", "-2", "-3", "-4", "-6"],
    ]
    assert json.loads(path.read_text())["values"] == grid[0][1:] + grid[1][1:]


@pytest.mark.parametrize(("name", "lines"), [("fp16", 0), ("nvfp4", 0), ("ue4m3", 16)])
def test_a_wide_format_or_a_block_has_facts_only(name, lines, capsys):
    assert main(["formats", name]) == 0
    out = capsys.readouterr().out
    assert name in out and out.count("│ 0x") == lines


def test_an_unknown_format_is_refused(capsys):
    assert main(["formats", "fp5"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: format must be one of fp16, ") and error.count("\n") == 1
