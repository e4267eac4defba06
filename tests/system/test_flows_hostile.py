"""Hostile command lines of ``vitruvian`` get one line and exit code 2, and change nothing."""

import gzip
import json
import os
import re
import signal
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from vitruvian.cli import build_parser, main
from vitruvian.commands import hardware
from vitruvian.flows.asic import cells, liberty, liberty_text, synth
from vitruvian.flows.asic.liberty_text import LibertyError
from vitruvian.flows.pages import docs
from vitruvian.flows.units import MOST, UNITS, variants
from vitruvian.hdl.elaborate import only_described

SMALL = ["compare", "--format", "fp16"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


def refused(capsys, *arguments: str) -> str:
    """Run a command that must be refused and return its one-line message."""
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert len(captured.err) < 1000
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("verilog dot --k 8-4", "a range must ascend, as 4-8, not '8-4'"),
        ("verilog dot --k ,", "k must be a number from 1 to 64, not ''"),
        ("verilog dot --k 4,", "k must be a number from 1 to 64, not ''"),
        ("verilog dot --k 1-999999999", "k must be a number from 1 to 64, not '999999999'"),
        ("verilog dot --k " + "9" * 5000, "k must be a number from 1 to 64, not '9999"),
        ("verilog dot --k 1-" + "9" * 5000, "k must be a number from 1 to 64, not '9999"),
        ("verilog dot --k ٤٤٤", "k must be a number from 1 to 64"),
        ("verilog simd2 --k 1-64 --size 1-16 --slots 1-64", f"at most {MOST} configurations"),
        ("area --from fp32 --preset a100", "no unit has all of --preset, --from"),
        ("area compare --load nan", "--load: must be from 0 to 1e+06 fF, not 'nan'"),
        ("area compare --load inf", "--load: must be from 0 to 1e+06 fF, not 'inf'"),
        ("area compare --load=-1", "--load: must be from 0 to 1e+06 fF, not '-1'"),
        ("area compare --jobs 1000000000", "--jobs: must be a whole number from 1 to 256"),
        ("area compare --delay-target 99999999999", "--delay-target: must be a whole number"),
        ("area compare --driving-cell NOPE", "driving cell must be one of BUF_X1"),
        ("area compare --driving-cell DFF_X1", "driving cell must have one input and a delay"),
        ("area compare --json no/such\0file", "--json: must be a file that can be written"),
        ("area compare --json .", "--json: must be a file that can be written, not '.'"),
        ("area compare --svg /proc/x/y.svg", "--svg: must be a file that can be written"),
        ("area compare --markdown /proc/x.md", "--markdown: must be a file that can be written"),
        ("area compare --json a --svg ./a", "--json and --svg must be different"),
        ("verilog compare --out /proc/x", "--out: must be a folder that files can be written"),
        ("verilog compare --out - --json -", "--json and --out must be different"),
        ("bundle nothing", "unit must be one of dot, intdot"),
        ("bundle add --vectors 5", "--vectors: must be a whole number from 14 to 100000"),
        ("bundle add --out /proc/x", "--out: must be a folder that files can be written"),
        ("cells --out /proc/x.lib", "--out: must be a file that can be written"),
        ("cells --markdown x.md", "--markdown must come with --compare"),
        ("fpga compare --element", "unit must be a tile with --element, not 'compare'"),
        ("fpga compare --family nope", "family must be one of ecp5, ice40, gowin, xilinx7"),
        ("fpga compare --board nope", "board must be one of arty, arty-100t, icebreaker"),
        ("fpga compare --board arty --element", "--board must come without --element"),
        ("fpga compare --board arty --seed 2", "--seed must come with a board that is routed"),
        ("fpga compare --board arty --svg a.svg", "--svg must come with one unit and one board"),
        ("fpga compare --board icebreaker --seed 2147483648", "seed must be at most 2147483647"),
        ("fpga compare --bitstream", "--bitstream must come with --board"),
        ("fpga compare --board ulx3s --seeds 0", "--seeds: must be a whole number from 1 to 100"),
        ("fpga dot --k 8-4 --board ulx3s", "a range must ascend, as 4-8, not '8-4'"),
        ("units nothing", "unit must be one of dot, intdot"),
        ("verilog cube --m 0", "m must be a number from 1 to 64, not '0'"),
        ("verilog m3xu --variant baseline-a100 --window 60", "window must be left out"),
        ("verilog add --format fp16 --pipeline 0-3 --output fp64,int8", "output must be one of"),
    ],
)
def test_hostile_arguments_are_one_line_and_exit_code_2(arguments, allowed, capsys, tmp_path):
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert allowed in refused(capsys, *arguments.split(" "))
    finally:
        os.chdir(before)
    assert not list(tmp_path.iterdir())


