"""The parameters of a matrix unit."""

from dataclasses import dataclass

from vitruvian.common.validate import check_int
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2.op import PARTS, Op

from ..fp.parts.pipeline import PIPELINES
from ..simd2.mode import operations_of
from .checks import (
    check_assignment,
    check_buffered,
    check_complex_slots,
    check_fast,
    check_fpga,
    check_multiplier_bits,
    check_one_pair,
    check_pair_lanes,
    check_parameters,
    check_semirings,
    check_window,
)
from .choices import INT8, PRECISIONS, WIDE
from .tile import TileConfig


@dataclass(frozen=True, kw_only=True, repr=False)
class MatrixUnitConfig(TileConfig):
    """The parameters of an M × N array of processing elements with dot products of K terms.

    Parameters
    ----------
    m, n : int
        Rows and columns of the array, 1 to 64.
    k : int
        Number of 16-bit lanes of an element, 1 to 64. FP16 and BF16 have k terms, TF32 has k / 2,
        FP8 and INT8 have 2·k, and a precision of n limbs has k / n (complex ones half as many).
    precisions : sequence of str
        Some of ``PRECISIONS``, which also gives their order. INT8 is signed, with INT32 results.
    preset : str
        Accuracy preset of the floating-point precisions; any preset except ``exact``.
    output : str
        Format of C and D in the floating-point precisions. FP64 always has FP64 results.
    dataflow : str
        ``broadcast``: one bus for each row and column. ``systolic``: operands move from element to
        element.
    pipeline : int
        Number of register ranks in an element's dot product, 0 to 4.
    slots : int, optional
        Number of C fractals that the unit holds, 1 to 64. The default is usually pipeline + 3, see
        ``slot_count``.
    saturate : bool
        If True, INT32 accumulation saturates after every beat. Otherwise it wraps.
    window : int, optional
        Number of fraction bits of the window with the preset ``ieee``. The minimum, and default, is
        the number that the widest precision needs.
    multiplier_bits : int, optional
        Width of the multipliers. The minimum is the widest significand of a precision of one step.
        The default is that width, or half of an FP32 or FP64 significand, so that these take two
        steps.
    assignment : str, optional
        Position at which operands are decoded. ``element``: in every element. ``edge``: once for
        each row and column, at the edge of the array. ``pipelined``: as ``edge``, with a register
        rank behind it. The precisions in ``WIDE`` need ``edge`` or ``pipelined``, because operands
        are split into limbs there; FP8 needs ``element``. The default follows from the precisions.
    operations : tuple of str
        The operations of the elements, mnemonics of ``golden.simd2.Op``; they are kept in the order
        of their opcodes. Operations other than mma need one of two kinds of unit. The first has
        FP16 as its only precision, the preset ``ieee``, FP32 results and the assignment ``edge``,
        whose operand registers then stand behind the decoders; addnorm needs a ``k`` that is a
        multiple of 4. The second has mma and ``fp32`` and only precisions of ``ONE_PAIR``; its
        other operations take one pair of FP32 operands per beat, and it cannot have addnorm.
    sparsity : bool
        If True, A is compressed 2:4: an element takes k values of A, each with its index in a group
        of four, and 2·k rows of B. This is for units of the first kind, and ``k`` must be even.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.
    fast : bool
        If True, the unit is built for a shorter cycle with the same latency: the significands of A
        are recoded to Booth digits at the edge of the array, and the last rank of the dot product
        stands inside the rounding (docs/decisions/0023-whole-tile-timing.md). Such a unit has
        ``pipeline=4``, the assignment ``pipelined``, no operations but mma, and no sparsity.
    slot_memory : bool
        If True, the slots of an element are words of a memory with two read ports, which an FPGA
        builds from look-up tables, and C waits for its beat in another memory. This needs the
        dataflow ``broadcast`` and the assignment ``element``.
    buffered : bool
        If True, register ranks stand behind the input, in front of the array and in front of the
        output, so that the streams, the sequencer and the buses have clock cycles of their own.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If a parameter is outside its range, or if the preset does not support a combination.
    """

    m: int
    n: int
    k: int
    precisions: tuple[str, ...]
    preset: str = "ieee"
    output: str = "fp32"
    dataflow: str = "broadcast"
    pipeline: int = 3
    slots: int | None = None
    saturate: bool = False
    window: int | None = None
    multiplier_bits: int | None = None
    assignment: str | None = None
    operations: tuple[str, ...] = ("mma",)
    sparsity: bool = False
    multiplier: str = "booth"
    fast: bool = False
    slot_memory: bool = False
    buffered: bool = False

    def __post_init__(self):
        self.check_tile()
        check_parameters(vars(self))
        self._resolve()
        self._check_combination()

    def _resolve(self) -> None:
        """Put precisions and operations into their order, and set the default assignment.

        No other parameter is changed. All else that follows from the parameters is a property.
        """

        def resolve(name: str, value: object) -> None:
            object.__setattr__(self, name, value)  # the dataclass is frozen

        resolve("precisions", tuple(name for name in PRECISIONS if name in self.precisions))
        ops = operations_of(self.operations)  # raises ValueError if a name is unknown or repeated
        resolve("operations", tuple(op.mnemonic for op in ops))
        if self.assignment is None:
            # Limbs and semirings need operands that are decoded once for each row and column.
            edge = self.semirings or any(name in WIDE for name in self.precisions)
            resolve("assignment", "edge" if edge else "element")

    def _check_combination(self) -> None:
        """Check that the elements support the parameters together.

        The order matters: some derived values exist only if the checks before them have passed.
        """
        if self.one_pair:
            check_one_pair(vars(self), self.ops)
        elif self.semirings:
            check_semirings(vars(self), self.ops)
        check_assignment(self.assignment, self.precisions, self.floats)
        if self.fast:
            check_fast(vars(self))
        check_fpga(vars(self))
        if self.multiplier_bits is not None:
            check_multiplier_bits(self.multiplier_bits, self.assignment, self.one_step_bits)
        if self.window is not None:
            check_window(self.window, self.preset, self.ieee_floats)
            check_int("window", self.window, self.least_window, 128)
        if self.complex_precisions:
            check_complex_slots(self.slots, self.slot_count)
            check_buffered(self.buffered, {p: self.limbs(p) for p in self.complex_precisions})
        for name in self.floats:
            self.spec(name)  # raises ValueError if the preset or the lanes rule out the precision
        if self.one_pair:
            check_pair_lanes(self.k, self.ops, self.terms("fp32"))

    # Operations

    @property
    def semirings(self) -> bool:
        """True if the unit has operations other than mma, or sparsity."""
        return self.operations != ("mma",) or self.sparsity

    @property
    def one_pair(self) -> bool:
        """True if semirings take one pair of FP32 operands per beat, on the lanes of M³XU."""
        return self.operations != ("mma",) and "fp32" in self.precisions

    def pairs(self, operation: str) -> int:
        """Return the number of operand pairs that an element takes in one beat.

        This is k, or k / 4 for addnorm. A semiring on FP32 operands takes one pair. (For mma in
        other precisions than FP16, ``terms`` is the number of products.)
        """
        if self.one_pair and operation != Op.MMA.mnemonic:
            return 1
        return self.k // PARTS if operation == Op.ADDNORM.mnemonic else self.k

    # Precisions

    def terms(self, precision: str) -> int:
        """Return the number of real products in the sum of one beat in this precision."""
        if precision in self.wide:
            return M3XU[precision].terms(self.k, self.lane_bits)
        return super().terms(precision)

    def spec(self, precision: str) -> DotSpec | IntDotSpec:
        """Return the arithmetic of an element in one beat, in the form that golden takes.

        The preset of a machine keeps that machine's windows, but K is the unit's. With ``ieee`` all
        floating-point precisions share the widest window among them: one aligner then serves all of
        them, and a wider window is never less accurate. Each part of a complex result is such a
        sum.
        """
        self._known(precision)
        if precision == INT8:
            return IntDotSpec(k=self.terms(INT8), saturate=self.saturate)
        return super().spec(precision)

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """The arithmetic (``spec``) of every floating-point precision."""
        window = self.window or self.least_window
        return {
            name: dot_spec(input=spec.input, output=spec.output, k=spec.k, window=window)
            if name in self.ieee_floats
            else spec
            for name, spec in self._plain_specs.items()
        }

    @property
    def ieee_floats(self) -> tuple[str, ...]:
        """The floating-point precisions with ``ieee`` accuracy; those in ``WIDE`` always are."""
        machine = PRESETS[self.preset].is_machine
        return tuple(name for name in self.floats if not machine or name in WIDE)

    @property
    def chopped(self) -> tuple[str, ...]:
        """The precisions that follow a machine's preset in a unit that is ``ieee`` in others."""
        return tuple(
            name for name in self.floats if self.ieee_floats and name not in self.ieee_floats
        )

    @property
    def _plain_specs(self) -> dict[str, DotSpec]:
        """The preset's arithmetic of every floating-point precision by itself."""
        return {
            p: PRESETS["ieee" if p in self.ieee_floats else self.preset].spec(
                M3XU[p].format.name if p in M3XU else p,
                self.result_format(p).name,
                k=self.terms(p),
            )
            for p in self.floats
        }

    def result_format(self, precision: str) -> FloatFormat:
        """Return the format of C and D, or of their parts in a complex precision."""
        return FORMATS["fp64"] if precision == "fp64" else super().result_format(precision)

    @property
    def least_window(self) -> int:
        """The widest window that a precision with ``ieee`` accuracy needs."""
        specs = self._plain_specs
        return max((specs[name].sum.window or 0 for name in self.ieee_floats), default=0)

    # Lanes and steps (M³XU)

    @property
    def one_step_bits(self) -> int:
        """The widest significand among the precisions in ``NARROW``."""
        narrow = [M3XU[p].format for p in self.floats if p in M3XU and p not in WIDE]
        return max((format.fraction_bits + 1 for format in narrow), default=4)

    @property
    def lane_bits(self) -> int:
        """Width of the multipliers, and of a digit of B."""
        if self.multiplier_bits is not None:
            return self.multiplier_bits
        wide = [M3XU[p].format.fraction_bits + 1 for p in self.floats if p in WIDE]
        # By default a wide significand has two limbs.
        return max([self.one_step_bits, *(-(-bits // 2) for bits in wide)])

    @property
    def lanes(self) -> int:
        """Number of multipliers in an element that gets decoded lanes."""
        return max(self.terms(p) * self.limbs(p) for p in self.floats)

    @property
    def limb_bits(self) -> tuple[int, ...]:
        """Width of A's significands and limbs, lane by lane.

        A limb is recoded to radix 4. A limb of 2·r - 1 bits has r rows, and one of 2·r bits has
        r + 1 rows. Two limbs of an even width are therefore made one bit shorter and one bit
        longer, which saves a row.
        """
        bits = self.lane_bits
        pairs = [M3XU[p].format.fraction_bits + 1 for p in self.wide if self.limbs(p) == 2]
        if pairs and max(pairs) == 2 * bits and bits % 2 == 0 and bits > self.one_step_bits:
            return (bits - 1, bits + 1) * (self.lanes // 2)
        return (bits,) * self.lanes

    @property
    def wide(self) -> tuple[str, ...]:
        """The precisions whose elements take several lanes and steps."""
        chosen = [p for p in self.floats if p in WIDE]
        return tuple(p for p in chosen if M3XU[p].is_wide(self.lane_bits))

    @property
    def complex_precisions(self) -> tuple[str, ...]:
        """The complex precisions, with two results for each element of D."""
        return tuple(p for p in self.floats if p in M3XU and M3XU[p].is_complex)

    def limbs(self, precision: str) -> int:
        """Return n, the number of lanes of a product and of steps of a sum; 1 if narrow."""
        self._known(precision)
        return M3XU[precision].limbs(self.lane_bits) if precision in self.wide else 1

    @property
    def limb_counts(self) -> tuple[int, ...]:
        """All numbers of limbs above 1, in rising order."""
        return tuple(sorted({self.limbs(p) for p in self.wide}))

    # Widths

    @property
    def bus_bits(self) -> int:
        """Bits of a row of A in one beat, and of a column of B without sparsity."""
        wide = [self.terms(p) * self.operand_bits(p) for p in self.wide]
        return max([super().bus_bits, *wide])

    @property
    def b_bus_bits(self) -> int:
        """Bits of a column of B in one beat; with sparsity twice those of a row of A."""
        return self.bus_bits * (2 if self.sparsity else 1)

    @property
    def index_bits(self) -> int:
        """Bits of the indices of a row of A in one beat: two for each value, with sparsity."""
        return 2 * self.k if self.sparsity else 0

    @property
    def merge_cycles(self) -> int:
        """1 if results are combined with the value of their slot (⊕) before they are written.

        This takes a register rank more. It is inside the dot product, unless that has its largest
        number of ranks already; then it is behind it.
        """
        return int(any(op.plus != "add" for op in self.ops))

    @property
    def dot_ranks(self) -> int:
        """Number of register ranks of the dot product of a unit with semirings."""
        return min(self.pipeline + self.merge_cycles, max(PIPELINES))

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations per cycle with 16-bit operands: M·N·k."""
        return self.m * self.n * self.k
