"""The core: units, queues, flags and buffers."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS, UNITS

from ..cube.unit import MatrixUnit
from ..vector.unit import VectorUnit
from .buffer import BankedMemory, BlockMemory
from .config import FLAGS, FRACTAL_BYTES, CoreConfig
from .fetch import Fault, Fetcher
from .images import ImageLoader
from .matrix import MatrixFeeder
from .mover import Mover
from .ports import (
    ADDRESS_BITS,
    BLOCK_BYTES,
    ReadPort,
    WritePort,
    connect_read,
    connect_split,
    connect_write,
)
from .queue import UnitQueue
from .record import QUEUED
from .riscv_unit import RiscvScalar
from .scalar import ScalarUnit
from .shared import Either, LaneMover
from .tiles import TileMemory
from .transposer import Transposer
from .vector import LaneFeeder

#: The units with counters of busy cycles, S first.
COUNTED = UNITS[:6]
#: Begin and end of an instruction, in cycles since the start.
SPAN = data.StructLayout({"begin": 32, "end": 32})


class Core(wiring.Component):
    """Core with the organisation of DaVinci: units with in-order queues, flags, and buffers.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    start, address : In(1), In(32)
        Start the program at a byte of global memory, a multiple of 32.
    running : Out(1)
        The program has not ended.
    fault : Out(Fault)
        The reason why the core has stopped before the end.
    fetch, r : Out(ReadPort())
        Global memory: the program, and the data for MTE2.
    w : Out(WritePort())
        Global memory: the results of MTE3.
    busy : Out(32) for each of S, V, M, MTE1, MTE2, MTE3
        Cycles in which the unit had an instruction since the start.
    conflicts : Out(32)
        Cycles since the start in which a request to UB waited for another one to its bank.
    begins, works : Out(6), Out(6)
        A bit for each of these units: it takes an instruction in this cycle; it has one.
    """

    #: Components of which equal instances may be elaborated once (``hdl.elaborate``).
    shared = (*MatrixUnit.shared, *VectorUnit.shared)

    if TYPE_CHECKING:
        start: Signal
        address: Signal
        running: Signal
        fault: Any
        fetch: Any
        r: Any
        w: Any
        busy: Any
        conflicts: Signal
        begins: Signal
        works: Signal

    def __init__(self, *, config: CoreConfig):
        if not isinstance(config, CoreConfig):
            raise TypeError(f"config must be a CoreConfig, not {config!r}")
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "address": In(ADDRESS_BITS),
                "running": Out(1),
                "fault": Out(Fault),
                "fetch": Out(ReadPort()),
                "r": Out(ReadPort()),
                "w": Out(WritePort()),
                "busy": Out(32).array(len(COUNTED)),
                "conflicts": Out(32),
                "begins": Out(len(COUNTED)),
                "works": Out(len(COUNTED)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.fetcher = fetcher = Fetcher(fetches=config.scalar == "stream")
        readers, writers = 2 * config.lane_blocks, config.lane_blocks
        m.submodules.l1 = l1 = BlockMemory(
            blocks=config.l1 // BLOCK_BYTES, readers=1, writers=2, line=config.l1_blocks
        )
        m.submodules.ub = ub = BankedMemory(
            blocks=config.ub // BLOCK_BYTES,
            banks=config.ub_banks,
            readers=(readers, 1, 1),  # V, MTE3, S
            writers=(writers, 1, 1, 1),  # V, MTE1, MTE2, S
        )
        l0a, l0b, l0c = self.operands("L0A"), self.operands("L0B"), self.sums()
        m.submodules.l0a, m.submodules.l0b, m.submodules.l0c = l0a, l0b, l0c
        m.submodules.matrix = matrix = MatrixFeeder(config=config, a=l0a, b=l0b, c=l0c)
        l1_blocks = config.l1 // BLOCK_BYTES
        lanes, copies = LaneFeeder(config=config), LaneMover(ahead=config.ahead)
        vector: Any = Either(plain=lanes, special=copies, ops=("copy",))
        if config.transposes:
            vector = Either(plain=vector, special=Transposer(), ops=("vtranspose",))
        ahead = config.ahead
        loads = Mover(ops=("copy", "load", "fill"), ahead=ahead, blocks=config.l1_blocks)
        patches = ImageLoader(blocks=l1_blocks)
        mte1: Any = Either(plain=loads, special=patches, ops=("im2col",))
        m.submodules.vector, m.submodules.mte1 = vector, mte1
        m.submodules.mte2 = mte2 = Mover(ops=("copy", "nd2nz", "load", "fill"), ahead=ahead)
        m.submodules.mte3 = mte3 = Mover(ops=("copy",), ahead=ahead)
        m.submodules.scalar = scalar = self._scalar(m, fetcher)
        units = {"S": scalar, "V": vector, "M": matrix, "MTE1": mte1, "MTE2": mte2, "MTE3": mte3}

        connect_read(m, mte1.r, l1.r[0])
        for port, own in zip(vector.ub, ub.r, strict=False):
            connect_read(m, port, own)
        connect_read(m, mte3.r, ub.r[readers])
        wiring.connect(m, scalar.ub, ub.r[readers + 1])
        connect_read(m, vector.l0c, l0c.r[0])
        self._split(m, vector, vector.w[0], {"UB": ub.w[0], "L0C": l0c.w[0]})
        for n in range(1, writers):
            wiring.connect(m, vector.w[n], ub.w[n])
        wiring.connect(m, scalar.ub_w, ub.w[writers + 2])
        self._join_reads(m, [mte2.r, scalar.gm], self.r)
        program = fetcher.r if config.scalar == "stream" else scalar.fetch
        wiring.connect(m, program, wiring.flipped(self.fetch))
        self._split(m, mte1, mte1.w, {"L0A": l0a.w[0], "L0B": l0b.w[0], "UB": ub.w[writers]})
        self._split(
            m,
            mte2,
            mte2.w,
            {"L0A": l0a.w[1], "L0B": l0b.w[1], "UB": ub.w[writers + 1], "L1": l1.w[0]},
        )
        own = WritePort().create(path=("mte3_gm",))
        self._split(m, mte3, mte3.w, {"GM": own, "L1": l1.w[1]})
        self._join_writes(m, [own, scalar.gm_w], self.w)

        queues = {}
        for n, name in enumerate(QUEUED):
            queue = queues[name] = UnitQueue(depth=config.queue_words)
            m.submodules[f"queue_{name.lower()}"] = queue
            wiring.connect(m, fetcher.queues[n], queue.i)
            wiring.connect(m, queue.o, units[name].i)
            m.d.comb += [queue.idle.eq(units[name].idle), fetcher.empty[n].eq(queue.empty)]
        twice = self._build_flags(m, queues)
        with m.If(scalar.trap if config.scalar == "riscv" else scalar.differs):
            m.d.comb += fetcher.stop.eq(Fault.VALUE)
        with m.Elif(twice):
            m.d.comb += fetcher.stop.eq(Fault.FLAG)
        m.d.comb += [
            fetcher.start.eq(self.start),
            fetcher.address.eq(self.address),
            self.running.eq(fetcher.running),
            self.fault.eq(fetcher.fault),
        ]
        self._build_counters(m, fetcher, queues, units, ub.waits)
        return m

    def _build_counters(
        self,
        m: Module,
        fetcher: Fetcher,
        queues: dict[str, UnitQueue],
        units: dict[str, Any],
        waits: Value,
    ) -> None:
        """Count the busy cycles of each unit, and the cycles in which a port of UB waits."""
        for n, name in enumerate(COUNTED):
            works = self.works[n]
            queue = queues[name]
            m.d.comb += [
                works.eq(fetcher.running if name == "S" else ~units[name].idle),
                self.begins[n].eq(queue.o.valid & queue.o.ready),
            ]
            with m.If(self.start):
                m.d.sync += self.busy[n].eq(0)
            with m.Elif(works):
                m.d.sync += self.busy[n].eq(self.busy[n] + 1)
        with m.If(self.start):
            m.d.sync += self.conflicts.eq(0)
        with m.Elif(waits):
            m.d.sync += self.conflicts.eq(self.conflicts + 1)

    def _scalar(self, m: Module, fetcher: Fetcher) -> Any:
        """Return unit S: one that compares what was unrolled, or a processor."""
        if self.config.scalar == "stream":
            return ScalarUnit()
        scalar = RiscvScalar(memory_bytes=self.config.scalar_bytes)
        wiring.connect(m, scalar.words, fetcher.words)
        m.d.comb += [
            scalar.start.eq(self.start),
            scalar.address.eq(self.address),
            scalar.quiet.eq(fetcher.empty[UNITS.index("S")]),
        ]
        return scalar

    def operands(self, name: str) -> TileMemory:
        """Return a new L0A or L0B."""
        tile = self.config.tile
        return TileMemory(
            fractals=self.config.buffers[name] // FRACTAL_BYTES,
            tile_rows={"L0A": tile.m, "L0B": tile.n}[name],
            piece_bytes=2 * tile.k,
            row_bytes=BLOCK_BYTES,
            readers=0,
            writers=2,
            blocks=self.config.l1_blocks,
            turns=True,
        )

    def sums(self) -> TileMemory:
        """Return a new L0C. A line is what V takes in a cycle, or a longer row of a tile."""
        tile = self.config.tile
        return TileMemory(
            fractals=self.config.l0c // (2 * FRACTAL_BYTES),
            tile_rows=tile.m,
            piece_bytes=4 * tile.n,
            row_bytes=2 * BLOCK_BYTES,
            readers=1,
            writers=1,
            blocks=max(self.config.lane_blocks, 4 * tile.n // BLOCK_BYTES),
        )

    @staticmethod
    def _split(m: Module, unit: Any, port: Any, targets: dict[str, Any]) -> None:
        """Connect the writes of a unit to the memory that it names."""
        for name, memory in targets.items():
            here = unit.target == BUFFERS.index(name)
            join = connect_split if len(memory.data) < len(port.data) else connect_write
            join(m, port, memory, here)

    @staticmethod
    def _join_reads(m: Module, ports: list[Any], memory: Any) -> None:
        """Connect two units that read at one port; the blocks come in the order of the grants."""
        m.submodules.read_turns = turns = SyncFIFO(width=1, depth=32)
        first, second = ports
        m.d.comb += [
            memory.request.eq((first.request | second.request) & turns.w_rdy),
            memory.address.eq(Mux(first.request, first.address, second.address)),
            first.grant.eq(first.request & memory.grant),
            second.grant.eq(second.request & ~first.request & memory.grant),
            turns.w_data.eq(~first.request),
            turns.w_en.eq(memory.grant),
            turns.r_en.eq(memory.valid),
        ]
        for n, port in enumerate(ports):
            m.d.comb += [
                port.valid.eq(memory.valid & (turns.r_data == n)),
                port.data.eq(memory.data),
            ]

    @staticmethod
    def _join_writes(m: Module, ports: list[Any], memory: Any) -> None:
        """Connect two units that write at one port."""
        first, second = ports
        m.d.comb += [
            memory.request.eq(first.request | second.request),
            first.grant.eq(first.request & memory.grant),
            second.grant.eq(second.request & ~first.request & memory.grant),
        ]
        for name in ("address", "data", "enable"):
            value = Mux(first.request, getattr(first, name), getattr(second, name))
            m.d.comb += getattr(memory, name).eq(value)

    @staticmethod
    def _build_flags(m: Module, units: dict[str, Any]) -> Value:
        """Keep a bit for each source, target and number; return 1 if a set flag is set again.

        The source sets it, and the target clears it.
        """
        again: list[Value] = []
        for source, setter in units.items():
            for target, waiter in units.items():
                if source == target:
                    continue
                flags = Signal(FLAGS, name=f"flags_{source.lower()}_{target.lower()}")
                one_set = Signal(FLAGS, name=f"set_{source.lower()}_{target.lower()}")
                cleared = Signal(FLAGS, name=f"clear_{source.lower()}_{target.lower()}")
                sets = setter.set & (setter.other == UNITS.index(target))
                waits = waiter.wait & (waiter.other == UNITS.index(source))
                hit = Array(flags)[waiter.register[:3]]
                with m.If(waits):
                    m.d.comb += [
                        waiter.granted.eq(hit),
                        cleared.eq(Mux(hit, 1 << waiter.register[:3], 0)),
                    ]
                with m.If(sets):
                    m.d.comb += one_set.eq(1 << setter.register[:3])
                m.d.sync += flags.eq((flags & ~cleared) | one_set)
                again.append((flags & one_set).any())
        return Cat(*again).any()


class CoreBoard(wiring.Component):
    """Core with its global memory, for simulation: a host writes, starts and reads.

    The fetch has a port of the memory for itself.

    Parameters
    ----------
    config : CoreConfig
    memory_bytes : int
        Bytes of global memory, a multiple of 32.
    latency : int
        Cycles from a read of the core to its data, from 1 on.
    traced : bool
        If True, the board has the stream ``t``.

    Members
    -------
    i : In(stream.Signature({kind: 2, address: 32, data: 256}))
        What the host asks for, in order: kind 0 writes a block at a byte, 1 starts a program at a
        byte and waits for its end, and 2 reads a block.
    o : Out(stream.Signature(256))
        The blocks that were read.
    t : Out(stream.Signature({begin: 32, end: 32})) for each of V, M, MTE1, MTE2, MTE3
        Cycles in which an instruction was taken, and in which its unit was idle again. The host
        must take each item at once.
    cycles, busy, conflicts, fault : Out
        Cycles of the last program, the counters of its units and of UB, and its fault.
    """

    shared = Core.shared

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface
        cycles: Signal
        busy: Any
        conflicts: Signal
        fault: Any
        t: Any

    def __init__(
        self, *, config: CoreConfig, memory_bytes: int, latency: int = 1, traced: bool = False
    ):
        self.config, self.memory_bytes, self.delay = config, memory_bytes, latency
        self.traced = traced
        host = data.StructLayout({"kind": 2, "address": ADDRESS_BITS, "data": 8 * BLOCK_BYTES})
        super().__init__(
            {
                "i": In(stream.Signature(host)),
                "o": Out(stream.Signature(8 * BLOCK_BYTES)),
                "cycles": Out(32),
                "busy": Out(32).array(len(COUNTED)),
                "conflicts": Out(32),
                "fault": Out(Fault),
            }
            | ({"t": Out(stream.Signature(SPAN)).array(len(COUNTED) - 1)} if traced else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = Core(config=self.config)
        blocks = self.memory_bytes // BLOCK_BYTES
        m.submodules.memory = memory = BlockMemory(blocks=blocks, readers=3, writers=2, own=True)
        for n, port in enumerate((core.r, core.fetch)):
            self._delay(m, port, memory.r[n], f"read{n}")
        wiring.connect(m, core.w, memory.w[0])
        host, own = memory.w[1], memory.r[2]
        i = self.i.payload
        started, asked = Signal(), Signal()
        writes, starts, reads = (self.i.valid & (i.kind == kind) for kind in range(3))
        m.d.comb += [
            host.request.eq(writes),
            host.address.eq(i.address[5:]),
            host.data.eq(i.data),
            host.enable.eq((1 << BLOCK_BYTES) - 1),
            own.request.eq(reads & ~asked),
            own.address.eq(i.address[5:]),
            core.start.eq(starts & ~started),
            core.address.eq(i.address),
            self.fault.eq(core.fault),
        ]
        held = Signal(8 * BLOCK_BYTES)
        full = Signal()
        with m.If(own.valid):
            m.d.sync += [held.eq(own.data), full.eq(1)]
        with m.If(own.grant):
            m.d.sync += asked.eq(1)
        with m.If(core.start):
            m.d.sync += [started.eq(1), self.cycles.eq(0)]
        with m.Elif(core.running):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        ended = started & ~core.running
        stopped = core.fault != Fault.NONE
        m.d.comb += [
            self.o.valid.eq(full),
            self.o.payload.eq(held),
            self.i.ready.eq(
                (writes & host.grant)
                | (starts & started & Mux(stopped, 1, ended))
                | (reads & full & self.o.ready)
            ),
            Cat(*self.busy).eq(Cat(*core.busy)),
            self.conflicts.eq(core.conflicts),
        ]
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

    def _delay(self, m: Module, port: Any, memory: Any, name: str) -> None:
        """Connect a port to the memory, with a block that comes some cycles later."""
        m.d.comb += [
            memory.request.eq(port.request),
            memory.address.eq(port.address),
            port.grant.eq(memory.grant),
        ]
        valid, block = memory.valid, memory.data
        for n in range(self.delay - 1):
            later, next_block = Signal(name=f"{name}_valid{n}"), Signal(256, name=f"{name}_data{n}")
            m.d.sync += [later.eq(valid), next_block.eq(block)]
            valid, block = later, next_block
        m.d.comb += [port.valid.eq(valid), port.data.eq(block)]
