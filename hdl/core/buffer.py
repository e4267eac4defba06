"""A buffer of a core: a memory of blocks with one read and one write port."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In

from .ports import BLOCK_BITS, ReadPort, WritePort, choose


class BlockMemory(wiring.Component):
    """Memory of blocks of 32 bytes; each cycle it reads one block and writes one.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    readers, writers : int
        Numbers of ports, which take turns if several of them request.
    own : bool
        True if every reader has a port of the memory for itself, as a model of several memories.

    Members
    -------
    r, w : array of In(ReadPort()), array of In(WritePort())

    Latency
    -------
    A block comes one cycle after its grant. A block that is written and read in the same cycle is
    undefined, which flags prevent.
    """

    if TYPE_CHECKING:
        r: Any
        w: Any

    def __init__(self, *, blocks: int, readers: int, writers: int, own: bool = False):
        self.blocks, self.own = blocks, own
        super().__init__({"r": In(ReadPort()).array(readers), "w": In(WritePort()).array(writers)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = cells = memory.Memory(shape=BLOCK_BITS, depth=self.blocks, init=[])
        readers = list(self.r)
        for together in [[reader] for reader in readers] if self.own else [readers]:
            read = cells.read_port()
            granted, port = choose(m, together)
            m.d.comb += [read.en.eq(granted), read.addr.eq(port.address)]
            for reader in together:
                last = Signal()
                m.d.sync += last.eq(reader.grant)
                m.d.comb += [reader.valid.eq(last), reader.data.eq(read.data)]
        write = cells.write_port(granularity=8)
        granted, port = choose(m, list(self.w))
        m.d.comb += [
            write.addr.eq(port.address),
            write.data.eq(port.data),
            write.en.eq(port.enable & granted.replicate(len(port.enable))),
        ]
        return m
