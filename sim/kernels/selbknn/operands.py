"""Points as operands of the Cube, so that a product is a distance or has the order of one."""

import numpy as np

from vitruvian.common.errors import UserError

_LARGEST = float(np.finfo(np.float16).max)


def random_points(count: int, features: int, seed: int) -> np.ndarray:
    """Return random directions: normal numbers, each point divided by its length.

    Returns
    -------
    (count, features) ndarray of float16
    """
    points = np.random.default_rng(seed).normal(size=(count, features))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float16)


def prepared(query: np.ndarray, train: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return operands whose products order the training points of each query by distance.

    "l2": four products more make ‖x‖² − 2·x·y + ‖y‖², where each norm is the sum of two FP16
    numbers, 22 bits of it. "cosine": the points are divided by their lengths in FP64 and rounded,
    and a product is the "l2" one of these, which is twice the cosine distance. "cosine-product":
    the products are −x·y of the same points (Tang 2024, Fig. 3.2). Near −1, FP16 has steps of 2⁻¹¹,
    so these do not order points whose directions differ by less than a few degrees.

    Parameters
    ----------
    query : (m, d) ndarray of float16
    train : (n, d) ndarray of float16
    metric : {"l2", "cosine", "cosine-product"}

    Returns
    -------
    query, train : (m, e) and (n, e) ndarray of float16

    Raises
    ------
    UserError
        If a length is 0 (not for l2), or squared distances may exceed the range of FP16 (l2).
    """
    x, y = query.astype(np.float64), train.astype(np.float64)
    squares = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
    if metric != "l2":
        for name, square in zip(("query", "train"), squares, strict=True):
            if not square.all():
                at = int(np.argmin(square))
                raise UserError(f"points of {name} must have a length above 0, not point {at}")
        unit, other = (
            (p / np.sqrt(s)[:, None]).astype(np.float16)
            for p, s in zip((x, y), squares, strict=True)
        )
        return (unit, -other) if metric == "cosine-product" else prepared(unit, other, "l2")
    longest = float(np.sqrt(squares[0].max()) + np.sqrt(squares[1].max())) ** 2
    if longest > _LARGEST:
        raise UserError(
            f"squared distances must be at most {_LARGEST:,.0f}, the largest FP16 number, and the "
            f"lengths of the points allow {longest:,.0f}; scale the points"
        )
    (high_x, low_x), (high_y, low_y) = _halves(squares[0]), _halves(squares[1])
    ones = [np.ones(len(p), np.float16) for p in (x, y)]
    left = [(-2 * x).astype(np.float16), *_columns(ones[0], ones[0], high_x, low_x)]
    right = [train, *_columns(high_y, low_y, ones[1], ones[1])]
    return np.concatenate(left, axis=1), np.concatenate(right, axis=1)


def _halves(squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers as sums of two FP16 numbers."""
    high = squares.astype(np.float16)
    return high, (squares - high).astype(np.float16)


def _columns(*vectors: np.ndarray) -> list[np.ndarray]:
    return [v[:, None] for v in vectors]


def as_distances(products: np.ndarray, metric: str) -> np.ndarray:
    """Return the distances of FP16 products.

    They are the same numbers (l2), half of them (cosine), or 1 + them (cosine-product).

    Parameters
    ----------
    products : ndarray of float16
    metric : {"l2", "cosine", "cosine-product"}

    Returns
    -------
    ndarray of float32
    """
    single = products.astype(np.float32)
    if metric == "cosine":
        return single / np.float32(2)
    return single + np.float32(1) if metric == "cosine-product" else single
