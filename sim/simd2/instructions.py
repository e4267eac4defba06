"""The matrix instructions of a SIMD² machine: their operands, and how many a product takes."""

from dataclasses import dataclass, field, fields

import numpy as np

from vitruvian.common.validate import ceil_div

#: Rows, columns and depth of a matrix instruction (Zhang 2024, Table 3.2).
TILE = 16

#: Depth of an instruction whose A is compressed 2:4: 16×16 values stand for 16×32 elements.
DEEP = 32

#: Kinds of fragments, as Zhang 2024 (Table 3.3) names them.
KINDS = ("matrixa", "matrixb", "accum")


def tiles(size: int, tile: int = TILE) -> int:
    """Return the number of tiles that cover ``size`` elements."""
    return ceil_div(size, tile)


@dataclass(frozen=True)
class Counts:
    """Numbers of instructions by kind.

    Attributes
    ----------
    loads, stores : int
        16×16 fragments moved between memory and registers: two operands for each ``mmo`` (three if
        A is compressed, because B is then twice as deep), and C and D of each output tile.
    fills : int
        Fragments set to one value: C, if the caller gives no C.
    mmo : int
        Matrix operations, 16×16×16 each, or 16×16×32 with a compressed A.
    sparse : int
        Matrix operations with a compressed A; they are included in ``mmo``.
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
        """Return the counts of C ⊕ (A ⊗ B), for m × k and k × n matrices.

        Parameters
        ----------
        m, n, k : int
            Sizes in elements. If A is compressed, ``k`` is the depth of the expanded matrix.
        c : bool
            If True, C is loaded; otherwise its fragments are filled.
        sparse : bool
            If True, A is compressed 2:4.
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
        Depth of the operation that uses the fragment: 16, or 32 if A is compressed.
    values : (16, 16) ndarray of float16, bfloat16 or float32
        The elements. A ``matrixb`` of depth 32 is (32, 16); an accumulator is always float32.
    indices : (16, 16) ndarray of uint8, or None
        For a ``matrixa`` of depth 32, the index of each value in its group of four elements, see
        ``golden.simd2.compress``. None for every other fragment.
    """

    kind: str
    k: int
    values: np.ndarray = field(repr=False)
    indices: np.ndarray | None = field(default=None, repr=False)
