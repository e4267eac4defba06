"""The processing element: a fused dot product or semirings, and their accumulators."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .datapath import Beat, ElementDatapath, datapath_of
from .ports import control_layout, operand_layouts
from .tile import TileConfig


class ProcessingElement(wiring.Component):
    """Processing element that computes ``slot = (slot or 0) + sum(A[k] * B[k])`` in every cycle.

    With semirings it computes ``slot = (slot or the identity) ⊕ A[0] ⊗ B[0] ⊕ …``. If the operands
    of a semiring are FP32, each beat has one pair of them.

    Parameters
    ----------
    config : TileConfig
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
        Set to write a slot from outside. With ``slot_memory`` this is the slot's word in the memory
        of C, which the next beat in that slot starts from.
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
    arrives, or ``addend_cycles`` later. A semiring reads it when the result is written, so beats of
    semirings may follow each other in the same slot. If a result and ``load`` write a slot in the
    same cycle, the slot gets the result.
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

    def __init__(self, *, config: TileConfig):
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
        self._ranks = [(self.valid, self.control.slot, self.control.integer)]
        datapath = datapath_of(config)
        m.submodules.dot = dot = datapath.dot
        if config.slot_memory:
            self._build_memory(m, datapath)
            return m
        # The sequencer records which slots were written, so the slots need no reset.
        slots = Array(
            Signal(config.word_bits, name=f"slot{s}", reset_less=True)
            for s in range(config.slot_count)
        )
        start = Mux(self.control.accumulate, slots[self.control.slot], 0)
        start = datapath.addend(start, self.control)
        m.d.comb += [dot.c.eq(start), self.d.eq(slots[self.read_slot])]
        write, write_slot, integer = self._delayed(m, config.pipeline + config.merge_cycles)
        beat = Beat(
            a=self.a, b=self.b, control=self.control, kept=slots[write_slot], integer=integer
        )
        result = datapath.connect(m, beat)
        for s, slot in enumerate(slots):
            # A result has priority over a value from outside.
            with m.If(write & (write_slot == s)):
                m.d.sync += slot.eq(result)
            with m.Elif(self.load & (self.load_slot == s)):
                m.d.sync += slot.eq(self.c)
        return m

    def _build_memory(self, m: Module, datapath: ElementDatapath) -> None:
        """Keep the slots in a memory with a port for the beat, the reader and the result.

        C has a memory of its own, because the slots have no second port for writing.
        """
        config, dot = self.config, datapath.dot
        c = self._later(m, self.c, "later_c") if config.late_load else self.c
        slots, addends = (
            Memory(shape=config.word_bits, depth=config.slot_count, init=()) for _ in range(2)
        )
        m.submodules.slots, m.submodules.addends = slots, addends
        own, shown, start = (x.read_port(domain="comb") for x in (slots, slots, addends))
        written, loaded = slots.write_port(), addends.write_port()
        _, slot, _ = self._delayed(m, config.addend_cycles)
        accumulate, from_c = self.control.accumulate, self.control.from_c
        for rank in range(1, config.addend_cycles + 1):
            accumulate = self._later(m, accumulate, f"s{rank}_accumulate")
            from_c = self._later(m, from_c, f"s{rank}_from_c")
        m.d.comb += [
            own.addr.eq(slot),
            start.addr.eq(slot),
            dot.c.eq(Mux(from_c, start.data, Mux(accumulate, own.data, 0))),
            shown.addr.eq(self.read_slot),
            self.d.eq(shown.data),
            loaded.en.eq(self.load),
            loaded.addr.eq(self.load_slot),
            loaded.data.eq(c),
        ]
        valid, slot, integer = self._delayed(m, config.pipeline)
        beat = Beat(a=self.a, b=self.b, control=self.control, kept=Const(0), integer=integer)
        result = datapath.connect(m, beat)
        m.d.comb += [written.en.eq(valid), written.addr.eq(slot), written.data.eq(result)]

    def _delayed(self, m: Module, cycles: int) -> tuple[Value, Value, Value]:
        """Return a beat's valid bit, slot and kind (integer or not), ``cycles`` cycles later."""
        # Only the valid bit has a reset: without it, nothing is written. A slot in a memory may be
        # written after a reset, because it counts as zero until a later beat writes it.
        valid, slot, integer = self._ranks[-1]
        for rank in range(len(self._ranks), cycles + 1):
            next_valid = Signal(name=f"s{rank}_valid", reset_less=self.config.slot_memory)
            m.d.sync += next_valid.eq(valid)
            valid = next_valid
            slot = self._later(m, slot, f"s{rank}_slot")
            integer = self._later(m, integer, f"s{rank}_integer")
            self._ranks.append((valid, slot, integer))
        return self._ranks[cycles]

    def _later(self, m: Module, value: Value, name: str) -> Value:
        """Return a value one cycle later, without a reset."""
        later = Signal(len(value), name=name, reset_less=True)
        m.d.sync += later.eq(value)
        return later
