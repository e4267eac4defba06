"""Nearest neighbours and k-means on measured data, distances out of a matrix product."""

import numpy as np

from vitruvian.sim.studies.gemm import REAL
from vitruvian.sim.studies.methods import NumPy
from vitruvian.sim.studies.study import Kernel, Setting, Study

__all__ = ["KMEANS", "KNN", "cancer", "kmeans", "nearest", "squared_distances", "wrong_share"]

NEIGHBOURS, CLUSTERS, ROUNDS = 5, 8, 10

#: Power of two that the data are multiplied by to show what a narrow exponent does.
SHRINK = 24


def cancer(seed: int) -> np.ndarray:
    """The 569 breast tumours of scikit-learn, in the units of their table and a random order.

    Thirty features of very different size, as measured: a fractal dimension of about 0.06 beside an
    area of up to 4254. Wolberg, Street, Mangasarian 1995, UCI repository.

    Returns
    -------
    (569, 30) ndarray of float32
    """
    from sklearn.datasets import load_breast_cancer

    data = np.asarray(load_breast_cancer(return_X_y=True)[0])
    return np.random.default_rng(seed).permutation(data).astype(np.float32)


def squared_distances(x, y, gemm, *, norms_of=None) -> np.ndarray:
    """‖x‖² − 2·x·y + ‖y‖² for every pair; only x·y is a matrix product.

    Parameters
    ----------
    x : (P, F) ndarray
    y : (Q, F) ndarray
    gemm : callable
    norms_of : callable, optional
        What of x and y is squared for the norms: their values by default.

    Returns
    -------
    (P, Q) ndarray
        Of the dtype of x: everything but the product is computed in it, element by element.
    """
    one, other = (x, y) if norms_of is None else (norms_of(x), norms_of(y))
    product = gemm(x, np.ascontiguousarray(y.T))
    square = np.square(one).sum(axis=1)[:, None], np.square(other).sum(axis=1)[None, :]
    return square[0] - 2 * product + square[1]


def nearest(distances, count: int) -> np.ndarray:
    """Indices of the ``count`` smallest in each row, smallest first; NaN comes last.

    Raises
    ------
    ValueError
        If there are not so many.
    """
    if not 1 <= count <= np.shape(distances)[1]:
        raise ValueError(f"count must be from 1 to {np.shape(distances)[1]}, not {count}")
    return np.argsort(distances, axis=1, kind="stable")[:, :count]


def wrong_share(found, distances) -> float:
    """Share of neighbours that are farther than the true last one.

    Parameters
    ----------
    found : (P, count) ndarray of int
    distances : (P, Q) ndarray
        True ones. Of points at the same distance any may be chosen.
    """
    last = np.sort(distances, axis=1)[:, found.shape[1] - 1]
    return float((np.take_along_axis(distances, found, axis=1) > last[:, None]).mean())


