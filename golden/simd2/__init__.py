"""SIMD²: the matrix operations D = C ⊕ (A ⊗ B) of nine semirings."""

from vitruvian.golden.simd2.integer import int_identity, int_mmo
from vitruvian.golden.simd2.matrix import mmo
from vitruvian.golden.simd2.op import Op, Semiring, as_op
from vitruvian.golden.simd2.sparse import compress, expand, is_two_of_four, mmo_sparse

__all__ = [
    "Op",
    "Semiring",
    "as_op",
    "compress",
    "expand",
    "int_identity",
    "int_mmo",
    "is_two_of_four",
    "mmo",
    "mmo_sparse",
]
