"""The parts of every matrix unit: an array of elements with slots, ports and a pipeline.

Units differ in the operands of their elements: one format in a beat (``hdl.cube.config``), a format
for each side (``hdl.cube.mixed``), or codes with block scales (``hdl.cube.blocks``).
"""

from dataclasses import fields
from typing import Any, ClassVar

from vitruvian.common.validate import check_int, one_of
from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.golden.m3xu.precision import PRECISIONS as M3XU
from vitruvian.golden.simd2.op import Op

from ..fp.intdot import int_ranks
from ..fp.parts.multiply import check_multiplier
from ..fp.parts.pipeline import DEEP_PIPELINES, before_addend
from ..parameters import without_later_options
from ..simd2.mode import operations_of
from .checks import check_flag
from .choices import DATAFLOWS, INT8, LANE_BITS


class TileConfig:
    """An M × N array of elements with dot products of K terms, slots for C, and its ports.

    A configuration is a frozen dataclass with the fields below. It gives ``float_specs``, and
    overrides the properties of which its elements have more than plain sums of codes.

    Attributes
    ----------
    m, n : int
        Rows and columns of the array, 1 to 64.
    k : int
        Number of 16-bit lanes of an element, 1 to 64.
    precisions : tuple of str
        The operand formats, in the order of their codes.
    preset : str
        The accuracy preset or machine whose arithmetic the elements have.
    dataflow : {"broadcast", "systolic"}
        ``broadcast``: one bus for each row and column. ``systolic``: operands move from element to
        element.
    pipeline : int
        Number of register stages in an element's dot product, 0 to 11.
    slots : int, optional
        Number of C fractals that the unit holds, 1 to 64; see ``slot_count`` for the default.
    multiplier : {"booth", "dsp"}
        Form of the multipliers: for standard cells, or for the DSP blocks of an FPGA.
    slot_memory, buffered : bool
        As in ``MatrixUnitConfig``.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    m: int
    n: int
    k: int
    precisions: tuple[str, ...]
    preset: str
    dataflow: str
    pipeline: int
    slots: int | None
    multiplier: str
    slot_memory: bool
    buffered: bool
    # What only some units can choose.
    output: str = "fp32"
    saturate: bool = False
    assignment: str | None = "element"
    operations: tuple[str, ...] = ("mma",)
    sparsity: bool = False
    fast: bool = False

    __repr__ = without_later_options

    def check_tile(self) -> None:
        """Check the parameters of the array.

        Raises
        ------
        TypeError, ValueError
            If one has the wrong type, or is outside its range.
        """
        for name in ("m", "n", "k"):
            check_int(name, getattr(self, name), 1, 64)
        if self.slots is not None:
            check_int("slots", self.slots, 1, 64)
        check_int("pipeline", self.pipeline, min(DEEP_PIPELINES), max(DEEP_PIPELINES))
        one_of("dataflow", self.dataflow, DATAFLOWS)
        for name in ("slot_memory", "buffered"):
            check_flag(name, getattr(self, name))
        check_multiplier(self.multiplier)

    # Arithmetic

    @property
    def floats(self) -> tuple[str, ...]:
        """The floating-point precisions."""
        return tuple(name for name in self.precisions if name != INT8)

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """The arithmetic (``spec``) of every floating-point precision."""
        raise NotImplementedError

    def spec(self, precision: str) -> DotSpec | IntDotSpec:
        """Return the arithmetic of an element in one beat, in the form that golden takes."""
        self._known(precision)
        return self.float_specs[precision]

    def terms(self, precision: str) -> int:
        """Return the number of real products in the sum of one beat in this precision."""
        return LANE_BITS * self.k // self.operand_bits(precision)

    def operand_bits(self, precision: str) -> int:
        """Return the bits of one real operand on the bus."""
        self._known(precision)
        if precision == INT8:
            return 8
        return (M3XU[precision].format if precision in M3XU else as_format(precision)).storage_bits

    def result_format(self, precision: str) -> FloatFormat:
        """Return the format of C and D in a precision."""
        return FORMATS[self.output]

    def result_bits(self, precision: str) -> int:
        """Return the bits of C and D in a precision; they are the low bits of a word."""
        self._known(precision)
        return 32 if precision == INT8 else self.result_format(precision).storage_bits

    def _known(self, precision: str) -> None:
        """Raise ValueError if the unit does not have a precision."""
        one_of("precision", precision, self.precisions)

    @property
    def mixed(self) -> bool:
        """True if a beat names a format for B, ``precision_b``, beside that of A."""
        return False

    @property
    def block_scales(self) -> bool:
        """True if the operands have block scales, which stand above their codes on the bus."""
        return False

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operations, in the order of their codes on the bus."""
        return operations_of(self.operations)

    @property
    def operation_bits(self) -> int:
        """Bits of an operation's code; 0 if there is only one operation."""
        return (len(self.operations) - 1).bit_length()

    @property
    def semirings(self) -> bool:
        """True if the unit has operations other than mma, or sparsity."""
        return False

    @property
    def one_pair(self) -> bool:
        """True if semirings take one pair of FP32 operands per beat, on the lanes of M³XU."""
        return False

    # Precisions of several steps, of which a plain unit has none

    @property
    def chopped(self) -> tuple[str, ...]:
        """The precisions that follow a machine's preset in a unit that is ``ieee`` in others."""
        return ()

    @property
    def wide(self) -> tuple[str, ...]:
        """The precisions whose elements take several lanes and steps."""
        return ()

    @property
    def complex_precisions(self) -> tuple[str, ...]:
        """The complex precisions, with two results for each element of D."""
        return ()

    @property
    def limb_counts(self) -> tuple[int, ...]:
        """All numbers of limbs above 1, in rising order."""
        return ()

    def limbs(self, precision: str) -> int:
        """Return n, the number of lanes of a product and of steps of a sum; 1 if narrow."""
        self._known(precision)
        return 1

    @property
    def small_results(self) -> tuple[str, ...]:
        """The floating-point precisions whose results are shorter than a word of the unit."""
        return tuple(p for p in self.floats if self.result_bits(p) < self.word_bits)

    def steps(self, precision: str) -> int:
        """Return the cycles that a beat takes: n, or 2·n in a complex precision."""
        return self.limbs(precision) * (2 if precision in self.complex_precisions else 1)

    @property
    def digit_bits(self) -> int:
        """Bits of the index of a step within a sum."""
        return (max(self.limb_counts, default=1) - 1).bit_length()

    # Widths

    @property
    def bus_bits(self) -> int:
        """Bits of a row of A in one beat, and of a column of B without sparsity."""
        return LANE_BITS * self.k

    @property
    def b_bus_bits(self) -> int:
        """Bits of a column of B in one beat."""
        return self.bus_bits

    @property
    def index_bits(self) -> int:
        """Bits of the indices of a row of A in one beat, with sparsity."""
        return 0

    @property
    def word_bits(self) -> int:
        """Bits of a word of C and D: those of the longest result."""
        return max(self.result_bits(name) for name in self.precisions)

    @property
    def precision_bits(self) -> int:
        """Bits of a precision's code; 0 if there is only one precision."""
        return (len(self.precisions) - 1).bit_length()

    @property
    def slot_count(self) -> int:
        """Number of C fractals that the unit holds: ``slots`` or its default.

        A slot whose result is emitted is free again one cycle after the latency. With the default
        number, a broadcast unit that uses its slots in rotation therefore takes a beat in every
        cycle, for any sequence of tiles. A systolic unit would need ``hops`` more slots for that.
        These are not the default, because every slot costs a word in every element, and sums of
        ``hops`` or more beats do not need them. With pipeline + 1 slots, either kind of unit takes
        a beat in every cycle while it accumulates.
        """
        if self.slots is not None:
            return self.slots
        count = self.occupied_cycles - self.hops
        return count + count % 2 if self.complex_precisions else count

    @property
    def slot_bits(self) -> int:
        """Bits of a slot number."""
        return (self.slot_count - 1).bit_length()

    def settings(self) -> dict[str, object]:
        """Return every parameter in a form for people to read, with defaults filled in."""
        names = [field.name for field in fields(self)]
        values: dict[str, object] = {name: getattr(self, name) for name in names}
        values |= {n: ", ".join(v) for n, v in values.items() if isinstance(v, tuple)}
        return values | {"slots": self.slot_count}

    # Cycles

    @property
    def hops(self) -> int:
        """Cycles from the first element's work on a beat to the last element's."""
        return self.m + self.n - 2 if self.dataflow == "systolic" else 0

    @property
    def entry_cycles(self) -> int:
        """Cycles from the transfer of a beat to the first element's work on it."""
        return (2 if self.assignment == "pipelined" else 1) + 2 * self.buffered

    @property
    def read_cycles(self) -> int:
        """Cycles from the transfer of a beat until the last element reads its slot."""
        return self.entry_cycles + self.hops + self.addend_cycles

    @property
    def addend_cycles(self) -> int:
        """Cycles by which the addend of an element comes later than the operands.

        With ``slot_memory`` these are as many as possible, because a slot's number takes fewer
        registers than its value.
        """
        if not self.slot_memory:
            return 0
        ranks = [DEEP_PIPELINES[self.pipeline]] if self.floats else []
        ranks += [int_ranks(self.pipeline, self.multiplier)] if INT8 in self.precisions else []
        return min(len(before_addend(names)) for names in ranks)

    @property
    def late_load(self) -> bool:
        """True if elements write C behind a register of their own."""
        return self.buffered and self.addend_cycles > 0

    @property
    def merge_cycles(self) -> int:
        """1 if results are combined with the value of their slot (⊕) before they are written."""
        return 0

    @property
    def slot_cycles(self) -> int:
        """Cycles from the transfer of a beat until its (last) result can be read from its slot.

        These are ``entry_cycles``, the hops, the ranks of the dot product, one for ⊕ with the value
        of the slot, and one into the slot.
        """
        return self.entry_cycles + self.hops + self.pipeline + self.merge_cycles + 1

    @property
    def occupied_cycles(self) -> int:
        """Cycles in which a slot is in use by a beat whose result is taken at once.

        A slot is in use from the decision to issue the beat, which with ``buffered`` is one cycle
        later than the transfer, until the cycle behind the transfer of the result.
        """
        return self.slot_cycles + 1 - self.buffered

    @property
    def latency_cycles(self) -> int:
        """Cycles from the transfer of a beat to the earliest transfer of its (last) result.

        These are ``slot_cycles``, and two into the output register with ``buffered``.
        """
        return self.slot_cycles + 2 * self.buffered

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations per cycle: those of the first precision."""
        return self.m * self.n * self.terms(self.precisions[0])
