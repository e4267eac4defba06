"""``ops.knn``: neighbours on measured and random data, ties, and refused arguments."""

import numpy as np
import pytest

from vitruvian import ops
from vitruvian.common.errors import UserError
from vitruvian.sim.kernels.selbknn.golden import distances, smallest
from vitruvian.sim.kernels.selbknn.operands import as_distances, prepared
from vitruvian.sim.ops import neighbours


def check(train, query, k, metric, method="selb"):
    """Compare with a sort of the same FP16 distances, and return the neighbours."""
    index, found = ops.knn(train, query, k, metric=metric, method=method)
    products = distances(*prepared(query, train, metric))
    expected_index, expected = smallest(products, k)
    assert (found == as_distances(expected, metric)).all()
    taken = np.take_along_axis(products, index, axis=1)
    assert (taken == expected).all()
    # Points nearer than the k-th neighbour are all found.
    for row, own, near in zip(index, expected_index, expected, strict=True):
        assert set(own[near < near[-1]]) <= set(row) and len(set(row)) == k
    return index


@pytest.mark.parametrize("metric", ["l2", "cosine", "cosine-product"])
def test_neighbours_of_digits(metric):
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's data")
    pixels, labels = datasets.load_digits(return_X_y=True)
    half = pixels.astype(np.float16)
    index = check(half[:600], half[1200:1216], 5, metric)
    votes = [np.bincount(labels[row]).argmax() for row in index]
    assert np.mean(votes == labels[1200:1216]) > 0.8


@pytest.mark.parametrize("method", ["selb", "selb-soft", "bitonic"])
def test_neighbours_of_wines(method):
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's data")
    data, _ = datasets.load_wine(return_X_y=True)
    half = ((data - data.mean(axis=0)) / data.std(axis=0)).astype(np.float16)
    check(half[:160], half[160:], 3, "l2", method)


def test_a_report_comes_with_the_results():
    points = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float16)
    index, found, report = ops.knn(points, points[:3], 1, report=True)
    assert index.tolist() == [[0], [1], [2]]
    # The norms have 22 bits, so the distance of a point from itself is not exactly 0.
    norms = np.square(points[:3].astype(np.float32)).sum(axis=1)
    assert (np.abs(found[:, 0]) <= 2 * norms * 2.0**-20).all()
    assert not report.findings and report.total_s > 0


def test_a_large_search_has_the_same_results(monkeypatch):
    rng = np.random.default_rng(1)
    train, query = (rng.normal(size=(n, 6)).astype(np.float16) for n in (300, 5))
    small = ops.knn(train, query, 4)
    monkeypatch.setattr(neighbours, "_is_large", lambda shape, chip: True)
    monkeypatch.setattr(neighbours, "build", None)
    large = ops.knn(train, query, 4)
    assert all((a == b).all() for a, b in zip(small, large, strict=True))


def _near_one_direction(count, seed, dtype=np.float16):
    """Return points whose directions differ by some degrees, as those of raw measurements do."""
    rng = np.random.default_rng(seed)
    points = np.array([1.0, 40.0, 3.0, 9.0, 2.0]) * (1 + 0.1 * rng.normal(size=(count, 5)))
    return (points * rng.uniform(0.5, 2, (count, 1))).astype(dtype)


def _true(train, query, k, metric):
    x, y = query.astype(float), train.astype(float)
    if metric != "l2":
        x, y = (p / np.linalg.norm(p, axis=1, keepdims=True) for p in (x, y))
    distances = ((x[:, None] - y) ** 2).sum(axis=-1) / (1 if metric == "l2" else 2)
    return np.argsort(distances, axis=1)[:, :k], np.sort(distances, axis=1)[:, :k]


def test_cosine_finds_neighbours_of_similar_directions():
    train, query = _near_one_direction(200, 0), _near_one_direction(12, 1)
    expected, exact = _true(train, query, 5, "cosine")
    index, found = ops.knn(train, query, 5, metric="cosine")
    shares = [len(set(a) & set(b)) / 5 for a, b in zip(index, expected, strict=True)]
    assert np.mean(shares) > 0.85
    # Each element of a point is rounded to FP16.
    assert np.abs(found - exact).max() < 2.0**-10
    # FP16 has steps of 2⁻¹¹ below 1, which is why the product alone does not do.
    index, _ = ops.knn(train, query, 5, metric="cosine-product")
    shares = [len(set(a) & set(b)) / 5 for a, b in zip(index, expected, strict=True)]
    assert np.mean(shares) < 0.5


