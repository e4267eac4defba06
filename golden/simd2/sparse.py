"""2:4 structured sparsity: of every four elements of A along K two are kept, and where they were.

A compressed operand is half as long as A: a pair of ``values`` for each group of four, and for each
value its place in the group, 0 to 3. D is made of the kept pairs alone, in rising K: value t meets
row 4·⌊t/2⌋ + index of B. Where ⊕ is +, a fused sum takes k values, which is what a unit of k lanes
does with 2k rows of B a beat; what was dropped is in no sum, not even as a zero.
"""

from math import prod
from typing import Any

import numpy as np

from vitruvian.golden.simd2.matrix import OPERANDS, mmo
from vitruvian.golden.simd2.op import GROUP, KEPT, Op, as_op
from vitruvian.golden.simd2.plain import truth
from vitruvian.validate import check_int

__all__ = ["GROUP", "KEPT", "compress", "expand", "is_two_of_four", "mmo_sparse"]

_TERMS = 1 << 20  # rows of B are gathered for so many at a time


def compress(op: Op | str, a) -> tuple[np.ndarray, np.ndarray]:
    """Keep the two elements of every four along K that matter most to an operation.

    Where ⊕ is + those are the two of largest magnitude, a NaN before all; elsewhere the two that ⊕
    would choose of A alone, which is what it chooses behind ⊗ where ⊗ keeps the order (products:
    with B ≥ 0). Entries that are no edge come last, of equals the first comes first. So nothing is
    lost of a matrix that ``is_two_of_four``.

    Parameters
    ----------
    op : Op or str
    a : (..., M, K) ndarray of float16, bfloat16 or float32
        K is a multiple of 4.

    Returns
    -------
    values : (..., M, K/2) ndarray of a's dtype
    indices : (..., M, K/2) ndarray of uint8
        Places in the groups, 0 to 3, rising within a pair.

    Raises
    ------
    TypeError, ValueError
        For another dtype, a K that is no multiple of 4, or an unknown operation.
    """
    op = as_op(op)
    groups = _groups(a)
    order = _order(op, groups) + (_dropped(op, groups).astype(np.int64) << 33)
    places = np.sort(np.argsort(order, axis=-1, kind="stable")[..., :KEPT], axis=-1)
    values = np.take_along_axis(groups, places, axis=-1)
    shape = (*groups.shape[:-2], groups.shape[-2] * KEPT)
    return values.reshape(shape), places.astype(np.uint8).reshape(shape)


def is_two_of_four(op: Op | str, a) -> bool:
    """Whether at most two of every four elements of A along K are edges.

    Raises
    ------
    TypeError, ValueError
        As ``compress``; also for addnorm, to which every element counts.
    """
    op = as_op(op)
    _no_edge(op)
    kept = GROUP - _dropped(op, _groups(a)).sum(axis=-1)
    return bool((kept <= KEPT).all())


