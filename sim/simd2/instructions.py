"""The matrix instructions of a SIMD² machine: their operands, and how many a problem takes."""

from dataclasses import dataclass, field, fields

import numpy as np

__all__ = ["DEEP", "KINDS", "TILE", "Counts", "Fragment", "tiles"]

#: Rows, columns and depth of a matrix instruction (Zhang 2024, Table 3.2).
TILE = 16

#: Depth of one whose A is compressed 2:4: a fragment of 16×16 values stands for 16×32 elements.
DEEP = 32

KINDS = ("matrixa", "matrixb", "accum")


def tiles(size: int, tile: int = TILE) -> int:
    """Tiles that a row, a column or a depth takes."""
    return -(-size // tile)


@dataclass(frozen=True)
class Counts:
    """Instructions by kind.

    Attributes
    ----------
    loads, stores : int
        16×16 fragments moved: two operands for each ``mmo`` (three if A is compressed: B is twice
        as long), and C and D of each output tile.
    fills : int
        Fragments set to one value: C where none is given.
    mmo : int
        Matrix operations, 16×16×16 each, or 16×16×32 with a compressed A.
    sparse : int
        How many of them have a compressed A.
    """

    loads: int = 0
    stores: int = 0
    fills: int = 0
    mmo: int = 0
    sparse: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)))

    def __sub__(self, other: "Counts") -> "Counts":
        return self + other * -1

    def __mul__(self, times: int) -> "Counts":
        return Counts(*(getattr(self, f.name) * times for f in fields(Counts)))

    @classmethod
    def of(cls, m: int, n: int, k: int, *, c: bool = True, sparse: bool = False) -> "Counts":
        """Of C ⊕ (A ⊗ B) on m × k and k × n elements; without ``c``, C is filled.

        With ``sparse``, A is compressed 2:4 and k is the depth of what it stands for.
        """
        output = tiles(m) * tiles(n)
        depth = tiles(k, DEEP if sparse else TILE)
        return cls(
            loads=output * ((3 if sparse else 2) * depth + bool(c)),
            stores=output,
            fills=output * (not c),
            mmo=output * depth,
            sparse=output * depth * sparse,
        )


@dataclass
class Fragment:
    """A matrix in registers.

    Attributes
    ----------
    kind : {"matrixa", "matrixb", "accum"}
    k : int
        Depth of the operation it is for: 16, or 32 where A is compressed.
    values : (16, 16) ndarray, (32, 16) for a ``matrixb`` of depth 32
        Of float16, bfloat16 or float32; an accumulator is float32.
    indices : (16, 16) ndarray of uint8, or None
        Of a ``matrixa`` of depth 32: places in the groups of four, see `golden.simd2.compress`.
    """

    kind: str
    k: int
    values: np.ndarray = field(repr=False)
    indices: np.ndarray | None = field(default=None, repr=False)