def _true_distances(x, y) -> np.ndarray:
    """In float64, from the differences: nothing cancels."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    return np.stack([np.square(row - y).sum(axis=1) for row in x])


def _knn(size: int, setting: Setting) -> Study:
    data = cancer(setting.seed)
    queries, points = data[:size], data[size:]
    reference = _true_distances(queries, points)
    small = np.float32(2.0**-SHRINK)

    def wrong(distances):
        return 100 * wrong_share(nearest(distances, NEIGHBOURS), reference)

    def extras(distances, gemm):
        rounded = squared_distances(queries, points, gemm, norms_of=gemm.seen)
        shrunk = squared_distances(queries * small, points * small, gemm)
        return {
            "wrong %": wrong(distances),
            "rounded %": wrong(rounded),
            "small %": wrong(shrunk),
        }

    def compute(gemm):
        return squared_distances(queries, points, gemm)

    return Study(
        kernel="knn",
        title=f"{NEIGHBOURS} nearest neighbours, distances ‖x‖² − 2·x·y + ‖y‖²",
        setting=f"{size} queries, {len(points)} points, 30 features of the breast tumours as "
        "measured",
        reference="distances and neighbours in float64, of the same float32 data",
        unit=str(setting.unit),
        backend=setting.backend,
        rows=setting.rows(
            compute,
            reference,
            extras=extras,
            yardsticks={"NumPy float32": lambda: compute(NumPy())},
        ),
        notes=(
            "the errors are of the squared distances; norms are in FP32",
            "wrong: neighbours that are not among the nearest; only x·y is formed by the method",
            "rounded: the same with norms of the data as the method sees them",
            f"small: wrong ones of the data in other units, times 2^-{SHRINK} (exact in FP32)",
        ),
    )


def kmeans(x, centres, gemm, *, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's algorithm: assign, then average; a cluster that lost all its points stays.

    Parameters
    ----------
    x : (P, F) ndarray
    centres : (C, F) ndarray
        To begin with.
    gemm : callable
        Computes the products of the distances; averages are formed in float64 and rounded.
    rounds : int
        How often centres are moved.

    Returns
    -------
    labels : (P,) ndarray of int
        Nearest of the returned centres, in the arithmetic of ``gemm``.
    centres : (C, F) ndarray
    """
    centres = np.array(centres)
    labels = squared_distances(x, centres, gemm).argmin(axis=1)
    for _ in range(rounds):
        for cluster in range(len(centres)):
            if (labels == cluster).any():
                centres[cluster] = x[labels == cluster].mean(axis=0, dtype=np.float64)
        labels = squared_distances(x, centres, gemm).argmin(axis=1)
    return labels, centres


def _kmeans(size: int, setting: Setting) -> Study:
    x = cancer(setting.seed)[:size]
    begin = x[:CLUSTERS]
    labels, reference = kmeans(
        x.astype(np.float64), begin.astype(np.float64), NumPy(), rounds=ROUNDS
    )
    least = _inertia(x, labels, reference)
    found: dict[int, np.ndarray] = {}

    def compute(gemm):
        which, centres = kmeans(x, begin, gemm, rounds=ROUNDS)
        found[id(centres)] = which
        return centres

    def extras(centres, _):
        which = found[id(centres)]
        return {
            "other %": 100 * float((which != labels).mean()),
            "inertia +%": round(100 * (_inertia(x, which, centres) / least - 1), 4) + 0.0,
        }

    return Study(
        kernel="kmeans",
        title=f"k-means, {CLUSTERS} clusters, {ROUNDS} rounds",
        setting=f"{size} breast tumours with 30 features as measured, begun at the first "
        f"{CLUSTERS}",
        reference="the same algorithm in float64",
        unit=str(setting.unit),
        backend=setting.backend,
        rows=setting.rows(
            compute,
            reference,
            extras=extras,
            yardsticks={"NumPy float32": lambda: compute(NumPy())},
        ),
        notes=(
            "the errors are of the centres; other: records in another cluster than the reference's",
            "inertia: mean squared distance to the centres; below 0, a better optimum was found",
        ),
    )


def _inertia(x, labels, centres) -> float:
    difference = x.astype(np.float64) - np.asarray(centres, np.float64)[labels]
    return float(np.square(difference).sum(axis=1).mean())


_METHODS = ("FP16", "FP16 scaled", "BF16", "TF32", "3xBF16", "3xTF32", "FP32")

KNN = Kernel(
    name="knn",
    title="nearest neighbours on measured data",
    run=_knn,
    size="queries, of 569 records",
    default=142,
    low=1,
    high=500,
    methods=_METHODS,
    able=REAL,
    needs="sklearn",
)

KMEANS = Kernel(
    name="kmeans",
    title="k-means on measured data",
    run=_kmeans,
    size="records, of 569",
    default=569,
    low=2 * CLUSTERS,
    high=569,
    methods=_METHODS,
    able=REAL,
    needs="sklearn",
)
