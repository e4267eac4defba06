"""Registers of one row of a buffered array, near the row's elements."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .ports import control_layout
from .tile import TileConfig


class RowRegisters(wiring.Component):
    """Copies of the control registers for one row of elements, and the row's output register.

    One register for a control bit of all elements would drive wires across the whole chip. Each row
    has a copy, in a module of its own, because synthesis merges equal registers of one module.

    Parameters
    ----------
    config : TileConfig
        The unit that the row belongs to.

    Members
    -------
    valid, control : In(1), In(control_layout(config))
        The control of a beat.
    load, load_slot : In(1), In(slot_bits)
        The control of C's memories, one cycle early if the unit has ``late_load``.
    read_slot, taken : In(slot_bits), In(1)
        The slot whose result goes to the output register two cycles later, if ``taken`` is set.
    late_valid, late_control, late_load, late_load_slot, late_slot : Out
        The inputs of these names, and ``read_slot``, one cycle later, for the elements.
    shown : In(n × word_bits)
        The words in slot ``late_slot`` of the elements.
    d : Out(n × word_bits)
        The output register.
    """

    if TYPE_CHECKING:
        valid: Signal
        control: data.View
        load: Signal
        load_slot: Signal
        read_slot: Signal
        taken: Signal
        late_valid: Signal
        late_control: data.View
        late_load: Signal
        late_load_slot: Signal
        late_slot: Signal
        shown: data.View
        d: data.View

    def __init__(self, *, config: TileConfig):
        self.config = config
        words = data.ArrayLayout(config.word_bits, config.n)
        super().__init__(
            {
                "valid": In(1),
                "control": In(control_layout(config)),
                "load": In(1),
                "load_slot": In(config.slot_bits),
                "read_slot": In(config.slot_bits),
                "taken": In(1),
                "late_valid": Out(1),
                "late_control": Out(control_layout(config)),
                "late_load": Out(1),
                "late_load_slot": Out(config.slot_bits),
                "late_slot": Out(config.slot_bits),
                "shown": In(words),
                "d": Out(words),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        showing = Signal()
        later = {
            "control": (Value.cast(self.control), Value.cast(self.late_control)),
            "load": (self.load, self.late_load),
            "load_slot": (self.load_slot, self.late_load_slot),
            "slot": (self.read_slot, self.late_slot),
        }
        for name, (now, late) in later.items():
            register = Signal(len(now), name=f"{name}_register", reset_less=True)
            m.d.sync += register.eq(now)
            m.d.comb += late.eq(register)
        m.d.sync += [self.late_valid.eq(self.valid), showing.eq(self.taken)]
        output = Signal(len(Value.cast(self.d)), reset_less=True)
        m.d.comb += Value.cast(self.d).eq(output)
        with m.If(showing):
            m.d.sync += output.eq(Value.cast(self.shown))
        return m
