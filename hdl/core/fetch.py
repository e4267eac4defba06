"""Unit S: it fetches the words of a program, and gives them to the queues in program order."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import OPCODE_BITS, UNIT_BITS, UNITS, WORD_BITS

from .check import WordCheck
from .config import CoreConfig
from .faults import ORIGIN, PC_BITS, Fault
from .ports import ADDRESS_BITS, BLOCK_BITS, PLACE_BITS, ReadPort
from .record import length, opcode, unit

#: Blocks that are read ahead.
AHEAD = 4
_WORDS = BLOCK_BITS // WORD_BITS


class Fetcher(wiring.Component):
    """Fetch unit and dispatcher.

    Parameters
    ----------
    config : CoreConfig
        Its ``scalar`` says if the words come from global memory or from a processor.

    Members
    -------
    start, address : In(1), In(32)
        Start at a byte of global memory, a multiple of 32.
    running : Out(1)
        The program has not ended. It ends behind its word 0, when all units are idle.
    r : Out(ReadPort()), if it fetches
        Global memory.
    words : In(stream.Signature(64)), if it does not fetch
        The words of a processor.
    queues : array of Out(stream.Signature(64))
        The words for the units S, V, M, MTE1, MTE2 and MTE3.
    empty : In(6)
        Queue and unit have nothing to do. While S has something to do, nothing is dispatched.
    pc : Out(24)
        The number of the word in the program, for all queues.
    error : In(1), if it fetches
        The block that comes at ``r`` has no meaning, because the memory has answered with an error.
    halt, quiet : In(1), In(1)
        There is a fault; all units have ended what they can. Then the program ends.
    bad : Out(6)
        The last word of a queue is one that is refused. No other follows.
    refused, refused_origin : Out(Fault), Out(ORIGIN)
        What is wrong with it.
    blocked : Out(1)
        The unit has no word, or one that its queue does not take.
    """

    if TYPE_CHECKING:
        start: Signal
        address: Signal
        running: Signal
        r: Any
        words: stream.Interface
        queues: Any
        empty: Signal
        pc: Signal
        error: Signal
        halt: Signal
        quiet: Signal
        bad: Signal
        refused: Any
        refused_origin: Any
        blocked: Signal

    def __init__(self, *, config: CoreConfig):
        self.config, self.fetches = config, config.scalar == "stream"
        source = (
            {"r": Out(ReadPort()), "error": In(1)}
            if self.fetches
            else {"words": In(stream.Signature(WORD_BITS))}
        )
        super().__init__(
            {
                "start": In(1),
                "address": In(ADDRESS_BITS),
                "running": Out(1),
                **source,
                "queues": Out(stream.Signature(WORD_BITS)).array(len(self.config.units)),
                "empty": In(len(self.config.units)),
                "pc": Out(PC_BITS),
                "halt": In(1),
                "quiet": In(1),
                "bad": Out(len(self.config.units)),
                "refused": Out(Fault),
                "refused_origin": Out(ORIGIN),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.check = check = WordCheck(config=self.config)
        s = SimpleNamespace(bad=Value.cast(check.bad), barrier=check.barrier)
        names = ("ended", "there", "taken", "first", "stops", "lost", "wrong")
        for name in names:  # "ended" is set by the word 0, or by one that is refused
            setattr(s, name, Signal(name=name))
        s.stopped = s.ended | self.halt
        s.word = Signal(WORD_BITS, name="word")
        s.more = Signal(5)  # words of the instruction that have not come
        s.count = Signal(5)  # and those that have
        s.goes = Signal(UNIT_BITS, name="goes")
        spent: list[Value] = []  # no block of the program is left
        resets: list[Any] = []
        if self.fetches:
            spent, resets = self._build_reads(m, s)
        else:
            m.d.comb += [
                s.word.eq(self.words.payload),
                s.there.eq(self.words.valid & self.running & ~s.stopped),
                self.words.ready.eq(s.taken),
            ]
        self._build_dispatch(m, s)
        self._build_refusal(m, s)
        m.d.comb += [
            check.word.eq(s.word),
            check.number.eq(s.count),
            check.taken.eq(s.taken),
            s.wrong.eq(s.bad != Fault.NONE.value),
        ]
        over = Mux(self.halt, self.quiet, s.ended & self.empty.all())
        with m.If(self.running & over & Cat(Const(1, 1), *spent).all()):
            m.d.sync += self.running.eq(0)
        with m.If(s.taken):
            m.d.sync += self.pc.eq(self.pc + 1)
        with m.If(self.start & ~self.halt):
            m.d.sync += [
                self.running.eq(1),
                *resets,
                *(signal.eq(0) for signal in (s.ended, s.more, s.count, self.pc)),
            ]
        return m

    def _build_reads(self, m: Module, s: Any) -> tuple[list[Value], list[Any]]:
        """Read the program ahead; return when no block is left, and what a start resets."""
        m.submodules.blocks = blocks = SyncFIFO(width=BLOCK_BITS + 1, depth=AHEAD)
        row = Signal(ADDRESS_BITS - PLACE_BITS)
        on_way = Signal(range(AHEAD + 1))
        number = Signal(range(_WORDS))
        m.d.comb += [
            self.r.request.eq(self.running & ~s.stopped & (blocks.w_level + on_way < AHEAD)),
            self.r.address.eq(row),
            blocks.w_data.eq(Cat(self.r.data, self.error)),
            blocks.w_en.eq(self.r.valid & self.running),
        ]
        m.d.sync += on_way.eq(on_way + self.r.grant - self.r.valid)
        with m.If(self.r.grant):
            m.d.sync += row.eq(row + 1)
        words = Array(blocks.r_data[WORD_BITS * i : WORD_BITS * (i + 1)] for i in range(_WORDS))
        m.d.comb += [
            s.word.eq(words[number]),
            s.lost.eq(blocks.r_data[BLOCK_BITS]),
            s.there.eq(blocks.r_rdy & self.running & ~s.stopped),
            blocks.r_en.eq((s.taken & (number == _WORDS - 1)) | (s.stopped & blocks.r_rdy)),
        ]
        with m.If(s.taken):
            m.d.sync += number.eq(number + 1)
        return [on_way == 0, ~blocks.r_rdy], [row.eq(self.address[PLACE_BITS:]), number.eq(0)]

    def _build_dispatch(self, m: Module, s: Any) -> None:
        """Give a word to a queue; the first word of an instruction says where the others go."""
        word, first = s.word, s.first
        target = Signal(UNIT_BITS)
        scalar = UNITS.index("S")
        missing = first & (s.lost | (unit(word) >= len(self.config.units)))
        # A barrier of all units has the code of S, and ends here.
        barrier = first & s.barrier & ~s.lost
        may = ~first | self.empty[scalar]
        ready = Signal()
        m.d.comb += [
            first.eq(s.more == 0),
            s.stops.eq(first & (word == 0) & ~s.lost),
            s.goes.eq(Mux(missing, scalar, Mux(first, unit(word), target))),
        ]
        for n, name in enumerate(self.config.units):
            here = s.goes == UNITS.index(name)
            m.d.comb += [
                self.queues[n].payload.eq(word),
                self.queues[n].valid.eq(s.there & here & may & ~s.stops & ~barrier),
            ]
            with m.If(here):
                m.d.comb += ready.eq(Mux(barrier, self.empty.all(), self.queues[n].ready & may))
        m.d.comb += [
            s.taken.eq(s.there & ready & ~s.stops),
            self.blocked.eq(self.running & (s.ended | (s.there & ~ready & ~s.stops))),
        ]
        left = Mux(first, length(word), s.more)  # this word and those behind it
        with m.If(s.taken):
            m.d.sync += [
                target.eq(s.goes),
                s.more.eq(left - 1),
                s.count.eq(Mux(left == 1, 0, s.count + 1)),
            ]
        with m.If(s.there & s.stops):
            m.d.sync += s.ended.eq(1)

    def _build_refusal(self, m: Module, s: Any) -> None:
        """Stop behind a word that is refused, and keep what is wrong with it."""
        opened = Signal(ORIGIN)  # the instruction whose first words have come
        here = Cat(unit(s.word), opcode(s.word), self.pc)
        with m.If(s.taken & s.first):
            m.d.sync += Value.cast(opened).eq(here)
        nothing = Cat(Const(UNITS.index("S"), UNIT_BITS), Const(0, OPCODE_BITS))
        origin = Mux(s.lost, Cat(nothing, self.pc), Mux(s.first, here, Value.cast(opened)))
        with m.If(s.taken & (s.lost | s.wrong)):
            m.d.sync += [
                s.ended.eq(1),
                self.bad.eq(1 << s.goes),
                Value.cast(self.refused).eq(Mux(s.lost, Fault.BUS.value, s.bad)),
                Value.cast(self.refused_origin).eq(origin),
            ]
