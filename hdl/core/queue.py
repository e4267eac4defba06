"""The queue of a unit: it puts words together, and carries out flags and barriers."""

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import UNIT_BITS, WORD_BITS

from .record import RECORD_BITS, RECORD_WORDS, is_op, length, part

#: Bits of the number of a flag between two units.
REGISTER_BITS = 4


class UnitQueue(wiring.Component):
    """Queue in front of a unit.

    Parameters
    ----------
    depth : int
        Words that wait in the queue.

    Members
    -------
    i : In(stream.Signature(64))
        Words of instructions.
    o : Out(stream.Signature(512))
        Whole instructions for the unit. It must take one only if it has ended all earlier ones.
    idle : In(1)
        The unit has ended all instructions that it has taken.
    set, wait : Out(1), Out(1)
        The instruction is a set_flag whose turn has come, or a wait_flag.
    other, register : Out(3), Out(4)
        The other unit, and the number of the flag.
    granted : In(1)
        The flag that ``wait`` waits for was set, and is cleared.
    empty : Out(1)
        Nothing is in the queue, and the unit is idle.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface
        idle: Signal
        set: Signal
        wait: Signal
        other: Signal
        register: Signal
        granted: Signal
        empty: Signal

    def __init__(self, *, depth: int):
        self.depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(WORD_BITS)),
                "o": Out(stream.Signature(RECORD_BITS)),
                "idle": In(1),
                "set": Out(1),
                "wait": Out(1),
                "other": Out(UNIT_BITS),
                "register": Out(REGISTER_BITS),
                "granted": In(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = SyncFIFO(width=WORD_BITS, depth=self.depth)
        m.d.comb += [
            words.w_data.eq(self.i.payload),
            words.w_en.eq(self.i.valid),
            self.i.ready.eq(words.w_rdy),
        ]
        record = Signal(RECORD_BITS)
        count = Signal(range(RECORD_WORDS + 1))
        whole, done = Signal(), Signal()
        slots = Array(record[WORD_BITS * i : WORD_BITS * (i + 1)] for i in range(RECORD_WORDS))
        m.d.comb += [
            whole.eq((count != 0) & (count == length(record))),
            words.r_en.eq(~whole & words.r_rdy),
        ]
        with m.If(words.r_en):
            m.d.sync += [slots[count].eq(words.r_data), count.eq(count + 1)]
        sets, waits = Signal(), Signal()
        barrier, normal = Signal(), Signal()
        m.d.comb += [
            sets.eq(whole & is_op(record, "set_flag")),
            waits.eq(whole & is_op(record, "wait_flag")),
            barrier.eq(whole & is_op(record, "pipe_barrier")),
            normal.eq(whole & ~sets & ~waits & ~barrier),
            self.set.eq(sets & self.idle),
            self.wait.eq(waits),
            self.register.eq(part(record, "set_flag", "register")),
            self.o.payload.eq(record),
            self.o.valid.eq(normal & self.idle),
            done.eq(
                self.set
                | (self.wait & self.granted)
                | (barrier & self.idle)
                | (self.o.valid & self.o.ready)
            ),
            self.empty.eq(self.idle & (count == 0) & ~words.r_rdy),
        ]
        with m.If(sets):
            m.d.comb += self.other.eq(part(record, "set_flag", "target"))
        with m.Else():
            m.d.comb += self.other.eq(part(record, "wait_flag", "source"))
        with m.If(done):
            m.d.sync += count.eq(0)
        return m
