"""The command ``studies``: tables, JSON, exit codes, and one line for a wrong argument."""

import importlib.util
import json

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.m3xu import gemm
from vitruvian.sim.studies import KERNELS
from vitruvian.sim.studies.engine import BACKENDS


def test_a_table_and_its_json(tmp_path, capsys):
    file = tmp_path / "rows.json"
    arguments = ["studies", "fft", "--size", "2**8", "--methods", "fp16,fp32c,FP16", "--verify"]
    assert main([*arguments, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "256 points" in out and "fp32c 16×8×4" in out and "0 elements" in out
    (study,) = json.loads(file.read_text())
    assert [row["method"] for row in study["rows"]] == ["SciPy complex64", "FP16", "FP32C"]
    row = study["rows"][-1]
    # Radix 16 twice: 16×16×16 each, 1·2·4 instructions and 2·4·8 tiles of four steps.
    assert row["cost"] == row["costs"]["fp32c"]
    assert (row["cost"]["instructions"], row["cost"]["model_cycles"]) == (16, 2 * 64 * 4)
    assert 0 < row["max_error"] < 1e-6 and row["mismatches"] == 0
    assert f"{row['cost']['model_cycles']:,}" in out


def test_json_on_standard_output(capsys):
    assert main(["studies", "sgemm", "--size", "4", "--methods", "tf32", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["kernel"] == "sgemm" and "TF32" in captured.err


def test_nan_is_null_in_json(tmp_path):
    file = tmp_path / "rows.json"
    arguments = ["studies", "fft", "--size", "4096", "--methods", "fp16", "--json", str(file)]
    assert main(arguments) == 0
    text = file.read_text()
    assert "NaN" not in text and json.loads(text)[0]["rows"][-1]["max_error"] is None


def test_unit_and_seed_are_passed_on(capsys):
    arguments = ["studies", "dgemm", "--size", "8", "--json", "-"]
    figures = []
    for more in ([], ["--unit", "4x4x8", "--multiplier-bits", "27"], ["--seed", "2"]):
        assert main([*arguments, *more]) == 0
        figures.append(json.loads(capsys.readouterr().out)[0])
    first, wide, other = figures
    assert wide["unit"] == "4×4×8 lanes, 27-bit multipliers, ieee"
    assert [f["rows"][-1]["cost"]["model_cycles"] for f in figures] == [
        1 * 2 * 4 * 5,
        2 * 2 * 2 * 2,
        40,
    ]
    assert other["rows"][-1]["max_error"] != first["rows"][-1]["max_error"]


def test_a_preset_without_bf16_leaves_out_default_methods(capsys):
    assert main(["studies", "sgemm", "--size", "8", "--preset", "v100", "--json", "-"]) == 0
    captured = capsys.readouterr()
    (study,) = json.loads(captured.out)
    assert [row["method"] for row in study["rows"]] == ["NumPy float32", "FP16", "FP32"]
    assert study["notes"][-1].endswith("BF16, TF32, 3xBF16, 6xBF16, 9xBF16, 3xTF32, 4xTF32")
    assert "left out, because the unit does not have them: BF16" in captured.err


def test_list(capsys):
    assert main(["studies", "--list"]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == list(KERNELS)
    assert main(["kernels", "--list"]) == 0, "the earlier name of the command is still valid"
    assert capsys.readouterr().out == listed
    assert main(["studies", "*gemm", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_back_end_that_is_wrong_fails_the_command(monkeypatch, capsys):
    def faulty(a, b, c=None, **settings):
        d = np.array(gemm(a, b, c, **settings))
        d.flat[3] += 1
        return d

    monkeypatch.setitem(BACKENDS, "rtl", faulty)
    arguments = ["studies", "sgemm", "--size", "8", "--methods", "3xtf32,fp32", "--backend", "rtl"]
    assert main(arguments) == 1
    assert "4 elements of products differ from golden" in capsys.readouterr().out
    monkeypatch.setitem(BACKENDS, "rtl", gemm)
    assert main(arguments) == 0
    assert "products by rtl" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "kernel must match one of sgemm, cgemm, dgemm"),
        (["sgemm", "--backend", "gpu"], "--backend must be one of golden, rtl, not 'gpu'"),
        (["sgemm", "--backend", "rtl", "--unit", "65x4x8"], "m must be"),
        (["*gemm", "--size", "8"], "--size must come with one kernel, not 3"),
        (["sgemm", "--size", "1"], "must be a whole number from 2 to 1024, not 1"),
        (["cgemm", "--size", "1025"], "must be a whole number from 2 to 1024, not 1025"),
        (["dgemm", "--size", "1"], "must be a whole number from 2 to 256, not 1"),
        (["fft", "--size", "100"], "must be a power of two from 2 to 1048576, not 100"),
        (["fft", "--size", "2**21"], "must be a power of two from 2 to 1048576, not 2097152"),
        (["fft", "--size", "many"], "must be numbers like 256x256x256 or 2**10, not 'many'"),
        (["fft", "--size", "0"], "not 0"),
        (["fft", "--size", "-4"], "must be numbers like 256x256x256 or 2**10, not '-4'"),
        (["sgemm", "--methods", "fp8"], "method must be one of FP16, FP16 scaled, BF16"),
        (["sgemm", "--methods", ""], "method must be one of FP16"),
        (["sgemm", "--methods", "fp32c"], "method of sgemm must be one of FP16"),
        (["sgemm", "--unit", "8x4"], "must be MxNxK like 8x4x8, not '8x4'"),
        (["sgemm", "--unit", "8x0x8"], "must be MxNxK like 8x4x8, not '8x0x8'"),
        (["dgemm", "--unit", "8x4x8"], "k must be a multiple of 5 for fp64"),
        (["sgemm", "--multiplier-bits", "3"], "must be a whole number from 4 on, not '3'"),
        (["sgemm", "--multiplier-bits", "65"], "multiplier_bits must be"),
        (["sgemm", "--preset", "z9"], "preset must be one of v100"),
        (["sgemm", "--preset", "v100", "--methods", "fp16,bf16"], "bf16"),
        (["sgemm", "--seed", "x"], "must be a whole number from 0 to"),
        (["sgemm", "--size", "2", "--json", "/proc/no/x.json"], "--json: must be a file that"),
    ],
)
def test_a_wrong_argument_gets_one_line(arguments, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["studies", *arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2 and text in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not captured.out or "--json" in arguments


def test_a_missing_library_gets_one_line(capsys, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "sklearn" else find(name)
    )
    assert main(["studies", "k*"]) == 2
    captured = capsys.readouterr()
    assert captured.err == (
        "error: knn: sklearn must be installed: pip install -e '.[datasets]' "
        "(the extra datasets has it)\n"
    )
    assert not captured.out
