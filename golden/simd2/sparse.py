"""2:4 structured sparsity: two of every four elements of A along K are kept, with their indices.

A compressed operand is half as long as A. It has a pair of ``values`` for each group of four
elements and, for each value, its index in the group, 0 to 3. D is computed from the kept elements
alone, in ascending K: value t is combined with row 4·⌊t/2⌋ + index of B. If ⊕ is +, a fused sum has
k values, as a unit of k lanes computes it from 2k rows of B in one cycle; the dropped elements are
in no sum, not even as zeros.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_int
from vitruvian.golden.simd2.matrix import OPERANDS, mmo
from vitruvian.golden.simd2.op import GROUP, KEPT, Op, as_op
from vitruvian.golden.simd2.plain import truth

_TERMS = 1 << 20  # terms per step, for which rows of B are gathered


def compress(op: Op | str, a: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Keep the two elements of every four along K that matter most to an operation.

    If ⊕ is +, these are the two with the largest magnitude, where a NaN counts as the largest.
    Otherwise they are the two that ⊕ prefers among the elements of A alone, which is also what it
    prefers after ⊗ if ⊗ preserves the order (for products, if B ≥ 0). Missing edges are kept last,
    and of equal elements the first is kept first. So a matrix that ``is_two_of_four`` loses
    nothing.

    Parameters
    ----------
    a : (..., M, K) array_like of float16, bfloat16 or float32
        K is a multiple of 4.

    Returns
    -------
    values : (..., M, K/2) ndarray of the dtype of ``a``
    indices : (..., M, K/2) ndarray of uint8
        Indices in the groups, 0 to 3, ascending in each pair.

    Raises
    ------
    TypeError
        If the dtype is wrong.
    ValueError
        If K is not a multiple of 4 or the operation is unknown.
    """
    op = as_op(op)
    groups = _groups(a)
    order = _order(op, groups) + (_dropped(op, groups).astype(np.int64) << 33)
    indices = np.sort(np.argsort(order, axis=-1, kind="stable")[..., :KEPT], axis=-1)
    values = np.take_along_axis(groups, indices, axis=-1)
    shape = (*groups.shape[:-2], groups.shape[-2] * KEPT)
    return values.reshape(shape), indices.astype(np.uint8).reshape(shape)


def is_two_of_four(op: Op | str, a: ArrayLike) -> bool:
    """Return True if at most two of every four elements of A along K are edges.

    Raises
    ------
    TypeError, ValueError
        As for ``compress``, and if the operation is addnorm, in which every element counts.
    """
    op = as_op(op)
    _no_edge(op)
    kept = GROUP - _dropped(op, _groups(a)).sum(axis=-1)
    return bool((kept <= KEPT).all())


