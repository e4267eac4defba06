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
        Numbers of ports. Of several requests, that of the first port is granted.

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

    def __init__(self, *, blocks: int, readers: int, writers: int):
        self.blocks = blocks
        super().__init__({"r": In(ReadPort()).array(readers), "w": In(WritePort()).array(writers)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = cells = memory.Memory(shape=BLOCK_BITS, depth=self.blocks, init=[])
        read, write = cells.read_port(), cells.write_port(granularity=8)
        granted, port = choose(m, list(self.r))
        m.d.comb += [read.en.eq(granted), read.addr.eq(port.address)]
        for reader in self.r:
            last = Signal()
            m.d.sync += last.eq(reader.grant)
            m.d.comb += [reader.valid.eq(last), reader.data.eq(read.data)]
        granted, port = choose(m, list(self.w))
        m.d.comb += [
            write.addr.eq(port.address),
            write.data.eq(port.data),
            write.en.eq(port.enable & granted.replicate(len(port.enable))),
        ]
        return m
