"""A core with its global memory, for simulation."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from .buffer import BlockMemory
from .config import CoreConfig
from .core import Core
from .faults import ORIGIN, WAIT, Fault
from .guard import reaches
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES

#: Blocks that a port of the memory has on their way, at most.
_ON_WAY = 64
#: Begin and end of an instruction, in cycles since the start.
SPAN = data.StructLayout({"begin": 32, "end": 32})


class CoreBoard(wiring.Component):
    """Core with its global memory, for simulation: a host writes, starts and reads.

    The fetch has a port of the memory for itself. An access beyond the end of the memory is
    answered with an error.

    Parameters
    ----------
    config : CoreConfig
    memory_bytes : int
        Bytes of global memory, a power of two.
    traced : bool
        If True, the board has the stream ``t``.

    Members
    -------
    latency, noise : In(8), In(32)
        Cycles from a read of the core to its data, from 1 on. With a number other than 0, the
        memory takes requests in random cycles only, and adds 0 to 15 random cycles to the latency.
    i : In(stream.Signature({kind: 2, address: 32, data: 256}))
        What the host asks for, in order: kind 0 writes a block at a byte, 1 starts a program at a
        byte and waits for its end, and 2 reads a block.
    o : Out(stream.Signature(256))
        The blocks that were read.
    t : Out(stream.Signature({begin: 32, end: 32})) for each unit but S
        Cycles in which an instruction was taken, and in which its unit was idle again. The host
        must take each item at once.
    cycles, busy, bytes, conflicts, fault, origin, waits : Out
        Cycles of the last program, bytes that its units have written, and what the core says.
    """

    shared = Core.shared

    if TYPE_CHECKING:
        latency: Signal
        noise: Signal
        i: stream.Interface
        o: stream.Interface
        cycles: Signal
        busy: Any
        bytes: Any
        conflicts: Signal
        fault: Any
        origin: Any
        waits: Any
        t: Any

    def __init__(self, *, config: CoreConfig, memory_bytes: int, traced: bool = False):
        self.config, self.memory_bytes, self.traced = config, memory_bytes, traced
        host = data.StructLayout({"kind": 2, "address": ADDRESS_BITS, "data": BLOCK_BITS})
        super().__init__(
            {
                "latency": In(8),
                "noise": In(32),
                "i": In(stream.Signature(host)),
                "o": Out(stream.Signature(BLOCK_BITS)),
                "cycles": Out(32),
                "busy": Out(32).array(len(config.units)),
                "bytes": Out(32).array(len(config.units)),
                "conflicts": Out(32),
                "fault": Out(Fault),
                "origin": Out(ORIGIN),
                "waits": Out(WAIT).array(len(config.units)),
            }
            | ({"t": Out(stream.Signature(SPAN)).array(len(config.units) - 1)} if traced else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = Core(config=self.config)
        blocks = self.memory_bytes // BLOCK_BYTES
        m.submodules.memory = memory = BlockMemory(blocks=blocks, readers=3, writers=2, own=True)
        random = self._build_noise(m)
        reads = ((core.r, core.r_error), (core.fetch, core.fetch_error))
        for n, (port, error) in enumerate(reads):
            self._delay(m, port, error, memory.r[n], random[8 * n : 8 * n + 8], f"read{n}")
        self._connect_writes(m, core, memory.w[0], random[16:24])
        host, own = memory.w[1], memory.r[2]
        i = self.i.payload
        started, asked = Signal(), Signal()
        writes, starts, reading = (self.i.valid & (i.kind == kind) for kind in range(3))
        m.d.comb += [
            host.request.eq(writes),
            host.address.eq(i.address[5:]),
            host.data.eq(i.data),
            host.enable.eq((1 << BLOCK_BYTES) - 1),
            own.request.eq(reading & ~asked),
            own.address.eq(i.address[5:]),
            core.start.eq(starts & ~started),
            core.address.eq(i.address),
            self.fault.eq(core.fault),
            self.origin.eq(core.origin),
        ]
        held = Signal(BLOCK_BITS)
        full = Signal()
        with m.If(own.valid):
            m.d.sync += [held.eq(own.data), full.eq(1)]
        with m.If(own.grant):
            m.d.sync += asked.eq(1)
        with m.If(core.start):
            m.d.sync += [started.eq(1), self.cycles.eq(0)]
        with m.Elif(core.running):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        m.d.comb += [
            self.o.valid.eq(full),
            self.o.payload.eq(held),
            self.i.ready.eq(
                (writes & host.grant)
                | (starts & started & ~core.running)
                | (reading & full & self.o.ready)
            ),
            Cat(*self.busy).eq(Cat(*core.busy)),
            self.conflicts.eq(core.conflicts),
        ]
        for count, written in zip(self.bytes, core.written, strict=True):
            with m.If(core.start):
                m.d.sync += count.eq(0)
            with m.Else():
                m.d.sync += count.eq(count + written)
        m.d.comb += [self.waits[n].eq(core.waits[n]) for n in range(len(self.config.units))]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [started.eq(0), asked.eq(0), full.eq(0)]
        if self.traced:
            self._build_trace(m, core)
        return m

    def _build_trace(self, m: Module, core: Any) -> None:
        """Send begin and end of each instruction."""
        for n, trace in enumerate(self.t, start=1):
            begin, taken = Signal(32, name=f"begin{n}"), Signal(name=f"taken{n}")
            m.d.comb += [
                trace.valid.eq(taken & ~core.works[n]),
                trace.payload.begin.eq(begin),
                trace.payload.end.eq(self.cycles),
            ]
            with m.If(trace.valid):
                m.d.sync += taken.eq(0)
            with m.If(core.begins[n]):
                m.d.sync += [begin.eq(self.cycles), taken.eq(1)]

    def _build_noise(self, m: Module) -> Signal:
        """Return the state of a generator of random bits (xorshift32); 0 without noise."""
        state, following = Signal(32, name="noise_state"), Signal(32, name="noise_next")
        a = (state ^ (state << 13))[:32]
        b = a ^ (a >> 17)
        m.d.comb += following.eq(b ^ (b << 5))
        m.d.sync += state.eq(Mux(state == 0, self.noise, following))
        return state

    def _connect_writes(self, m: Module, core: Core, memory: Any, random: Value) -> None:
        port = core.w
        far = reaches(port.address, self.memory_bytes // BLOCK_BYTES)
        may = Signal(name="write_may")
        m.d.comb += [
            may.eq((self.noise == 0) | random[0] | random[1]),
            memory.request.eq(port.request & may & ~far),
            memory.address.eq(port.address),
            memory.data.eq(port.data),
            memory.enable.eq(port.enable),
            port.grant.eq(memory.grant | (port.request & may & far)),
        ]
        # An error comes in the cycle after the grant, and the block is open until then.
        with m.If(port.request & may & far):
            m.d.sync += core.w_error.eq(1 << core.w_source)
        with m.Else():
            m.d.sync += core.w_error.eq(0)
        m.d.comb += core.w_open.eq(core.w_error)

    def _delay(
        self, m: Module, port: Any, error: Signal, memory: Any, random: Value, name: str
    ) -> None:
        """Connect a port to the memory, with a block that comes some cycles later."""
        m.submodules[name] = late = SyncFIFO(width=BLOCK_BITS + 1, depth=_ON_WAY)
        m.submodules[f"{name}_times"] = times = SyncFIFO(width=16, depth=_ON_WAY)
        far, was_far, may, now = (
            Signal(name=f"{name}_far"),
            Signal(name=f"{name}_was_far"),
            Signal(name=f"{name}_may"),
            Signal(16, name=f"{name}_now"),
        )
        at_once = (self.latency <= 1) & (self.noise == 0)
        extra = Mux(self.noise == 0, 0, random[2:6])
        m.d.sync += [now.eq(now + 1), was_far.eq(far)]
        m.d.comb += [
            far.eq(reaches(port.address, self.memory_bytes // BLOCK_BYTES)),
            may.eq(((self.noise == 0) | random[0] | random[1]) & times.w_rdy),
            memory.request.eq(port.request & may),
            memory.address.eq(port.address),
            port.grant.eq(memory.grant),
            times.w_en.eq(memory.grant & ~at_once),
            times.w_data.eq(now + self.latency + extra),
            late.w_en.eq(memory.valid & ~at_once),
            late.w_data.eq(Cat(memory.data, was_far)),
        ]
        due = late.r_rdy & ((now - times.r_data)[:16] < 1 << 15)
        with m.If(at_once):
            m.d.comb += [
                port.valid.eq(memory.valid),
                port.data.eq(memory.data),
                error.eq(was_far),
            ]
        with m.Else():
            m.d.comb += [
                port.valid.eq(due),
                port.data.eq(late.r_data[:BLOCK_BITS]),
                error.eq(late.r_data[BLOCK_BITS]),
                late.r_en.eq(due),
                times.r_en.eq(due),
            ]
