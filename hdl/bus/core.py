"""The matrix unit behind a bus: its parameters, and the sizes of its operands and results."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Shape

from vitruvian.common.validate import check_int
from vitruvian.golden.simd2.op import Op

from ..cube.choices import LANE_BITS, PRECISIONS
from ..cube.config import MatrixUnitConfig
from ..cube.ports import fractal_layout
from ..cube.unit import MatrixUnit
from ..mma.unit import QUEUE_CYCLES, MmaUnit
from ..simd2.intconfig import IntConfig
from .integer import IntUnit

#: Components of which equal instances may be elaborated once, in all kinds of units.
SHARED = (*MatrixUnit.shared, *IntUnit.shared)

#: The kinds of matrix units; a unit's code in the register map is its index.
KINDS = ("cube", "simd2-int", "mma")


@dataclass(frozen=True, kw_only=True)
class BusCore:
    """The matrix unit behind a bus.

    Parameters
    ----------
    config : MatrixUnitConfig or IntConfig
        The parameters of a ``MatrixUnit``, of the tile of an ``MmaUnit``, or of an ``IntTile``.
    ahead : int, optional
        Number of beats that an ``MmaUnit`` may request ahead, 2 to 64. With it, the unit runs
        instructions.

    Raises
    ------
    TypeError
        If ``config`` is not one of these, or if an ``IntConfig`` comes with ``ahead``.
    ValueError
        If ``ahead`` is out of range.
    """

    config: MatrixUnitConfig | IntConfig
    ahead: int | None = None

    def __post_init__(self):
        if not isinstance(self.config, MatrixUnitConfig | IntConfig):
            raise TypeError(
                f"config must be a MatrixUnitConfig or an IntConfig, not {self.config!r}"
            )
        if self.ahead is not None:
            check_int("ahead", self.ahead, 2, 64)
            if isinstance(self.config, IntConfig):
                raise TypeError("ahead must come with a MatrixUnitConfig, not with an IntConfig")

    @property
    def kind(self) -> str:
        """The kind of the unit, one of ``KINDS``."""
        if isinstance(self.config, IntConfig):
            return "simd2-int"
        return "cube" if self.ahead is None else "mma"

    @property
    def matrix_unit(self) -> MatrixUnitConfig:
        """The parameters of the ``MatrixUnit``.

        Raises
        ------
        TypeError
            If the unit is an ``IntTile``.
        """
        if isinstance(self.config, IntConfig):
            raise TypeError(f"config must be a MatrixUnitConfig, not {self.config!r}")
        return self.config

    def build(self) -> Any:
        """Return the unit, with its streams."""
        if isinstance(self.config, IntConfig):
            return IntUnit(config=self.config)
        if self.ahead is None:
            return MatrixUnit(config=self.config)
        return MmaUnit(config=self.config, ahead=self.ahead)

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions in the order of their codes; none if all operands are plain integers."""
        return self.config.precisions if isinstance(self.config, MatrixUnitConfig) else ()

    @property
    def operations(self) -> tuple[Op, ...]:
        """The operations in the order of their codes."""
        config = self.config
        return config.operations if isinstance(config, IntConfig) else config.ops

    @property
    def a_bits(self) -> int:
        """Bits of the fractal of A in one beat."""
        config = self.config
        row = config.k * config.bits if isinstance(config, IntConfig) else config.bus_bits
        return config.m * row

    @property
    def b_bits(self) -> int:
        """Bits of the fractal of B in one beat."""
        config = self.config
        column = config.k * config.bits if isinstance(config, IntConfig) else config.b_bus_bits
        return config.n * column

    @property
    def index_bits(self) -> int:
        """Bits of the indices of A in one beat; 0 without sparsity."""
        config = self.config
        return 0 if isinstance(config, IntConfig) else config.m * config.index_bits

    @property
    def word_bits(self) -> int:
        """Bits of a word of C and D."""
        config = self.config
        return config.bits if isinstance(config, IntConfig) else config.word_bits

    @property
    def d_bits(self) -> int:
        """Bits of a fractal of C or D."""
        config = self.config
        if isinstance(config, MatrixUnitConfig):
            return Shape.cast(fractal_layout(config)).width
        return config.m * config.n * config.bits

    @property
    def lane_bits(self) -> int:
        """Bits of a lane on the buses of A and B."""
        return self.config.bits if isinstance(self.config, IntConfig) else LANE_BITS

    @property
    def latency(self) -> int:
        """Cycles from the transfer of a beat to the earliest transfer of its result."""
        if isinstance(self.config, IntConfig):
            return self.config.pipeline + 3
        return self.config.latency_cycles + (0 if self.ahead is None else QUEUE_CYCLES)

    @property
    def slot_count(self) -> int:
        """Number of C fractals that the unit holds."""
        return 1 if isinstance(self.config, IntConfig) else self.config.slot_count

    @property
    def results_held(self) -> int:
        """Largest number of results between the transfers of their beats and their own."""
        if isinstance(self.config, IntConfig):
            return self.config.pipeline + 4
        return self.slot_count + (self.ahead or 0)

    @property
    def precision_mask(self) -> int:
        """One bit for each precision of the unit, in the order of ``hdl.cube.choices``."""
        return sum(1 << PRECISIONS.index(name) for name in self.precisions)

    @property
    def operation_mask(self) -> int:
        """One bit for each operation of the unit, at its opcode."""
        return sum(1 << op.code for op in self.operations)
