"""Shares of the true neighbours that a search on the simulated chip finds, on measured data.

python benchmarks/knn_recall.py    # the table of docs/units/selbknn.md; needs scikit-learn

The true neighbours are those of the distances in float64 of the same FP16 points. A neighbour that
is as near as the k-th true one counts as found.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn import datasets

from vitruvian import ops

#: Neighbours of each query, and points that are searched.
K, TRAIN = 5, {"wine": 150, "breast cancer": 500}

REFINE = (None, 0, 8, 32)


def exact(train: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """Return all distances in float64, (m, n)."""
    x, y = query.astype(float), train.astype(float)
    if metric != "l2":
        x, y = (p / np.linalg.norm(p, axis=1, keepdims=True) for p in (x, y))
    return ((x[:, None] - y) ** 2).sum(axis=-1)


def recall(train: np.ndarray, query: np.ndarray, metric: str, refine: int | None) -> float:
    """Return the share of the neighbours found that are true ones."""
    indices, _ = ops.knn(train, query, K, metric=metric, refine=refine)
    distances = exact(train, query, metric)
    limit = np.sort(distances, axis=1)[:, K - 1 : K]
    return float((np.take_along_axis(distances, indices, axis=1) <= limit).mean())


def points(load: Callable[..., Any], name: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return training points and queries in FP16, scaled by a power of two for l2."""
    data, _ = load(return_X_y=True)
    data = data[np.random.default_rng(0).permutation(len(data))]
    if metric == "l2":
        # Squared distances must fit FP16.
        longest = 2 * np.linalg.norm(data, axis=1).max()
        data = data * 2.0 ** -np.ceil(np.log2(longest / np.sqrt(65504)))
    half = data.astype(np.float16)
    return half[: TRAIN[name]], half[TRAIN[name] :]


def main() -> None:
    """Print a row for each data set and metric."""
    loads = {"wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}
    titles = ["no `refine`", *(f"`refine={n}`" for n in REFINE[1:])]
    print("| data (points, queries) | metric |", " | ".join(titles), "|")
    print("|---|---|" + "---:|" * len(REFINE))
    for (name, load), metric in product(loads.items(), ("l2", "cosine", "cosine-product")):
        train, query = points(load, name, metric)
        shares = " | ".join(f"{recall(train, query, metric, n):.3f}" for n in REFINE)
        print(f"| {name} ({len(train)}, {len(query)}) | `{metric}` | {shares} |")


if __name__ == "__main__":
    main()
