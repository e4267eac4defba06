"""The integer dot product: 8-bit operands, 32-bit accumulation."""

import numpy as np

__all__ = ["int_dot"]


def _integers(values, bits, signed, thing):
    """The low `bits` of integers given as values or as codes, as int64 values."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{thing} must be integers, not {array.dtype}")
    low, high = -(1 << (bits - 1)), (1 << bits) - 1
    if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
        bad = int(array.min()) if int(array.min()) < low else int(array.max())
        raise ValueError(f"{thing} must be between {low} and {high}, not {bad!r}")
    code = array.astype(np.int64) & high
    return np.where(code >> (bits - 1), code - (1 << bits), code) if signed else code


def int_dot(a, b, c, *, signed_a=True, signed_b=True, saturate=False):
    """C + Σ_k A_k·B_k with 8-bit A and B and 32-bit C.

    Parameters
    ----------
    a, b : (..., K) ndarray of int
        int8 or uint8 by `signed_a` and `signed_b`: the low 8 bits count, so that int8 values and
        their unsigned codes are the same operand.
    c : (...) ndarray of int
        int32 values or their unsigned codes. Leading axes broadcast.
    saturate : bool
        False: the result wraps, modulo 2^32. True: the exact sum, C included, is clipped once to
        [−2^31, 2^31 − 1]; a sum that leaves the range on the way and comes back is not clipped.

    Returns
    -------
    (...) ndarray of int32

    Raises
    ------
    TypeError, ValueError
        For operands that are not integers or do not fit, and for shapes that do not.
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
