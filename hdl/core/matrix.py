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

#: Operand tiles, and tiles of C, that are read ahead of the matrix unit.
_AHEAD = 4


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
        memories = {"a": self.a, "b": self.b, "c": self.c}
        s.tiles, beyond = walk.tiles(m, memories, first)
        m.d.comb += [s.beyond.eq(beyond), self.beyond.eq(s.go & s.beyond)]
        self._build_beats(m, s)
        self._build_results(m, s)
        m.d.comb += self.idle.eq(~active)
        with m.If(active & walk.ended & ~s.later & ~s.beats.r_rdy & ~s.targets.r_rdy):
            m.d.sync += active.eq(0)
        return m

    def _build_beats(self, m: Module, s: Any) -> None:
        """Read the tiles of a beat in one cycle, and put them into its queue in the next one."""
        tile, walk, unit = self.config.tile, s.walk, s.unit
        beat = data.StructLayout(
            {"start": Start, "slot": tile.slot_bits, "emit": 1, "terms": bits(tile.k) + 1}
        )
        left, right = tile.m * 16 * tile.k, tile.n * 16 * tile.k
        m.submodules.beats = s.beats = beats = SyncFIFO(
            width=beat.size + left + right, depth=_AHEAD
        )
        m.submodules.starts = starts = SyncFIFO(width=32 * tile.m * tile.n, depth=_AHEAD)
        s.later, waits_c = Signal(name="later"), Signal(name="waits_c")
        now, next_beat = Signal(beat, name="beat_now"), Signal(beat, name="beat_next")
        reads_c = s.adds & walk.opens
        begins = Mux(s.adds, Start.FROM_C.value, Start.ZERO.value)
        s.room = Signal(name="room")  # for the place of a result
        free = (beats.w_level + s.later < _AHEAD - 1) & s.room
        m.d.comb += [
            s.go.eq(
                s.active & ~walk.ended & free & (~reads_c | (starts.w_level + waits_c < _AHEAD - 1))
            ),
            walk.step.eq(s.go),
            Value.cast(now.start).eq(Mux(walk.opens, begins, Start.ACCUMULATE.value)),
            now.slot.eq(walk.slot),
            now.emit.eq(walk.closes),
            now.terms.eq(walk.terms),
        ]
        m.d.sync += [s.later.eq(s.go), next_beat.eq(now), waits_c.eq(s.go & reads_c)]
        self._build_reads(m, s, reads_c)
        a, b = (self._masked(m, memory, next_beat.terms) for memory in (self.a, self.b))
        leaving = data.View(beat, beats.r_data[: beat.size])
        operands = beats.r_data[beat.size :]
        m.d.comb += [
            beats.w_en.eq(s.later),
            beats.w_data.eq(Cat(next_beat, a, b)),
            starts.w_en.eq(waits_c),
            starts.w_data.eq(Value.cast(self.c.pieces)),
            unit.i.valid.eq(beats.r_rdy),
            beats.r_en.eq(unit.i.ready),
            unit.i.payload.start.eq(leaving.start),
            unit.i.payload.slot.eq(leaving.slot),
            unit.i.payload.emit.eq(leaving.emit),
            Value.cast(unit.i.payload.a).eq(operands[:left]),
            Value.cast(unit.i.payload.b).eq(operands[left:]),
            unit.c.valid.eq(starts.r_rdy),
            Value.cast(unit.c.payload).eq(starts.r_data),
            starts.r_en.eq(unit.c.ready),
        ]

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

    def _build_reads(self, m: Module, s: Any, reads_c: Value) -> None:
        m.d.comb += [
            self.a.read.eq(s.go),
            self.a.tile.eq(s.tiles["a"]),
            self.b.read.eq(s.go),
            self.b.tile.eq(s.tiles["b"]),
            self.c.read.eq(s.go & reads_c),
            self.c.tile.eq(s.tiles["c"]),
        ]

    def _masked(self, m: Module, memory: TileMemory, terms: Value) -> Value:
        """Return the tile that was read, with +0 for terms beyond K."""
        k = self.config.tile.k
        on = Cat(*((terms > i).replicate(16) for i in range(k)))
        return Cat(*(memory.pieces[i] & on for i in range(memory.banks)))