def expand(op: Op | str, values, indices, *, fill: float | None = None) -> np.ndarray:
    """A matrix of the kept elements, with what is no edge in the place of the dropped ones.

    Parameters
    ----------
    op : Op or str
    values, indices : (..., M, K/2) ndarray
        As ``compress`` returns them.
    fill : float, optional
        The dropped elements; by default ``op.no_edge``, which addnorm does not have.

    Returns
    -------
    (..., M, K) ndarray

    Raises
    ------
    TypeError, ValueError
        For indices that do not fit the values, are not within 0 to 3 or equal in a pair, or a
        ``fill`` that is missing.
    """
    op = as_op(op)
    values, indices = _compressed(values, indices)
    fill = _no_edge(op) if fill is None else fill
    lead = values.shape[:-1]
    pairs = indices.reshape(*lead, -1, KEPT)
    if (pairs[..., 0] == pairs[..., 1]).any():
        raise ValueError("indices must be different in a pair, not equal")
    groups = np.full((*lead, values.shape[-1] // KEPT, GROUP), fill, values.dtype)
    np.put_along_axis(groups, pairs, values.reshape(pairs.shape), axis=-1)
    return groups.reshape(*lead, -1)


def mmo_sparse(
    op: Op | str,
    values,
    indices,
    b,
    c=None,
    *,
    k: int = 4,
    preset: str = "ieee",
    window: int | None = None,
    squares: str = "differences",
) -> np.ndarray:
    """D = C ⊕ (A ⊗ B) over the kept elements of A, as a unit for 2:4 sparsity computes it.

    Parameters
    ----------
    op : Op or str
    values, indices : (..., M, K/2) ndarray
        A as ``compress`` returns it. Two equal indices of a pair take a row of B twice.
    b : (..., K, N) ndarray of the dtype of ``values``
    c : (..., M, N) ndarray of float32, optional
        ``op.identity`` by default.
    k : int
        Values of a fused sum, even: 2·k rows of B are worked on at a time.
    preset, window, squares
        As of ``golden.simd2.mmo``. Squares as products are sums of k/4 values.

    Returns
    -------
    (..., M, N) ndarray of float32

    Raises
    ------
    TypeError, ValueError
        As ``golden.simd2.mmo``; also for indices that do not fit the values or are not within 0 to 3,
        and an odd ``k``.
    """
    op = as_op(op)
    values, indices = _compressed(values, indices)
    check_int("k", k, 1)
    if k % KEPT:
        raise ValueError(f"k must be even, for whole pairs, not {k!r}")
    b = np.asarray(b)
    if b.ndim < 2 or values.shape[-1] * GROUP != b.shape[-2] * KEPT:
        raise ValueError(
            f"values and b must be (..., M, K/2) and (..., K, N) with one K, "
            f"not {values.shape} and {b.shape}"
        )
    m, n = values.shape[-2], b.shape[-1]
    c = np.full((m, n), op.identity, np.float32) if c is None else np.asarray(c)
    if c.shape[-2:] != (m, n):
        raise ValueError(f"c must be (..., {m}, {n}), not {c.shape}")
    lead = np.broadcast_shapes(values.shape[:-2], b.shape[:-2], c.shape[:-2])
    places = indices + np.arange(values.shape[-1]) // KEPT * GROUP
    parts: list[np.ndarray] = [values, places, b, c]
    parts = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in parts]
    # every row of A with its own rows of B, some at a time
    a, rows, c = (parts[i].reshape(prod(lead) * m, 1, parts[i].shape[-1]) for i in (0, 1, 3))
    b, which = parts[2].reshape(prod(lead), *b.shape[-2:]), np.repeat(np.arange(prod(lead)), m)
    d = np.empty(c.shape, np.float32)
    step = max(_TERMS // max(a.shape[2] * n, 1), 1)
    settings: dict[str, Any] = {"k": k, "preset": preset, "window": window, "squares": squares}
    for first in range(0, len(d), step):
        some = slice(first, first + step)
        met = b[which[some, None], rows[some, 0]]
        d[some] = mmo(op, a[some], met, c[some], **settings)
    return d.reshape(*lead, m, n)


def _groups(a):
    """(..., M, K/4, 4)."""
    a = np.asarray(a)
    _check_dtype(a, "a")
    if a.ndim < 2 or a.shape[-1] % GROUP:
        raise ValueError(f"a must be (..., M, K) with a K that {GROUP} divides, not {a.shape}")
    return a.reshape(*a.shape[:-1], -1, GROUP)


def _compressed(values, indices):
    values, indices = np.asarray(values), np.asarray(indices)
    _check_dtype(values, "values")
    if values.ndim < 2 or values.shape[-1] % KEPT or indices.shape != values.shape:
        raise ValueError(
            f"values and indices must be of one shape (..., M, K/2) with an even K/2, "
            f"not {values.shape} and {indices.shape}"
        )
    if indices.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, not {indices.dtype.name}")
    wrong = (indices < 0) | (indices >= GROUP)
    if wrong.any():
        raise ValueError(f"indices must be within 0 to {GROUP - 1}, not {indices[wrong][0]}")
    return values, indices.astype(np.int64)


def _check_dtype(array, name):
    if array.dtype not in OPERANDS:
        names = ", ".join(dtype.name for dtype in OPERANDS)
        raise TypeError(f"{name} must be of a dtype out of {names}, not {array.dtype.name}")


def _no_edge(op):
    if op.no_edge is None:
        raise ValueError(f"op must be one that has a no-edge value, not {op.mnemonic}")
    return op.no_edge


def _dropped(op, a):
    """Where entries are no edge."""
    if op is Op.ORAND:
        return ~truth(a)
    return np.zeros(a.shape, bool) if op.no_edge is None else a == op.no_edge


def _order(op, a):
    """Whole numbers of float32's order, the smallest for what matters most."""
    a = a.astype(np.float32)
    bits = np.ascontiguousarray(a).view(np.int32).astype(np.int64)
    if op.plus == "or":
        return np.zeros(a.shape, np.int64)
    if op.plus == "add":
        return -(bits & 0x7FFFFFFF)
    rank = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)  # −0 before +0
    rank = -rank if op.plus == "max" else rank
    # under min and max a NaN loses, in ⊗ to the element of B, which is then chosen or not
    last = 1 << 32
    return np.where(np.isnan(a), -last if op.times in ("min", "max") else last, rank)
