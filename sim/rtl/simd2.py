"""Matrices of values through a compiled unit with semirings."""

import numpy as np

from golden.simd2 import Op, as_op
from hdl.cube import CONFIGS, MatrixUnitConfig

from .cube import CubeProduct, matmul

__all__ = ["UNIT", "compute", "mmo"]

UNIT = CONFIGS["simd2_4x4"]


def mmo(op: Op | str, a, b, c=None, *, config: MatrixUnitConfig = UNIT) -> np.ndarray:
    """D = C ⊕ (A ⊗ B) of FP16 matrices; see `compute`.

    Bit for bit as `golden.simd2.mmo` with the unit's k, and ``squares="products"``.
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
    a : (..., M, K) ndarray of float16
    b : (..., K, N) ndarray of float16
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
    a, b = np.asarray(a), np.asarray(b)
    for name, array in (("a", a), ("b", b)):
        if array.dtype != np.float16:
            raise TypeError(f"{name} must be float16 on the RTL, not {array.dtype.name}")
    codes = None
    if c is not None:
        c = np.asarray(c)
        if c.dtype != np.float32:
            raise TypeError(f"c must be float32, not {c.dtype.name}")
        codes = np.ascontiguousarray(c).view(np.uint32)
    found = matmul(
        config,
        np.ascontiguousarray(a).view(np.uint16),
        np.ascontiguousarray(b).view(np.uint16),
        codes,
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
