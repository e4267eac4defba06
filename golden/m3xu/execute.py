"""Execution of a matrix instruction on arrays of values."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import check_type
from vitruvian.golden.m3xu.gemm import gemm
from vitruvian.golden.m3xu.isa import Instruction, Opcode


def execute(
    instruction: Instruction | Opcode,
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    **unit: Any,
) -> np.ndarray:
    """Return the D of one instruction: ``gemm`` with exactly its shape, in the unit's blocks of K.

    Parameters
    ----------
    instruction : Instruction or Opcode
        With an opcode alone, ``c`` is optional.
    a : (..., M, K) array_like of the precision's operand dtype
    b : (..., K, N) array_like of the same dtype
    c : (..., M, N) array_like of the precision's result dtype, optional
        Required if the instruction adds C, and not allowed otherwise.
    **unit
        ``k``, ``multiplier_bits``, ``preset`` and ``window`` of the unit, as in ``gemm``.

    Returns
    -------
    (..., M, N) ndarray of the precision's result dtype

    Raises
    ------
    TypeError
        If an array has the wrong dtype, or ``instruction`` the wrong type.
    ValueError
        If an array has the wrong shape, or if ``c`` is missing or not allowed.
    """
    check_type("instruction", instruction, Instruction, Opcode)
    opcode = instruction
    if isinstance(instruction, Instruction):
        opcode = instruction.opcode
        if instruction.accumulates != (c is not None):
            expected = "given" if instruction.accumulates else "None"
            raise ValueError(f"c must be {expected} in {instruction}")
    assert isinstance(opcode, Opcode)
    for name, operand in (("a", a), ("b", b), ("c", c)):
        fragment = opcode.fragment(name)
        shape = fragment.rows, fragment.columns
        if operand is not None and np.shape(operand)[-2:] != shape:
            raise ValueError(
                f"{name} must be (..., {shape[0]}, {shape[1]}) in {opcode.mnemonic}, "
                f"not {np.shape(operand)}"
            )
    return gemm(a, b, c, precision=opcode.precision, **unit)
