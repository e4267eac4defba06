"""The parameters of a core, and its named presets."""

from dataclasses import dataclass, replace
from types import MappingProxyType

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.core.encoding import UNITS

from ..cube import CONFIGS
from ..cube.config import MatrixUnitConfig
from ..vector.config import VectorConfig
from ..vector.extension import ExtensionConfig
from .ports import BLOCK_BYTES
from .products import ROWS, products_of

_KIB = 1024
#: What unit S can be.
SCALARS = ("stream", "riscv")
#: Flags from one unit to another.
FLAGS = 8
#: Bytes of a fractal of operands.
FRACTAL_BYTES = 512
#: Bytes of a repeat of V.
REPEAT_BYTES = 256
#: V has no operations beside those of the vector unit.
NO_EXTENSION = ExtensionConfig(groups=())


@dataclass(frozen=True, kw_only=True)
class CoreConfig:
    """The parameters of a core.

    Parameters
    ----------
    tile : MatrixUnitConfig
        The matrix unit. Its rows and columns are powers of two from 2 to 16, a row of its operands
        has 2 to 32 bytes, and it has a product of ``products_of``.
    vector : VectorConfig
        The vector unit, with 16 to 128 lanes: one to eight blocks of 32 bytes a cycle.
    l1, l0a, l0b, l0c, ub : int
        Bytes of the buffers.
    extension : ExtensionConfig
        The groups of operations that V has beside the vector unit, by default none.
    transposes : bool
        If True, V transposes fractals in UB.
    wide_images : bool
        If True, Col2Im also adds FP32. The adder of its addresses costs ``tiny`` its clock.
    fix : bool
        If True, there is a unit FIX, which moves results of L0C to global memory or L1.
    queue_words : int
        Words of instructions that wait in front of a unit.
    ahead : int
        Lines that a move reads ahead of its writes.
    l1_blocks : int
        Blocks of 32 bytes that MTE1 moves in a cycle, a power of two up to 8 and up to k.
    ub_banks : int
        Banks of UB, a power of two up to 16.
    scalar : {"stream", "riscv"}
        Unit S fetches an unrolled program, or is a RISC-V that runs the kernel.
    scalar_bytes : int
        Bytes of the RISC-V's own memory.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed.
    """

    tile: MatrixUnitConfig
    vector: VectorConfig
    l1: int
    l0a: int
    l0b: int
    l0c: int
    ub: int
    extension: ExtensionConfig = NO_EXTENSION
    transposes: bool = False
    wide_images: bool = True
    fix: bool = False
    queue_words: int = 32
    ahead: int = 8
    l1_blocks: int = 1
    ub_banks: int = 1
    scalar: str = "stream"
    scalar_bytes: int = 32 * _KIB

    def __post_init__(self) -> None:
        for name in ("l1", "l0a", "l0b", "l0c", "ub"):
            check_int(name, getattr(self, name), 2 * FRACTAL_BYTES)
            if getattr(self, name) % FRACTAL_BYTES:
                raise ValueError(f"{name} must be whole fractals of 512 bytes")
        check_int("queue_words", self.queue_words, 8)
        check_int("ahead", self.ahead, 2, 64)
        one_of("scalar", self.scalar, SCALARS)
        check_int("scalar_bytes", self.scalar_bytes, _KIB)
        one_of("l1_blocks", self.l1_blocks, (1, 2, 4, 8))
        one_of("ub_banks", self.ub_banks, (1, 2, 4, 8, 16))
        if not BLOCK_BYTES // 2 <= self.vector.lanes <= REPEAT_BYTES // 2:
            raise ValueError(f"vector must have 16 to 128 lanes, not {self.vector.lanes}")
        tile = self.tile
        for name in ("m", "n"):
            if getattr(tile, name) not in (2, 4, 8, 16):
                raise ValueError(f"tile must have {name} of 2, 4, 8 or 16, not {tile}")
        if tile.k not in (1, 2, 4, 8, 16):
            raise ValueError(f"tile must have k of 1, 2, 4, 8 or 16, not {tile}")
        products_of(tile)
        # A line is in different banks, which are as many as a fractal has rows at most.
        if self.l1_blocks > tile.k:
            raise ValueError(
                f"l1_blocks must be at most k of the tile, which is {tile.k}, not {self.l1_blocks}"
            )
        line, sums = self.lane_blocks * BLOCK_BYTES, ROWS * 4 * tile.n
        if line > sums:
            raise ValueError(
                f"vector must take at most the {sums} bytes of 16 rows of {tile.n} sums a cycle, "
                f"not {line}"
            )
        row = ROWS * 4
        if self.wide_sums and line > row > 4 * tile.n:
            raise ValueError(
                f"vector must take at most {row} bytes a cycle beside sums of 64 bits, not {line}"
            )

    @property
    def units(self) -> tuple[str, ...]:
        """The names of the units, in the order of their codes."""
        return UNITS if self.fix else UNITS[:6]

    @property
    def wide_sums(self) -> bool:
        """True if L0C has results of 64 bits beside those of 32 bits."""
        return any(product.sum_words > 1 for product in products_of(self.tile))

    @property
    def lane_blocks(self) -> int:
        """Blocks of 32 bytes that the vector unit takes in a cycle."""
        return self.vector.lanes // (BLOCK_BYTES // 2)

    @property
    def buffers(self) -> dict[str, int]:
        """Bytes of the buffers by name."""
        return {"L1": self.l1, "L0A": self.l0a, "L0B": self.l0b, "L0C": self.l0c, "UB": self.ub}


