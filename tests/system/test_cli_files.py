"""Files of the command line: inputs are kept, edited files are kept, missing ones are named."""

import os
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main


def error_of(arguments, capsys):
    """Return the one line on standard error of a command that ends with exit code 2."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 2, line
    return line


@pytest.mark.parametrize("kind", ["the same", "a symbolic link", "a hard link", "another spelling"])
def test_an_input_is_not_replaced(kind, tmp_path, capsys):
    path = tmp_path / "x.npy"
    np.save(path, np.ones(8, np.float16))
    before = path.read_bytes()
    out = tmp_path / "y.npy"
    if kind == "a symbolic link":
        out.symlink_to(path)
    elif kind == "a hard link":
        out.hardlink_to(path)
    else:
        out = path if kind == "the same" else f"{tmp_path}/./x.npy"
    line = error_of(["taylor", "--input", str(path), "--out", str(out)], capsys)
    assert line.startswith(f"error: --out must be another file than the input '{path}'")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["silicon", "b200_fp16.npz", "--json", "b200_fp16.npz"],
        ["probe", "read", "x.npz", "b200_fp16.npz", "--json", "b200_fp16.npz"],
        ["cce", "k.cce", "--arg", "x=in.npy", "--json", "in.npy"],
        ["cce", "k.cce", "--expect", "x=in.npy", "--json", "in.npy"],
        ["graph", "apsp", "--graph", "g.mtx", "--out", "g.mtx"],
        ["area", "dot", "--config", "a.toml", "--json", "a.toml"],
        ["area", "dot", "--liberty", "a.lib", "--markdown", "a.lib"],
        ["kernel", "matmul", "--chip", "a.toml", "--json", "a.toml"],
    ],
)
def test_no_command_replaces_an_input(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for word in arguments:
        name = word.rpartition("=")[2]
        if "." in name:
            Path(name).write_text("mine")
    assert "must be another file than the input" in error_of(arguments, capsys)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}


def test_a_file_with_the_name_of_a_unit_is_an_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["units", "dot", "--json", "dot"]) == 0
    assert main(["units", "dot", "--json", "/dev/null"]) == 0


def bundle(folder, *more):
    return ["bundle", "intdot", "--k", "2", "--vectors", "20", "--out", str(folder), *more]


def test_a_bundle_keeps_edited_files(tmp_path, capsys):
    assert main(bundle(tmp_path)) == 0
    assert main(bundle(tmp_path)) == 0  # the same files again are no harm
    (folder,) = tmp_path.iterdir()
    readme, verilog = folder / "README.md", next((folder / "rtl").iterdir())
    text = verilog.read_text()
    readme.write_text("my notes")
    verilog.write_text(text + "// mine\n")
    (folder / "own.txt").write_text("mine")
    capsys.readouterr()
    line = error_of(bundle(tmp_path), capsys)
    assert line == (
        f"error: {folder} must be a new folder, or hold the same files as would be written, but "
        f"rtl/{verilog.name} and 1 more differ; --force replaces files"
    )
    assert readme.read_text() == "my notes" and verilog.read_text().endswith("// mine\n")
    assert main(bundle(tmp_path, "--force")) == 0
    assert verilog.read_text() == text and (folder / "own.txt").read_text() == "mine"


def test_no_bundle_is_written_if_a_later_one_has_an_edited_file(tmp_path, capsys):
    assert main(bundle(tmp_path)) == 0
    (folder,) = tmp_path.iterdir()
    (folder / "Makefile").write_text("mine")
    capsys.readouterr()
    command = ["bundle", "intdot", "--k", "1,2", "--vectors", "20", "--out", str(tmp_path)]
    assert "Makefile differs; --force" in error_of(command, capsys)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    "arguments",
    [
        ["probe", "read", "no.npz"],
        ["silicon", "b200_fp16_no.npz", "--preset", "b200", "--input", "fp16"],
        ["taylor", "--input", "no.npy"],
        ["knn", "--train", "no.npy", "--query", "no.npy"],
        ["graph", "apsp", "--graph", "no.mtx"],
        ["graph", "apsp", "--graph", "no.csv"],
        ["cce", "no.cce"],
        ["cce", "k.cce", "--arg", "x=no.npy"],
        ["area", "--config", "no.toml"],
        ["roofline", "--counters", "no.csv"],
        ["sparse", "bfs", "no.mtx"],
    ],
)
def test_a_missing_file_has_one_form(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cce").write_text("__global__ __aicore__ void k(__gm__ half *x) {}\n")
    line = error_of(arguments, capsys)
    assert line.endswith(": No such file or directory"), line
    assert "Errno" not in line and line.count(".n") + line.count("no.") < 4, line


def test_inputs_beyond_fp16_are_named(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.full(320, 1e18))
    line = error_of(["taylor", "--input", str(tmp_path / "x.npy")], capsys)
    assert "--input must have elements up to 65,504, the largest FP16 number, not 1e+18" in line
    os.mkfifo(tmp_path / "pipe.npy")
    line = error_of(["taylor", "--input", str(tmp_path / "pipe.npy")], capsys)
    assert "it is a folder, a device or a pipe" in line


@pytest.mark.parametrize("command", ["roofline --counters", "probe read", "area --config", "cce"])
def test_a_device_is_refused_at_once(command, capsys):
    """Regression: ``probe read /dev/zero`` took 5.9 GB."""
    line = error_of([*command.split(), "/dev/zero"], capsys)
    assert line.startswith("error: /dev/zero") and "file" in line
