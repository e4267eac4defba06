"""The operations in their plainest form: a few lines of NumPy for each, on small arrays.

NaN loses against a number, −0 is below +0 (IEEE 754-2019 minimumNumber and maximumNumber).
"""

import numpy as np

from vitruvian.golden.fp import DotSpec, fused_dot
from vitruvian.golden.simd2.op import Op

__all__ = ["maximum_number", "minimum_number", "plain_mmo", "truth"]

_NAN = np.uint32(0x7FC00000)


def plain_mmo(op: Op, a, b, c, *, dot: DotSpec | None = None) -> np.ndarray:
    """``golden.simd2.mmo`` on values, with all of M × K × N in memory.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) ndarray of float32
    c : (..., M, N) ndarray of float32
    dot : DotSpec, optional
        Of the fused sums, where ⊕ is "add": of the operands' format, or FP32 for differences.
    """
    x, y = a[..., :, :, None], b[..., None, :, :]
    if op.plus == "add":
        return _sums(op, a, b, c, dot)
    if op.plus == "or":
        found = (truth(x) & truth(y)).any(axis=-2) | truth(c)
        return found.astype(np.float32)
    with np.errstate(all="ignore"):
        terms = {
            "add": np.add,
            "mul": np.multiply,
            "min": minimum_number,
            "max": maximum_number,
        }[op.times](x, y)
    better = minimum_number if op.plus == "min" else maximum_number
    d = np.broadcast_to(c, np.broadcast_shapes(c.shape, terms.shape[:-2] + terms.shape[-1:]))
    for k in range(terms.shape[-2]):
        d = better(d, terms[..., k, :])
    return better(d, d)  # a NaN that no number came by is the canonical one


def _sums(op, a, b, c, dot):
    """Fused sums, block after block of K."""
    d = np.ascontiguousarray(c).view(np.uint32)
    for start in range(0, a.shape[-1], dot.k):
        x = a[..., :, None, start : start + dot.k]
        y = np.swapaxes(b, -1, -2)[..., None, :, start : start + dot.k]
        if op.times == "sqdiff":
            with np.errstate(all="ignore"):
                x = y = x - y
        d = fused_dot(_codes(x, dot.input), _codes(y, dot.input_b), d, dot)
    return np.asarray(d).view(np.float32)


def _codes(values, format):
    """Codes of values that the format has."""
    if format.storage_bits == 16 and format.exponent_bits == 5:
        return values.astype(np.float16).view(np.uint16)
    codes = np.ascontiguousarray(values).view(np.uint32)
    return (codes >> 16).astype(np.uint16) if format.storage_bits == 16 else codes


def truth(x):
    """Whether operands are true: neither zero nor NaN."""
    return (x != 0) & (x == x)


def minimum_number(x, y):
    """The smaller of two float32 arrays."""
    return _chosen(x, y, np.int32(0))


def maximum_number(x, y):
    """The larger of two float32 arrays."""
    return _chosen(x, y, np.int32(-1))


def _chosen(x, y, flip):
    x, y = np.broadcast_arrays(np.float32(x), np.float32(y))
    first = np.where(np.isnan(y), True, _rank(x) ^ flip <= _rank(y) ^ flip) & ~np.isnan(x)
    found = np.where(first, x, y)
    return np.where(np.isnan(found), _NAN.view(np.float32), found)


def _rank(x):
    """Signed numbers in the order of the floating-point ones, −0 before +0."""
    bits = np.ascontiguousarray(x).view(np.int32)
    return bits ^ (bits >> 31 & np.int32(0x7FFFFFFF))
