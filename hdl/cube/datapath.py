"""The arithmetic of a processing element, in four forms that the element uses in the same way.

- ``CodeDatapath``: operands are codes, and the element decodes them (``MultiDot``).
- ``LaneDatapath``: operands were decoded into lanes at the edge of the array (``LaneDot``); with
  INT8 an integer dot product works beside it. Semirings on FP32 operands use this form.
- ``SemiringDatapath``: sums and semirings on FP16 operands (``SemiringDot``).
- ``BlockDatapath`` (``hdl.cube.blocks``): operands are codes with block scales.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vitruvian.golden.fp.spec import IntDotSpec
from vitruvian.golden.simd2.op import GROUP, KEPT

from ..fp.intdot import IntDotProduct
from ..fp.multidot import MultiDot
from ..m3xu.dot import LaneDot
from ..simd2.dot import SemiringDot, better, both_true
from ..simd2.mode import bits
from ..simd2.pair import ELEMENT_BITS, addend, chosen_bits, keep_selected, negated_unless_nan
from .blocks import BlockDatapath, BlockUnitConfig
from .choices import INT8
from .config import MatrixUnitConfig
from .ports import Beat
from .tile import TileConfig


class ElementDatapath(Protocol):
    """The interface between an element and its arithmetic.

    Attributes
    ----------
    dot : Component
        The dot product, with the addend ``c`` and the result ``d``.
    """

    @property
    def dot(self) -> Any:
        """The dot product."""
        ...

    def addend(self, start: Value, control: data.View) -> Value:
        """Return C of the dot product.

        Parameters
        ----------
        start : Value
            The value of the beat's slot, or zero.
        control : View of ``control_layout``
            The operation.
        """
        ...

    def connect(self, m: Module, beat: Beat) -> Value:
        """Connect the operands to the dot product, and return the word that the slot gets.

        Parameters
        ----------
        m : Module
            The module of the element.
        beat : Beat
            The inputs of the element.
        """
        ...


def datapath_of(config: TileConfig) -> ElementDatapath:
    """Return the arithmetic of a unit's elements."""
    if isinstance(config, BlockUnitConfig):
        return BlockDatapath(config)
    if config.assignment == "element":
        return CodeDatapath(config)
    assert isinstance(config, MatrixUnitConfig), "others decode their operands in the elements"
    if config.semirings and not config.one_pair:
        return SemiringDatapath(config)
    return LaneDatapath(config)


class CodeDatapath:
    """Sums of products of codes in any of several precisions."""

    def __init__(self, config: TileConfig):
        self.config = config
        self.dot = MultiDot(
            specs=config.float_specs,
            int8_k=config.terms(INT8) if INT8 in config.precisions else 0,
            saturate=config.saturate,
            pipeline=config.pipeline,
            multiplier=config.multiplier,
            addend_cycles=config.addend_cycles,
            mixed=config.mixed,
        )

    def addend(self, start: Value, control: data.View) -> Value:
        """Return C of the dot product: the slot's value or zero."""
        return start

    def connect(self, m: Module, beat: Beat) -> Value:
        """Connect the codes, and return the result."""
        m.d.comb += [self.dot.a.eq(beat.a), self.dot.b.eq(beat.b)]
        if self.config.precision_bits:
            m.d.comb += self.dot.precision.eq(beat.control.precision)
            if self.dot.mixed:
                m.d.comb += self.dot.precision_b.eq(beat.control.precision_b)
        return self.dot.d


