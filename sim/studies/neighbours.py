"""Nearest neighbours and k-means on measured data, with distances from a matrix product."""

import numpy as np

from vitruvian.common.extras import need
from vitruvian.sim.simd2.nearest import nearest
from vitruvian.sim.studies.gemm import REAL
from vitruvian.sim.studies.methods import NumPy
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel

#: Neighbours of each query, clusters, and rounds of k-means in the case studies.
NEIGHBOURS, CLUSTERS, ROUNDS = 5, 8, 10

#: The data are also multiplied by 2^-SHRINK, to show the effect of a narrow exponent.
SHRINK = 24


def cancer(seed: int) -> np.ndarray:
    """Return the 569 breast tumours of scikit-learn in a random order, in their original units.

    The thirty features have very different magnitudes: the fractal dimension is about 0.06, the
    area up to 4254.

    Returns
    -------
    (569, 30) ndarray of float32

    References
    ----------
    Wolberg, Street, Mangasarian 1995, UCI repository.
    """
    load_breast_cancer = need("sklearn.datasets").load_breast_cancer

    data = np.asarray(load_breast_cancer(return_X_y=True)[0])
    return np.random.default_rng(seed).permutation(data).astype(np.float32)


def squared_distances(x, y, gemm, *, norms_of=None) -> np.ndarray:
    """Return ‖x‖² − 2·x·y + ‖y‖² for every pair; only x·y is a matrix product.

    Parameters
    ----------
    x : (P, F) ndarray
        P points with F features.
    y : (Q, F) ndarray
    gemm : callable
        Function ``gemm(a, b)``.
    norms_of : callable, optional
        Function that is applied to x and y before their norms are computed, such as
        ``Method.seen``; by default the norms are those of x and y.

    Returns
    -------
    (P, Q) ndarray
        The distances. They have the dtype of x, in which everything but the product is computed.
    """
    x_norm, y_norm = (x, y) if norms_of is None else (norms_of(x), norms_of(y))
    product = gemm(x, np.ascontiguousarray(y.T))
    x_square = np.square(x_norm).sum(axis=1)[:, None]
    y_square = np.square(y_norm).sum(axis=1)[None, :]
    return x_square - 2 * product + y_square


def wrong_share(neighbours, distances) -> float:
    """Return the share of neighbours that are farther away than the last correct neighbour.

    Parameters
    ----------
    neighbours : (P, count) ndarray of int
        Indices from ``nearest``.
    distances : (P, Q) ndarray
        Exact distances. If points are equally far away, any of them counts as correct.
    """
    # Comparing distances instead of indices makes ties count as correct.
    last = np.sort(distances, axis=1)[:, neighbours.shape[1] - 1]
    return float((np.take_along_axis(distances, neighbours, axis=1) > last[:, None]).mean())


def _true_distances(x, y) -> np.ndarray:
    """Return the distances in float64, computed from differences, so that no norms cancel."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    # Row by row, as all differences at once would take much memory.
    return np.stack([np.square(row - y).sum(axis=1) for row in x])


def _knn(size: int, options: RunOptions) -> Study:
    data = cancer(options.seed)
    queries, points = data[:size], data[size:]
    reference = _true_distances(queries, points)
    small = np.float32(2.0**-SHRINK)

    def wrong(distances):
        return 100 * wrong_share(nearest(distances, NEIGHBOURS), reference)

    def extras(distances, gemm):
        # Norms of what the product saw cancel better against 2·x·y than norms of the data.
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
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            compute,
            reference,
            extras=extras,
            baselines={"NumPy float32": lambda: compute(NumPy())},
        ),
        notes=(
            "the errors are those of the squared distances; norms are computed in FP32",
            "wrong: neighbours that are not among the nearest; the method computes only x·y",
            "rounded: the same, with norms of the data as the method rounds them",
            f"small: wrong neighbours if the data are multiplied by 2^-{SHRINK} (exact in FP32)",
        ),
    )


def kmeans(x, centres, gemm, *, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster points by Lloyd's algorithm: assign every point, then average every cluster.

    The centre of a cluster without points does not move.

    Parameters
    ----------
    x : (P, F) ndarray
    centres : (C, F) ndarray
        Initial centres.
    gemm : callable
        Function that computes the products for the distances. Averages are computed in float64 and
        rounded.
    rounds : int
        Number of times that the centres are moved.

    Returns
    -------
    labels : (P,) ndarray of int
        Index of the nearest returned centre, in the arithmetic of ``gemm``.
    centres : (C, F) ndarray
    """
    centres = np.array(centres)
    labels = _labels(x, centres, gemm)
    for _ in range(rounds):
        for cluster in range(len(centres)):
            # A mean of no points would be NaN, and the cluster would be lost.
            if (labels == cluster).any():
                centres[cluster] = x[labels == cluster].mean(axis=0, dtype=np.float64)
        labels = _labels(x, centres, gemm)
    return labels, centres


def _labels(x, centres, gemm) -> np.ndarray:
    """Return the index of the nearest centre of each point, in the arithmetic of ``gemm``."""
    return squared_distances(x, centres, gemm).argmin(axis=1)


def _kmeans(size: int, options: RunOptions) -> Study:
    x = cancer(options.seed)[:size]
    initial = x[:CLUSTERS]
    labels, reference = kmeans(
        x.astype(np.float64), initial.astype(np.float64), NumPy(), rounds=ROUNDS
    )
    smallest = _inertia(x, labels, reference)

    def compute(gemm):
        return kmeans(x, initial, gemm, rounds=ROUNDS)[1]

    def extras(centres, gemm):
        computed = _labels(x, centres, gemm)
        return {
            "other %": 100 * float((computed != labels).mean()),
            "inertia +%": round(100 * (_inertia(x, computed, centres) / smallest - 1), 4) + 0.0,
        }

    return Study(
        kernel="kmeans",
        title=f"k-means, {CLUSTERS} clusters, {ROUNDS} rounds",
        setting=f"{size} breast tumours with 30 features as measured; the first {CLUSTERS} are the "
        "initial centres",
        reference="the same algorithm in float64",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            compute,
            reference,
            extras=extras,
            baselines={"NumPy float32": lambda: compute(NumPy())},
        ),
        notes=(
            "the errors are those of the centres; other: records whose cluster differs from the "
            "reference's",
            "inertia: mean squared distance to the centres; below 0, the optimum is better",
        ),
    )


def _inertia(x, labels, centres) -> float:
    """Return the mean squared distance of the points to their centres, in float64."""
    difference = x.astype(np.float64) - np.asarray(centres, np.float64)[labels]
    return float(np.square(difference).sum(axis=1).mean())


_METHODS = ("FP16", "FP16 scaled", "BF16", "TF32", "3xBF16", "3xTF32", "FP32")

KNN = StudyKernel(
    name="knn",
    title="nearest neighbours on measured data",
    run=_knn,
    size="queries, of 569 records",
    default=142,
    low=1,
    high=500,
    methods=_METHODS,
    supported=REAL,
    needs="sklearn",
)

KMEANS = StudyKernel(
    name="kmeans",
    title="k-means on measured data",
    run=_kmeans,
    size="records, of 569",
    default=569,
    low=2 * CLUSTERS,
    high=569,
    methods=_METHODS,
    supported=REAL,
    needs="sklearn",
)
