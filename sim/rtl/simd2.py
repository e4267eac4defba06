"""Matrices of values through a compiled unit with semirings."""

import ml_dtypes
import numpy as np

from vitruvian.golden.simd2 import Op, as_op
from vitruvian.hdl.cube import CONFIGS, MatrixUnitConfig

from .cube import CubeProduct, matmul

__all__ = ["UNIT", "UNIT_FP32", "compute", "mmo"]

UNIT = CONFIGS["simd2_4x4"]
#: FP32 operands: the same rows, columns and terms of a sum, and one pair a beat of the others.
UNIT_FP32 = MatrixUnitConfig(
    m=4,
    n=4,
    k=8,
    precisions=("fp32",),
    operations=tuple(op.mnemonic for op in Op if op is not Op.ADDNORM),
)
#: What operands may be, and the precision that it is.
_PRECISIONS = {"float16": "fp16", "float32": "fp32"}


def mmo(op: Op | str, a, b, c=None, *, config: MatrixUnitConfig = UNIT) -> np.ndarray:
    """D = C ⊕ (A ⊗ B) of FP16 matrices, or of FP32 ones on a unit for them; see `compute`.

    Bit for bit as `golden.simd2.mmo` with the terms of the unit's sums, ``squares="products"``.
    """
    return compute(op, a, b, c, config=config).d


def compute(
    op: Op | str,
    a,
    b,
    c=None,
    *,
    config: MatrixUnitConfig = UNIT,
    places=None,
    stall_rate: float = 0.0,
    threads: int = 1,
) -> CubeProduct:
    """The same with the cycles it took.

    Parameters
    ----------
    op : Op or str
        One of ``config.operations``.
    a : (..., M, K) ndarray of float16 or float32
        Of a precision that the unit has; on one with ``fp32`` all operations but mma are on that.
        Numbers of int8 are taken as the FP16 ones they are, and where ⊕ is no sum those of bfloat16
        as FP32.
    b : (..., K, N) ndarray of the same
    c : (..., M, N) ndarray of float32, optional
        The identity of ⊕ by default.
    places : (..., M, K) ndarray of uint8, optional
        With A compressed 2:4 on a unit with sparsity, see `golden.simd2.compress`; B has 2·K rows.

    Returns
    -------
    CubeProduct
        ``d`` of float32.

    Raises
    ------
    TypeError
        For arrays of another dtype.
    ValueError
        For shapes that do not fit, and an operation that the unit does not have.
    """
    a, b = (_of_the_unit(np.asarray(x), as_op(op)) for x in (a, b))
    names = [name for name, p in _PRECISIONS.items() if p in config.precisions]
    for name, array, allowed in (("a", a, names), ("b", b, [a.dtype.name])):
        if array.dtype.name not in allowed:
            able = " or ".join(allowed)
            raise TypeError(f"{name} must be {able} on the RTL, not {array.dtype.name}")
    bits = np.dtype(f"u{a.dtype.itemsize}")
    codes = None
    if c is not None:
        c = np.asarray(c)
        if c.dtype != np.float32:
            raise TypeError(f"c must be float32, not {c.dtype.name}")
        codes = np.ascontiguousarray(c).view(np.uint32)
    found = matmul(
        config,
        np.ascontiguousarray(a).view(bits),
        np.ascontiguousarray(b).view(bits),
        codes,
        precision=_PRECISIONS[a.dtype.name],
        operation=as_op(op).mnemonic,
        places=places,
        stall_rate=stall_rate,
        threads=threads,
    )
    return CubeProduct(
        d=found.d.view(np.float32),
        beats=found.beats,
        steps=found.steps,
        cycles=found.cycles,
        streams=found.streams,
    )


def _of_the_unit(array: np.ndarray, op: Op) -> np.ndarray:
    """The same numbers in a format that units with semirings have."""
    if array.dtype == np.int8:
        return array.astype(np.float16)
    if array.dtype == ml_dtypes.bfloat16 and op.plus != "add":
        return array.astype(np.float32)
    return array
