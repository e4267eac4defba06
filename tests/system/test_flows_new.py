"""The command new writes a folder in which make works, or nothing."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import new_unit
from vitruvian.flows.yosys import run_yosys
from vitruvian.sim.rtl import toolchain

SMALL = ["add", "--format", "fp8e4m3", "--pipeline", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-unit", *SMALL, "--json", "new.json"]) == 0
    document = json.loads((tmp_path / "new.json").read_text())
    assert document["folder"] == "my-unit"
    return tmp_path / "my-unit"


def test_the_folder_has_all_that_a_newcomer_needs(folder: Path):
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    needed = {"my_unit.toml", "rtl/my_unit.v", "top/my_unit_top.v", "tb/my_unit_tb.v"}
    assert files >= needed | {"Makefile", "README.md"}
    assert any(file.startswith("vectors/") for file in files)
    assert "module my_unit (" in (folder / "rtl/my_unit.v").read_text()
    makefile, readme = ((folder / name).read_text() for name in ("Makefile", "README.md"))
    for target in re.findall(r"`make (\w+)", readme):
        assert re.search(rf"(?m)^{target}:", makefile), target
    for file in re.findall(r"\| `([\w/.]+)`", readme):
        assert file == "Makefile" or (folder / file).is_file()


def test_the_configuration_makes_the_same_unit(folder: Path, capsys):
    assert main(["verilog", "--config", str(folder / "my_unit.toml"), "--out", "-"]) == 0
    text = capsys.readouterr().out
    body = text[text.index("`timescale") :].replace("add_fp8e4m3_RNE_p1", "my_unit")
    kept = (folder / "rtl/my_unit.v").read_text()
    assert kept[kept.index("`timescale") :] == body


@pytest.mark.parametrize(("old", "good"), [("", True), (" & ", False)])
def test_make_sim_passes_and_notices_a_changed_unit(folder: Path, old: str, good: bool):
    if not shutil.which("iverilog"):
        pytest.skip("needs Icarus Verilog (iverilog)")
    path = folder / "rtl/my_unit.v"
    path.write_text(path.read_text().replace(old, " | ", 1) if old else path.read_text())
    command = ["make", "-s", "sim", "VERILATOR=none"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == good, done.stdout
    assert ("PASS" in done.stdout) == good


@pytest.mark.parametrize(
    ("unit", "given"),
    [
        ("add", {"format": "fp8e4m3"}),
        pytest.param("cube", {"preset": "tiny"}, marks=pytest.mark.long),
    ],
)
def test_the_board_top_is_clean_under_verilator_and_yosys(unit, given, tmp_path: Path):
    (variant,) = variants(unit, {name: [value] for name, value in given.items()})
    texts = new_unit.files(variant, "my-unit", vectors=200)
    sources = ("rtl/my_unit.v", "top/my_unit_top.v")
    for name in sources:
        (tmp_path / Path(name).name).write_text(texts[name])
    tool = toolchain.verilator()
    words = ["--lint-only", "-Wall", "--top-module", "my_unit_top", "my_unit_top.v", "my_unit.v"]
    environment = {**os.environ, **dict(tool.environment)}
    done = subprocess.run(
        [*tool.command, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    both = "\n".join(texts[name] for name in sources)
    script = ["read_verilog both.v", "hierarchy -check -top my_unit_top", "write_rtlil done.il"]
    run_yosys("both.v", both, script, "done.il", task="read the top")


@pytest.mark.parametrize(
    "name", ["module", "1st", "a b", "a/b", "..", "", "é", "a" * 65, "logic", "-a"]
)
def test_a_name_that_is_no_identifier_is_refused(name: str, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: name must be a letter") and not list(tmp_path.iterdir())


def test_a_folder_with_content_is_left_alone_unless_it_shall_be_replaced(folder: Path, capsys):
    (folder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["new", "my-unit", *SMALL]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "must be new or empty" in line
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    config = str(folder / "my_unit.toml")
    assert main(["new", "my-unit", "--config", config, "--replace"]) == 0
    assert (folder / "notes.txt").read_text() == "mine"
    printed = capsys.readouterr().out
    assert "make -C my-unit sim; make -C my-unit fpga BOARD=ulx3s" in printed


def test_a_file_of_that_name_and_several_configurations_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    assert main(["new", "taken", *SMALL]) == 2
    assert main(["new", "two", *SMALL[:3], "--pipeline", "0,1"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "taken must be a folder, not a file" in first
    assert "new must have one configuration of one unit, not 2" in second
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_an_identifier_has_underscores_for_dashes():
    assert new_unit.identifier("my-unit") == "my_unit"
    with pytest.raises(UserError, match="no word of Verilog"):
        new_unit.identifier("end-module".replace("-", ""))
