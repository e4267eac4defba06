"""The processing element: a fused dot product or semirings, and their accumulators."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import IntDotSpec
from vitruvian.golden.simd2.op import GROUP, KEPT

from ..fp.intdot import IntDotProduct
from ..fp.multidot import MultiDot
from ..m3xu.dot import LaneDot
from ..simd2.dot import SemiringDot, better, both_true
from ..simd2.mode import bits
from ..simd2.pair import ELEMENT_BITS, addend, chosen_bits, keep_selected, negated_unless_nan
from .choices import INT8
from .config import MatrixUnitConfig
from .ports import control_layout, operand_layouts

__all__ = ["ProcessingElement"]


class ProcessingElement(wiring.Component):
    """Processing element that computes ``slot = (slot or 0) + sum(A[k] * B[k])`` in every cycle.

    With semirings it computes ``slot = (slot or the identity) ⊕ A[0] ⊗ B[0] ⊕ …``. If the operands
    of a semiring are FP32, each beat has one pair of them.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit that the element belongs to. All elements of a unit are instances of this module,
        in either dataflow.

    Members
    -------
    valid : In(1)
        Set if there is a beat in this cycle. In a product of several steps it is set in the last
        step only.
    a, b : In(operand_layouts)
        Operands: codes, or decoded lanes from a data assignment.
    control : In(control_layout)
        The operation, the slot, and whether the beat adds to the slot's value or to zero.
    load : In(1)
        Set to write a slot from outside.
    load_slot, c : In(slot_bits), In(word_bits)
        The slot to write and its new value.
    read_slot : In(slot_bits)
        The slot to read.
    d : Out(word_bits)
        The value of that slot, in the same cycle.

    Latency
    -------
    The result of a beat can be read ``pipeline + 1`` cycles later, or one cycle more with
    semirings. The element takes one beat per cycle and never stalls: the sequencer that drives it
    keeps accesses to the same slot apart. A sum that accumulates reads its slot when the beat
    arrives. A semiring reads it when the result is written, so beats of semirings may follow each
    other in the same slot. If a result and ``load`` write a slot in the same cycle, the slot gets
    the result.
    """

    if TYPE_CHECKING:
        valid: Signal
        a: Any  # Signal, or data.View of decoded lanes
        b: Any
        control: data.View
        load: Signal
        load_slot: Signal
        c: Signal
        read_slot: Signal
        d: Signal

    def __init__(self, *, config: MatrixUnitConfig):
        self.config = config
        a, b = operand_layouts(config)
        super().__init__(
            {
                "valid": In(1),
                "a": In(a),
                "b": In(b),
                "control": In(control_layout(config)),
                "load": In(1),
                "load_slot": In(config.slot_bits),
                "c": In(config.word_bits),
                "read_slot": In(config.slot_bits),
                "d": Out(config.word_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.dot = dot = self._dot()
        slots = Array(
            Signal(config.word_bits, name=f"slot{s}", reset_less=True)
            for s in range(config.slot_count)
        )
        # The addend of the dot product: the slot's value or zero.
        start: Value = Mux(self.control.accumulate, slots[self.control.slot], 0)
        if config.one_pair:
            start = addend(start, self._flags()["semiring"])
        m.d.comb += [dot.c.eq(start), self.d.eq(slots[self.read_slot])]
        write, write_slot, integer = self._delayed(m, config.pipeline + config.merge_cycles)
        result: Value = dot.d
        if isinstance(dot, SemiringDot):
            m.d.comb += [
                Value.cast(dot.a).eq(Value.cast(self.a.lanes)),
                Value.cast(dot.b).eq(self._chosen()),
                Value.cast(dot.mode).eq(Value.cast(self.control.mode)),
            ]
            if config.merge_cycles:
                result = self._merged(m, dot, slots[write_slot])
        elif isinstance(dot, MultiDot):
            m.d.comb += [dot.a.eq(self.a), dot.b.eq(self.b)]
            if config.precision_bits:
                m.d.comb += dot.precision.eq(self.control.precision)
        else:
            self._connect_lanes(m, dot)
            if INT8 in config.precisions:
                m.submodules.int8 = int8 = self._int_dot()
                m.d.comb += [
                    Value.cast(int8.a).eq(self.a.codes),
                    Value.cast(int8.b).eq(self.b.codes),
                    int8.c.eq(dot.c),
                ]
                result = Mux(integer, int8.d, dot.d)
            if config.one_pair:
                self._choose_product(m, dot)
                result = self._merged(m, dot, slots[write_slot])
        for s, slot in enumerate(slots):
            # A result has priority over a value from outside.
            with m.If(write & (write_slot == s)):
                m.d.sync += slot.eq(result)
            with m.Elif(self.load & (self.load_slot == s)):
                m.d.sync += slot.eq(self.c)
        return m

    def _chosen(self) -> Value:
        """Return the operand of B for each lane.

        With 2:4 sparsity, the index of A's value selects it from a group of four.
        """
        if not self.config.sparsity:
            return Value.cast(self.b)
        lanes: list[Value] = []
        for k in range(self.config.k):
            group = [Value.cast(self.b[k // KEPT * GROUP + index]) for index in range(GROUP)]
            low, high = self.a.index[k][0], self.a.index[k][1]
            lanes.append(Mux(high, Mux(low, group[3], group[2]), Mux(low, group[1], group[0])))
        return Cat(*lanes)

    def _flags(self) -> dict[str, Value]:
        """Return the control bits of the operation."""
        if self.config.one_pair:
            return chosen_bits(self.config.ops, self.control.mode, ELEMENT_BITS)
        return bits(self.config.ops, self.control.mode)

    def _choose_product(self, m: Module, dot: LaneDot) -> None:
        """For min/max on FP32, zero the product of the operand that lost the comparison."""
        flags, n = self._flags(), self.config.limbs("fp32")
        if isinstance(flags["larger"], Const):
            return
        keep_selected(
            m,
            dot.a,
            dot.b,
            first=(self.a.codes, self.a.lanes["lane0"].nan),
            second=(self.b.codes, self.b.lanes[f"lane{n}"].nan),
            lanes=n,
            larger=flags["larger"],
            turn=flags["turn"],
        )

    def _merged(self, m: Module, dot: SemiringDot | LaneDot, kept: Value) -> Value:
        """Return ⊕ of the dot product's result and the current value of its slot."""
        flags = self._flags()
        late = {name: flags[name] for name in ("semiring", "turn", "truth")}
        late["keep"] = self.control.accumulate
        result: Value = dot.d
        if isinstance(dot, SemiringDot):
            true: Value = dot.true
        else:
            true = late["true"] = both_true(self.a.lanes["lane0"], self.b.lanes["lane0"])
        ranks = self.config.pipeline + self.config.merge_cycles
        # The dot product has its largest number of ranks already, so one rank is behind it.
        if ranks > dot.latency:
            result = Signal.like(dot.d, name="found", reset_less=True)
            m.d.sync += result.eq(dot.d)
            if isinstance(dot, SemiringDot):
                true = Signal.like(dot.true, name="true", reset_less=True)
                m.d.sync += true.eq(dot.true)
        # The control bits are needed when the result arrives.
        for rank in range(1, ranks + 1):
            for name, bit in late.items():
                if not isinstance(bit, Const):
                    late[name] = Signal(name=f"s{rank}_{name}", reset_less=True)
                    m.d.sync += late[name].eq(bit)
        if isinstance(dot, LaneDot):
            result, true = negated_unless_nan(result, late["turn"], dot.spec.output), late["true"]
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

    def _connect_lanes(self, m: Module, dot: LaneDot) -> None:
        """Connect decoded lanes and their control to the dot product."""
        config = self.config
        m.d.comb += [
            Value.cast(dot.a).eq(Value.cast(self.a.lanes)),
            Value.cast(dot.b).eq(Value.cast(self.b.lanes)),
        ]
        if config.limb_counts:
            m.d.comb += [
                dot.wide.eq(self.control.wide),
                dot.again.eq(self.control.again),
                dot.last.eq(self.control.last),
            ]
        if config.chopped:
            m.d.comb += dot.chop.eq(self.control.chop)
        if config.small_results:
            m.d.comb += dot.small.eq(self.control.small)

    def _int_dot(self) -> IntDotProduct:
        """Return the dot product of INT8 operands."""
        config = self.config
        return IntDotProduct(
            spec=IntDotSpec(k=config.terms(INT8), saturate=config.saturate),
            pipeline=config.pipeline,
            multiplier=config.multiplier,
        )

    def _dot(self) -> MultiDot | LaneDot | SemiringDot:
        """Return the dot product for the configuration."""
        config = self.config
        if config.semirings and not config.one_pair:
            return SemiringDot(
                spec=config.float_specs["fp16"],
                operations=config.ops,
                pipeline=config.dot_ranks,
                multiplier=config.multiplier,
            )
        if config.assignment == "element":
            return MultiDot(
                specs=config.float_specs,
                int8_k=config.terms(INT8) if INT8 in config.precisions else 0,
                saturate=config.saturate,
                pipeline=config.pipeline,
                multiplier=config.multiplier,
            )
        specs = {name: config.float_specs[name] for name in config.floats}
        chopped = [specs.pop(name) for name in config.chopped]
        widest = max(specs.values(), key=lambda spec: spec.input.exponent_bits)
        small = [config.float_specs[name] for name in config.small_results]
        # A precision that is not chopped comes first; ``chopped`` describes the others.
        small.sort(key=lambda spec: spec in chopped)
        return LaneDot(
            spec=widest,
            chopped=chopped[0] if chopped else None,
            small=small[0] if small else None,
            exponent_bits=widest.input.exponent_bits,
            a_bits=config.limb_bits,
            b_bits=config.lane_bits,
            limbs=config.limb_counts,
            pipeline=config.dot_ranks,
            multiplier=config.multiplier,
        )

    def _delayed(self, m: Module, cycles: int) -> tuple[Value, Value, Value]:
        """Return a beat's valid bit, slot and kind (integer or not), ``cycles`` cycles later."""
        valid, slot, integer = self.valid, self.control.slot, self.control.integer
        for rank in range(1, cycles + 1):
            next_valid = Signal(name=f"s{rank}_valid")
            next_slot = Signal(len(slot), name=f"s{rank}_slot", reset_less=True)
            next_integer = Signal(len(integer), name=f"s{rank}_integer", reset_less=True)
            m.d.sync += [next_valid.eq(valid), next_slot.eq(slot), next_integer.eq(integer)]
            valid, slot, integer = next_valid, next_slot, next_integer
        return valid, slot, integer
