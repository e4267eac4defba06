"""Products with a matrix of structured sparsity: at most two of four numbers are not 0.

Of each four numbers in a column of B, two are stored, each with a number of two bits: the first one
is element i of the four if its number is i, and the second one is element 1 + j if its number is j.
Both numbers are 0 to 2. Four of them are a byte, the first one in its lowest bits.

References
----------
asc-devkit, docs/zh/api: MmadWithSparse (table 2), LoadDataWithSparse (order in a byte).
"""

import numpy as np
from numpy.typing import ArrayLike

#: Numbers of a column of B of which two are stored.
GROUP = 4
#: Numbers of two bits in a byte.
_PER_BYTE = 4
_SHIFTS = np.array([0, 2, 4, 6], np.uint8)


def pack_places(places: ArrayLike) -> np.ndarray:
    """Return numbers of two bits as bytes.

    Parameters
    ----------
    places : (..., 4·N) array_like of int
        Numbers from 0 to 2.

    Returns
    -------
    (..., N) ndarray of uint8

    Raises
    ------
    ValueError
        If a number is not 0 to 2, or they do not fill bytes.

    Examples
    --------
    >>> pack_places([1, 2, 0, 1]).tolist()  # 01 00 10 01
    [73]
    """
    places = np.asarray(places)
    if not places.ndim or places.shape[-1] % _PER_BYTE:
        raise ValueError(f"places must be (..., 4·N), not {places.shape}")
    _check(places)
    parts = places.reshape(*places.shape[:-1], -1, _PER_BYTE).astype(np.uint8)
    return np.bitwise_or.reduce(parts << _SHIFTS, axis=-1)


def unpack_places(codes: ArrayLike) -> np.ndarray:
    """Return the numbers of two bits that bytes hold.

    Parameters
    ----------
    codes : (..., N) array_like of uint8

    Returns
    -------
    (..., 4·N) ndarray of uint8
        Numbers from 0 to 3.
    """
    codes = np.asarray(codes, np.uint8)
    parts = codes[..., None] >> _SHIFTS & 3
    return parts.reshape(*codes.shape[:-1], _PER_BYTE * codes.shape[-1])


def compress(b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return what is stored of a matrix, and the numbers of its places.

    If more than two of four numbers are not 0, the first two count.

    Parameters
    ----------
    b : (K, N) array_like of int8
        K is a multiple of 4.

    Returns
    -------
    weights : (K/2, N) ndarray of int8
    places : (K/2, N) ndarray of uint8
        Numbers from 0 to 2.

    Raises
    ------
    ValueError
        If K is not a multiple of 4.

    Examples
    --------
    >>> weights, places = compress(np.int8([[0], [5], [0], [7]]))
    >>> weights.ravel().tolist(), places.ravel().tolist()
    ([5, 7], [1, 2])
    """
    b = np.asarray(b)
    if b.ndim != 2 or b.shape[0] % GROUP:
        raise ValueError(f"b must be (4·K, N), not {b.shape}")
    columns = b.shape[1]
    groups = b.reshape(-1, GROUP, columns)
    order = np.argsort(groups == 0, axis=1, kind="stable")[:, :2]  # those that are not 0 first
    weights = np.take_along_axis(groups, order, axis=1)
    first, second = order[:, 0], order[:, 1]
    # The last of four can only be the second number; an unused number is 0.
    alone = (weights[:, 0] != 0) & (weights[:, 1] == 0)
    last = alone & (first == GROUP - 1)
    used = weights != 0
    places = np.stack([first, second - 1], axis=1) * used
    places[:, 0][last], places[:, 1][last] = 0, GROUP - 2
    weights[:, 1][last], weights[:, 0][last] = weights[:, 0][last], 0
    shape = (-1, columns)
    return weights.reshape(shape), places.reshape(shape).astype(np.uint8)


def expand(weights: ArrayLike, places: ArrayLike) -> np.ndarray:
    """Return the matrix of which weights and places are stored.

    Parameters
    ----------
    weights : (K/2, N) array_like of int8
    places : (K/2, N) array_like of int
        Numbers from 0 to 2.

    Returns
    -------
    (K, N) ndarray of int8
        Two weights at one place are added there, which gives the product that the two would have.

    Raises
    ------
    ValueError
        If the shapes do not fit, a number is not 0 to 2, or a sum does not fit 8 bits.

    Examples
    --------
    >>> expand(np.int8([[5], [7]]), [[1], [2]]).ravel().tolist()
    [0, 5, 0, 7]
    """
    weights, places = np.asarray(weights), np.asarray(places)
    if weights.ndim != 2 or weights.shape != places.shape or weights.shape[0] % 2:
        raise ValueError(
            f"weights and places must be (2·K, N), not {weights.shape} and {places.shape}"
        )
    _check(places)
    half, columns = weights.shape
    at = np.arange(half, dtype=np.int64)[:, None]
    rows: np.ndarray = at // 2 * GROUP + at % 2 + places
    whole = np.zeros((2 * half, columns), np.int64)
    np.add.at(whole, (rows, np.arange(columns, dtype=np.int64)[None, :]), weights)
    if whole.size and not -128 <= whole.min() <= whole.max() <= 127:
        raise ValueError("weights at one place must have a sum of 8 bits")
    return whole.astype(np.int8)


def _check(places: np.ndarray) -> None:
    if places.size and not 0 <= places.min() <= places.max() <= 2:
        wrong = places.min() if places.min() < 0 else places.max()
        raise ValueError(f"places must be 0 to 2, not {wrong}")
