"""The command line of the flows: its printed and written results, and its answers to misuse."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vitruvian.cli import build_parser, main
from vitruvian.commands import hardware
from vitruvian.flows.asic import baseline
from vitruvian.flows.units import UNITS, reported, variants
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.cube import CONFIGS

SMALL = ["compare", "--format", "fp16"]


def run(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:  # argparse
        return int(stop.code or 0)


def test_area_writes_table_json_markdown_and_bars(tmp_path: Path, capsys):
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "svg")}
    options = [f"--{kind}={path}" for kind, path in files.items()]
    assert run("area", *SMALL, *options) == 0
    assert "compare" in capsys.readouterr().out
    row = json.loads(files["json"].read_text())["rows"][0]
    relaxed = row["targets"]["10000"]
    assert row["command"] == "compare --format fp16"
    assert relaxed["area_um2"] > 10 and relaxed["delay_ps"] > 10 and relaxed["cells"] > 10
    assert relaxed["area_um2_per_mac"] is None  # not 0
    assert f"| compare | fp16 | – | {relaxed['area_um2']:.0f} |" in files["markdown"].read_text()
    assert files["svg"].read_text().count("<rect") == 1 + 2 + 2  # ground, legend, bars


def test_timing_shows_the_path_cell_by_cell(capsys):
    assert run("timing", *SMALL, "--path", "--delay-target", "500") == 0
    out = capsys.readouterr().out
    assert "in→out" in out and "A1->ZN" in out


def test_baseline_round_trip(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(baseline, "FOLDER", tmp_path)
    assert run("area", *SMALL, "--baseline") == 1  # no baseline is stored yet
    assert run("area", *SMALL, "--update-baseline") == 0
    capsys.readouterr()
    assert run("area", *SMALL, "--baseline") == 0
    assert "2 figures equal, 0 not" in capsys.readouterr().out
    file = tmp_path / "vt45" / "compare.json"
    document = json.loads(file.read_text())
    document["rows"]["fp16"]["500"]["area_um2"] -= 1.0
    file.write_text(json.dumps(document))
    assert run("area", *SMALL, "--baseline") == 1
    assert "+1.0" in capsys.readouterr().out


def test_a_tile_is_timed_as_a_whole_and_has_baselines_of_its_own(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    """The whole is never faster than its modules, and close to the unit in one piece."""
    monkeypatch.setattr(baseline, "FOLDER", tmp_path)
    unit = ["simd2-int", "--operations", "mma", "--width", "8", "--size", "2"]
    unit += ["--delay-target", "500"]

    def measured(*options: str) -> dict:
        file = tmp_path / "out.json"
        assert run("area", *unit, *options, f"--json={file}") == 0
        return json.loads(file.read_text())["rows"][0]["targets"]["500"]

    parts, tile, whole = measured(), measured("--tile"), measured("--whole")
    assert tile["delay_ps"] >= parts["delay_ps"]
    assert tile["delay_ps"] == pytest.approx(whole["delay_ps"], rel=0.25)
    assert tile["buffer_area_um2"] > 0 and sum(tile["buffers"].values()) > 0
    assert tile["area_um2"] == pytest.approx(parts["area_um2"] + tile["buffer_area_um2"])
    assert sum(tile["split_ps"].values()) == pytest.approx(tile["delay_ps"], abs=0.5)
    assert "buffers between modules" in capsys.readouterr().out
    assert run("area", *unit, "--tile", "--update-baseline") == 0
    assert (tmp_path / "vt45" / "tile" / "simd2-int.json").exists()
    assert run("area", *unit, "--tile", "--baseline") == 0
    assert run("area", *unit, "--baseline") == 1  # its baseline is another one


def test_lists_and_ranges_multiply_out(tmp_path: Path):
    arguments = ["add", "--format", "fp16,fp8e4m3", "--pipeline", "0-1"]
    assert run("verilog", *arguments, "--out", str(tmp_path)) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "add_fp16_RNE_p0.v", "add_fp16_RNE_p1.v", "add_fp8e4m3_RNE_p0.v", "add_fp8e4m3_RNE_p1.v",
    ]  # fmt: skip


def test_list_names_every_unit(capsys):
    assert run("units") == 0
    out = capsys.readouterr().out
    assert "dot: " in out and "--preset: v100 | a100" in out


def labels(chosen) -> list[str]:
    return [variant.label for variant in chosen]


def test_the_default_rows_are_few_and_the_largest_are_left_out():
    """By default every preset has a row; the unit's name or --all adds the largest units."""
    few = {name: labels(reported(name, everything=False)) for name in UNITS}
    many = {name: labels(reported(name)) for name in UNITS}
    assert all(set(few[name]) <= set(many[name]) for name in UNITS)
    assert {name for name in UNITS if few[name] != many[name]} == {
        "axi-lite",
        "axi-stream",
        "cube",
        "dot",
        "m3xu",
        "machine",
        "mma",
        "serial",
        "scu-col2im",
        "simd2",
        "simd2-int",
        "sparse-ewise",
        "sparse-buffer",
        "sparse-is",
        "sparse-oei",
        "sparse-os",
        "vector",
    }
    for name in many:
        assert many[name] and len(set(many[name])) == len(many[name])
    assert {label.split("-")[0] for label in few["dot"]} == set(PRESETS)
    cubes = {label for label in few["cube"] if "systolic" not in label}
    assert cubes == {
        name.replace("_", "-")
        for name, c in CONFIGS.items()
        if not c.wide and c.multiplier == "booth"
    }
    units = [name for name in many["mma"] if name.startswith("m3xu")]
    assert few["mma"] == [] and many["mma"] == units and "m3xu-systolic" in units
    assert set(many["m3xu"]) - set(few["m3xu"]) == {
        "baseline-12bit-p4",
        "naive-fp32-p4",
        "fast-p4",
    }


