"""The core: units, queues, flags and buffers."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import UNITS

from ..cube.unit import MatrixUnit
from ..vector.unit import VectorUnit
from .buffer import BankedMemory, BlockMemory
from .config import FLAGS, FRACTAL_BYTES, CoreConfig
from .faults import ORIGIN, WAIT, Fault, FaultRegister
from .fetch import Fetcher
from .fixpipe import FixPipe
from .guard import guard_read, guard_split
from .images import ImageLoader
from .matrix import MatrixFeeder
from .mover import Mover
from .ports import ADDRESS_BITS, BLOCK_BYTES, ReadPort, WritePort, bits
from .queue import UnitQueue
from .riscv_unit import RiscvScalar
from .scalar import ScalarUnit
from .shared import Either, LaneMover
from .tiles import TileMemory
from .transposer import Transposer
from .vector import LaneFeeder

#: Bits of a number of bytes that a unit writes in a cycle.
WRITTEN_BITS = 10


def movers(config: CoreConfig) -> dict[str, Any]:
    """Return the movers of a core by unit; that of V is a ``LaneMover``.

    An address is as wide as the largest memory that it may belong to.
    """
    ahead = config.ahead
    by_v, by_mte1, by_mte2 = (
        bits(max(config.buffers[name] for name in names))
        for names in (("UB", "L0C"), ("L0A", "L0B", "UB"), ("L0A", "L0B", "UB", "L1"))
    )
    return {
        "V": LaneMover(ahead=ahead, span=by_v),
        "MTE1": Mover(
            ops=("copy", "load", "fill"),
            ahead=ahead,
            blocks=config.l1_blocks,
            spans=(bits(config.l1), by_mte1),
            grain=BLOCK_BYTES,
        ),
        "MTE2": Mover(
            ops=("copy", "nd2nz", "load", "fill"), ahead=ahead, spans=(ADDRESS_BITS, by_mte2)
        ),
        "MTE3": Mover(ops=("copy",), ahead=ahead, spans=(bits(config.ub), ADDRESS_BITS)),
    }


class Core(wiring.Component):
    """Core with the organisation of DaVinci: units with in-order queues, flags, and buffers.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    start, address : In(1), In(32)
        Start the program at a byte of global memory, a multiple of 32. After a fault, it needs a
        reset before.
    running : Out(1)
        The program has not ended. After a fault, it ends when no unit works any more.
    fault, origin : Out(Fault), Out(ORIGIN)
        The reason why the core has stopped before the end, and where.
    waits : array of Out(WAIT)
        For each of ``config.units``: the flag that the unit waits for.
    fetch, r : Out(ReadPort())
        Global memory: the program, and the data for MTE2.
    w : Out(WritePort())
        Global memory: the results of MTE3, and of FIX.
    fetch_error, r_error : In(1)
        The block that comes is the answer to a read that has failed.
    w_source : Out(range(2)), with FIX Out(range(3))
        Whose block goes to global memory: that of MTE3, S or FIX.
    w_open, w_error : In(2), with FIX In(3)
        For MTE3, S and FIX: blocks that were granted are still to be written; one was answered with
        an error. The unit ends its instruction when all are written.
    busy : Out(32) for each of ``config.units``
        Cycles in which the unit had an instruction since the start.
    written : Out(10) for each of them
        Bytes that the unit writes in this cycle; for S, those of words that were fetched.
    conflicts : Out(32)
        Cycles since the start in which a request to UB waited for another one to its bank.
    begins, works : Out
        A bit for each of these units: it takes an instruction in this cycle; it has one.
    """

    #: Components of which equal instances may be elaborated once (``hdl.elaborate``).
    shared = (*MatrixUnit.shared, *VectorUnit.shared)

    if TYPE_CHECKING:
        start: Signal
        address: Signal
        running: Signal
        fault: Any
        origin: Any
        waits: Any
        fetch: Any
        r: Any
        w: Any
        fetch_error: Signal
        r_error: Signal
        w_source: Signal
        w_open: Signal
        w_error: Signal
        busy: Any
        written: Any
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
                "origin": Out(ORIGIN),
                "waits": Out(WAIT).array(len(config.units)),
                "fetch": Out(ReadPort()),
                "r": Out(ReadPort()),
                "w": Out(WritePort()),
                "fetch_error": In(1),
                "r_error": In(1),
                "w_source": Out(range(2 + config.fix)),
                "w_open": In(2 + config.fix),
                "w_error": In(2 + config.fix),
                "busy": Out(32).array(len(config.units)),
                "written": Out(WRITTEN_BITS).array(len(config.units)),
                "conflicts": Out(32),
                "begins": Out(len(config.units)),
                "works": Out(len(config.units)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fetcher = fetcher = Fetcher(config=self.config)
        m.submodules.faults = faults = FaultRegister(units=len(self.config.units))
        s = self._build_units(m, fetcher)
        if fetcher.fetches:
            wiring.connect(m, fetcher.r, wiring.flipped(self.fetch))
            m.d.comb += fetcher.error.eq(self.fetch_error)
        else:
            wiring.connect(m, s.units["S"].fetch, wiring.flipped(self.fetch))
        m.d.comb += [
            fetcher.start.eq(self.start),
            fetcher.address.eq(self.address),
            self.running.eq(fetcher.running),
        ]
        beyond = self._connect_buffers(m, s)
        lost = self._connect_global(m, s)
        queues = self._build_queues(m, s, fetcher, faults)
        self._build_faults(m, s, fetcher, faults, queues, beyond, lost)
        self._build_counters(m, s, fetcher, queues)
        return m

    def _build_units(self, m: Module, fetcher: Fetcher) -> SimpleNamespace:
        """Make the buffers and the units."""
        config, ahead = self.config, self.config.ahead
        m.submodules.l1 = l1 = BlockMemory(
            blocks=config.l1 // BLOCK_BYTES,
            readers=1,
            writers=2 + config.fix,  # MTE2, MTE3, FIX
            line=config.l1_blocks,
        )
        m.submodules.ub = ub = BankedMemory(
            blocks=config.ub // BLOCK_BYTES,
            banks=config.ub_banks,
            readers=(2 * config.lane_blocks, 1, 1),  # V, MTE3, S
            writers=(config.lane_blocks, 1, 1, 1),  # V, MTE1, MTE2, S
        )
        l0a, l0b, l0c = self.operands("L0A"), self.operands("L0B"), self.sums()
        m.submodules.l0a, m.submodules.l0b, m.submodules.l0c = l0a, l0b, l0c
        m.submodules.matrix = matrix = MatrixFeeder(config=config, a=l0a, b=l0b, c=l0c)
        moves = movers(config)
        vector: Any = Either(plain=LaneFeeder(config=config), special=moves["V"], ops=("copy",))
        if config.transposes:
            vector = Either(plain=vector, special=Transposer(), ops=("vtranspose",))
        patches = ImageLoader(blocks=config.l1 // BLOCK_BYTES)
        mte1: Any = Either(plain=moves["MTE1"], special=patches, ops=("im2col",))
        m.submodules.vector, m.submodules.mte1 = vector, mte1
        m.submodules.mte2, m.submodules.mte3 = mte2, mte3 = moves["MTE2"], moves["MTE3"]
        m.submodules.scalar = scalar = self._scalar(m, fetcher)
        units = {"S": scalar, "V": vector, "M": matrix, "MTE1": mte1, "MTE2": mte2, "MTE3": mte3}
        if config.fix:
            m.submodules.fix = units["FIX"] = FixPipe(ahead=ahead, wide=config.wide_sums)
        # A unit ends when what it has written to global memory is there.
        idle: dict[str, Value] = {name: unit.idle for name, unit in units.items()}
        idle["MTE3"] = mte3.idle & ~self.w_open[0]
        idle["S"] = scalar.idle & ~self.w_open[1]
        if config.fix:
            idle["FIX"] = units["FIX"].idle & ~self.w_open[2]
        return SimpleNamespace(units=units, idle=idle, l1=l1, ub=ub, l0a=l0a, l0b=l0b, l0c=l0c)

    def _scalar(self, m: Module, fetcher: Fetcher) -> Any:
        """Return unit S: one that compares what was unrolled, or a processor."""
        if fetcher.fetches:
            return ScalarUnit()
        scalar = RiscvScalar(memory_bytes=self.config.scalar_bytes)
        wiring.connect(m, scalar.words, fetcher.words)
        m.d.comb += [
            scalar.start.eq(self.start & ~fetcher.halt),
            scalar.address.eq(self.address),
            scalar.quiet.eq(fetcher.empty[UNITS.index("S")]),
        ]
        return scalar

    def _connect_buffers(self, m: Module, s: SimpleNamespace) -> dict[str, Value]:
        """Connect the units to the buffers; tell which unit asks for a block beyond the end."""
        sizes = {name: size // BLOCK_BYTES for name, size in self.config.buffers.items()}
        scalar, vector, matrix, mte1, mte2, mte3 = list(s.units.values())[:6]
        s.gm_w = [WritePort().create(path=(f"gm{n}",)) for n in range(1 + self.config.fix)]
        readers, writers = len(vector.ub), len(vector.w)

        def read(port: Any, memory: Any, name: str, careless: Value | int = 0) -> Value:
            return guard_read(m, port, memory, sizes[name], careless)

        def split(unit: Any, port: Any, **memories: Any) -> Value:
            targets = {name: (memory, sizes.get(name, 0)) for name, memory in memories.items()}
            return guard_split(m, unit.target, port, targets)

        lanes = [
            read(port, s.ub.r[n], "UB", vector.careless[n]) for n, port in enumerate(vector.ub)
        ]
        lanes += [
            split(vector, port, UB=s.ub.w[n], **({} if n else {"L0C": s.l0c.w[0]}))
            for n, port in enumerate(vector.w)
        ]
        stored = guard_split(m, None, scalar.ub_w, {"UB": (s.ub.w[writers + 2], sizes["UB"])})
        beyond = {
            "S": stored | read(scalar.ub, s.ub.r[readers + 1], "UB"),
            "V": Cat(*lanes, read(vector.l0c, s.l0c.r[0], "L0C")).any(),
            "M": matrix.beyond,
            "MTE1": read(mte1.r, s.l1.r[0], "L1")
            | split(mte1, mte1.w, L0A=s.l0a.w[0], L0B=s.l0b.w[0], UB=s.ub.w[writers]),
            "MTE2": split(
                mte2, mte2.w, L0A=s.l0a.w[1], L0B=s.l0b.w[1], UB=s.ub.w[writers + 1], L1=s.l1.w[0]
            ),
            "MTE3": read(mte3.r, s.ub.r[readers], "UB")
            | split(mte3, mte3.w, GM=s.gm_w[0], L1=s.l1.w[1]),
        }
        if self.config.fix:
            fix = s.units["FIX"]
            beyond["FIX"] = read(fix.l0c, s.l0c.r[1], "L0C") | split(
                fix, fix.w, GM=s.gm_w[1], L1=s.l1.w[2]
            )
        return beyond

    def _connect_global(self, m: Module, s: SimpleNamespace) -> dict[str, Value]:
        """Connect the units to global memory; tell whose access has an error."""
        scalar, mte2 = s.units["S"], s.units["MTE2"]
        # Words that are read ahead may lie beyond the end of memory, but not a kernel.
        loads = self.config.scalar == "riscv"
        loader = self.fetch.valid & self.fetch_error if loads else Const(0)
        failed = self._join_reads(m, [mte2.r, scalar.gm], self.r, self.r_error)
        self._join_writes(m, [s.gm_w[0], scalar.gm_w, *s.gm_w[1:]], self.w)
        fix = {"FIX": self.w_error[2]} if self.config.fix else {}
        return fix | {
            "S": failed[1] | self.w_error[1] | loader,
            "MTE2": failed[0],
            "MTE3": self.w_error[0],
        }

    def _build_queues(
        self, m: Module, s: SimpleNamespace, fetcher: Fetcher, faults: FaultRegister
    ) -> dict[str, UnitQueue]:
        queues = {}
        for n, name in enumerate(self.config.units):
            queue = UnitQueue(depth=self.config.queue_words, code=UNITS.index(name))
            queues[name] = m.submodules[f"queue_{name.lower()}"] = queue
            wiring.connect(m, fetcher.queues[n], queue.i)
            wiring.connect(m, queue.o, s.units[name].i)
            m.d.comb += [
                queue.idle.eq(s.idle[name]),
                queue.pc.eq(fetcher.pc),
                queue.bad.eq(fetcher.bad[n]),
                queue.halt.eq(faults.halt),
                fetcher.empty[n].eq(queue.empty),
                self.waits[n].eq(queue.waiting),
                faults.reached[n].eq(queue.reached),
                faults.blocked[n].eq(queue.blocked),
                faults.empty[n].eq(queue.empty),
                faults.turns[n].eq(queue.turn),
            ]
        return queues

    def _build_faults(
        self,
        m: Module,
        s: SimpleNamespace,
        fetcher: Fetcher,
        faults: FaultRegister,
        queues: dict[str, UnitQueue],
        beyond: dict[str, Value],
        lost: dict[str, Value],
    ) -> None:
        twice = self._build_flags(m, queues)
        for n, name in enumerate(self.config.units):
            trip = Value.cast(faults.trips[n])
            causes = {Fault.BOUNDS: beyond[name], Fault.FLAG: twice[name]}
            if name in lost:
                causes[Fault.BUS] = lost[name]
            if name == "S":
                scalar = s.units["S"]
                differs = scalar.differs if fetcher.fetches else scalar.trap
                causes[Fault.VALUE] = differs & ~lost["S"]
            for fault, happens in causes.items():
                with m.If(happens):
                    m.d.comb += trip.eq(fault.value)
        # A processor that waits for the flags of S gives no word either.
        waits = Const(0) if fetcher.fetches else s.units["S"].waits
        resting = Cat(*(s.idle[name] for name in self.config.units)) | faults.tripped
        m.d.comb += [
            faults.refused.eq(fetcher.refused),
            faults.refused_origin.eq(fetcher.refused_origin),
            faults.fetch_blocked.eq(fetcher.blocked | waits),
            fetcher.halt.eq(faults.halt),
            fetcher.quiet.eq(resting.all() & ~self.w_open.any()),
            self.fault.eq(faults.fault),
            self.origin.eq(faults.origin),
        ]

    def _build_counters(
        self, m: Module, s: SimpleNamespace, fetcher: Fetcher, queues: dict[str, UnitQueue]
    ) -> None:
        """Count the busy cycles of each unit, and the cycles in which a port of UB waits."""
        begins = self.start & ~fetcher.halt
        for n, name in enumerate(self.config.units):
            queue = queues[name]
            m.d.comb += [
                self.works[n].eq(fetcher.running & (1 if name == "S" else ~s.idle[name])),
                self.begins[n].eq(queue.o.valid & queue.o.ready),
                self.written[n].eq(self._written(s, name)),
            ]
            with m.If(begins):
                m.d.sync += self.busy[n].eq(0)
            with m.Elif(self.works[n]):
                m.d.sync += self.busy[n].eq(self.busy[n] + 1)
        with m.If(begins):
            m.d.sync += self.conflicts.eq(0)
        with m.Elif(s.ub.waits):
            m.d.sync += self.conflicts.eq(self.conflicts + 1)

    def _written(self, s: SimpleNamespace, name: str) -> Value:
        """Return the number of bytes that a unit writes in this cycle."""
        if name == "S":
            return Mux(self.fetch.valid, BLOCK_BYTES, 0)
        if name == "M":
            return s.units["M"].elements << 2
        ports = s.units[name].w
        total: Value = Const(0)
        for port in ports if name == "V" else [ports]:
            count = sum((bit for bit in port.enable[1:]), Value.cast(port.enable[0]))
            total = total + Mux(port.grant, count, 0)
        return total

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
            readers=1 + self.config.fix,  # V, FIX
            writers=1,
            blocks=max(self.config.lane_blocks, 4 * tile.n // BLOCK_BYTES),
            wide=self.config.wide_sums,
        )

    @staticmethod
    def _join_reads(m: Module, ports: list[Any], memory: Any, error: Value) -> list[Value]:
        """Connect two units that read at one port; the blocks come in the order of the grants.

        Returns
        -------
        failed : list of Value
            For each unit, 1 if its block comes with an error.
        """
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
        return [port.valid & error for port in ports]

    def _join_writes(self, m: Module, ports: list[Any], memory: Any) -> None:
        """Connect units that write at one port; the first one that asks goes first."""
        m.d.comb += memory.request.eq(Cat(*(port.request for port in ports)).any())
        for n, port in enumerate(ports):
            before = Cat(*(other.request for other in ports[:n])).any()
            m.d.comb += port.grant.eq(port.request & ~before & memory.grant)
        for n, port in reversed(list(enumerate(ports))):
            with m.If(port.request if n < len(ports) - 1 else Const(1)):
                m.d.comb += self.w_source.eq(n)
                for name in ("address", "data", "enable"):
                    m.d.comb += getattr(memory, name).eq(getattr(port, name))

    @staticmethod
    def _build_flags(m: Module, units: dict[str, Any]) -> dict[str, Value]:
        """Keep a bit for each source, target and number; tell who sets a set flag again.

        The source sets it, and the target clears it.
        """
        again: dict[str, Value] = {}
        for source, setter in units.items():
            twice: list[Value] = []
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
                twice.append((flags & one_set).any())
            again[source] = Cat(*twice).any()
        return again
