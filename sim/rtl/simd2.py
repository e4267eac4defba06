"""Matrix operations on semirings, on values, on the compiled RTL of a unit."""

import ml_dtypes
import numpy as np

from vitruvian.golden.simd2 import Op, as_op
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig

from .cube import CubeProduct, matmul

UNIT = CONFIGS["simd2_4x4"]
#: A unit for FP32 operands with the same rows, columns and terms of a sum. Its other operations
#: take one pair of elements in a beat.
UNIT_FP32 = MatrixUnitConfig(
    m=4,
    n=4,
    k=8,
    precisions=("fp32",),
    operations=tuple(op.mnemonic for op in Op if op is not Op.ADDNORM),
)
#: Precision of the unit by dtype of the operands.
_PRECISIONS = {"float16": "fp16", "float32": "fp32"}


def mmo(op: Op | str, a, b, c=None, *, config: MatrixUnitConfig = UNIT) -> np.ndarray:
    """Compute D = C ⊕ (A ⊗ B) and return D; see ``compute``.

    The result is bit-exact with ``golden.simd2.mmo`` for ``squares="products"`` and a ``k`` that is
    the number of terms in a sum of the unit.
    """
    return compute(op, a, b, c, config=config).d


def compute(
    op: Op | str,
    a,
    b,
    c=None,
    *,
    config: MatrixUnitConfig = UNIT,
    indices=None,
    stall_rate: float = 0.0,
    threads: int = 1,
) -> CubeProduct:
    """Compute D = C ⊕ (A ⊗ B), and count the clock cycles.

    Parameters
    ----------
    op : Op or str
        One of ``config.operations``.
    a : (..., M, K) ndarray of float16 or float32
        A matrix in a precision of the unit. On a unit with ``fp32``, all operations except mma work
        on FP32. An array of int8 is converted to FP16; an array of bfloat16 is converted to FP32,
        unless ⊕ is a sum. Both conversions are exact.
    b : (..., K, N) ndarray
        A matrix of the same dtype as ``a``.
    c : (..., M, N) ndarray of float32, optional
        The identity of ⊕ by default.
    config : MatrixUnitConfig
        Configuration of the unit.
    indices : (..., M, K) ndarray of uint8, optional
        On a unit with sparsity, the indices that ``golden.simd2.compress`` returns with ``a``; B
        then has 2·K rows.
    stall_rate : float
        Probability that a stream is idle in a cycle.
    threads : int
        Number of instances of the model.

    Returns
    -------
    product : CubeProduct
        Its array ``d`` is float32.

    Raises
    ------
    TypeError
        If an array has another dtype.
    ValueError
        If shapes do not match, or the unit lacks the operation.
    """
    a, b = (_converted(np.asarray(x), as_op(op)) for x in (a, b))
    names = [name for name, p in _PRECISIONS.items() if p in config.precisions]
    for name, array, allowed in (("a", a, names), ("b", b, [a.dtype.name])):
        if array.dtype.name not in allowed:
            dtypes = " or ".join(allowed)
            raise TypeError(f"{name} must be {dtypes} on the RTL, not {array.dtype.name}")
    bits = np.dtype(f"u{a.dtype.itemsize}")
    codes = None
    if c is not None:
        c = np.asarray(c)
        if c.dtype != np.float32:
            raise TypeError(f"c must be float32, not {c.dtype.name}")
        codes = np.ascontiguousarray(c).view(np.uint32)
    product = matmul(
        config,
        np.ascontiguousarray(a).view(bits),
        np.ascontiguousarray(b).view(bits),
        codes,
        precision=_PRECISIONS[a.dtype.name],
        operation=as_op(op).mnemonic,
        indices=indices,
        stall_rate=stall_rate,
        threads=threads,
    )
    return CubeProduct(
        d=product.d.view(np.float32),
        beats=product.beats,
        steps=product.steps,
        cycles=product.cycles,
        streams=product.streams,
    )


def _converted(array: np.ndarray, op: Op) -> np.ndarray:
    """Return the same numbers in a format that units with semirings have."""
    if array.dtype == np.int8:
        return array.astype(np.float16)
    if array.dtype == ml_dtypes.bfloat16 and op.plus != "add":
        return array.astype(np.float32)
    return array