def test_each_command_measures_its_rows():
    def chosen(arguments: str) -> list[str]:
        return labels(hardware._variants(build_parser().parse_args(arguments.split())))

    few, many = chosen("area"), chosen("area --all")
    assert few == chosen("timing") and many == chosen("timing --all") == chosen("verilog")
    assert set(few) < set(many) and "naive-fp32-p4" not in few
    assert chosen("area m3xu") == labels(reported("m3xu"))
    assert chosen("area mma") == labels(reported("mma"))
    assert chosen("verilog mma --preset m3xu --slots 8,16") == ["m3xu-s8", "m3xu-s16"]


def test_labels_say_which_number_is_which():
    given = {"preset": ["m3xu"], "pipeline": [2], "slots": [8], "ahead": [16]}
    assert labels(variants("mma", given)) == ["m3xu-p2-s8-a16"]


@pytest.mark.parametrize(
    ("name", "least", "most"), [("slots", 1, 64), ("ahead", 2, 64), ("pipeline", 0, 4)]
)
def test_numbers_of_the_mma_unit_have_their_limits(name, least, most, capsys):
    def chosen(value: int) -> list[str]:
        arguments = f"verilog mma --preset fp64 --{name} {value}"
        return labels(hardware._variants(build_parser().parse_args(arguments.split())))

    assert chosen(least) and chosen(most)
    for value in (least - 1, most + 1):
        assert main(f"verilog mma --preset fp64 --{name} {value}".split()) == 2
        assert (
            f"{name} must be a number from {least} to {most}, not '{value}'"
            in capsys.readouterr().err
        )


def test_cells_writes_the_library(tmp_path: Path):
    file = tmp_path / "cells.lib"
    assert run("cells", "--out", str(file)) == 0
    assert file.read_text().startswith("/* vt45")


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("area nothing", "unit must be one of dot, intdot"),
        ("verilog nothing", "unit must be one of dot, intdot"),
        ("area dot --preset v1000", "preset must be one of v100, a100"),
        ("area dot --input fp17", "input must be one of fp16, bf16"),
        ("area dot --input fp64", "formats of preset a100 must be one of fp16 -> fp32"),
        ("area dot --k 0", "k must be a number from 1 to 64, not '0'"),
        ("area dot --k four", "k must be a number from 1 to 64, not 'four'"),
        ("area dot --pipeline 12", "pipeline must be a number from 0 to"),
        ("area intdot --preset a100", "option of intdot must be one of --k"),
        ("verilog dot --preset exact --input bf16", "dot: "),
        (
            "area dot --liberty no/such.lib",
            "liberty must be vt45, nangate45, sg13g2 or an existing file",
        ),
        ("area dot --driving-cell NAND2_X1X", "driving cell must be one of BUF_X1"),
        (
            "area dot --delay-target 0",
            "must be a whole number from 1 to 1000000, not '0'",
        ),
        ("area dot --load -3", "--load: must be from 0 to 1e+06 fF, not '-3'"),
        ("area dot --adders --baseline", "--adders must come without baselines"),
        ("area dot --clock-gates --baseline", "--clock-gates must come without baselines"),
        ("area dot --clock-gates", "--clock-gates must have a library with clock gates"),
        ("area dot --whole --modules", "--whole must come without --modules and baselines"),
        ("timing dot --whole --tile", "--tile must come without --whole"),
        ("area dot --tile --modules --baseline", "--tile must come without --modules"),
        ("area cube --fast", "cube: pipeline must be 4 in a fast unit, not 3"),
        ("area dot --frobnicate", "--help` lists what is allowed"),
        ("frobnicate", "invalid choice: 'frobnicate'"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(
    arguments: str, allowed: str, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments.split(), *(["--json", "out.json"] if "area" in arguments else [])) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert allowed in captured.err
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".v", ".json")]


def test_liberty_that_does_not_parse(tmp_path: Path, capsys):
    file = tmp_path / "bad.lib"
    file.write_text("library (bad) { cell (INV) { area : 1; }")
    assert run("area", *SMALL, "--liberty", str(file)) == 2
    assert "must be closed by `}` before the end" in capsys.readouterr().err


def test_output_that_cannot_be_written(tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    assert run("verilog", *SMALL, "--out", str(tmp_path / "file" / "x")) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_the_program_starts_with_a_fixed_hash_seed(root: Path):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
    code = [sys.executable, "-m", "vitruvian", "units"]
    done = subprocess.run(
        code, cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    assert "dot: " in done.stdout