class SemiringDatapath:
    """Sums and semirings on k pairs of FP16 operands, with 2:4 sparsity of A if the unit has it."""

    def __init__(self, config: MatrixUnitConfig):
        self.config = config
        self.dot = SemiringDot(
            spec=config.float_specs["fp16"],
            operations=config.ops,
            pipeline=config.dot_ranks,
            multiplier=config.multiplier,
        )

    def addend(self, start: Value, control: data.View) -> Value:
        """Return C of the dot product: the slot's value or zero. A semiring does not use it."""
        return start

    def connect(self, m: Module, beat: Beat) -> Value:
        """Connect the lanes, and return the sum, or ⊕ of the least candidate and the slot."""
        config, dot = self.config, self.dot
        m.d.comb += [
            Value.cast(dot.a).eq(Value.cast(beat.a.lanes)),
            Value.cast(dot.b).eq(self._chosen(beat)),
            Value.cast(dot.mode).eq(Value.cast(beat.control.mode)),
        ]
        if not config.merge_cycles:
            return dot.d
        result, true = dot.d, dot.true
        if _rank_behind(config, dot):
            result, true = _registered(m, result, "found"), _registered(m, true, "true")
        late = _late(m, config, _merge_bits(bits(config.ops, beat.control.mode), beat))
        return _merged(m, result, true, late, beat.kept, dot)

    def _chosen(self, beat: Beat) -> Value:
        """Return the operand of B for each lane.

        With 2:4 sparsity, the index of A's value selects it from a group of four.
        """
        if not self.config.sparsity:
            return Value.cast(beat.b)
        lanes: list[Value] = []
        for k in range(self.config.k):
            # A group of four values of B meets the two values of A that 2:4 sparsity keeps of it.
            group = [Value.cast(beat.b[k // KEPT * GROUP + index]) for index in range(GROUP)]
            low, high = beat.a.index[k][0], beat.a.index[k][1]
            lanes.append(Mux(high, Mux(low, group[3], group[2]), Mux(low, group[1], group[0])))
        return Cat(*lanes)


class LaneDatapath:
    """Sums of products of decoded lanes, which may hold limbs, and semirings on FP32 operands."""

    def __init__(self, config: MatrixUnitConfig):
        self.config = config
        # A chopped precision has the same lanes with a shorter window.
        specs = {name: config.float_specs[name] for name in config.floats}
        chopped = [specs.pop(name) for name in config.chopped]
        # One dot product serves all precisions, so its format has the widest exponent of them.
        widest = max(specs.values(), key=lambda spec: spec.input.exponent_bits)
        small = [config.float_specs[name] for name in config.small_results]
        # A precision that is not chopped comes first; ``chopped`` describes the others.
        small.sort(key=lambda spec: spec in chopped)
        self.dot = LaneDot(
            spec=widest,
            chopped=chopped[0] if chopped else None,
            small=small[0] if small else None,
            exponent_bits=widest.input.exponent_bits,
            a_bits=config.limb_bits,
            b_bits=config.lane_bits,
            limbs=config.limb_counts,
            pipeline=config.dot_ranks,
            multiplier=config.multiplier,
            fast=config.fast,
        )

    def addend(self, start: Value, control: data.View) -> Value:
        """Return C of the dot product: the slot's value or zero, and −0 in a semiring."""
        if not self.config.one_pair:
            return start
        return addend(start, self._flags(control)["semiring"])

    def connect(self, m: Module, beat: Beat) -> Value:
        """Connect the lanes, and return the sum, or ⊕ of the candidate and the slot."""
        config, dot = self.config, self.dot
        self._connect_lanes(m, beat)
        result: Value = dot.d
        if INT8 in config.precisions:
            m.submodules.int8 = int8 = self._int_dot()
            m.d.comb += [
                Value.cast(int8.a).eq(beat.a.codes),
                Value.cast(int8.b).eq(beat.b.codes),
                int8.c.eq(dot.c),
            ]
            result = Mux(beat.integer, int8.d, dot.d)
        if config.one_pair:
            self._choose_product(m, beat)
            result = self._merged_pair(m, beat)
        return result

    def _flags(self, control: data.View) -> dict[str, Value]:
        """Return the control bits of the operation."""
        return chosen_bits(self.config.ops, control.mode, ELEMENT_BITS)

    def _connect_lanes(self, m: Module, beat: Beat) -> None:
        """Connect decoded lanes and their control to the dot product."""
        config, dot, control = self.config, self.dot, beat.control
        m.d.comb += [
            Value.cast(dot.a).eq(Value.cast(beat.a.lanes)),
            Value.cast(dot.b).eq(Value.cast(beat.b.lanes)),
        ]
        if config.limb_counts:
            m.d.comb += [
                dot.wide.eq(control.wide),
                dot.again.eq(control.again),
                dot.last.eq(control.last),
            ]
        if config.chopped:
            m.d.comb += dot.chop.eq(control.chop)
        if config.small_results:
            m.d.comb += dot.small.eq(control.small)

    def _int_dot(self) -> IntDotProduct:
        """Return the dot product of INT8 operands."""
        config = self.config
        return IntDotProduct(
            spec=IntDotSpec(k=config.terms(INT8), saturate=config.saturate),
            pipeline=config.pipeline,
            multiplier=config.multiplier,
        )

    def _choose_product(self, m: Module, beat: Beat) -> None:
        """Set the product of the operand that lost to zero, for min and max on FP32."""
        flags, n = self._flags(beat.control), self.config.limbs("fp32")
        if isinstance(flags["larger"], Const):
            return
        keep_selected(
            m,
            self.dot.a,
            self.dot.b,
            first=(beat.a.codes, beat.a.lanes["lane0"].nan),
            second=(beat.b.codes, beat.b.lanes[f"lane{n}"].nan),
            lanes=n,
            larger=flags["larger"],
            turn=flags["turn"],
        )

    def _merged_pair(self, m: Module, beat: Beat) -> Value:
        """Return ⊕ of the candidate, which is a sum, and the slot; a sum of mma is unchanged."""
        config, dot = self.config, self.dot
        late = _merge_bits(self._flags(beat.control), beat)
        late["true"] = both_true(beat.a.lanes["lane0"], beat.b.lanes["lane0"])
        result: Value = dot.d
        if _rank_behind(config, dot):
            result = _registered(m, result, "found")
        late = _late(m, config, late)
        # For ⊕ = max the operands were negated, so that the minimum serves both; the result is
        # turned back here.
        result = negated_unless_nan(result, late["turn"], dot.spec.output)
        return _merged(m, result, late["true"], late, beat.kept, dot)


# ⊕ of a result and the value of its slot


def _merge_bits(flags: Mapping[str, Value], beat: Beat) -> dict[str, Value]:
    """Return the control bits that ⊕ needs; ``keep`` says that the slot's value takes part."""
    late = {name: flags[name] for name in ("semiring", "turn", "truth")}
    late["keep"] = beat.control.accumulate
    return late


def _rank_behind(config: MatrixUnitConfig, dot: SemiringDot | LaneDot) -> bool:
    """Return True if the rank that ⊕ needs stands behind the dot product.

    The dot product has its largest number of ranks already in that case.
    """
    return config.pipeline + config.merge_cycles > dot.latency


def _registered(m: Module, value: Value, name: str) -> Signal:
    """Return ``value`` one cycle later, as a signal called ``name``."""
    signal = Signal.like(value, name=name, reset_less=True)
    m.d.sync += signal.eq(value)
    return signal


def _late(m: Module, config: MatrixUnitConfig, late: dict[str, Value]) -> dict[str, Value]:
    """Return control bits in the cycle in which the result arrives; constants stay constants."""
    late = dict(late)
    # The control of ⊕ travels beside the dot product, as long as that takes.
    for rank in range(1, config.pipeline + config.merge_cycles + 1):
        for name, bit in late.items():
            if not isinstance(bit, Const):
                late[name] = Signal(name=f"s{rank}_{name}", reset_less=True)
                m.d.sync += late[name].eq(bit)
    return late


def _merged(
    m: Module,
    result: Value,
    true: Value,
    late: Mapping[str, Value],
    kept: Value,
    dot: SemiringDot | LaneDot,
) -> Value:
    """Return ⊕ of the dot product's result and the current value of its slot."""
    return better(
        m,
        result,
        true,
        kept,
        output=dot.spec.output,
        mode=late,
        keep=late["keep"],
        name="better",
    )
