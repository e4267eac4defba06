"""The command ``knn``: files in, neighbours out, and wrong options in one line."""

import numpy as np
import pytest

from vitruvian.cli import main


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"train": rng.normal(size=(60, 6)), "query": rng.normal(size=(3, 6))}
    for name, points in arrays.items():
        np.save(tmp_path / f"{name}.npy", points)
    return tmp_path, arrays


def given(folder):
    return ["--train", str(folder / "train.npy"), "--query", str(folder / "query.npy")]


def run(*arguments):
    try:
        return main(["knn", *arguments])
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("method", ["selb", "bitonic"])
def test_neighbours_of_files(files, capsys, method):
    folder, arrays = files
    out = folder / "near.npz"
    assert run(*given(folder), "--k", "4", "--method", method, "--out", str(out)) == 0
    text = capsys.readouterr()
    assert "24 elements compared with golden: 0 differ" in text.out and "query 2: " in text.out
    assert "note: 360 of 360 elements" in text.err
    with np.load(out) as made:
        indices, distances = made["indices"], made["distances"]
    exact = ((arrays["query"][:, None] - arrays["train"]) ** 2).sum(axis=-1)
    # These points have no two distances that are equal in FP16.
    assert (indices == np.argsort(exact, axis=1)[:, :4]).all()
    assert np.allclose(distances, np.sort(exact, axis=1)[:, :4], rtol=1e-2)


def test_refine_writes_distances_in_fp32(files, capsys):
    folder, arrays = files
    out = folder / "near.npz"
    more = ("--k", "4", "--metric", "cosine", "--refine", "6", "--out", str(out))
    assert run(*given(folder), *more) == 0
    text = capsys.readouterr().out
    # Golden has all candidates.
    assert "60 elements compared with golden: 0 differ" in text and "3 queries × 4 neig" in text
    x, y = (p.astype(np.float16).astype(float) for p in (arrays["query"], arrays["train"]))
    exact = 1 - x @ y.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(y, axis=1)
    with np.load(out) as made:
        assert (made["indices"] == np.argsort(exact, axis=1)[:, :4]).all()
        assert np.allclose(made["distances"], np.sort(exact, axis=1)[:, :4], atol=1e-6)


def test_random_points_without_data(capsys):
    assert run("--size", "4x200x8x3", "--cube", "none", "--cores", "1") == 0
    assert "selbknn 4×200×8×3 on ascend310" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--k", "61"], "--k must be at most the 60 training points, not 61"),
        (["--size", "2x3x4"], "--size must come without --train"),
        (["--method", "best"], "--method must be one of selb, "),
        (["--metric", "l1"], "--metric must be one of l2, cosine, cosine-product, not 'l1'"),
        (["--out", "x.npy"], "--out: must be a file whose name ends in .npz, not 'x.npy'"),
        (["--cube", "fast"], "--cube must be one of golden, rtl, none, not 'fast'"),
        (["--query", "no.npy"], "knn: no.npy: No such file or directory"),
        (["--query", "no.csv"], "--query must be a file .npy, not 'no.csv'"),
        (["--graph", "x.mtx"], "unrecognized arguments: --graph x.mtx"),
        (["--chip", "ascend910b", "--cores", "25"], "cores must be 1 … 24, not 25"),
    ],
)
def test_a_wrong_option_is_one_line(files, capsys, arguments, text):
    assert run(*given(files[0]), *arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: ") and text in line


def test_wrong_points_are_one_line(files, capsys):
    folder, arrays = files
    bad = arrays["query"].copy()
    bad[1, 2] = np.nan
    for points, text in (
        (bad, "--query must have finite elements, not those of point 1"),
        (arrays["query"][:, :5], "--query must have the 6 features of train, not 5"),
        (arrays["query"] * 1e6, "--query must have elements up to 65,504, the largest FP16 number"),
        (np.array(["a"]), "--query must be an array of real numbers, not of <U1"),
    ):
        np.save(folder / "query.npy", points)
        assert run(*given(folder)) == 2
        assert text in capsys.readouterr().err.splitlines()[-1]
    assert run("--train", str(folder / "train.npy")) == 2
    assert "--train and --query must come together" in capsys.readouterr().err
