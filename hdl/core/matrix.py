"""Unit M: it feeds a matrix unit with the tiles of fractals, and stores its results."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import ENCODINGS

from ..cube.ports import Start, fractal_layout
from ..cube.unit import MatrixUnit
from .config import CoreConfig
from .ports import PLACE_BITS
from .record import RECORD_BITS, part
from .tiles import ROWS, TileMemory, bits

#: Bits of a size of a product, and of the number of a tile of C.
SIZE_BITS, TILE_BITS = 16, 24
#: Operand tiles that are read ahead of the matrix unit.
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

    Notes
    -----
    A step of K has as many terms as the matrix unit, and each is rounded. Elements beyond K count
    as +0 on both sides; elements beyond M and N are not written.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal

    def __init__(self, *, config: CoreConfig, a: TileMemory, b: TileMemory, c: TileMemory):
        self.config, self.a, self.b, self.c = config, a, b, c
        super().__init__({"i": In(stream.Signature(RECORD_BITS)), "idle": Out(1)})

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
            m.d.sync += [
                first[name].eq(part(record, "mmad", name)[PLACE_BITS:]) for name in "abc"
            ]
            m.d.sync += [
                adds.eq(part(record, "mmad", "init") == init.index("accumulate")),
                active.eq(1),
            ]
        walk = _Walk(m, tile, sizes, active, start)

        # A beat: its tiles are read in one cycle, and reach the queue in the next one.
        beat = data.StructLayout(
            {
                "start": Start,
                "slot": tile.slot_bits,
                "emit": 1,
                "terms": bits(tile.k) + 1,
            }
        )
        target = data.StructLayout(
            {"address": self.c.address, "rows": tile.m, "bytes": 4 * tile.n}
        )
        operands = tile.m * 16 * tile.k
        m.submodules.beats = beats = SyncFIFO(
            width=beat.size + operands + tile.n * 16 * tile.k, depth=_AHEAD
        )
        m.submodules.starts = starts = SyncFIFO(width=32 * tile.m * tile.n, depth=2)
        m.submodules.targets = targets = SyncFIFO(width=target.size, depth=4 * tile.slot_count)
        go, later = Signal(), Signal()
        next_beat = Signal(beat)
        now = Signal(beat)
        reads_c = adds & walk.opens
        room = (beats.w_level + later < _AHEAD - 1) & targets.w_rdy
        c_room = starts.w_level == 0
        waits_c = Signal()
        m.d.comb += [
            go.eq(active & ~walk.ended & room & (~reads_c | (c_room & ~waits_c))),
            walk.step.eq(go),
            Value.cast(now.start).eq(
                Mux(
                    walk.opens,
                    Mux(adds, Start.FROM_C.value, Start.ZERO.value),
                    Start.ACCUMULATE.value,
                )
            ),
            now.slot.eq(walk.slot),
            now.emit.eq(walk.closes),
            now.terms.eq(walk.terms),
        ]
        m.d.sync += [later.eq(go), next_beat.eq(now), waits_c.eq(go & reads_c)]
        self._build_reads(m, walk, first, go, reads_c)
        a, b = (self._masked(m, memory, next_beat.terms) for memory in (self.a, self.b))
        m.d.comb += [
            beats.w_en.eq(later),
            beats.w_data.eq(Cat(next_beat, a, b)),
            starts.w_en.eq(waits_c),
            starts.w_data.eq(Value.cast(self.c.pieces)),
        ]
        leaving = data.View(beat, beats.r_data[: beat.size])
        m.d.comb += [
            unit.i.valid.eq(beats.r_rdy),
            beats.r_en.eq(unit.i.ready),
            unit.i.payload.start.eq(leaving.start),
            unit.i.payload.slot.eq(leaving.slot),
            unit.i.payload.emit.eq(leaving.emit),
            Value.cast(unit.i.payload.a).eq(beats.r_data[beat.size : beat.size + operands]),
            Value.cast(unit.i.payload.b).eq(beats.r_data[beat.size + operands :]),
            unit.c.valid.eq(starts.r_rdy),
            Value.cast(unit.c.payload).eq(starts.r_data),
            starts.r_en.eq(unit.c.ready),
        ]
        # Results come in the order of the beats that emit them.
        entering = data.View(target, targets.w_data)
        m.d.comb += [
            targets.w_en.eq(go & walk.closes),
            entering.address.eq(walk.address_c(self.c, first["c"])),
            entering.rows.eq(walk.rows),
            entering.bytes.eq(walk.bytes),
        ]
        done = data.View(target, targets.r_data)
        m.d.comb += [
            unit.o.ready.eq(targets.r_rdy),
            self.c.write.eq(unit.o.valid & unit.o.ready),
            self.c.target.eq(done.address),
            self.c.rows.eq(done.rows),
            self.c.bytes.eq(done.bytes),
            Value.cast(self.c.values).eq(Value.cast(unit.o.payload)),
            targets.r_en.eq(self.c.write),
            self.idle.eq(~active),
        ]
        assert Value.cast(unit.o.payload).shape().width == fractal_layout(tile).size
        with m.If(active & walk.ended & ~later & ~beats.r_rdy & ~targets.r_rdy):
            m.d.sync += active.eq(0)
        return m

    def _build_reads(
        self, m: Module, walk: "_Walk", first: dict[str, Signal], go: Value, reads_c: Value
    ) -> None:
        m.d.comb += [
            self.a.read.eq(go),
            self.a.tile.eq(walk.address_a(self.a, first["a"])),
            self.b.read.eq(go),
            self.b.tile.eq(walk.address_b(self.b, first["b"])),
            self.c.read.eq(go & reads_c),
            self.c.tile.eq(walk.address_c(self.c, first["c"])),
        ]

    def _masked(self, m: Module, memory: TileMemory, terms: Value) -> Value:
        """Return the tile that was read, with +0 for terms beyond K."""
        k = self.config.tile.k
        on = Cat(*((terms > i).replicate(16) for i in range(k)))
        return Cat(*(memory.pieces[i] & on for i in range(memory.banks)))


class _Walk:
    """The order of beats: groups of tiles of C; in a group the steps of K; in a step the tiles.

    ``step`` goes on to the next beat. The other signals describe the current beat: ``opens`` and
    ``closes`` if it is the first or last of its sum, its ``slot``, its number of ``terms``, and the
    ``rows`` and ``bytes`` of the tile of C that the product has. ``ended`` is set behind the last.
    """

    def __init__(self, m: Module, tile: Any, sizes: dict[str, Signal], active: Value, start: Value):
        self.tile = tile
        self.row_step, self.column_step = bits(tile.m), bits(tile.n)
        self.k_step = bits(tile.k)
        self.step, self.ended = Signal(name="walk_step"), Signal(name="walk_ended")
        self.m_count, self.n_count, self.k_count = (
            Signal(SIZE_BITS, name=f"{name}_count") for name in ("m", "n", "k")
        )
        m.d.comb += [
            self.m_count.eq((sizes["m"] + tile.m - 1) >> self.row_step),
            self.n_count.eq((sizes["n"] + tile.n - 1) >> self.column_step),
            self.k_count.eq((sizes["k"] + tile.k - 1) >> self.k_step),
        ]
        # Fractals of 16 × 16.
        self.m_fractals, self.n_fractals, self.k_fractals = (
            Signal(SIZE_BITS, name=f"{name}_fractals") for name in ("m", "n", "k")
        )
        for size, count in (
            ("m", self.m_fractals),
            ("n", self.n_fractals),
            ("k", self.k_fractals),
        ):
            m.d.comb += count.eq((sizes[size] + ROWS - 1) >> 4)
        self.row, self.column, self.k = (Signal(SIZE_BITS, name=f"walk_{n}") for n in "mnk")
        self.first_row, self.first_column = (
            Signal(SIZE_BITS, name=f"group_{name}") for name in ("row", "column")
        )
        self.slot = Signal(tile.slot_bits, name="walk_slot")
        self.opens, self.closes = Signal(name="walk_opens"), Signal(name="walk_closes")
        last_tile = Signal(name="last_tile")  # of all of C
        last_slot = Signal(name="last_slot")  # of the group
        self.terms = Signal(bits(tile.k) + 1, name="walk_terms")
        self.rows, self.bytes = Signal(tile.m, name="walk_rows"), Signal(4 * tile.n, name="walk_bytes")
        m.d.comb += [
            last_tile.eq((self.row + 1 == self.m_count) & (self.column + 1 == self.n_count)),
            last_slot.eq(last_tile | (self.slot == tile.slot_count - 1)),
            self.opens.eq(self.k == 0),
            self.closes.eq(self.k + 1 == self.k_count),
            self.terms.eq(
                Mux(self.closes, sizes["k"] - (self.k << self.k_step), tile.k)
            ),
        ]
        for i in range(tile.m):
            m.d.comb += self.rows[i].eq((self.row << self.row_step) + i < sizes["m"])
        for j in range(tile.n):
            on = (self.column << self.column_step) + j < sizes["n"]
            m.d.comb += self.bytes[4 * j : 4 * j + 4].eq(on.replicate(4))
        # The tile that follows, column by column of C as its fractals lie.
        wraps = self.row + 1 == self.m_count
        next_row = Mux(wraps, 0, self.row + 1)
        next_column = Mux(wraps, self.column + 1, self.column)
        with m.If(self.step):
            with m.If(~last_slot):
                m.d.sync += [
                    self.row.eq(next_row),
                    self.column.eq(next_column),
                    self.slot.eq(self.slot + 1),
                ]
            with m.Elif(~self.closes):
                m.d.sync += [
                    self.row.eq(self.first_row),
                    self.column.eq(self.first_column),
                    self.slot.eq(0),
                    self.k.eq(self.k + 1),
                ]
            with m.Else():
                m.d.sync += [
                    self.row.eq(next_row),
                    self.column.eq(next_column),
                    self.first_row.eq(next_row),
                    self.first_column.eq(next_column),
                    self.slot.eq(0),
                    self.k.eq(0),
                    self.ended.eq(last_tile),
                ]
        with m.If(start):
            m.d.sync += [
                signal.eq(0)
                for signal in (
                    *(self.row, self.column, self.k, self.slot),
                    *(self.first_row, self.first_column, self.ended),
                )
            ]

    def _split_row(self, number: Value) -> tuple[Value, Value]:
        """Return the fractal and the group of rows of a tile of rows."""
        per = 4 - self.row_step
        return number >> per, number[:per] if per else Const(0, 1)

    def _split_column(self, number: Value) -> tuple[Value, Value]:
        per = 4 - self.column_step
        return number >> per, number[:per] if per else Const(0, 1)

    def _split_k(self) -> tuple[Value, Value]:
        per = 4 - self.k_step
        return self.k >> per, self.k[:per] if per else Const(0, 1)

    def address_a(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of A: its fractals are (M/16, K/16)."""
        fractal, group = self._split_row(self.row)
        deep, piece = self._split_k()
        return _address(memory, first, fractal * self.k_fractals + deep, group, piece)

    def address_b(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of B: its fractals are (K/16, N/16), with a row for each column of B."""
        fractal, group = self._split_column(self.column)
        deep, piece = self._split_k()
        return _address(memory, first, deep * self.n_fractals + fractal, group, piece)

    def address_c(self, memory: TileMemory, first: Value) -> Value:
        """Return the tile of C: its fractals are (N/16, M/16)."""
        down, group = self._split_row(self.row)
        across, piece = self._split_column(self.column)
        return _address(memory, first, across * self.m_fractals + down, group, piece)


def _address(
    memory: TileMemory, first: Value, fractal: Value, group: Value, column: Value
) -> Value:
    low = bits(memory.row_blocks) + 4
    begin = first[low:]
    columns, groups = bits(memory.row_pieces), bits(memory.groups)
    wide = memory.address.members["fractal"]
    assert isinstance(wide, int)
    return Cat(column[:columns], group[:groups], (begin + fractal)[:wide])
