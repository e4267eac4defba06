"""The training example: a few steps, whose losses differ by the arithmetic and by nothing else."""

import json

import numpy as np
import pytest

from examples import train_digits
from vitruvian.golden.machines import Arithmetic


def test_a_few_steps(tmp_path):
    figures, picture = tmp_path / "figures.json", tmp_path / "losses.svg"
    runs = ["fp32", "h100_e4m3", "b200_nvfp4"]
    choice = [word for name in runs for word in ("--only", name)]
    files = ["--json", str(figures), "--svg", str(picture)]
    assert train_digits.main([*choice, *files, "--steps", "20", "--threads", "1"]) == 0
    results = json.loads(figures.read_text())
    assert list(results) == runs and picture.read_text().count("<svg") == 1
    losses = {name: results[name]["losses"] for name in runs}
    for name in runs:
        assert len(losses[name]) == 20 and losses[name][-1] < 0.8 * losses[name][0]
    # The first losses are those of the same weights, so they differ by rounding alone.
    assert 0 < abs(losses["h100_e4m3"][0] - losses["fp32"][0]) < 0.05
    assert 0 < abs(losses["b200_nvfp4"][0] - losses["fp32"][0]) < 0.5


def test_a_run_repeats_and_follows_its_arithmetic(monkeypatch):
    first, again = (train_digits.train("v100_fp16", 3, threads=1)["losses"] for _ in range(2))
    assert first == again
    monkeypatch.setitem(train_digits.RUNS, "v100_fp16", Arithmetic("a100", "fp16"))
    assert train_digits.train("v100_fp16", 3, threads=1)["losses"] != first


def test_gradients_are_those_of_finite_differences():
    network = train_digits.Network(None, seed=3)
    pixels, labels = (v[:8] for v in train_digits.digits())
    old = [w.copy() for w in network.weights]
    loss = network.step(pixels, labels)
    steps = [(now - w) / -train_digits.RATE for now, w in zip(network.weights, old, strict=True)]
    for layer, step in enumerate(steps):
        place = np.unravel_index(np.abs(step).argmax(), step.shape)
        fresh = train_digits.Network(None, seed=3)
        fresh.weights[layer][place] += 1e-2
        slope = (fresh.step(pixels, labels) - loss) / 1e-2
        assert slope == pytest.approx(step[place], rel=0.1)


def test_arguments_are_checked(capsys):
    for line in (["--steps", "0"], ["--only", "h1000"], ["--steps", "many"]):
        with pytest.raises(SystemExit) as caught:
            train_digits.main(line)
        assert caught.value.code == 2
    assert "invalid choice: 'h1000'" in capsys.readouterr().err
    missing = ["--only", "fp32", "--steps", "1", "--json", "/dev/null/x"]
    assert train_digits.main(missing) == 2
    assert capsys.readouterr().err.startswith("error: ")
