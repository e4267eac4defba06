"""What a matrix instruction computes, on arrays of values."""

import numpy as np

from vitruvian.golden.m3xu.gemm import gemm
from vitruvian.golden.m3xu.isa import Instruction, Opcode

__all__ = ["execute"]


def execute(instruction: Instruction | Opcode, a, b, c=None, **unit) -> np.ndarray:
    """D of one instruction: `gemm` of exactly its shape, in the unit's blocks of K.

    Parameters
    ----------
    instruction : Instruction or Opcode
        An opcode alone takes C or not.
    a : (..., M, K) ndarray
        Of the precision's operand dtype.
    b : (..., K, N) ndarray
    c : (..., M, N) ndarray, optional
        Of its result dtype; where and only where the instruction adds it.
    **unit
        ``k``, ``multiplier_bits``, ``preset`` and ``window`` of the unit, as `gemm` has them.

    Returns
    -------
    (..., M, N) ndarray

    Raises
    ------
    TypeError, ValueError
        For arrays of another dtype or shape, or a C too many or too few.
    """
    if not isinstance(instruction, Instruction | Opcode):
        raise TypeError(f"instruction must be an Instruction or an Opcode, not {instruction!r}")
    opcode = instruction
    if isinstance(instruction, Instruction):
        opcode = instruction.opcode
        if instruction.accumulates != (c is not None):
            wanted = "given" if instruction.accumulates else "None"
            raise ValueError(f"c must be {wanted} in {instruction}")
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
