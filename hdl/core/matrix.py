"""Unit M: it feeds a matrix unit with the tiles of fractals, and stores its results."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import ENCODINGS

from ..cube.ports import Start
from ..cube.unit import MatrixUnit
from .config import CoreConfig
from .ports import PLACE_BITS, bits
from .record import RECORD_BITS, part
from .tile_walk import SIZE_BITS, TileWalk
from .tiles import TileMemory


class MatrixFeeder(wiring.Component):
    """Unit M of a core: C = A·B, or C + A·B, on fractals.

    The tiles of C are done in groups of as many as the matrix unit has slots. All tiles of a group
    take their first step of K, then their second one, and so on. So a sum continues after as many
    beats as the group has tiles, which hides the latency of the matrix unit.

    Parameters
    ----------
    config : CoreConfig
    a, b, c : TileMemory
        The memories L0A, L0B and L0C, whose tile ports the unit uses.

    Members
    -------
    i : In(stream.Signature(512))
        Instructions.
    idle : Out(1)
        All instructions have ended.
    beyond : Out(1)
        A tile of the beat is not in its memory. The unit goes on, but does not write that of C.
    elements : Out(9)
        Elements of C that are written in this cycle.

    Notes
    -----
    A step of K has as many terms as the matrix unit, and each is rounded. Elements beyond K count
    as +0 on both sides; elements beyond M and N are not written.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        beyond: Signal
        elements: Signal

    def __init__(self, *, config: CoreConfig, a: TileMemory, b: TileMemory, c: TileMemory):
        self.config, self.a, self.b, self.c = config, a, b, c
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "beyond": Out(1),
                "elements": Out(9),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tile = self.config.tile
        m.submodules.unit = unit = MatrixUnit(config=tile)
        active = Signal()
        record = self.i.payload
        start = Signal()
        m.d.comb += [self.i.ready.eq(~active), start.eq(self.i.valid & self.i.ready)]

        sizes = {name: Signal(SIZE_BITS, name=f"size_{name}") for name in "mkn"}
        first = {name: Signal(27, name=f"first_{name}") for name in "abc"}
        adds = Signal()
        init = ENCODINGS["mmad"].members[0].names
        with m.If(start):
            m.d.sync += [sizes[name].eq(part(record, "mmad", name)) for name in "mkn"]
            m.d.sync += [first[name].eq(part(record, "mmad", name)[PLACE_BITS:]) for name in "abc"]
            m.d.sync += [
                adds.eq(part(record, "mmad", "init") == init.index("accumulate")),
                active.eq(1),
            ]
        walk = TileWalk(m, tile, sizes, start)

        s = SimpleNamespace(
            walk=walk, first=first, adds=adds, active=active, go=Signal(name="go"), unit=unit
        )
        s.beyond = Signal(name="tile_beyond")
        s.waits = Signal(name="waits")  # for the matrix unit
        memories = {"a": self.a, "b": self.b, "c": self.c}
        s.tiles, beyond = walk.tiles(m, memories, first)
        m.d.comb += [s.beyond.eq(beyond), self.beyond.eq(s.go & s.beyond)]
        self._build_beats(m, s)
        self._build_results(m, s)
        m.d.comb += self.idle.eq(~active)
        with m.If(active & walk.ended & ~s.waits & ~s.targets.r_rdy):
            m.d.sync += active.eq(0)
        return m

    def _build_beats(self, m: Module, s: Any) -> None:
        """Read the tiles of a beat in one cycle, and put them into registers in the next one.

        While the registers do not take them, the memories keep what they have read.
        """
        tile, walk, unit = self.config.tile, s.walk, s.unit
        layout = data.StructLayout(
            {"start": Start, "slot": tile.slot_bits, "emit": 1, "terms": bits(tile.k) + 1}
        )
        now, read = Signal(layout, name="beat_now"), Signal(layout, name="beat_read")
        reads, reads_c = Signal(name="reads"), Signal(name="reads_c")
        of_c = s.adds & walk.opens
        begins = Mux(s.adds, Start.FROM_C.value, Start.ZERO.value)
        a, b = (self._masked(m, memory, read.terms) for memory in (self.a, self.b))
        beat = _behind(m, "beat", reads, Cat(read.start, read.slot, read.emit, a, b))
        # A buffered matrix unit takes C in the cycle after its beat.
        sums = [_behind(m, "c", reads_c, Value.cast(self.c.pieces))]
        if tile.buffered:
            sums.append(_behind(m, "later_c", sums[0].valid, sums[0].value))
            m.d.comb += sums[0].ready.eq(sums[1].takes)
        s.room = Signal(name="room")  # for the place of a result
        free = (~reads | beat.takes) & (~reads_c | sums[0].takes) & s.room
        i, c = unit.i, unit.c
        operands = (i.payload.start, i.payload.slot, i.payload.emit, i.payload.a, i.payload.b)
        m.d.comb += [
            s.go.eq(s.active & ~walk.ended & free),
            walk.step.eq(s.go),
            Value.cast(now.start).eq(Mux(walk.opens, begins, Start.ACCUMULATE.value)),
            now.slot.eq(walk.slot),
            now.emit.eq(walk.closes),
            now.terms.eq(walk.terms),
            # Without a look at whether the matrix unit is ready, which is late in the cycle.
            self.c.hold.eq(reads_c | (s.active & ~walk.ended & of_c)),
            i.valid.eq(beat.valid),
            beat.ready.eq(i.ready),
            Cat(*(Value.cast(operand) for operand in operands)).eq(beat.value),
            c.valid.eq(sums[-1].valid),
            sums[-1].ready.eq(c.ready),
            Value.cast(c.payload).eq(sums[-1].value),
            s.waits.eq(reads | beat.valid),
        ]
        with m.If(s.go):
            m.d.sync += [reads.eq(1), reads_c.eq(of_c), read.eq(now)]
        with m.Else():
            m.d.sync += [reads.eq(reads & ~beat.takes), reads_c.eq(reads_c & ~sums[0].takes)]
        self._build_reads(m, s, of_c)

    def _build_results(self, m: Module, s: Any) -> None:
        """Store results, which come in the order of the beats that emit them."""
        tile, walk, unit = self.config.tile, s.walk, s.unit
        target = data.StructLayout({"address": self.c.address, "rows": tile.m, "bytes": 4 * tile.n})
        m.submodules.targets = s.targets = targets = SyncFIFO(
            width=target.size, depth=4 * tile.slot_count
        )
        entering, done = data.View(target, targets.w_data), data.View(target, targets.r_data)
        m.d.comb += [
            s.room.eq(targets.w_rdy),
            targets.w_en.eq(s.go & walk.closes),
            entering.address.eq(s.tiles["c"]),
            entering.rows.eq(Mux(s.beyond, 0, walk.rows)),
            entering.bytes.eq(walk.bytes),
            unit.o.ready.eq(targets.r_rdy),
            self.c.write.eq(unit.o.valid & unit.o.ready),
            self.c.target.eq(done.address),
            self.c.rows.eq(done.rows),
            self.c.bytes.eq(done.bytes),
            Value.cast(self.c.values).eq(Value.cast(unit.o.payload)),
            targets.r_en.eq(self.c.write),
        ]
        rows = sum((done.rows[i] for i in range(1, tile.m)), Value.cast(done.rows[0]))
        columns = sum((done.bytes[4 * j] for j in range(1, tile.n)), Value.cast(done.bytes[0]))
        with m.If(self.c.write):
            m.d.comb += self.elements.eq(rows * columns)

    def _build_reads(self, m: Module, s: Any, of_c: Value) -> None:
        m.d.comb += [
            self.a.read.eq(s.go),
            self.a.tile.eq(s.tiles["a"]),
            self.b.read.eq(s.go),
            self.b.tile.eq(s.tiles["b"]),
            self.c.read.eq(s.go & of_c),
            self.c.tile.eq(s.tiles["c"]),
        ]

    def _masked(self, m: Module, memory: TileMemory, terms: Value) -> Value:
        """Return the tile that was read, with +0 for terms beyond K."""
        k = self.config.tile.k
        on = Cat(*((terms > i).replicate(16) for i in range(k)))
        return Cat(*(memory.pieces[i] & on for i in range(memory.banks)))


def _behind(m: Module, name: str, valid: Value, value: Value) -> SimpleNamespace:
    """Return a register behind a value, which waits until the register takes it.

    Returns
    -------
    SimpleNamespace
        ``valid`` and ``value`` are what it holds; ``ready``, which is to be driven, says that this
        is taken, and ``takes`` that the register takes the value behind it.
    """
    stage = SimpleNamespace(
        valid=Signal(name=f"{name}_valid"),
        value=Signal(len(value), name=f"{name}_value", reset_less=True),
        ready=Signal(name=f"{name}_ready"),
        takes=Signal(name=f"{name}_takes"),
    )
    m.d.comb += stage.takes.eq(~stage.valid | stage.ready)
    with m.If(stage.takes):
        m.d.sync += [stage.valid.eq(valid), stage.value.eq(value)]
    return stage
