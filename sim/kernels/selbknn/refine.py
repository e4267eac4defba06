"""Re-ranking of the candidates of a search by their distances in FP32.

Each operation is rounded to FP32, and sums go from the first feature to the last one. No library
for matrix products takes part, so the results are the same on every machine.
"""

import numpy as np


def refined(
    query: np.ndarray, train: np.ndarray, candidates: np.ndarray, k: int, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest of the candidates of each query.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16
    candidates : (m, c) ndarray of int64
        Numbers of training points, at least ``k`` for each query.
    metric : str
        As ``exact_distances`` takes it.

    Returns
    -------
    index : (m, k) ndarray of int64
        In ascending order of the distance, and of the number if two are equal.
    distances : (m, k) ndarray of float32
    """
    found = exact_distances(query, train, candidates, metric)
    order = np.lexsort((candidates, found))[:, :k]
    return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(found, order, axis=1)


def exact_distances(
    query: np.ndarray, train: np.ndarray, candidates: np.ndarray, metric: str
) -> np.ndarray:
    """Return the distances of some pairs of points in FP32.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16
    candidates : (m, c) ndarray of int64
    metric : {"l2", "cosine", "cosine-product"}
        The sum of (x − y)², or half of that sum of the points divided by their lengths, which is
        1 − x·y without its cancellation.

    Returns
    -------
    (m, c) ndarray of float32
    """
    x, y = query.astype(np.float32), train.astype(np.float32)
    if metric != "l2":
        x, y = (p / np.sqrt(_sum_of_squares(p))[:, None] for p in (x, y))
    total = np.zeros(candidates.shape, np.float32)
    for column, other in zip(x.T, np.ascontiguousarray(y.T), strict=True):
        difference = column[:, None] - other[candidates]
        total += difference * difference
    return total if metric == "l2" else total / np.float32(2)


def _sum_of_squares(points: np.ndarray) -> np.ndarray:
    total = np.zeros(len(points), np.float32)
    for column in points.T:
        total += column * column
    return total
