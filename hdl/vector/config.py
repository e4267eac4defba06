"""Parameters of the vector unit."""

from dataclasses import dataclass, field

from vitruvian.common.validate import check_int, one_of

from ..fp.parts.multiply import check_multiplier
from .operations import GROUPS, OPERATIONS, Format, Operation
from .tables import DESIGNS, FunctionDesign

#: Bytes of a block of DaVinci's Unified Buffer, whose elements SUM_BLOCK adds up.
BLOCK_BYTES = 32
MOST_LANES = 256
#: Which parts of a slice have a comparator of their own: the two FP16 lanes, the FP32 lane and all
#: adders (``separate``), the adders only (``formats``), or none (``adder``, one for all).
SHARINGS = ("adder", "formats", "separate")
#: The boundaries that have registers inside the arithmetic, by their number.
ARITHMETIC = {
    2: ("aligned", "total"),
    4: ("aligned", "total", "leading", "normalised"),
    5: ("distance", "aligned", "total", "leading", "normalised"),
}


@dataclass(frozen=True, kw_only=True)
class VectorConfig:
    """Parameters of a vector unit.

    Parameters
    ----------
    lanes : int
        Number of FP16 lanes, a power of two from 4 to 256. There are half as many FP32 lanes.
    groups : tuple of str
        The groups of operations that the unit has, from ``operations.GROUPS``.
    sharing : {"adder", "formats", "separate"}
        Which parts of a slice share a comparator (docs/decisions/0017-vector-unit.md).
    functions : str
        The design of the units for exp and ln, a key of ``tables.DESIGNS``.
    pipeline : int
        Register ranks inside the arithmetic, 2 to 5. The third one is for exp and ln, and delays
        all operations. 0 means 3 if the unit has the group ``functions``, otherwise 2. More ranks
        are for FPGAs; they cut alignment (5), normalisation and rounding (4 and 5), and the unit
        has no exp and ln.
    multiplier : {"booth", "dsp"}
        Form of the multipliers: for standard cells, or for the DSP blocks of an FPGA.
    passes : int
        Cycles in which a block passes the slices, a power of two of at most half the lanes. With
        two passes, the unit has half as many slices, and no reductions.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed.
    """

    lanes: int = 128
    groups: tuple[str, ...] = field(default=GROUPS)
    sharing: str = "adder"
    functions: str = "quadratic128"
    pipeline: int = 0
    multiplier: str = "booth"
    passes: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.lanes, int) or isinstance(self.lanes, bool):
            raise TypeError(f"lanes must be an int, not {self.lanes!r}")
        if not 4 <= self.lanes <= MOST_LANES or self.lanes & (self.lanes - 1):
            raise ValueError(
                f"lanes must be a power of two from 4 to {MOST_LANES}, not {self.lanes}"
            )
        for group in self.groups:
            one_of("group", group, GROUPS)
        # The order in GROUPS, so that equal units have equal parameters.
        object.__setattr__(self, "groups", tuple(g for g in GROUPS if g in self.groups))
        one_of("sharing", self.sharing, SHARINGS)
        one_of("functions", self.functions, DESIGNS)
        if self.pipeline == 0:
            object.__setattr__(self, "pipeline", 3 if "functions" in self.groups else 2)
        one_of("pipeline", self.pipeline, (2, 3, 4, 5))
        if self.pipeline > 3 and "functions" in self.groups:
            raise ValueError(f"groups must not have 'functions' with pipeline {self.pipeline}")
        check_multiplier(self.multiplier)
        check_int("passes", self.passes, 1, self.slices)
        if self.passes & (self.passes - 1):
            raise ValueError(f"passes must be a power of two, not {self.passes}")
        if self.passes > 1 and "reduce" in self.groups:
            raise ValueError("groups must not have 'reduce' with more than one pass")

    @property
    def stages(self) -> int:
        """Register ranks of a slice: operands, those inside the arithmetic, and the result."""
        return 2 + self.pipeline

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The boundaries with registers inside sums, products and conversions."""
        return ARITHMETIC[2 if self.pipeline == 3 else self.pipeline]

    @property
    def slices(self) -> int:
        """Number of words of a block; a word is two FP16 elements or one FP32 element."""
        return self.lanes // 2

    @property
    def built_slices(self) -> int:
        """Number of slices that the unit has; in a pass, each of them takes a word."""
        return self.slices // self.passes

    @property
    def function_design(self) -> FunctionDesign:
        """The widths of the units for exp and ln."""
        return DESIGNS[self.functions]

    @property
    def block_bits(self) -> int:
        """Bits of a block, the operands of all lanes."""
        return 16 * self.lanes

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the unit has."""
        return tuple(op for op, traits in OPERATIONS.items() if traits.groups <= set(self.groups))

    def levels(self, format: Format, *, block: bool = False) -> int:
        """Return the number of levels of a reduction's tree.

        Parameters
        ----------
        block : bool
            If True, the tree covers ``BLOCK_BYTES``, else all lanes.
        """
        lanes, per_block = self.lanes, BLOCK_BYTES // 2
        if format is Format.FP32:
            lanes, per_block = lanes // 2, per_block // 2
        return (min(lanes, per_block) if block else lanes).bit_length() - 1

    def cycles(self, operation: Operation, format: Format) -> int:
        """Return the cycles of a repeat, from its start to that of the next one.

        Parameters
        ----------
        format : Format
            Format of the source.
        """
        levels = {Operation.SUM_PAIR: 1}
        for op in (Operation.SUM, Operation.LARGEST, Operation.SMALLEST):
            levels[op] = self.levels(format)
            block = Operation[f"{op.name}_BLOCK"]
            levels[block] = self.levels(format, block=True)
        search = self.stages if operation in (Operation.LARGEST, Operation.SMALLEST) else 0
        passes = 1 if operation is Operation.LOAD_BITS else self.passes
        return self.stages * (levels.get(operation, 1) - 1) + search + passes
