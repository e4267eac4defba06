"""D = C ⊕ (A ⊗ B) on W-bit integers that wrap, the variant whose areas Zhang 2024 gives."""

from math import prod

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import one_of
from vitruvian.golden.simd2.op import Op, as_op

#: Allowed widths W
INT_BITS = (8, 16, 32, 64)

_TERMS = 1 << 22  # results of ⊗ per step, which bounds the memory


def int_identity(op: Op | str, bits: int = 16) -> int:
    """Return the identity of ⊕: the largest number for min, the smallest for max, else 0.

    Raises
    ------
    ValueError
        If the operation or the width is unknown.
    """
    _check_bits(bits)
    return {"min": (1 << (bits - 1)) - 1, "max": -(1 << (bits - 1))}.get(as_op(op).plus, 0)


def int_mmo(
    op: Op | str, a: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, bits: int = 16
) -> np.ndarray:
    """Return D = C ⊕ (A ⊗ B) on W-bit integers.

    Parameters
    ----------
    a : (..., M, K) array_like of int
        Values or unsigned codes; only the low ``bits`` bits count. K may be 0.
    b : (..., K, N) array_like of int
    c : (..., M, N) array_like of int, optional
        ``int_identity(op, bits)`` by default.
    bits : {8, 16, 32, 64}
        The width W.

    Returns
    -------
    (..., M, N) ndarray of signed integers of ``bits`` bits
        Sums, differences and products wrap modulo 2^W at every step; for ⊕ = add this equals
        wrapping once at the end. min and max compare signed numbers (two's complement). orand
        counts every nonzero number as true, also in C, and gives 1 or 0.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the operation or the width is unknown, or if numbers or shapes do not fit.
    """
    op = as_op(op)
    _check_bits(bits)
    a, b = _words(a, bits, "a"), _words(b, bits, "b")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N) with the same K, "
            f"not {a.shape} and {b.shape}"
        )
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    c = _words(np.full(shape, int_identity(op, bits)) if c is None else c, bits, "c")
    if c.shape[-2:] != shape[-2:]:
        raise ValueError(f"c must be (..., {shape[-2]}, {shape[-1]}), not {c.shape}")
    shape = (*np.broadcast_shapes(lead, c.shape[:-2]), *shape[-2:])
    count = prod(shape[:-2])
    parts = (np.broadcast_to(x, (*shape[:-2], *x.shape[-2:])) for x in (a, b, c))
    a, b, c = (x.reshape(count, *x.shape[-2:]) for x in parts)
    d = np.empty(c.shape, c.dtype)
    step = max(_TERMS // max(prod(a.shape[1:]) * b.shape[2], 1), 1)
    for i in range(0, count, step):
        block = slice(i, i + step)
        d[block] = _reduced(op, _terms(op, a[block], b[block]), c[block])
    return d.reshape(shape)


def _terms(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A ⊗ B before the reduction, as (..., M, K, N)."""
    x, y = a[..., :, :, None], b[..., None, :, :]
    if op.times == "mul":
        return x * y
    if op.times == "add":
        return x + y
    if op.times == "sqdiff":
        return (x - y) * (x - y)
    if op.times == "and":
        return ((x != 0) & (y != 0)).astype(x.dtype)
    return np.minimum(x, y) if op.times == "min" else np.maximum(x, y)


def _reduced(op: Op, terms: np.ndarray, c: np.ndarray) -> np.ndarray:
    if op.plus == "add":
        return c + terms.sum(axis=-2, dtype=c.dtype)
    if op.plus == "or":
        return ((c != 0) | (terms != 0).any(axis=-2)).astype(c.dtype)
    for k in range(terms.shape[-2]):
        c = (np.minimum if op.plus == "min" else np.maximum)(c, terms[..., k, :])
    return c


def _check_bits(bits: int) -> None:
    one_of("bits", bits, INT_BITS)


def _words(values: ArrayLike, bits: int, thing: str) -> np.ndarray:
    """Return values or codes as signed integers of ``bits`` bits, whose arithmetic wraps."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{thing} must be integers, not {array.dtype}")
    low, high = -(1 << (bits - 1)), (1 << bits) - 1
    if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
        bad = int(array.min()) if int(array.min()) < low else int(array.max())
        raise ValueError(f"{thing} must be between {low} and {high}, not {bad!r}")
    return array.astype(f"u{bits // 8}").view(f"i{bits // 8}")
