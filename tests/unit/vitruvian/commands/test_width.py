"""What a command prints into a file or a pipe fits in 120 columns, and nothing is cut off."""

import re

import pytest

from vitruvian.cli import main
from vitruvian.common.table import PLAIN_WIDTH

#: Commands that print tables or lists of names, with arguments that take a second or two.
LINES = [
    "area intdot --k 2",
    "area intdot --k 2 --modules",
    "cells",
    "conformance a100_mma_fp16_fp32",
    "exhaustive --list",
    "formal --list",
    "formats",
    "formats bf16",
    "formats e2m1",
    "fpga intdot --k 2",
    "graph apsp --model",
    "help --all",
    "kernel matmul --size 256x256x256 --timeline",
    "list",
    "machines",
    "machines a100_mma_fp16_fp32",
    "machines h100",
    "machines --errors a100_mma_fp16_fp32",
    "mma --list",
    "network mobilenet_v3",
    "roofline add_relu --step all",
    "roofline matmul --naive",
    "studies --list",
    "timing intdot --k 2 --path",
    "tune matmul --size 64x64x64",
    "units",
    "units dot",
]


@pytest.mark.parametrize("line", LINES)
def test_lines_fit(line, monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(line.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and max(map(len, lines)) <= PLAIN_WIDTH
    assert not [row for row in lines if "│" in row and "… " in row], "a cell was cut off"


def test_columns_may_ask_for_more(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["formats"]) == 0
    assert PLAIN_WIDTH < max(map(len, capsys.readouterr().out.splitlines())) <= 400


def test_every_command_prints_its_tables_in_the_same_way(root):
    """The commands open no console of their own: `vitruvian.common.table` knows the width."""
    for folder in ("commands", "wings"):
        for path in sorted((root / "vitruvian" / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"[( =](Console|Table)\(", text), f"{path} must use open_console"
