"""The integer dot product with 8-bit operands and 32-bit accumulation."""

import numpy as np
from numpy.typing import ArrayLike


def _integers(values: ArrayLike, bits: int, signed: bool, thing: str) -> np.ndarray:
    """Return the low ``bits`` of integers, which are values or codes, as int64 values."""
    array = np.asarray(values)
    if array.dtype == np.dtype(f"{'i' if signed else 'u'}{bits // 8}"):  # the values themselves
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{thing} must be integers, not {array.dtype}")
    low, high = -(1 << (bits - 1)), (1 << bits) - 1
    if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
        bad = int(array.min()) if int(array.min()) < low else int(array.max())
        raise ValueError(f"{thing} must be between {low} and {high}, not {bad!r}")
    code = array.astype(np.int64) & high
    return np.where(code >> (bits - 1), code - (1 << bits), code) if signed else code


def int_dot(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    *,
    signed_a: bool = True,
    signed_b: bool = True,
    saturate: bool = False,
) -> np.ndarray:
    """Return C + Σ_k A_k·B_k for 8-bit A and B and 32-bit C.

    Parameters
    ----------
    a, b : (..., K) array_like of int
        Operands. Only the low 8 bits count, so int8 values and their unsigned codes are the same
        operand.
    c : (...) array_like of int
        int32 values or their unsigned codes. Leading axes broadcast.
    signed_a, signed_b : bool
        If True, the operand is int8, otherwise uint8.
    saturate : bool
        If False, the result wraps modulo 2^32. If True, the exact sum, including C, is clipped
        once to [−2^31, 2^31 − 1]; a partial sum that leaves the range and returns is not clipped.

    Returns
    -------
    (...) ndarray of int32

    Raises
    ------
    TypeError
        If an operand does not hold integers.
    ValueError
        If a number does not fit, or if the shapes of ``a`` and ``b`` do not match.

    Examples
    --------
    >>> int(int_dot([1, -2, 3], [4, 5, 6], 100))
    112
    """
    a = _integers(a, 8, signed_a, "a")
    b = _integers(b, 8, signed_b, "b")
    c = _integers(c, 32, True, "c")
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1]:
        raise ValueError(f"a and b must be (..., K) with the same K, not {a.shape} and {b.shape}")
    total = np.einsum("...k,...k->...", a, b) + c
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return np.asarray(total).astype(np.uint32).view(np.int32)[()]


def int_matmul(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, *, signed_a: bool = True, signed_b: bool = True
) -> np.ndarray:
    """Return what ``int_dot`` gives for the rows of A and the columns of B without saturation.

    Parameters
    ----------
    a : (..., M, K) array_like of int
    b : (..., K, N) array_like of int
    c : (..., M, N) array_like of int
    signed_a, signed_b : bool
        As for ``int_dot``.

    Returns
    -------
    (..., M, N) ndarray of int32

    Raises
    ------
    TypeError, ValueError
        As for ``int_dot``.

    Notes
    -----
    Products of 8 bits are below 2^16, so that sums of up to 2^37 of them are exact in FP64, in any
    order. The result wraps modulo 2^32, as a sum of wrapped sums does.

    Examples
    --------
    >>> int_matmul([[1, -2, 3]], [[4], [5], [6]], [[100]]).tolist()
    [[112]]
    """
    x, y = _integers(a, 8, signed_a, "a"), _integers(b, 8, signed_b, "b")
    exact = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.int64)
    return (exact + _integers(c, 32, True, "c")).astype(np.uint32).view(np.int32)
