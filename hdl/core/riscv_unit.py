"""Unit S as a RISC-V: it runs a kernel, and its stores are the words of the instructions."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import WORD_BITS
from vitruvian.golden.core.memory_map import CODE, REGION_LOW, REGIONS

from .buffer import BlockMemory
from .ports import (
    ADDRESS_BITS,
    BLOCK_BITS,
    BLOCK_BYTES,
    PLACE_BITS,
    ROW_BITS,
    ReadPort,
    WritePort,
)
from .record import RECORD_BITS
from .riscv import XLEN, RiscV


class _State(enum.Enum, shape=2):
    IDLE = 0
    #: The first block of the image is on its way.
    HEAD = 1
    #: The other blocks are.
    LOAD = 2
    RUN = 3


class RiscvScalar(wiring.Component):
    """Unit S with a processor, its memory, and a loader for the kernel.

    After the start the loader copies the kernel from global memory; word 1 of its first block is
    the number of blocks. Then the processor runs. Two stores to its queue register are a word for
    the queues, and a word 0 ends the program. A load or store of UB or global memory waits until S
    has carried out all flags and barriers that were given to it, and for nothing else.

    Parameters
    ----------
    memory_bytes : int
        Bytes of the processor's own memory, a multiple of 32.

    Members
    -------
    i, idle
        As those of a ``Mover``; the queue of S carries out flags, and nothing else is for it.
    start, address : In(1), In(32)
        Start the kernel whose image is at a byte of global memory, a multiple of 32.
    fetch : Out(ReadPort())
        Global memory, for the loader.
    words : Out(stream.Signature(64))
        The words of the instructions.
    quiet : In(1)
        The queue of S is empty.
    ub, gm : Out(ReadPort())
        The memories that it reads.
    ub_w, gm_w : Out(WritePort())
        The memories that it writes.
    trap : Out(1)
        The processor stands still at a mistake of its program: an unknown instruction, or an
        address that no memory has or that is not aligned.
    waits : Out(1)
        The processor waits until the queue of S is empty.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        start: Signal
        address: Signal
        fetch: Any
        words: stream.Interface
        quiet: Signal
        ub: Any
        gm: Any
        ub_w: Any
        gm_w: Any
        trap: Signal
        waits: Signal

    def __init__(self, *, memory_bytes: int):
        self.memory_bytes = memory_bytes
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "start": In(1),
                "address": In(ADDRESS_BITS),
                "fetch": Out(ReadPort()),
                "words": Out(stream.Signature(WORD_BITS)),
                "quiet": In(1),
                "ub": Out(ReadPort()),
                "gm": Out(ReadPort()),
                "ub_w": Out(WritePort()),
                "gm_w": Out(WritePort()),
                "trap": Out(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.processor = processor = RiscV(start=CODE)
        blocks = self.memory_bytes // BLOCK_BYTES
        m.submodules.own = own = BlockMemory(blocks=blocks, readers=2, writers=2)
        state = Signal(_State)
        m.d.comb += [
            self.i.ready.eq(1),
            self.idle.eq(1),
            processor.run.eq(state == _State.RUN),
        ]
        self._build_loader(m, state, own.w[0])
        data, code = own.r
        m.d.comb += [
            code.request.eq(processor.code.request),
            code.address.eq(processor.code.address),
            processor.code.grant.eq(code.grant),
            processor.code.valid.eq(code.valid),
            processor.code.data.eq(code.data),
        ]
        self._build_bus(m, processor.bus, data, own.w[1])
        reached = Signal()  # the address is in a region
        region = processor.bus.address[REGION_LOW:]
        with m.Switch(region):
            for first, last in REGIONS.values():
                with m.Case(*range(first, last + 1)):
                    m.d.comb += reached.eq(1)
        m.d.comb += self.trap.eq(processor.trap | (processor.bus.request & ~reached))
        return m

    def _build_loader(self, m: Module, state: Any, own: Any) -> None:
        """Copy the image to the processor's memory."""
        row, asked, count = Signal(ROW_BITS), Signal(16), Signal(16)
        came = Signal(16)
        first = (state == _State.HEAD) & (asked == 0)
        m.d.comb += [
            self.fetch.request.eq(first | ((state == _State.LOAD) & (asked != count))),
            self.fetch.address.eq(row),
            own.request.eq(self.fetch.valid),
            own.address.eq(came),
            own.data.eq(self.fetch.data),
            own.enable.eq((1 << BLOCK_BYTES) - 1),
        ]
        with m.If(self.fetch.grant):
            m.d.sync += [row.eq(row + 1), asked.eq(asked + 1)]
        with m.If(self.fetch.valid):
            m.d.sync += came.eq(came + 1)
            with m.If(state == _State.HEAD):
                m.d.sync += [count.eq(self.fetch.data[XLEN:]), state.eq(_State.LOAD)]
        with m.If((state == _State.LOAD) & (came == count)):
            m.d.sync += state.eq(_State.RUN)
        with m.If(self.start):
            m.d.sync += [
                state.eq(_State.HEAD),
                row.eq(self.address[PLACE_BITS:]),
                asked.eq(0),
                came.eq(0),
            ]

    def _build_bus(self, m: Module, bus: Any, own: Any, own_w: Any) -> None:
        """Connect the processor's loads and stores; this is the one place that maps addresses."""
        asked = Signal()  # a load has been granted
        lower = Signal(XLEN)  # the lower half of a word, until the upper half comes
        row = bus.address[PLACE_BITS:REGION_LOW]
        region = bus.address[REGION_LOW:]
        reads, writes = bus.request & ~bus.write, bus.request & bus.write
        block = Signal(BLOCK_BITS)
        place = bus.address[2:PLACE_BITS]
        ports = {"OWN": (own, own_w, 1), "UB": (self.ub, self.ub_w, self.quiet)}
        ports["GM"] = (self.gm, self.gm_w, self.quiet)
        for name, (read, write, may) in ports.items():
            first, last = REGIONS[name]
            here = (region >= first) & (region <= last)
            where = bus.address[PLACE_BITS:-1] if name == "GM" else row
            m.d.comb += [
                read.request.eq(reads & here & ~asked & may),
                read.address.eq(where),
                write.request.eq(writes & here & may),
                write.address.eq(where),
                write.data.eq(bus.data.replicate(BLOCK_BITS // XLEN)),
                write.enable.eq((bus.enable << (place << 2))[:BLOCK_BYTES]),
            ]
            if name != "OWN":
                with m.If(bus.request & here & ~self.quiet):
                    m.d.comb += self.waits.eq(1)
            with m.If(read.grant):
                m.d.sync += asked.eq(1)
            with m.If(read.valid):
                m.d.comb += [block.eq(read.data), bus.done.eq(asked)]
                m.d.sync += asked.eq(0)
            with m.If(write.grant):
                m.d.comb += bus.done.eq(1)
        m.d.comb += bus.value.eq(block.word_select(place, XLEN))
        first, last = REGIONS["QUEUE"]
        with m.If(writes & (region >= first) & (region <= last)):
            with m.If(bus.address[2]):
                m.d.comb += [self.words.valid.eq(1), bus.done.eq(self.words.ready)]
            with m.Else():
                m.d.sync += lower.eq(bus.data)
                m.d.comb += bus.done.eq(1)
        m.d.comb += [self.words.payload[:XLEN].eq(lower), self.words.payload[XLEN:].eq(bus.data)]
        with m.If(self.start):
            m.d.sync += asked.eq(0)
