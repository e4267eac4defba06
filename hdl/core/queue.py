"""The queue of a unit: it puts words together, and carries out flags and barriers."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import UNIT_BITS, WORD_BITS

from .faults import ORIGIN, PC_BITS, REGISTER_BITS, WAIT
from .record import RECORD_BITS, RECORD_WORDS, is_op, length, opcode, part


class UnitQueue(wiring.Component):
    """Queue in front of a unit.

    Parameters
    ----------
    depth : int
        Words that wait in the queue.
    code : int
        Code of the unit.

    Members
    -------
    i : In(stream.Signature(64))
        Words of instructions.
    pc : In(24)
        The number of the word in its program.
    bad : In(1)
        The last word of ``i`` is one that the fetch unit refuses.
    halt : In(1)
        No instruction, flag or barrier may be carried out.
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
    blocked, waiting : Out(1), Out(WAIT)
        The unit is idle and waits for a flag that is not set; the flag that it waits for.
    reached : Out(1)
        All work before the bad word has ended.
    turn : Out(ORIGIN)
        The last instruction whose turn has come: the unit carries it out, or has ended it.
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
        pc: Signal
        bad: Signal
        halt: Signal
        blocked: Signal
        waiting: Any
        reached: Signal
        turn: Any

    def __init__(self, *, depth: int, code: int):
        self.depth, self.code = depth, code
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
                "pc": In(PC_BITS),
                "bad": In(1),
                "halt": In(1),
                "blocked": Out(1),
                "waiting": Out(WAIT),
                "reached": Out(1),
                "turn": Out(ORIGIN),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = SyncFIFO(width=WORD_BITS + PC_BITS, depth=self.depth)
        m.d.comb += [
            words.w_data.eq(Cat(self.i.payload, self.pc)),
            words.w_en.eq(self.i.valid),
            self.i.ready.eq(words.w_rdy),
        ]
        record, pc = Signal(RECORD_BITS), Signal(PC_BITS)
        count = Signal(range(RECORD_WORDS + 1))
        whole, refused, done = Signal(), Signal(), Signal()
        slots = Array(record[WORD_BITS * i : WORD_BITS * (i + 1)] for i in range(RECORD_WORDS))
        m.d.comb += [
            # Of the bad word and what is before it in its instruction, nothing is carried out.
            refused.eq(self.bad & ~words.r_rdy & (count != 0)),
            whole.eq((count != 0) & (count == length(record)) & ~refused),
            words.r_en.eq(~whole & words.r_rdy),
        ]
        with m.If(words.r_en):
            m.d.sync += [slots[count].eq(words.r_data[:WORD_BITS]), count.eq(count + 1)]
            with m.If(count == 0):
                m.d.sync += pc.eq(words.r_data[WORD_BITS:])
        sets, waits = Signal(), Signal()
        barrier, normal = Signal(), Signal()
        may = self.idle & ~self.halt
        m.d.comb += [
            sets.eq(whole & is_op(record, "set_flag")),
            waits.eq(whole & is_op(record, "wait_flag")),
            barrier.eq(whole & is_op(record, "pipe_barrier")),
            normal.eq(whole & ~sets & ~waits & ~barrier),
            self.set.eq(sets & may),
            self.wait.eq(waits & ~self.halt),
            self.register.eq(part(record, "set_flag", "register")),
            self.o.payload.eq(record),
            self.o.valid.eq(normal & may),
            done.eq(
                self.set
                | (self.wait & self.granted)
                | (barrier & may)
                | (self.o.valid & self.o.ready)
            ),
            self.empty.eq(self.idle & (count == 0) & ~words.r_rdy),
            self.blocked.eq(self.wait & ~self.granted & self.idle),
            self.reached.eq(refused & self.idle),
        ]
        with m.If(sets):
            m.d.comb += self.other.eq(part(record, "set_flag", "target"))
        with m.Else():
            m.d.comb += self.other.eq(part(record, "wait_flag", "source"))
        m.d.comb += [
            self.turn.unit.eq(self.code),
            self.waiting.waits.eq(waits),
            self.waiting.source.eq(part(record, "wait_flag", "source")),
            self.waiting.register.eq(self.register),
            self.waiting.pc.eq(pc),
        ]
        with m.If(whole & may):
            m.d.sync += [self.turn.opcode.eq(opcode(record)), self.turn.pc.eq(pc)]
        with m.If(done):
            m.d.sync += count.eq(0)
        return m
