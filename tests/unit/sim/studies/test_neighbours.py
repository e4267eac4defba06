"""Neighbours and clusters on measured data: FP16 makes mistakes that FP32 does not make."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from vitruvian.sim.studies import KMEANS, KNN, METHODS, BoundMethod, Engine, NumPy, RunOptions
from vitruvian.sim.studies.neighbours import cancer, kmeans, nearest, squared_distances, wrong_share

pytest.importorskip("sklearn")


@pytest.fixture(scope="module", params=[1, 2, 3])
def knn(request):
    return {row.method: row for row in KNN(100, seed=request.param).rows}


def test_fp16_finds_wrong_neighbours_and_fp32_does_not(knn):
    for name in ("FP32", "3xTF32"):
        assert set(knn[name].extras.values()) == {0.0}
    fp16 = knn["FP16"].extras
    # NumPy's product rounds in the order of the processor's BLAS, so that a neighbour or two of the
    # 500 may differ from one machine to the next.
    assert max(knn["NumPy float32"].extras.values()) < fp16["wrong %"] / 10
    assert 5 < fp16["wrong %"] < 20
    # With norms of the same rounded data, most errors cancel; small data underflow.
    assert 0 < fp16["rounded %"] < 2 and fp16["small %"] > 1.5 * fp16["wrong %"]
    assert knn["FP16 scaled"].extras["small %"] == knn["FP16 scaled"].extras["wrong %"]
    assert knn["BF16"].extras["wrong %"] > 2 * fp16["wrong %"]


def test_the_data_are_the_measured_ones():
    from sklearn.datasets import load_breast_cancer

    data = np.asarray(load_breast_cancer(return_X_y=True)[0])
    ours = cancer(1)
    assert ours.shape == (569, 30) and ours.dtype == np.float32 and ours.max() == 4254
    assert np.array_equal(np.sort(ours, axis=0), np.sort(data.astype(np.float32), axis=0))


def test_distances():
    random = np.random.default_rng(1)
    x, y = random.standard_normal((7, 5)), random.standard_normal((9, 5))
    expected = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    assert np.allclose(squared_distances(x, y, NumPy()), expected, rtol=1e-12)
    single = squared_distances(
        x.astype(np.float32), y.astype(np.float32), BoundMethod(METHODS["FP32"], Engine())
    )
    assert single.dtype == np.float32 and np.abs(single - expected).max() < 1e-5
    twice = squared_distances(x, y, NumPy(), norms_of=lambda values: 2 * values)
    norms = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1)
    assert np.allclose(twice, expected + 3 * norms)


def test_wrong_share_counts_by_distance():
    distances = np.array([[0.0, 1.0, 1.0, 2.0], [3.0, 2.0, 1.0, 0.0]])
    assert wrong_share(nearest(distances, 2), distances) == 0
    assert wrong_share(np.array([[0, 2], [3, 2]]), distances) == 0, "two are equally far away"
    assert wrong_share(np.array([[0, 3], [3, 2]]), distances) == 0.25
    assert wrong_share(np.array([[3, 0], [0, 1]]), distances) == 0.75
    assert nearest(np.array([[np.nan, 1.0, 0.0]]), 3).tolist() == [[2, 1, 0]]
    for count in (0, 5):
        with pytest.raises(ValueError, match=f"count must be from 1 to 4, not {count}"):
            nearest(distances, count)


def test_kmeans_against_scikit_learn():
    from sklearn.cluster import KMeans

    x = cancer(1).astype(float)
    labels, centres = kmeans(x, x[:8], NumPy(), rounds=60)
    settings: dict[str, Any] = {"init": x[:8], "n_init": 1, "tol": 0, "algorithm": "lloyd"}
    other = KMeans(8, **settings).fit(x)
    assert other.n_iter_ <= 60 and other.labels_ is not None
    assert np.array_equal(labels, other.labels_)
    assert np.allclose(centres, other.cluster_centers_)


def test_an_empty_cluster_stays():
    x = np.array([[0.0], [1.0], [10.0]])
    labels, centres = kmeans(x, np.array([[0.0], [10.0], [99.0]]), NumPy(), rounds=3)
    assert labels.tolist() == [0, 0, 1] and centres.tolist() == [[0.5], [10.0], [99.0]]


def test_clusters_of_the_table():
    rows = {row.method: row for row in KMEANS().rows}
    for name in ("FP32", "3xTF32", "NumPy float32"):
        assert rows[name].extras["other %"] == 0 and rows[name].max_error < 2e-6
    assert rows["FP16"].extras["other %"] > 0 and rows["FP16"].max_error > 1e-4
    cost = rows["FP32"].cost
    # 11 assignments of 569×8×30: ⌈569/16⌉·1·⌈30/8⌉ instructions, ⌈569/8⌉·2·⌈30/4⌉ tiles, two steps.
    assert cost and cost.instructions == 11 * 36 * 4 and cost.model_cycles == 11 * 72 * 2 * 8 * 2


class _Copying(RunOptions):
    """Options of a run whose rows see a copy of each result."""

    def rows(self, compute, reference, *, baselines, **more):
        copies = {name: lambda run=run: run().copy() for name, run in baselines.items()}
        return super().rows(lambda gemm: compute(gemm).copy(), reference, baselines=copies, **more)


def test_the_labels_of_kmeans_belong_to_the_values_of_the_centres():
    """Regression: the labels were found by the ``id`` of the array of centres."""
    kernel = KMEANS
    plain = kernel.options(methods=("FP16",))
    fields = {field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
    rows = kernel.run(64, plain).rows
    assert len(rows) == 2 and rows[1].extras["other %"] >= 0
    copied = kernel.run(64, _Copying(**fields)).rows
    assert [row.extras for row in copied] == [row.extras for row in rows]
