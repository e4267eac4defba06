"""Matrix products in all precisions of the unit, on NumPy arrays of values."""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.golden.cube import mmad_any
from vitruvian.golden.cube.shapes import check_addend, check_factors
from vitruvian.golden.fp import DotSpec, number_dtype
from vitruvian.golden.m3xu.precision import Precision, as_precision


def operand_dtype(precision: Precision | str) -> np.dtype:
    """Return the dtype of A and B.

    TF32 operands are float32 arrays whose low 13 bits are ignored.

    Examples
    --------
    >>> str(operand_dtype("fp32"))
    'float32'
    """
    precision = as_precision(precision)
    return np.dtype(np.complex64) if precision.is_complex else number_dtype(precision.format)


def result_dtype(precision: Precision | str) -> np.dtype:
    """Return the dtype of C and D.

    Examples
    --------
    >>> str(result_dtype("fp32"))
    'float32'
    """
    precision = as_precision(precision)
    if precision.is_complex:
        return np.dtype(np.complex64)
    return np.dtype(f"f{precision.output.storage_bits // 8}")


def gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    precision: Precision | str = "fp32",
    k: int = 8,
    multiplier_bits: int = 12,
    preset: str = "ieee",
    window: int | None = None,
) -> np.ndarray:
    """Return D = C + A·B as a matrix unit computes it: in blocks of K, each rounded once.

    Parameters
    ----------
    a : (..., M, K) array_like of ``operand_dtype(precision)``
        Any K is allowed: the last block may be shorter. With K = 0, D is C bit for bit, including
        NaNs and the signs of zeros.
    b : (..., K, N) array_like of the same dtype
    c : (..., M, N) array_like of ``result_dtype(precision)``, optional
        Zero by default.
    precision : str or Precision
        fp16, bf16, tf32, fp32, fp32c or fp64.
    k : int
        Lanes of the unit. A block has k FP16 or BF16 elements, k/2 TF32 elements, or k/n elements
        with significands of n limbs.
    multiplier_bits : int
        Width of the unit's multipliers.
    preset : str
        Accuracy of the precisions that take one step; those with several steps are always
        ``ieee``.
    window : int, optional
        Fraction bits that an ``ieee`` unit keeps, by default the fewest that the precision needs.
        The preset of a machine has its own window, so with one-step precisions it must be None.

    Returns
    -------
    (..., M, N) ndarray of float32, float64 or complex64
        The parts of a complex D are accumulated separately: the real part is the fused sum of
        a_r·b_r and −a_i·b_i, the imaginary part that of a_r·b_i and a_i·b_r.

    Raises
    ------
    TypeError
        If an array has the wrong dtype.
    ValueError
        If the precision is unknown, if the shapes do not fit, or if the precision does not allow
        the lanes or the window.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.m3xu import gemm
    >>> a = np.array([[1.5, 2.0]], np.float32)
    >>> gemm(a, a.T).tolist()
    [[6.25]]
    """
    precision = as_precision(precision)
    spec = precision.spec(k=k, multiplier_bits=multiplier_bits, preset=preset, window=window)
    a, b = (_checked(x, operand_dtype(precision), name) for x, name in ((a, "a"), (b, "b")))
    shape = check_factors(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    dtype = result_dtype(precision)
    c = np.zeros((*lead, *shape), dtype) if c is None else _checked(c, dtype, "c")
    check_addend(c, shape)
    if not precision.is_complex:
        return mmad_any(_codes(a), _codes(b), _codes(c), spec=spec).view(dtype)
    return complex_product(a, b, c, spec)


def complex_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, spec: DotSpec) -> np.ndarray:
    """Return D = C + A·B of complex numbers whose parts are sums by a rule.

    Parameters
    ----------
    a, b, c : (..., M, K), (..., K, N), (..., M, N) ndarray of complex64
    spec : DotSpec
        The rule of a part of D, in FP32. A block of it has half as many elements as terms.
    """
    # A complex block of K becomes real blocks of 2K with the parts of the elements interleaved.
    (a_r, a_i), (b_r, b_i), (c_r, c_i) = ((np.real(x), np.imag(x)) for x in (a, b, c))
    # Re D = Σ a_r·b_r + (−a_i)·b_i and Im D = Σ a_r·b_i + a_i·b_r; a change of sign is exact.
    left = _interleave(a_r, -a_i, axis=-1), _interleave(a_r, a_i, axis=-1)
    right = _interleave(b_r, b_i, axis=-2), _interleave(b_i, b_r, axis=-2)
    parts = [
        mmad_any(_codes(x), _codes(y), _codes(z), spec=spec).view(np.float32)
        for x, y, z in zip(left, right, (c_r, c_i), strict=True)
    ]
    return np.stack(parts, axis=-1).view(np.complex64)[..., 0]


def _checked(values: ArrayLike, dtype: np.dtype, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {dtype.name}, not {array.dtype.name}")
    return array


def _codes(array: np.ndarray) -> np.ndarray:
    """Return the bit patterns of floating-point values."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _interleave(first: np.ndarray, second: np.ndarray, *, axis: int) -> np.ndarray:
    """Return first[0], second[0], first[1], … along an axis, which becomes twice as long."""
    both = np.stack([first, second], axis=axis)
    shape = list(first.shape)
    shape[axis] *= 2
    return both.reshape(shape)