@pytest.mark.parametrize(("metric", "more"), [("l2", 16), ("cosine", 16), ("cosine-product", 115)])
def test_refine_returns_the_true_neighbours(metric, more):
    train, query = _near_one_direction(120, 0), _near_one_direction(12, 1)
    expected, exact = _true(train, query, 5, metric)
    index, found = ops.knn(train, query, 5, metric=metric, method="bitonic", refine=more)
    assert (index == expected).all() and found.dtype == np.float32
    assert np.allclose(found, exact, rtol=1e-5, atol=1e-7)
    # As many candidates as training points are all of them.
    every, _ = ops.knn(train[:9], query, 5, metric=metric, refine=10**6)
    assert (every == _true(train[:9], query, 5, metric)[0]).all()


def test_refined_distances_are_sums_in_the_order_of_the_features():
    rng = np.random.default_rng(5)
    query, train = (rng.normal(size=(n, 300)).astype(np.float16) for n in (3, 20))
    index, found = ops.knn(train, query, 2, refine=4)
    total = np.float32(0)
    for a, b in zip(query[1], train[index[1, 0]], strict=True):
        difference = np.float32(a) - np.float32(b)
        total += difference * difference
    assert found[1, 0] == total


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_cosine_neighbours_of_raw_measurements(name):
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's data")
    data, _ = getattr(datasets, f"load_{name}")(return_X_y=True)
    half = data[np.random.default_rng(0).permutation(len(data))[:178]].astype(np.float16)
    train, query = half[:150], half[150:]
    for refine, least in ((None, 0.97), (8, 1.0)):
        index, _ = ops.knn(train, query, 5, metric="cosine", refine=refine)
        expected, _ = _true(train, query, 5, "cosine")
        shares = [len(set(a) & set(b)) / 5 for a, b in zip(index, expected, strict=True)]
        assert np.mean(shares) >= least


GOOD = np.ones((5, 3), np.float16)


@pytest.mark.parametrize(
    ("train", "query", "k", "more", "text"),
    [
        (GOOD, GOOD, 6, {}, "k must be at most the 5 training points, not 6"),
        (GOOD, GOOD, 0, {}, "k must be .*1.*, not 0"),
        (GOOD, GOOD[:, :2], 1, {}, "query must have the 3 features of train, not 2"),
        (GOOD, GOOD[0], 1, {}, r"query must be \(points, features\), each 1 or more, not \(3,\)"),
        (GOOD[:0], GOOD, 1, {}, r"train must be \(points, features\), each 1 or more"),
        (GOOD * np.float16("nan"), GOOD, 1, {}, "train must have finite elements, not those of"),
        (GOOD, GOOD * np.float16("inf"), 1, {}, "query must have finite elements, not those of"),
        (
            GOOD,
            GOOD,
            1,
            {"metric": "l1"},
            "metric must be one of l2, cosine, cosine-product, not 'l1'",
        ),
        (GOOD, GOOD, 1, {"refine": -1}, "refine must be at least 0, not -1"),
        (GOOD, GOOD, 1, {"method": "sort"}, "method must be one of selb, .*, not 'sort'"),
    ],
)
def test_a_wrong_argument_is_one_line(train, query, k, more, text):
    with pytest.raises(ValueError, match=text) as error:
        ops.knn(train, query, k, **more)
    assert "\n" not in str(error.value)


def test_a_report_of_a_large_search_is_refused():
    train = np.random.default_rng(0).normal(size=(60000, 2)).astype(np.float16)
    with pytest.raises(ValueError, match=r"instructions of heap .* must be at most"):
        ops.knn(train, train[:320], 8, method="heap")
    with pytest.raises(TypeError, match="train must be a NumPy array of float16"):
        ops.knn(train.astype(np.float32), train[:1], 1)
    with pytest.raises(UserError, match="squared distances must be at most"):
        ops.knn(train * np.float16(200), train[:1], 1)
