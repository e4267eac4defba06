"""The operations in their simplest form: a few lines of NumPy each, for small arrays.

Minimum and maximum prefer a number to a NaN, and −0 < +0 (IEEE 754-2019 minimumNumber and
maximumNumber).
"""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.fp import DotSpec, FloatFormat, fused_dot
from vitruvian.golden.simd2.op import Op

_NAN = np.uint32(0x7FC00000)


def plain_mmo(
    op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray, *, dot: DotSpec | None = None
) -> np.ndarray:
    """Return what ``golden.simd2.mmo`` returns, with all M × K × N terms in memory.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) ndarray of float32
    c : (..., M, N) ndarray of float32
    dot : DotSpec, optional
        Arithmetic of the fused sums, required if ⊕ is "add". Its input format is that of the
        operands, or FP32 for addnorm.

    Returns
    -------
    (..., M, N) ndarray of float32

    Raises
    ------
    ValueError
        If ``dot`` is missing.
    """
    x, y = a[..., :, :, None], b[..., None, :, :]
    if op.plus == "add":
        if dot is None:
            raise ValueError(f"dot must be a DotSpec for {op.mnemonic}, not None")
        return _sums(op, a, b, c, dot)
    if op.plus == "or":
        result = (truth(x) & truth(y)).any(axis=-2) | truth(c)
        return result.astype(np.float32)
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
    return better(d, d)  # makes a NaN that is left the canonical NaN


def _sums(op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray, dot: DotSpec) -> np.ndarray:
    """Return the fused sums, computed in blocks of K."""
    d = np.ascontiguousarray(c).view(np.uint32)
    for start in range(0, a.shape[-1], dot.k):
        x = a[..., :, None, start : start + dot.k]
        y = np.swapaxes(b, -1, -2)[..., None, :, start : start + dot.k]
        if op.times == "sqdiff":
            with np.errstate(all="ignore"):
                x = y = x - y
        d = fused_dot(_codes(x, dot.input), _codes(y, dot.input_b), d, dot)
    return np.asarray(d).view(np.float32)


def _codes(values: np.ndarray, format: FloatFormat) -> np.ndarray:
    """Return the codes of float32 values that the format has exactly."""
    if format.storage_bits == 16 and format.exponent_bits == 5:
        return values.astype(np.float16).view(np.uint16)
    codes = np.ascontiguousarray(values).view(np.uint32)
    return (codes >> 16).astype(np.uint16) if format.storage_bits == 16 else codes


def truth(x: np.ndarray) -> np.ndarray:
    """Return True for each operand that is neither zero nor NaN, which ``orand`` counts as true."""
    return (x != 0) & (x == x)


def minimum_number(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return the smaller elements of two float32 arrays."""
    return _chosen(x, y, np.int32(0))


def maximum_number(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return the larger elements of two float32 arrays."""
    return _chosen(x, y, np.int32(-1))


def _chosen(x: ArrayLike, y: ArrayLike, flip: np.int32) -> np.ndarray:
    x, y = np.broadcast_arrays(np.asarray(x, np.float32), np.asarray(y, np.float32))
    first = np.where(np.isnan(y), True, _rank(x) ^ flip <= _rank(y) ^ flip) & ~np.isnan(x)
    result = np.where(first, x, y)
    return np.where(np.isnan(result), _NAN.view(np.float32), result)


def _rank(x: np.ndarray) -> np.ndarray:
    """Return int32 numbers in the order of the floating-point numbers, with −0 before +0."""
    bits = np.ascontiguousarray(x).view(np.int32)
    return bits ^ (bits >> 31 & np.int32(0x7FFFFFFF))