def expand(
    op: Op | str, values: ArrayLike, indices: ArrayLike, *, fill: float | None = None
) -> np.ndarray:
    """Return the dense matrix with the kept elements, and ``fill`` for the dropped ones.

    Parameters
    ----------
    values, indices : (..., M, K/2) array_like
        A compressed matrix as ``compress`` returns it.
    fill : float, optional
        Value of the dropped elements, by default ``op.no_edge``. It is required for addnorm.

    Returns
    -------
    (..., M, K) ndarray

    Raises
    ------
    TypeError
        If a dtype is wrong.
    ValueError
        If the shapes differ, if an index is not 0 to 3 or is repeated in a pair, or if ``fill`` is
        missing.
    """
    op = as_op(op)
    values, indices = _compressed(values, indices)
    fill = _no_edge(op) if fill is None else fill
    lead = values.shape[:-1]
    pairs = indices.reshape(*lead, -1, KEPT)
    if (pairs[..., 0] == pairs[..., 1]).any():
        raise ValueError("the two indices of a pair must be different, not equal")
    groups = np.full((*lead, values.shape[-1] // KEPT, GROUP), fill, values.dtype)
    np.put_along_axis(groups, pairs, values.reshape(pairs.shape), axis=-1)
    return groups.reshape(*lead, -1)


def mmo_sparse(
    op: Op | str,
    values: ArrayLike,
    indices: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    k: int = 4,
    preset: str = "ieee",
    window: int | None = None,
    squares: str = "differences",
) -> np.ndarray:
    """Return D = C ⊕ (A ⊗ B) over the kept elements of A, as a unit with 2:4 sparsity computes it.

    Parameters
    ----------
    values, indices : (..., M, K/2) array_like
        A as ``compress`` returns it. If the two indices of a pair are equal, the same row of B is
        used twice.
    b : (..., K, N) array_like of the dtype of ``values``
    c : (..., M, N) array_like of float32, optional
        ``op.identity`` by default.
    k : int
        Values in a fused sum, an even number; they belong to 2·k rows of B.
    preset, window, squares
        The same as those of ``golden.simd2.mmo``. With squares as products, a fused sum has k/4
        values.

    Returns
    -------
    (..., M, N) ndarray of float32

    Raises
    ------
    TypeError, ValueError
        As for ``golden.simd2.mmo``, and if the shapes of values and indices differ, if an index is
        not 0 to 3, or if ``k`` is odd.
    """
    op = as_op(op)
    values, indices = _compressed(values, indices)
    check_int("k", k, 1)
    if k % KEPT:
        raise ValueError(f"k must be even, for whole pairs, not {k!r}")
    b = np.asarray(b)
    if b.ndim < 2 or values.shape[-1] * GROUP != b.shape[-2] * KEPT:
        raise ValueError(
            f"values and b must be (..., M, K/2) and (..., K, N) with the same K, "
            f"not {values.shape} and {b.shape}"
        )
    m, n = values.shape[-2], b.shape[-1]
    c = np.full((m, n), op.identity, np.float32) if c is None else np.asarray(c)
    if c.shape[-2:] != (m, n):
        raise ValueError(f"c must be (..., {m}, {n}), not {c.shape}")
    lead = np.broadcast_shapes(values.shape[:-2], b.shape[:-2], c.shape[:-2])
    b_rows = indices + np.arange(values.shape[-1]) // KEPT * GROUP  # pyright: ignore[reportUnknownVariableType]
    parts: list[np.ndarray] = [values, b_rows, b, c]
    parts = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in parts]
    # Every row of A has its own rows of B, so each becomes a 1 × K/2 matrix with a gathered B.
    a, rows, c = (parts[i].reshape(prod(lead) * m, 1, parts[i].shape[-1]) for i in (0, 1, 3))
    b, matrix = parts[2].reshape(prod(lead), *b.shape[-2:]), np.repeat(np.arange(prod(lead)), m)
    d = np.empty(c.shape, np.float32)
    step = max(_TERMS // max(a.shape[2] * n, 1), 1)
    options: dict[str, Any] = {"k": k, "preset": preset, "window": window, "squares": squares}
    for first in range(0, len(d), step):
        part = slice(first, first + step)
        gathered = b[matrix[part, None], rows[part, 0]]
        d[part] = mmo(op, a[part], gathered, c[part], **options)
    return d.reshape(*lead, m, n)


def _groups(a: ArrayLike) -> np.ndarray:
    """Return A in groups of four, as (..., M, K/4, 4)."""
    a = np.asarray(a)
    _check_dtype(a, "a")
    if a.ndim < 2 or a.shape[-1] % GROUP:
        raise ValueError(f"a must be (..., M, K) with K a multiple of {GROUP}, not {a.shape}")
    return a.reshape(*a.shape[:-1], -1, GROUP)


def _compressed(values: ArrayLike, indices: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return values and indices (as int64) after checking them."""
    values, indices = np.asarray(values), np.asarray(indices)
    _check_dtype(values, "values")
    if values.ndim < 2 or values.shape[-1] % KEPT or indices.shape != values.shape:
        raise ValueError(
            f"values and indices must have the same shape (..., M, K/2) with an even K/2, "
            f"not {values.shape} and {indices.shape}"
        )
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, not {indices.dtype.name}")
    wrong = (indices < 0) | (indices >= GROUP)
    if wrong.any():
        raise ValueError(f"indices must be between 0 and {GROUP - 1}, not {indices[wrong][0]}")
    return values, indices.astype(np.int64)


def _check_dtype(array: np.ndarray, name: str) -> None:
    if array.dtype not in OPERANDS:
        names = ", ".join(dtype.name for dtype in OPERANDS)
        raise TypeError(f"dtype of {name} must be one of {names}, not {array.dtype.name}")


def _no_edge(op: Op) -> float:
    if op.no_edge is None:
        raise ValueError(f"op must be an operation with a no-edge value, not {op.mnemonic}")
    return op.no_edge


def _dropped(op: Op, a: np.ndarray) -> np.ndarray:
    """Return True for each element that is a missing edge."""
    if op is Op.ORAND:
        return ~truth(a)
    return np.zeros(a.shape, bool) if op.no_edge is None else a == op.no_edge


def _order(op: Op, a: np.ndarray) -> np.ndarray:
    """Return int64 keys that sort the elements by importance, the most important first."""
    a = a.astype(np.float32)
    bits = np.ascontiguousarray(a).view(np.int32).astype(np.int64)
    if op.plus == "or":
        return np.zeros(a.shape, np.int64)
    if op.plus == "add":
        return -(bits & 0x7FFFFFFF)
    rank = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)  # −0 before +0
    rank = -rank if op.plus == "max" else rank
    # A NaN is the least important, because ⊕ prefers any number. But if ⊗ is min or max, ⊗ prefers
    # the element of B to the NaN, and that element may win in ⊕; so the NaN must be kept.
    last = 1 << 32
    return np.where(np.isnan(a), -last if op.times in ("min", "max") else last, rank)
