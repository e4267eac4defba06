"""The size of a matrix unit, and what products cost on it in instructions and cycles."""

from dataclasses import dataclass

from vitruvian.golden.fp import PRESETS
from vitruvian.golden.m3xu import as_precision
from vitruvian.validate import check_int, one_of

__all__ = ["INSTRUCTIONS", "Cost", "Unit"]

#: (M, N, K) of the matrix instruction of each precision. K is two blocks of an 8-lane unit:
#: 32 bytes of a row. FP64, which the source has no shape for, gets two blocks of a 10-lane unit.
#: Source: Zhang 2024, Table 2.2, with Ampere's longer TF32 instruction (m16n8k8).
INSTRUCTIONS = {
    "fp16": (16, 8, 16),
    "bf16": (16, 8, 16),
    "tf32": (16, 8, 8),
    "fp32": (16, 8, 8),
    "fp32c": (16, 8, 4),
    "fp64": (16, 8, 4),
}


@dataclass(frozen=True)
class Cost:
    """What products took.

    Attributes
    ----------
    products : int
        Multiplications of elements, complex ones in FP32C.
    instructions : int
        Matrix instructions; the operands are filled up to whole ones.
    tiles : int
        Blocks of the unit's own size; the operands are filled up to whole ones.
    cycles : int
        Passes through the multipliers: tiles times the precision's steps, and nothing else.
    clocks : int
        Clock cycles that hardware took for it, by its hand-shakes; 0 if no hardware computed it.
    """

    products: int = 0
    instructions: int = 0
    tiles: int = 0
    cycles: int = 0
    clocks: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.products + other.products,
            self.instructions + other.instructions,
            self.tiles + other.tiles,
            self.cycles + other.cycles,
            self.clocks + other.clocks,
        )


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A matrix unit: rows, columns, lanes along K, width of its multipliers.

    Attributes
    ----------
    m, n : int
        Rows of A and columns of B that it takes at a time.
    k : int
        Lanes of 16 bits.
    multiplier_bits : int
    preset : str
        Accuracy of the precisions that take one step, a name in `golden.fp.PRESETS`.

    Raises
    ------
    TypeError, ValueError
        For a size below 1, multipliers outside 4 … 64 bits, or an unknown preset.
    """

    m: int = 8
    n: int = 4
    k: int = 8
    multiplier_bits: int = 12
    preset: str = "ieee"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            check_int(name, getattr(self, name), 1)
        check_int("multiplier_bits", self.multiplier_bits, 4, 64)
        one_of("preset", self.preset, PRESETS)

    def __str__(self) -> str:
        return (
            f"{self.m}×{self.n}×{self.k} lanes, {self.multiplier_bits}-bit multipliers, "
            f"{self.preset}"
        )

    def check(self, precision: str) -> None:
        """Refuse a precision that this unit cannot compute.

        Raises
        ------
        ValueError
            If the preset does not have it, or the lanes do not hold whole elements.
        """
        as_precision(precision).spec(
            k=self.k, multiplier_bits=self.multiplier_bits, preset=self.preset
        )

    def cost(self, precision: str, m: int, n: int, k: int, *, batch: int = 1) -> Cost:
        """Cost of ``batch`` products of an m × k by a k × n matrix.

        Raises
        ------
        ValueError
            If the unit's lanes do not hold whole elements of this precision.
        """
        kind = as_precision(precision)
        elements = kind.elements(self.k, self.multiplier_bits)
        rows, columns, depth = INSTRUCTIONS[kind.name]
        tiles = batch * _up(m, self.m) * _up(n, self.n) * _up(k, elements)
        return Cost(
            products=batch * m * n * k,
            instructions=batch * _up(m, rows) * _up(n, columns) * _up(k, depth),
            tiles=tiles,
            cycles=tiles * kind.steps(self.multiplier_bits),
        )


def _up(size: int, step: int) -> int:
    return -(-size // step)
