"""SIMD²: matrix operations D = C ⊕ (A ⊗ B) of nine semirings."""

from golden.simd2.integer import int_identity, int_mmo
from golden.simd2.matrix import mmo
from golden.simd2.op import Op, Semiring, as_op

__all__ = ["Op", "Semiring", "as_op", "int_identity", "int_mmo", "mmo"]
