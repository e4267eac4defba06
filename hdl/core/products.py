"""The products that the tile of a core computes: dtypes, operations, terms and cycles of a beat."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from amaranth.hdl import Cat, Const, Mux, Value

from vitruvian.golden.core.encoding import DTYPES, PRODUCTS

from ..cube.choices import INT8
from ..cube.config import MatrixUnitConfig
from .record import dtype_code, part

#: The operation of an instruction that names none.
PLAIN = PRODUCTS[0]
#: Bits of a word of L0C.
SUM_BITS = 32
#: Rows of a fractal, which are the most banks of L0C.
ROWS = 16
_BYTE = 8


@dataclass(frozen=True, kw_only=True)
class Product:
    """A dtype of operands and an operation on them, and what a beat of it is.

    Attributes
    ----------
    dtype, operation : str
        The dtype of A and B, and a name in ``PRODUCTS``.
    sums : str
        The dtype of C.
    sum_words : int
        Words of 32 bits of an element of C.
    precision, code : int
        Codes of precision and operation at the matrix unit.
    parts : int
        Results of a beat, each of a slot of its own: 2 if they are complex, else 1.
    terms : int
        Elements of a row of A in a beat.
    element_bytes : int
    cycles : int
        Cycles of a beat: the steps of a precision of several limbs.
    again : int
        Least cycles from a beat to the first step of the next one in its slot.
    """

    dtype: str
    operation: str
    sums: str
    sum_words: int
    precision: int
    code: int
    parts: int
    terms: int
    element_bytes: int
    cycles: int
    again: int

    @property
    def name(self) -> str:
        """The key of the product in chip files: dtype, and the operation if it is no mma."""
        return self.dtype if self.operation == PLAIN else f"{self.dtype} {self.operation}"

    @property
    def nbytes(self) -> int:
        """Bytes of a row of A in a beat, a power of two."""
        return self.terms * self.element_bytes

    @property
    def compares(self) -> bool:
        """True if a pair of NaNs changes no result; else a pair of zeros does not."""
        return self.operation not in (PLAIN, "addnorm")


@lru_cache
def products_of(tile: MatrixUnitConfig) -> tuple[Product, ...]:
    """Return the products that a core with this tile has: at least one.

    A tile can have more precisions: results of 64 bits of more than 8 rows would need more banks
    than a fractal has rows, and results of 16 bits have no place in L0C.

    Raises
    ------
    ValueError
        If there is no product, or A is compressed, for which the machine code has no indices.
    """
    if tile.sparsity:
        raise ValueError(f"tile must have no sparsity, not {tile}")
    found = []
    for precision in tile.precisions:
        parts = 1 + (precision in tile.complex_precisions)
        words = tile.result_bits(precision) * parts // SUM_BITS
        if precision not in DTYPES or not words or words * tile.m > ROWS:
            continue
        for operation in tile.operations:
            semiring = operation != PLAIN
            if semiring and precision != ("fp32" if tile.one_pair else "fp16"):
                continue
            # A semiring reads its slot when it writes the result, and waits for none before.
            late = semiring and operation != "addnorm"
            found.append(
                Product(
                    dtype=precision,
                    operation=operation,
                    sums=_sums(precision, words),
                    sum_words=words,
                    precision=tile.precisions.index(precision),
                    code=tile.operations.index(operation),
                    parts=parts,
                    terms=tile.pairs(operation) if semiring else tile.terms(precision) // parts,
                    element_bytes=tile.operand_bits(precision) * parts // _BYTE,
                    cycles=tile.steps(precision),
                    again=1 if late else _again(tile, precision, parts),
                )
            )
    whole = [p for p in found if p.nbytes & (p.nbytes - 1) == 0 and p.nbytes <= 2 * tile.k]
    if not whole:
        raise ValueError(
            f"tile must have sums of 32 bits, or of 64 in at most 8 rows, in beats of a power of "
            f"two of bytes, not {tile}"
        )
    return tuple(whole)


def _sums(precision: str, words: int) -> str:
    if words > 1:
        return precision
    return "int32" if precision == INT8 else "fp32"


def _again(tile: MatrixUnitConfig, precision: str, parts: int) -> int:
    """Return the cycles after which a slot can go on.

    A part of a complex sum waits for its own slot, while the other part is computed.
    """
    other = tile.steps(precision) - tile.steps(precision) // parts
    return max(tile.slot_cycles - tile.read_cycles - other, 1)


class Chosen:
    """The product of an instruction in hardware; one that the tile lacks counts as the first."""

    def __init__(self, record: Value, products: Sequence[Product]):
        self._products = products
        dtype, operation = part(record, "mmad", "a.dtype"), part(record, "mmad", "operation")
        dtypes = {p.dtype for p in products}
        operations = {p.operation for p in products}
        self._is = [
            Cat(
                *([dtype == dtype_code(p.dtype)] if len(dtypes) > 1 else []),
                *([operation == PRODUCTS.index(p.operation)] if len(operations) > 1 else []),
            ).all()
            for p in products
        ]

    def value(self, of: Callable[[Product], int]) -> Value:
        """Return a number of the product; a constant if all products have the same one."""
        numbers = [of(p) for p in self._products]
        width = max(numbers).bit_length()
        result: Value = Const(numbers[0], width)
        if len(set(numbers)) == 1:
            return result
        for chosen, number in zip(self._is, numbers, strict=True):
            if number != numbers[0]:
                result = Mux(chosen, Const(number, width), result)
        return result
