"""Matrix products in every precision of the unit, on NumPy arrays of values."""

import ml_dtypes
import numpy as np

from vitruvian.golden.cube import mmad_any
from vitruvian.golden.m3xu.precision import Precision, as_precision

__all__ = ["gemm", "operand_dtype", "result_dtype"]

_OPERANDS = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "fp32": np.dtype(np.float32),
    "fp32c": np.dtype(np.complex64),
    "fp64": np.dtype(np.float64),
}


def operand_dtype(precision):
    """The dtype of A and B. TF32 operands are float32 arrays whose low 13 bits are not read."""
    return _OPERANDS[as_precision(precision).name]


def result_dtype(precision):
    """The dtype of C and D."""
    precision = as_precision(precision)
    if precision.is_complex:
        return np.dtype(np.complex64)
    return np.dtype(f"f{precision.output.storage_bits // 8}")


def gemm(
    a,
    b,
    c=None,
    *,
    precision: Precision | str = "fp32",
    k=8,
    multiplier_bits=12,
    preset="ieee",
    window=None,
) -> np.ndarray:
    """D = C + A·B as a matrix unit computes it: block after block of K, one rounding a block.

    Parameters
    ----------
    a : (..., M, K) ndarray
        Of the precision's operand dtype, see `operand_dtype`. Any K: a last block may be shorter,
        and with K = 0 there is no block and D is C, bit for bit, NaNs and the sign of 0 included.
    b : (..., K, N) ndarray
        Of the same dtype.
    c : (..., M, N) ndarray, optional
        Of the precision's result dtype; zero by default.
    precision : str or Precision
        fp16, bf16, tf32, fp32, fp32c or fp64.
    k : int
        Lanes of the unit: a block has k FP16 or BF16 elements, k/2 TF32, k/n wide ones.
    multiplier_bits : int
        Width of the unit's multipliers.
    preset : str
        Accuracy of the one-step precisions; those of several steps are ``ieee`` always.
    window : int, optional
        Fraction bits that an ``ieee`` unit keeps; what the precision asks for by default. A
        machine's preset has its own in the one-step precisions and takes none.

    Returns
    -------
    (..., M, N) ndarray
        Float32, float64 or complex64. The parts of a complex D accumulate apart: the real part is
        the fused sum of a_r·b_r and −a_i·b_i, the imaginary part that of a_r·b_i and a_i·b_r.

    Raises
    ------
    TypeError
        For arrays of another dtype.
    ValueError
        For an unknown precision, shapes that do not fit, or lanes or a window that the precision
        cannot have.
    """
    precision = as_precision(precision)
    spec = precision.spec(k=k, multiplier_bits=multiplier_bits, preset=preset, window=window)
    a, b = (_checked(x, operand_dtype(precision), name) for x, name in ((a, "a"), (b, "b")))
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a and b must be (..., M, K) and (..., K, N) with one K, not {a.shape} and {b.shape}"
        )
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    dtype = result_dtype(precision)
    c = np.zeros(shape, dtype) if c is None else _checked(c, dtype, "c")
    if c.shape[-2:] != shape[-2:]:
        raise ValueError(f"c must be (..., {shape[-2]}, {shape[-1]}), not {c.shape}")
    if not precision.is_complex:
        return mmad_any(_codes(a), _codes(b), _codes(c), spec=spec).view(dtype)
    (a_r, a_i), (b_r, b_i), (c_r, c_i) = ((np.real(x), np.imag(x)) for x in (a, b, c))
    left = _interleave(a_r, -a_i, axis=-1), _interleave(a_r, a_i, axis=-1)
    right = _interleave(b_r, b_i, axis=-2), _interleave(b_i, b_r, axis=-2)
    parts = [
        mmad_any(_codes(x), _codes(y), _codes(z), spec=spec).view(np.float32)
        for x, y, z in zip(left, right, (c_r, c_i), strict=True)
    ]
    return np.stack(parts, axis=-1).view(dtype)[..., 0]


def _checked(array, dtype, name):
    array = np.asarray(array)
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {dtype.name}, not {array.dtype.name}")
    return array


def _codes(array):
    """Bit patterns of floating-point values."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _interleave(first, second, *, axis):
    """first and second in turn along an axis, twice its length."""
    both = np.stack([first, second], axis=axis)
    shape = list(first.shape)
    shape[axis] *= 2
    return both.reshape(shape)
