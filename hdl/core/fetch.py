"""Unit S: it fetches the words of a program, and gives them to the queues in program order."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import enum, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import UNIT_BITS, UNITS, WORD_BITS

from .ports import ADDRESS_BITS, BLOCK_BITS, PLACE_BITS, ReadPort
from .record import QUEUED, is_op, length, unit

#: Blocks that are read ahead.
AHEAD = 4
_WORDS = BLOCK_BITS // WORD_BITS


class Fault(enum.Enum, shape=4):
    """What stopped a core."""

    NONE = 0
    #: A word names a unit that the core lacks.
    UNIT = 1
    #: A flag was set that was set already.
    FLAG = 2
    #: A scalar load found another element than the program expects.
    #: If S is a processor, its program has an unknown instruction or an address of no memory.
    VALUE = 3


class Fetcher(wiring.Component):
    """Fetch unit and dispatcher.

    Parameters
    ----------
    fetches : bool
        If True, the words come from global memory, else from a processor.

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
    stop : In(Fault)
        A fault of a unit.
    fault : Out(Fault)
        The reason why the program has stopped before its end.
    """

    if TYPE_CHECKING:
        start: Signal
        address: Signal
        running: Signal
        r: Any
        words: stream.Interface
        queues: Any
        empty: Signal
        stop: Any
        fault: Any

    def __init__(self, *, fetches: bool = True) -> None:
        self.fetches = fetches
        source = {"r": Out(ReadPort())} if fetches else {"words": In(stream.Signature(WORD_BITS))}
        super().__init__(
            {
                "start": In(1),
                "address": In(ADDRESS_BITS),
                "running": Out(1),
                **source,
                "queues": Out(stream.Signature(WORD_BITS)).array(len(QUEUED)),
                "empty": In(len(QUEUED)),
                "stop": In(Fault),
                "fault": Out(Fault),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ended = Signal()  # the word 0 has come
        word = Signal(WORD_BITS)
        there, taken = Signal(), Signal()
        spent: list[Value] = []  # no block of the program is left
        resets: list[Any] = []
        if self.fetches:
            spent, resets = self._build_fetch(m, word, there, taken, ended)
        else:
            m.d.comb += [
                word.eq(self.words.payload),
                there.eq(self.words.valid & self.running & ~ended & (self.fault == Fault.NONE)),
                self.words.ready.eq(taken),
            ]

        # The first word says where the others go.
        more = Signal(5)  # words of the instruction that have not come
        target = Signal(UNIT_BITS)
        goes = Signal(UNIT_BITS)
        first = more == 0
        stops = first & (word == 0)
        m.d.comb += goes.eq(Mux(first, unit(word), target))
        # A barrier of all units has the code of S, and ends here.
        barrier = first & is_op(word, "pipe_barrier") & (goes == UNITS.index("S"))
        may = ~first | self.empty[UNITS.index("S")]
        ready = Signal()
        for n, name in enumerate(QUEUED):
            here = goes == UNITS.index(name)
            m.d.comb += [
                self.queues[n].payload.eq(word),
                self.queues[n].valid.eq(there & here & may & ~stops & ~barrier),
            ]
            with m.If(here):
                m.d.comb += ready.eq(Mux(barrier, self.empty.all(), self.queues[n].ready & may))
        m.d.comb += taken.eq(there & ready & ~stops)
        with m.If(taken):
            m.d.sync += target.eq(goes)
            with m.If(first):
                m.d.sync += more.eq(length(word) - 1)
            with m.Else():
                m.d.sync += more.eq(more - 1)
        with m.If(there & stops):
            m.d.sync += ended.eq(1)
        with m.If(self.running & (Value.cast(self.stop) != Fault.NONE.value)):
            m.d.sync += [self.fault.eq(self.stop), self.running.eq(0)]
        with m.Elif(there & first & (goes > UNITS.index(QUEUED[-1]))):
            m.d.sync += [self.fault.eq(Fault.UNIT), self.running.eq(0)]
        ends = self.running & ended & self.empty.all()
        for condition in spent:
            ends = ends & condition
        with m.If(ends):
            m.d.sync += self.running.eq(0)
        with m.If(self.start):
            m.d.sync += [
                self.running.eq(1),
                ended.eq(0),
                *resets,
                more.eq(0),
                self.fault.eq(Fault.NONE),
            ]
        return m

    def _build_fetch(
        self, m: Module, word: Signal, there: Signal, taken: Signal, ended: Signal
    ) -> tuple[list[Value], list[Any]]:
        """Read the program ahead; return when no block is left, and what a start resets."""
        m.submodules.blocks = blocks = SyncFIFO(width=BLOCK_BITS, depth=AHEAD)
        row = Signal(ADDRESS_BITS - PLACE_BITS)
        on_way = Signal(range(AHEAD + 1))
        m.d.comb += [
            self.r.request.eq(self.running & ~ended & (blocks.w_level + on_way < AHEAD)),
            self.r.address.eq(row),
            blocks.w_data.eq(self.r.data),
            blocks.w_en.eq(self.r.valid & self.running),
        ]
        m.d.sync += on_way.eq(on_way + self.r.grant - self.r.valid)
        with m.If(self.r.grant):
            m.d.sync += row.eq(row + 1)

        number = Signal(range(_WORDS))
        words = Array(blocks.r_data[WORD_BITS * i : WORD_BITS * (i + 1)] for i in range(_WORDS))
        m.d.comb += [
            word.eq(words[number]),
            there.eq(blocks.r_rdy & self.running & ~ended & (self.fault == Fault.NONE)),
            blocks.r_en.eq((taken & (number == _WORDS - 1)) | (ended & blocks.r_rdy)),
        ]
        with m.If(taken):
            m.d.sync += number.eq(number + 1)
        resets = [row.eq(self.address[PLACE_BITS:]), number.eq(0)]
        return [on_way == 0, ~blocks.r_rdy], resets
