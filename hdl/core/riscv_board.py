"""Unit S as a RISC-V with memories around it, for simulation without the rest of a core."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .buffer import BlockMemory
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES, PLACE_BITS
from .riscv_unit import RiscvScalar

_WRITE, _START = range(2)


class ScalarBoard(wiring.Component):
    """Unit S with UB and global memory: a host writes blocks, starts, and takes the words.

    Whether S is quiet, so that its processor may read UB and global memory, changes at random.

    Parameters
    ----------
    memory_bytes, ub_bytes, gm_bytes : int
        Bytes of the processor's memory, of UB, and of global memory.

    Members
    -------
    i : In(stream.Signature({kind: 1, address: 32, data: 256}))
        What the host asks for, in order: kind 0 writes a block at a byte of global memory, and 1
        starts the kernel whose image is at a byte.
    o : Out(stream.Signature(64))
        The words that the processor passes to the queues.
    trap : Out(1)
        The processor has stood still at a mistake.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface
        trap: Signal

    def __init__(self, *, memory_bytes: int, ub_bytes: int, gm_bytes: int):
        self.memory_bytes, self.ub_bytes, self.gm_bytes = memory_bytes, ub_bytes, gm_bytes
        host = data.StructLayout({"kind": 1, "address": ADDRESS_BITS, "data": BLOCK_BITS})
        words = stream.Signature(64)
        super().__init__({"i": In(stream.Signature(host)), "o": Out(words), "trap": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = RiscvScalar(memory_bytes=self.memory_bytes)
        m.submodules.gm = gm = BlockMemory(
            blocks=self.gm_bytes // BLOCK_BYTES, readers=2, writers=2
        )
        m.submodules.ub = ub = BlockMemory(
            blocks=self.ub_bytes // BLOCK_BYTES, readers=1, writers=1
        )
        wiring.connect(m, unit.fetch, gm.r[0])
        wiring.connect(m, unit.gm, gm.r[1])
        wiring.connect(m, unit.gm_w, gm.w[1])
        wiring.connect(m, unit.ub, ub.r[0])
        wiring.connect(m, unit.ub_w, ub.w[0])
        wiring.connect(m, unit.words, wiring.flipped(self.o))
        noise = Signal(8, init=1)
        m.d.sync += noise.eq(noise << 1 | (noise[7] ^ noise[5] ^ noise[4] ^ noise[3]))
        i: Any = self.i.payload
        m.d.comb += [
            unit.quiet.eq(noise[0]),
            gm.w[0].request.eq(self.i.valid & (i.kind == _WRITE)),
            gm.w[0].address.eq(i.address[PLACE_BITS:]),
            gm.w[0].data.eq(i.data),
            gm.w[0].enable.eq((1 << BLOCK_BYTES) - 1),
            unit.start.eq(self.i.valid & (i.kind == _START)),
            unit.address.eq(i.address),
            self.i.ready.eq(Mux(i.kind == _WRITE, gm.w[0].grant, 1)),
        ]
        with m.If(unit.trap):
            m.d.sync += self.trap.eq(1)
        return m