def test_a_value_given_twice_counts_once():
    assert UNITS["dot"].options["k"].values("4,4,2-5") == [4, 2, 3, 5]
    assert (
        len(hardware._variants(build_parser().parse_args(["area", "dot", "dot", "--k", "4,4"])))
        == 1
    )


def test_nothing_is_written_when_one_of_the_configurations_cannot_be_built(tmp_path, capsys):
    """Regression: the first configurations were written before the last one was refused."""
    arguments = ["verilog", "m3xu", "--variant", "baseline,baseline-a100", "--window", "60"]
    refused(capsys, *arguments, "--out", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_dash_is_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("units", "dot", "--json", "-") == 0
    captured = capsys.readouterr()
    assert list(json.loads(captured.out)) == ["dot"] and "--preset" in captured.err
    assert run("verilog", *SMALL, "--out", "v", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)[0]["file"] == "v/compare_fp16.v"
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


def test_stdout_and_json_are_both_written(tmp_path, capsys):
    file = tmp_path / "f.json"
    assert run("verilog", *SMALL, "--out", "-", "--json", str(file)) == 0
    assert capsys.readouterr().out.startswith("// compare_fp16")
    assert json.loads(file.read_text())[0]["file"] is None


def test_devices_and_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        assert run("units", "--json", str(tmp_path / "f.json")) == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "f.json").stat().st_mode) == 0o640
    assert run("units", "--json", "/dev/null") == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 2, "not enough memory: take smaller sizes"),
        (RecursionError(), 2, "nested too deeply"),
        (PermissionError(13, "Permission denied", "cache"), 2, "cache: Permission denied"),
        (BrokenProcessPool("gone"), 1, "a worker process was killed"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_failure_is_one_line(error, code, words, monkeypatch, capsys):
    def fail(*_: object, **__: object):
        raise error

    monkeypatch.setattr(hardware, "measure", fail)
    assert run("area", *SMALL) == code
    captured = capsys.readouterr()
    assert words in captured.err and captured.err.count("\n") == 1 and captured.out == ""


def test_docs_without_documentation_is_refused(tmp_path, monkeypatch, capsys):
    """Regression: in an installed package, which has no docs, ``docs --check`` reported success."""
    monkeypatch.setattr(docs, "update", lambda **options: original(tmp_path / "docs", **options))
    assert "docs needs the folder of the documentation" in refused(capsys, "docs", "--check")


original = docs.update


def test_help_of_every_command_has_sentences_and_an_example(capsys):
    for command in ("area", "timing", "power", "layout", "verilog", "units", "docs", "cells"):
        assert run(command, "--help") == 0
        text = capsys.readouterr().out
        assert f"Example: vitruvian {command} " in text
        options = re.split(r"\n\n(?:Units|Example)", text.split("options:")[1])[0]
        for line in options.split("  --")[1:]:
            words = " ".join(line.split())
            assert words.endswith((".", "show this help message and exit")), words
    assert run("--help") == 0 and "Example: vitruvian" in capsys.readouterr().out
    assert run("--version") == 0 and capsys.readouterr().out.startswith("vitruvian ")


def test_help_keeps_the_units_apart(capsys):
    """Regressions: the presets of three units stood in one line; the help had 288 lines."""
    for command in ("area", "timing", "fpga", "verilog", "bundle", "new"):
        assert run(command, "--help") == 0
        text = capsys.readouterr().out
        place = "NAME UNIT" if command == "new" else "UNIT"
        assert f"(`vitruvian {command} {place} --help` explains the options of one)" in text
        assert text.count("\n") < 80 and "--preset: " not in text
        for name, unit in UNITS.items():
            assert re.search(rf"(?m)^  {name} +{re.escape(unit.summary)}$", text)
    for name, unit in UNITS.items():
        assert run("verilog", name, "--help") == 0
        text = capsys.readouterr().out
        section = text.split(f"\n{name}: {unit.summary}\n")[1].split("\n\n")[0]
        for option in unit.options:
            assert f"  --{option.replace('_', '-')}: " in section
        assert text.count("--preset: ") == ("preset" in unit.options)
    assert run("new", "mine", "dot", "intdot", "--help") == 0
    assert run("area", "dot", "intdot", "--help") == 0
    text = capsys.readouterr().out
    assert "\ndot: " in text and "\nintdot: " in text and "default: a100" in text


def test_help_of_an_unknown_unit_names_the_nearest(capsys):
    assert run("area", "dott", "--help") == 2
    assert "'dott' (did you mean dot?)" in capsys.readouterr().err


def test_ctrl_c_ends_the_synthesis_that_runs():
    """Regression: ABC continued for up to a quarter of an hour."""
    with ThreadPoolExecutor(1) as pool:
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        code = pool.submit(synth._start, command)
        while not synth._running:
            time.sleep(0.01)
        begin = time.monotonic()
        synth.stop()
        assert code.result(timeout=10) == -signal.SIGKILL
        assert time.monotonic() - begin < 2
    assert not synth._running


def test_a_killed_synthesis_is_one_line(own_cache, monkeypatch, capsys):
    monkeypatch.setattr(synth, "_start", lambda *_, **__: -signal.SIGKILL)
    assert run("area", *SMALL, "--no-cache") == 1
    captured = capsys.readouterr()
    assert "was ended on" in captured.err and "by SIGKILL (lack of memory?)" in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("unit", ["cube", "m3xu", "mma"])
def test_a_matrix_unit_can_have_any_shape(unit):
    given = {"m": [4], "n": [2], "k": [8]}
    (variant,) = variants(unit, given)
    assert "-m4-n2-k8" in variant.label and "--m 4 --n 2 --k 8" in variant.arguments
    component = variant.build()
    only_described(component)
    config = component.config  # pyright: ignore[reportAttributeAccessIssue]
    assert (config.m, config.n, config.k) == (4, 2, 8)


def test_a_compressed_liberty_is_refused(tmp_path, capsys):
    file = tmp_path / "x.lib.gz"
    file.write_bytes(gzip.compress(b"library (x) {}"))
    assert "compressed by gzip: unpack it" in refused(capsys, "area", "--liberty", str(file))


def test_a_huge_liberty_is_refused_before_it_is_read(tmp_path, capsys):
    file = tmp_path / "x.lib"
    with open(file, "wb") as sparse:
        sparse.truncate(1 << 40)
    assert "must have at most 64 MiB" in refused(capsys, "area", "--liberty", str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("library (x) { " + "/* " * 300_000, "a comment must be closed"),
        ("library (x) { " + "pg_pin(" * 200_000, "x: |x line"),
        ("library (x) { " + "pg_pin(a) { { " * 100_000, "must be closed"),
        ("library (x) { " + "g () { " * 100_000, "group `g` must be closed"),
        ("library (x) { " + '"' * 100_001, "not liberty"),
        ("library (x) { cell (a) { area : inf; } }", "area of a must be from 0 to 1e9"),
        ("library (x) { capacitive_load_unit : 3; cell (a) { area : 1; } }", "malformed"),
        ("library (x) { time_unit : 1e9ns; cell (a) { area : 1; } }", "time_unit must be"),
        ("library (x) { " + "a : 1; " * 2_000, "at most 1000 words"),
        ("\ufffd" * 1000, "must be a liberty file that starts"),
        ('library (x) { time_unit : "1ns"\n', "group `library` must be closed"),
        ("library (x) { time_unit\n", "x: |x line"),
    ],
    ids=range(12),
)
def test_hostile_liberty_ends_in_one_line(text, message, monkeypatch):
    if "1000 words" in message:
        monkeypatch.setattr(liberty_text, "MOST_TOKENS", 1000)
    with pytest.raises(LibertyError) as caught:
        liberty.parse(text, name="x")
    assert any(part in str(caught.value) for part in message.split("|"))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_liberty_file_may_have_any_path(tmp_path, own_cache, capsys):
    """Regression: a quotation mark in the path reached the Yosys script."""
    file = tmp_path / 'a "b" c' / "my cells.lib"
    file.parent.mkdir()
    file.write_text(cells.built_in_path().read_text())
    assert run("area", *SMALL, "--liberty", str(file), "--delay-target", "10000") == 0
    assert "my cells" in capsys.readouterr().out


def test_own_cells_called_like_the_built_in_ones_have_no_baseline(tmp_path):
    file = tmp_path / "vt45.lib"
    file.write_text(cells.built_in_path().read_text())
    assert cells.library(str(file)).name == "vt45.lib"
