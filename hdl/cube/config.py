"""What a matrix unit is, as a parameter object, and the named configurations."""

from dataclasses import dataclass, fields

from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import PRESETS, DotSpec, IntDotSpec
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.golden.simd2.op import PARTS, Op
from vitruvian.validate import check_int, one_of

from ..fp.core import PIPELINES
from ..fp.multiply import check_multiplier
from ..parameters import without_booth
from ..simd2.mode import operations_of
from .operations import check_operations, check_pair_lanes

__all__ = ["ASSIGNMENTS", "CONFIGS", "DATAFLOWS", "PRECISIONS", "WIDE", "MatrixUnitConfig"]

INT8 = "int8"
#: Precisions whose significands fit the multipliers of a Cube.
NARROW = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", INT8)
#: Precisions that may need several lanes and steps (M³XU).
WIDE = ("fp32", "fp32c", "fp64")
#: Every precision a unit can have, in the order of their codes.
PRECISIONS = (*NARROW, *WIDE)
DATAFLOWS = ("broadcast", "systolic")
#: Where operands are decoded and handed to the lanes.
ASSIGNMENTS = ("element", "edge", "pipelined")
_LANE_BITS = 16


@dataclass(frozen=True, kw_only=True)
class MatrixUnitConfig:
    """An M × N array of processing elements, each a fused dot product of K terms.

    Parameters
    ----------
    m, n : int
        Rows and columns of the array, 1 to 64.
    k : int
        16-bit lanes of an element, 1 to 64: FP16 and BF16 have k terms, TF32 k / 2, FP8 and INT8
        2·k, and precisions of n limbs k / n (half as many complex ones).
    precisions : sequence of str
        Any of `PRECISIONS`; kept in that order. INT8 is signed, with INT32 results.
    preset : str
        Accuracy preset of the floating precisions, any but ``exact``.
    output : str
        Format of C and D in the floating precisions but FP64, where it is FP64.
    dataflow : str
        ``broadcast``: one bus for each row and column. ``systolic``: operands hop from element to
        element.
    pipeline : int
        Register ranks inside an element's dot product, 0 to 4.
    slots : int, optional
        C fractals the unit holds, 1 to 64. By default pipeline + 3, see `slot_count`.
    saturate : bool
        INT32 accumulation saturates, beat by beat, instead of wrapping.
    window : int, optional
        Fraction bits kept with the preset ``ieee``: at least, and by default, what the widest
        precision needs.
    multiplier_bits : int, optional
        Width of the multipliers: at least, and by default, that of the widest significand of one
        step, and half of FP32's or FP64's where these are to take two.
    assignment : str, optional
        Where operands are decoded: in every ``element``; once for each row and column at the
        ``edge`` of the array; or there with a register rank behind it, ``pipelined``. Precisions
        of `WIDE` are cut into limbs there, so they need one of the last two; FP8 needs the first.
        The default is what the precisions need.
    operations : tuple of str
        What the elements can do with a pair of fractals, of `golden.simd2.Op`; in the order of the
        opcodes whatever order is given. Others than mma are for FP16 alone, preset ``ieee``, FP32
        results and assignment at the ``edge``, where the operand registers stand behind it then;
        addnorm needs k to be a multiple of 4. Or, beside mma, on one pair of FP32 operands a beat
        whatever its precision says, in units with ``fp32`` and others of `ONE_PAIR`; not addnorm.
    sparsity : bool
        Whether A is compressed 2:4: an element takes k values of A, each with its place among four,
        and 2·k rows of B. For the units with ``operations``, and even k.
    multiplier : {"booth", "dsp"}
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA.

    Raises
    ------
    TypeError, ValueError
        For a parameter outside its range, or a combination that the preset does not have.
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

    __repr__ = without_booth

    def __post_init__(self):
        for name in ("m", "n", "k"):
            check_int(name, getattr(self, name), 1, 64)
        if self.slots is not None:
            check_int("slots", self.slots, 1, 64)
        check_int("pipeline", self.pipeline, min(PIPELINES), max(PIPELINES))
        one_of("dataflow", self.dataflow, DATAFLOWS)
        presets = [name for name in PRESETS if name != "exact"]
        one_of("preset", self.preset, presets)
        if not isinstance(self.saturate, bool):
            raise TypeError(f"saturate must be True or False, not {self.saturate!r}")
        check_multiplier(self.multiplier)
        self._check_precisions()
        self._check_operations()
        self._check_lanes()

    def _check_precisions(self) -> None:
        given = self.precisions
        if isinstance(given, str) or not given or len(set(given)) != len(given):
            raise ValueError(f"precisions must be different names, at least one, not {given!r}")
        for name in given:
            one_of("precision", name, PRECISIONS)
        object.__setattr__(self, "precisions", tuple(p for p in PRECISIONS if p in given))
        if "tf32" in given and self.k % 2:
            raise ValueError(f"k must be even with tf32, which takes two lanes, not {self.k!r}")
        output = as_format(self.output, "output")
        if INT8 in given and output.storage_bits != 32:
            raise ValueError(f"output must have 32 bits with int8, not {self.output!r}")

    def _check_operations(self) -> None:
        if isinstance(self.operations, str):
            raise ValueError(f"operations must be different names, not {self.operations!r}")
        chosen = operations_of(self.operations)
        object.__setattr__(self, "operations", tuple(op.mnemonic for op in chosen))
        if not isinstance(self.sparsity, bool):
            raise TypeError(f"sparsity must be True or False, not {self.sparsity!r}")
        object.__setattr__(self, "assignment", check_operations(self))

    def _check_lanes(self) -> None:
        if self.assignment is None:
            wide = any(name in WIDE for name in self.precisions)
            object.__setattr__(self, "assignment", "edge" if wide else "element")
        one_of("assignment", self.assignment, ASSIGNMENTS)
        inner = self.assignment == "element"
        allowed = NARROW if inner else (*M3XU, INT8)
        if not inner and not self.floats:
            raise ValueError(
                f"assignment must be 'element' without a floating precision, "
                f"not {self.assignment!r}"
            )
        for name in self.precisions:
            if name not in allowed:
                raise ValueError(
                    f"precision must be one of {', '.join(allowed)} "
                    f"with assignment {self.assignment!r}, not {name!r}"
                )
        if self.multiplier_bits is not None:
            if inner:
                raise ValueError(
                    "multiplier_bits must be None where elements decode, "
                    f"not {self.multiplier_bits!r}"
                )
            check_int("multiplier_bits", self.multiplier_bits, self._one_step_bits, 64)
        if self.window is not None:
            if self.preset != "ieee" and not self._ieee:
                raise ValueError(
                    f"window must be None with preset {self.preset}, not {self.window!r}"
                )
            check_int("window", self.window, self._own_window, 128)
        if self.complex_precisions and self.slot_count % 2:
            raise ValueError(f"slots must be even with fp32c, not {self.slots!r}")
        _ = self.float_specs  # raises where preset or lanes do not allow a precision
        check_pair_lanes(self)

    # Operations

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations, in the order of their codes on the bus."""
        return operations_of(self.operations)

    @property
    def semirings(self) -> bool:
        """Whether elements are those for other operations than mma, or for sparsity."""
        return self.operations != ("mma",) or self.sparsity

    @property
    def one_pair(self) -> bool:
        """Whether semirings take one pair of FP32 operands a beat, on the lanes of M³XU."""
        return self.operations != ("mma",) and "fp32" in self.precisions

    @property
    def operation_bits(self) -> int:
        """Bits of an operation's code; 0 where there is only one."""
        return (len(self.operations) - 1).bit_length()

    def pairs(self, operation: str) -> int:
        """Pairs of operands that an element takes in one beat: k, of addnorm a quarter of it.

        With FP32 operands one, and of sums as many as `terms` says.
        """
        if self.one_pair and operation != Op.MMA.mnemonic:
            return 1
        return self.k // PARTS if operation == Op.ADDNORM.mnemonic else self.k

    # Precisions

    @property
    def floats(self) -> tuple[str, ...]:
        """The floating precisions."""
        return tuple(name for name in self.precisions if name != INT8)

    def operand_bits(self, precision: str) -> int:
        """Bits of one real operand on the bus."""
        self._known(precision)
        if precision == INT8:
            return 8
        return (M3XU[precision].format if precision in M3XU else FORMATS[precision]).storage_bits

    def terms(self, precision: str) -> int:
        """Real products in the sum of one beat in this precision."""
        if precision in self.wide:
            return M3XU[precision].terms(self.k, self.lane_bits)
        return _LANE_BITS * self.k // self.operand_bits(precision)

    def spec(self, precision: str) -> DotSpec | IntDotSpec:
        """What an element computes in one beat, to the bit: what golden is called with.

        A preset that stands for a machine has that machine's windows, with K the unit's. With
        ``ieee`` all floating precisions share the widest window among them: one aligner serves
        them all, and a wider window is never less accurate. Each part of a complex result is such
        a sum.
        """
        self._known(precision)
        if precision == INT8:
            return IntDotSpec(k=self.terms(INT8), saturate=self.saturate)
        return self.float_specs[precision]

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """`spec` of every floating precision."""
        window = self.window or self._own_window
        return {
            name: DotSpec(input=spec.input, output=spec.output, k=spec.k, window=window)
            if name in self._ieee
            else spec
            for name, spec in self._plain_specs.items()
        }

    @property
    def _ieee(self) -> tuple[str, ...]:
        """The floating precisions that are ``ieee``: those of `WIDE` are, whatever the preset."""
        plain = not PRESETS[self.preset].rows
        return tuple(name for name in self.floats if plain or name in WIDE)

    @property
    def chopped(self) -> tuple[str, ...]:
        """The precisions of a machine's preset in a unit that is ``ieee`` in others."""
        return tuple(name for name in self.floats if self._ieee and name not in self._ieee)

    @property
    def _plain_specs(self) -> dict[str, DotSpec]:
        """What the preset says of every floating precision alone."""
        return {
            p: PRESETS["ieee" if p in self._ieee else self.preset].spec(
                M3XU[p].format.name if p in M3XU else p,
                self.result_format(p).name,
                k=self.terms(p),
            )
            for p in self.floats
        }

    def result_format(self, precision: str) -> FloatFormat:
        """Format of C and D in a floating precision, of their parts in a complex one."""
        return FORMATS["fp64" if precision == "fp64" else self.output]

    def result_bits(self, precision: str) -> int:
        """Bits of C and D in a precision, in the low bits of a word."""
        self._known(precision)
        return 32 if precision == INT8 else self.result_format(precision).storage_bits

    @property
    def small_results(self) -> tuple[str, ...]:
        """The floating precisions whose results are shorter than others of the unit."""
        return tuple(p for p in self.floats if self.result_bits(p) < self.word_bits)

    @property
    def _own_window(self) -> int:
        specs = self._plain_specs
        return max((specs[name].window or 0 for name in self._ieee), default=0)

    # Lanes and steps (M³XU)

    @property
    def _one_step_bits(self) -> int:
        """The widest significand among the precisions of NARROW."""
        narrow = [M3XU[p].format for p in self.floats if p in M3XU and p not in WIDE]
        return max((format.fraction_bits + 1 for format in narrow), default=4)

    @property
    def lane_bits(self) -> int:
        """Width of the multipliers, and of a digit of B."""
        if self.multiplier_bits is not None:
            return self.multiplier_bits
        wide = [M3XU[p].format.fraction_bits + 1 for p in self.floats if p in WIDE]
        return max([self._one_step_bits, *(-(-bits // 2) for bits in wide)])

    @property
    def lanes(self) -> int:
        """Multipliers of an element that gets decoded lanes."""
        return max(self.terms(p) * self.limbs(p) for p in self.floats)

    @property
    def limb_bits(self) -> tuple[int, ...]:
        """Width of A's significands and limbs, lane by lane.

        A limb is recoded to radix 4, two bits a row; one of odd length has a row less than an even
        one a bit longer. So two limbs of an even length are made one shorter and one longer.
        """
        bits = self.lane_bits
        pairs = [M3XU[p].format.fraction_bits + 1 for p in self.wide if self.limbs(p) == 2]
        if pairs and max(pairs) == 2 * bits and bits % 2 == 0 and bits > self._one_step_bits:
            return (bits - 1, bits + 1) * (self.lanes // 2)
        return (bits,) * self.lanes

    @property
    def wide(self) -> tuple[str, ...]:
        """The precisions whose elements take several lanes and steps."""
        chosen = [p for p in self.floats if p in WIDE]
        return tuple(p for p in chosen if M3XU[p].is_wide(self.lane_bits))

    @property
    def complex_precisions(self) -> tuple[str, ...]:
        """The precisions with two results for each element of D."""
        return tuple(p for p in self.floats if p in M3XU and M3XU[p].is_complex)

    def limbs(self, precision: str) -> int:
        """n: the lanes of an element, and the steps of a sum; 1 for the narrow precisions."""
        self._known(precision)
        return M3XU[precision].limbs(self.lane_bits) if precision in self.wide else 1

    @property
    def limb_counts(self) -> tuple[int, ...]:
        """Every n above 1, in rising order."""
        return tuple(sorted({self.limbs(p) for p in self.wide}))

    def steps(self, precision: str) -> int:
        """Cycles that a beat takes: n, twice where both parts of complex numbers are formed."""
        return self.limbs(precision) * (2 if precision in self.complex_precisions else 1)

    @property
    def digit_bits(self) -> int:
        """Bits of a step's number within a sum."""
        return (max(self.limb_counts, default=1) - 1).bit_length()

    def _known(self, precision: str) -> None:
        one_of("precision", precision, self.precisions)

    # Widths

    @property
    def bus_bits(self) -> int:
        """Bits of a row of A, and where it is not sparse of a column of B, in one beat."""
        wide = [self.terms(p) * self.operand_bits(p) for p in self.wide]
        return max([_LANE_BITS * self.k, *wide])

    @property
    def b_bus_bits(self) -> int:
        """Bits of a column of B in one beat: with sparsity twice as many as of a row of A."""
        return self.bus_bits * (2 if self.sparsity else 1)

    @property
    def index_bits(self) -> int:
        """Bits of the places of a row of A in one beat, two each, with sparsity."""
        return 2 * self.k if self.sparsity else 0

    @property
    def word_bits(self) -> int:
        """Bits of an element of C and D, of the longest."""
        return max(self.result_bits(name) for name in self.precisions)

    @property
    def precision_bits(self) -> int:
        """Bits of a precision's code; 0 where there is only one."""
        return (len(self.precisions) - 1).bit_length()

    @property
    def slot_count(self) -> int:
        """C fractals the unit holds: `slots`, or as many as a beat can be in the way of.

        A slot whose result is emitted at once is free again one cycle after the latency, so with
        this many a broadcast unit that goes round its slots takes a beat every cycle whatever the
        tiles are. A systolic one needs `hops` slots more for that; they are not the default, for
        each costs a word in every element, and sums of hops beats or more do without. With
        pipeline + 1 slots either does so in accumulations.
        """
        if self.slots is not None:
            return self.slots
        count = self.entry_cycles + self.pipeline + self.merge_cycles + 2
        return count + count % 2 if self.complex_precisions else count

    @property
    def slot_bits(self) -> int:
        """Bits of a slot's number."""
        return (self.slot_count - 1).bit_length()

    def settings(self) -> dict[str, object]:
        """Every parameter as it is used, for people: defaults filled in, lists joined."""
        values: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        values["precisions"] = ", ".join(self.precisions)
        values["operations"] = ", ".join(self.operations)
        return values | {"slots": self.slot_count}

    # Time

    @property
    def hops(self) -> int:
        """Cycles from the first element's work on a beat to the last one's."""
        return self.m + self.n - 2 if self.dataflow == "systolic" else 0

    @property
    def entry_cycles(self) -> int:
        """Cycles from the transfer of a beat to the first element's work on it."""
        return 2 if self.assignment == "pipelined" else 1

    @property
    def merge_cycles(self) -> int:
        """A rank more where results have ⊕ with what their slot holds before they are written.

        The dot product has it, if it has not all its ranks yet; else it stands behind it.
        """
        return int(any(op.plus != "add" for op in self.ops))

    @property
    def dot_ranks(self) -> int:
        """Register ranks of the dot product of a unit with semirings."""
        return min(self.pipeline + self.merge_cycles, max(PIPELINES))

    @property
    def latency_cycles(self) -> int:
        """Cycles from the transfer of a beat to the earliest transfer of its (last) result.

        One into the operand registers, one more behind a pipelined assignment, the hops, the dot
        product's ranks, one before ⊕ with what the slot holds, one into the slot.
        """
        return self.entry_cycles + self.hops + self.pipeline + self.merge_cycles + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle at 16 bits: M·N·k."""
        return self.m * self.n * self.k


#: The named configurations.
CONFIGS: dict[str, MatrixUnitConfig] = {
    "tiny": MatrixUnitConfig(m=2, n=2, k=2, precisions=NARROW, pipeline=1),
    "cube_4x4x4": MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16", INT8)),
    "tensorcore_a100": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", INT8), preset="a100"
    ),
    "cube_davinci": MatrixUnitConfig(m=16, n=16, k=16, precisions=("fp16", INT8)),
    "m3xu": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", "fp32", "fp32c"), assignment="edge"
    ),
    "m3xu_pipelined": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", "fp32", "fp32c"), assignment="pipelined"
    ),
    "simd2_4x4": MatrixUnitConfig(
        m=4, n=4, k=4, precisions=("fp16",), operations=tuple(op.mnemonic for op in Op)
    ),
    "m3xu_fp64": MatrixUnitConfig(
        m=4,
        n=4,
        k=8,
        precisions=("fp16", "bf16", "tf32", INT8, *WIDE),
        multiplier_bits=14,
    ),
}