#: The tile of ``tiny`` without the ranks and buffers that it needs for 90 MHz. No other part of a
#: core gets there, and nearly half of its flip-flops, whose wires fill a chip, were theirs.
_TINY_TILE = replace(CONFIGS["fp16_4x4x4_a100_dsp"], pipeline=4, slots=8, buffered=False)

_TINY = CoreConfig(
    tile=_TINY_TILE,
    vector=VectorConfig(
        lanes=16,
        groups=("add", "multiply", "compare", "convert"),
        multiplier="dsp",
        passes=2,
        pipeline=5,
    ),
    wide_images=False,
    queue_words=16,
    l1=64 * _KIB,
    l0a=16 * _KIB,
    l0b=16 * _KIB,
    l0c=32 * _KIB,
    ub=64 * _KIB,
)

#: What the cores of more than one product have beside their tiles.
_WIDE = CoreConfig(
    tile=CONFIGS["cube_4x4x4"],
    vector=VectorConfig(lanes=16, groups=("add", "compare", "convert")),
    l1=64 * _KIB,
    l0a=16 * _KIB,
    l0b=16 * _KIB,
    l0c=32 * _KIB,
    ub=64 * _KIB,
)

#: The named cores.
CORES: MappingProxyType[str, CoreConfig] = MappingProxyType(
    {
        "tiny": _TINY,
        # As many products a beat as in ``tiny`` in half as many elements; half of its slices
        # and buffers.
        "micro": replace(
            _TINY,
            tile=replace(_TINY_TILE, m=2, n=4, k=8),
            vector=replace(_TINY.vector, passes=4),
            l1=32 * _KIB,
            l0a=8 * _KIB,
            l0b=8 * _KIB,
            l0c=16 * _KIB,
            ub=32 * _KIB,
        ),
        "plain": CoreConfig(
            tile=MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16",)),
            vector=VectorConfig(lanes=16),
            extension=ExtensionConfig(),
            transposes=True,
            fix=True,
            l1=512 * _KIB,
            l0a=64 * _KIB,
            l0b=64 * _KIB,
            l0c=256 * _KIB,
            ub=256 * _KIB,
        ),
        # INT8, and FP32, FP64 and complex numbers of M³XU, beside 16 bits.
        "mixed": replace(_WIDE, tile=CONFIGS["m3xu_fp64"]),
        # The least tile, with FP8.
        "fp8": replace(_WIDE, tile=CONFIGS["tiny"]),
        # All operations of SIMD².
        "semiring": replace(_WIDE, tile=CONFIGS["simd2_4x4"]),
        "small": CoreConfig(
            tile=MatrixUnitConfig(m=8, n=8, k=8, precisions=("fp16",)),
            vector=VectorConfig(lanes=64),
            extension=ExtensionConfig(),
            transposes=True,
            l1=512 * _KIB,
            l0a=32 * _KIB,
            l0b=32 * _KIB,
            l0c=128 * _KIB,
            ub=128 * _KIB,
            l1_blocks=2,
            ub_banks=8,
        ),
        "davinci": CoreConfig(
            tile=MatrixUnitConfig(m=16, n=16, k=16, precisions=("fp16",)),
            vector=VectorConfig(lanes=128),
            l1=1024 * _KIB,
            l0a=64 * _KIB,
            l0b=64 * _KIB,
            l0c=256 * _KIB,
            ub=256 * _KIB,
            l1_blocks=8,
            ub_banks=16,
        ),
    }
)
