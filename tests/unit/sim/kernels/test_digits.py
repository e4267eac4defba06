"""The network for handwritten digits: golden against FP64, the core against golden, resumption."""

import json
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import simulate
from vitruvian.sim.davinci.machine_code.core import core_product
from vitruvian.sim.kernels.digits import run
from vitruvian.sim.kernels.digits.network import (
    DIGITS,
    SAMPLE,
    TRAINED,
    digits,
    golden,
    labelled,
    plain_classes,
    weights,
)
from vitruvian.sim.kernels.digits.program import build, layers
from vitruvian.sim.kernels.digits.verify import checks
from vitruvian.sim.rtl.core import core_config

W = weights()
IMAGES, LABELS = digits(SAMPLE)


def spec(core):
    return core_config(core).tile.spec("fp16")


def test_golden_is_the_network_up_to_its_roundings():
    """A filter's result is rounded to FP16 twice: as a sum and behind the bias."""
    found = golden(IMAGES, W, spec("plain"))
    padded = np.pad(IMAGES.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    sums = np.zeros((SAMPLE, 8, 8, 16))
    for i, j in np.ndindex(3, 3):
        sums += padded[:, i : i + 8, j : j + 8, None] * W.conv[:, i, j].astype(np.float64)
    exact = np.maximum(sums + W.conv_bias.astype(np.float64), 0)
    # Each rounding is by half an ulp of its result at most, FP32 adds far less.
    bound = 2.0**-11 * 1.01 * (np.abs(sums) + np.abs(exact)) + 2.0**-24
    assert (np.abs(found.conv.reshape(exact.shape) - exact) <= bound).all()
    whole = found.conv.reshape(SAMPLE, 4, 2, 4, 2, 16)
    assert (found.pooled.reshape(SAMPLE, 4, 4, 16) == whole.max((2, 4))).all()
    scores = found.pooled.reshape(SAMPLE, 256).astype(np.float64) @ W.full.astype(np.float64)
    assert np.abs(found.scores - scores - W.full_bias).max() < 2.0**-16
    assert (found.classes == plain_classes(IMAGES, W)).all()


def test_the_images_of_the_package_are_those_of_scikit_learn():
    pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    images, labels = labelled()
    assert len(images) == DIGITS
    held = slice(TRAINED, TRAINED + SAMPLE)
    assert (images[held] == IMAGES).all() and (labels[held] == LABELS).all()
    more, names = digits(DIGITS)
    assert (more[:SAMPLE] == IMAGES).all() and (names[-1] == labels[TRAINED - 1]).all()


def test_most_held_out_digits_are_recognised():
    """Golden in FP16 and NumPy in FP32 agree on all classes; 574 of 599 are the labels."""
    pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    images, labels = labelled()
    found = golden(images, W, spec("plain")).classes
    assert (found == plain_classes(images, W)).all()
    assert (found == labels)[TRAINED:].sum() == 574


@pytest.mark.parametrize("count", [1, 16, 17])
def test_the_simulator_has_goldens_bytes_and_no_findings(count):
    report = simulate(build(IMAGES[:count], W), cube=core_product("plain"))
    found, expected = layers(report.outputs), golden(IMAGES[:count], W, spec("plain"))
    assert not report.findings
    for name, array in vars(expected).items():
        assert getattr(found, name).tobytes() == np.ascontiguousarray(array).tobytes(), name


@pytest.mark.parametrize("core", ["tiny", "plain"])
def test_the_core_has_goldens_bytes(core):
    done = run.run_batch(IMAGES, LABELS, core)
    assert done.images == done.same == done.correct == SAMPLE
    assert done.compared == SAMPLE * (2048 + 512 + 40 + 4) and not done.differ
    assert done.simulated > done.compared and not done.differ_simulated
    # The Cube works in 89.4 % of the cycles of `tiny`, whose queues have 16 words.
    assert done.busy["M"] > 0.89 * done.cycles


def test_a_wrong_layer_is_noticed(monkeypatch):
    """Golden with another weight, bias or class has other bytes than the core."""
    conv, scores = W.conv.copy(), W.full_bias.copy()
    conv[3, 1, 1] += np.float16(2.0**-8)
    scores[7] += np.float32(100)
    for wrong in (replace(W, conv=conv), replace(W, full_bias=scores)):
        monkeypatch.setattr(run, "golden", lambda x, _, s, wrong=wrong: golden(x, wrong, s))
        done = run.run_batch(IMAGES[:2], LABELS[:2], "tiny", W)
        assert done.differ and not done.differ_simulated
    assert done.same == 0


def test_a_row_of_verify_compares_every_layer(monkeypatch):
    (check,) = checks()
    result = check.run(1, 1)
    assert result.vectors > 100_000 and not result.mismatches
    monkeypatch.setattr(run, "golden", lambda x, w, s: golden(-x, w, s))
    result = check.run(1, 1)
    assert result.mismatches and "differ from golden" in result.examples[0]


def test_finished_batches_are_not_run_again(tmp_path, monkeypatch):
    path, seen = tmp_path / "digits.json", []
    batch = run.run_batch

    def counted(images, *rest):
        seen.append(len(images))
        return batch(images, *rest)

    monkeypatch.setattr(run, "run_batch", counted)
    first = list(run.run_all(3, "tiny", batch=2, resume=str(path)))
    assert seen == [2, 1] and sum(done.images for done in first) == 3
    document = json.loads(path.read_text())
    del document["batches"]["2-3"]
    path.write_text(json.dumps(document))
    assert list(run.run_all(3, "tiny", batch=2, resume=str(path))) == first and seen == [2, 1, 1]
    # Results of another model of the core do not count.
    monkeypatch.setattr(run, "model_key", lambda core: "changed RTL")
    list(run.run_all(3, "tiny", batch=2, resume=str(path)))
    assert seen == [2, 1, 1, 2, 1]
    path.write_text('{"digits": 1, "batches": {"0-2": {"images": 2}}}')
    with pytest.raises(UserError, match=r"must be absent or written by vitruvian digits"):
        list(run.run_all(3, "tiny", batch=2, resume=str(path)))


def test_the_command_prints_classes_and_cycles(capsys, tmp_path):
    assert main(["digits", "--images", "3", "--json", str(tmp_path / "d.json")]) == 0
    text = capsys.readouterr().out
    assert text.startswith("3 images on the core tiny: 3 classes are golden's, 3 are the labels")
    assert text.count(": 0 differ") == 2
    assert json.loads((tmp_path / "d.json").read_text())["differ"] == 0
    with pytest.raises(ValueError, match=r"images must be 1 … 1797, not 1798"):
        digits(DIGITS + 1)


@pytest.mark.long
@pytest.mark.parametrize("core", ["tiny", "plain"])
def test_all_digits_have_goldens_classes(core):
    pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    total = None
    for done in run.run_all(DIGITS, core):
        total = done if total is None else total + done
    assert total is not None and total.images == total.same == DIGITS
    assert not total.differ and not total.differ_simulated
