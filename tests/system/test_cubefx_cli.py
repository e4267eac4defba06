"""The command ``taylor``."""

import json

import numpy as np
import pytest

from vitruvian.cli import main


def test_inputs_of_a_file_give_results_in_a_file(tmp_path, capsys):
    x = np.random.default_rng(1).uniform(-1, 1, (5, 20)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out, json_ = tmp_path / "y.npy", tmp_path / "run.json"
    arguments = ["--functions", "sin, exp,1:0:-0.5", "--input", str(tmp_path / "x.npy")]
    arguments += ["--out", str(out), "--json", str(json_), "--gantt", str(tmp_path / "run.svg")]
    assert main(["taylor", *arguments]) == 0
    printed = capsys.readouterr()
    assert "300 elements compared with golden: 0 differ" in printed.out
    assert "3×5×20 of float16" in printed.out and "were rounded to FP16" in printed.err
    y, half = np.load(out), x.astype(np.float16).astype(np.float64)
    for found, exact in zip(y, (np.sin(half), np.exp(half), 1 - half**2 / 2), strict=True):
        assert np.abs(found - exact).max() < 0.004
    assert json.loads(json_.read_text())["differ"] == 0
    assert (tmp_path / "run.svg").read_text().startswith("<?xml")


def test_random_inputs_and_other_methods(capsys):
    for method in ("cube", "estrin"):
        options = ["--size", "300", "--method", method, "--chip", "ascend910b", "--order", "8"]
        assert main(["taylor", *options, "--seed", "3"]) == 0
        text = capsys.readouterr().out
        assert "900 elements compared with golden: 0 differ" in text and "critical path" in text


def test_a_series_that_diverges_is_warned_of(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([0.5, 2, -3], np.float16))
    options = ["--functions", "tan", "--input", str(tmp_path / "x.npy")]
    assert main(["taylor", *options]) == 0
    text = capsys.readouterr().err
    assert "warning: the series of tan diverges at 2 inputs" in text and "1.5708" in text


def test_a_wrong_sum_is_warned_of(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([0.5, 8], np.float16))
    options = ["--functions", "sin,cos", "--input", str(tmp_path / "x.npy"), "--method", "horner"]
    assert main(["taylor", *options]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert sum("warning: " in line for line in lines) == 2
    assert any(
        "warning: sin is wrong by up to 1.5e+02 of max(1, |sin|) at 1 of 2" in s for s in lines
    )
    np.save(tmp_path / "x.npy", np.array([-100], np.float16))
    assert main(["taylor", *options[:4]]) == 2
    assert "--input must be at most 16.658 in magnitude for Cube-fx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--functions sin,foo", "--functions must be among sin, cos, tan, tanh, sigmoid, gelu"),
        ("--order 0", "argument --order: must be a whole number from 1 on, not '0'"),
        ("--order 999", "--order must be between 1 and 128, not 999"),
        ("--method foo", "--method must be one of cube, horner"),
        ("--input nan.npy", "--input must be finite numbers, not 1 NaN or infinite ones"),
        ("--input text.npy", "--input must be an array of real numbers, not of <U1"),
        ("--input bad.npy", "--input must be an array of numbers, not bad.npy: "),
        ("--input none.npy", "none.npy"),
        ("--input x.csv", "--input must be a file .npy, not 'x.csv'"),
        ("--input one.npy --size 5", "--size must come without --input"),
        ("--out y.csv", "argument --out: must be a file whose name ends in .npy, not 'y.csv'"),
        ("--out y.npy --cube none", "--out must come without --cube none"),
        ("--cores 9", "--cores must be 1 … 2"),
        ("--tiling 1,2", "unrecognized arguments: --tiling 1,2"),
        ("--algorithm x", "unrecognized arguments: --algorithm x (`vitruvian taylor --help`"),
    ],
)
def test_mistakes_take_one_line(options, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("nan.npy", np.array([1, np.nan], np.float16))
    np.save("one.npy", np.array([1], np.float16))
    np.save("text.npy", np.array(["a"]))
    (tmp_path / "bad.npy").write_text("no array")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(SystemExit) as stopped:
        code = main(["taylor", *options.split()])
        raise SystemExit(code)
    captured = capsys.readouterr()
    assert stopped.value.code == 2 and not captured.out
    assert captured.err.count("\n") == 1 and text in captured.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
