"""The size of a matrix unit, and the instructions and cycles that products take on it."""

from dataclasses import dataclass

from vitruvian.common.validate import ceil_div, check_int, one_of
from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.m3xu.isa import Opcode
from vitruvian.golden.machines.presets import PRESETS

#: (M, N, K) of the matrix instruction of each precision. TF32 has two instructions (Zhang 2024,
#: Table 2.2, and Ampere's longer m16n8k8); the longer one is counted.
INSTRUCTIONS = {
    opcode.precision.name: opcode.shape for opcode in Opcode if opcode is not Opcode.TF32_K4
}


@dataclass(frozen=True)
class Cost:
    """The work of matrix products on a unit.

    Attributes
    ----------
    products : int
        Multiplications of elements. FP32C counts complex multiplications.
    instructions : int
        Matrix instructions. Operands are padded to whole instructions.
    tiles : int
        Blocks of the unit's own size. Operands are padded to whole blocks.
    model_cycles : int
        Passes through the multipliers: ``tiles`` times the steps of the precision. Loading,
        latency and everything else are not included.
    measured_cycles : int
        Clock cycles that hardware took, counted by its hand-shakes; 0 if no hardware computed.
    """

    products: int = 0
    instructions: int = 0
    tiles: int = 0
    model_cycles: int = 0
    measured_cycles: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.products + other.products,
            self.instructions + other.instructions,
            self.tiles + other.tiles,
            self.model_cycles + other.model_cycles,
            self.measured_cycles + other.measured_cycles,
        )


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A matrix unit: rows, columns, lanes along K, and the width of its multipliers.

    Attributes
    ----------
    m, n : int
        Rows of A and columns of B that the unit takes at a time.
    k : int
        Lanes of 16 bits along K.
    multiplier_bits : int
        Width of the multipliers in bits, 4 to 64.
    preset : str
        Accuracy of the precisions that take one step, a name in ``golden.machines.PRESETS``.

    Raises
    ------
    TypeError, ValueError
        If a size is below 1, the multipliers are not 4 to 64 bits wide, or the preset is unknown.
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
        """Check that this unit can compute in a precision.

        Raises
        ------
        ValueError
            If the preset does not have the precision, or an element does not fit the lanes a whole
            number of times.
        """
        as_precision(precision).spec(
            k=self.k, multiplier_bits=self.multiplier_bits, preset=self.preset
        )

    def cost(self, precision: str, m: int, n: int, k: int, *, batch: int = 1) -> Cost:
        """Return the cost of ``batch`` products of an m × k by a k × n matrix.

        Parameters
        ----------
        m, n, k : int
            Sizes in elements.
        batch : int
            Number of such products.

        Raises
        ------
        ValueError
            If an element of this precision does not fit the lanes a whole number of times.
        """
        kind = as_precision(precision)
        elements = kind.elements(self.k, self.multiplier_bits)
        rows, columns, depth = INSTRUCTIONS[kind.name]
        tiles = batch * ceil_div(m, self.m) * ceil_div(n, self.n) * ceil_div(k, elements)
        return Cost(
            products=batch * m * n * k,
            instructions=batch * ceil_div(m, rows) * ceil_div(n, columns) * ceil_div(k, depth),
            tiles=tiles,
            model_cycles=tiles * kind.steps(self.multiplier_bits),
        )
