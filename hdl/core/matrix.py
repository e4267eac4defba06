"""Unit M: it feeds a matrix unit with the tiles of fractals, and stores its results."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import ENCODINGS
from vitruvian.golden.fp.formats import FORMATS

from ..cube.ports import Start
from ..cube.unit import MatrixUnit
from .config import CoreConfig
from .ports import PLACE_BITS, bits
from .products import SUM_BITS, Chosen, products_of
from .record import RECORD_BITS, part
from .tile_walk import SIZE_BITS, TileWalk
from .tiles import TileMemory


class MatrixFeeder(wiring.Component):
    """Unit M of a core: C = A·B, or C + A·B, on fractals, in each product of the tile.

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
        Words of 32 bits of C that are written in this cycle.

    Notes
    -----
    A step of K has as many terms as the matrix unit, and each is rounded. Elements beyond K count
    as +0 on both sides, or as NaN if ⊕ is a minimum, maximum or disjunction; elements beyond M and
    N are not written.
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

        # K is in bytes.
        widths = {"m": SIZE_BITS, "k": SIZE_BITS + bits(SUM_BITS // 8), "n": SIZE_BITS}
        sizes = {name: Signal(width, name=f"size_{name}") for name, width in widths.items()}
        first = {name: Signal(27, name=f"first_{name}") for name in "abc"}
        adds = Signal()
        init = ENCODINGS["mmad"].members[0].names
        with m.If(start):
            m.d.sync += [sizes[name].eq(part(record, "mmad", name)) for name in "mn"]
            m.d.sync += [first[name].eq(part(record, "mmad", name)[PLACE_BITS:]) for name in "abc"]
            m.d.sync += [
                adds.eq(part(record, "mmad", "init") == init.index("accumulate")),
                active.eq(1),
            ]
        product = self._product(m, start, record, sizes["k"])
        walk = TileWalk(
            m, tile, sizes, start, beats=product.beats, beat=product.beat, pairs=product.pairs
        )

        s = SimpleNamespace(
            walk=walk, first=first, adds=adds, active=active, go=Signal(name="go"), unit=unit
        )
        s.product = product
        s.beyond = Signal(name="tile_beyond")
        s.waits = Signal(name="waits")  # for the matrix unit
        memories = {"a": self.a, "b": self.b, "c": self.c}
        s.tiles, beyond = walk.tiles(m, memories, first, product.wide)
        m.d.comb += [s.beyond.eq(beyond), self.beyond.eq(s.go & s.beyond)]
        self._build_beats(m, s)
        self._build_results(m, s)
        m.d.comb += self.idle.eq(~active)
        with m.If(active & walk.ended & ~s.waits & ~s.targets.r_rdy):
            m.d.sync += active.eq(0)
        return m

    def _product(self, m: Module, start: Signal, record: Value, size: Signal) -> SimpleNamespace:
        """Keep which product an instruction is, and its K in bytes.

        Returns
        -------
        SimpleNamespace
            ``precision`` and ``code`` for the matrix unit; ``compares`` if a pair of NaNs changes
            no result. ``beats``: the bytes of a row of A that beats can take; ``beat``: the index
            of those of this product. ``unit``: the bytes that K is a multiple of. ``wide`` if an
            element of C has 64 bits, ``pairs`` if these are two results.
        """
        products = products_of(self.config.tile)
        chosen = Chosen(record, products)
        beats = sorted({product.nbytes for product in products})
        numbers = {
            "precision": chosen.value(lambda product: product.precision),
            "code": chosen.value(lambda product: product.code),
            "compares": chosen.value(lambda product: product.compares),
            "beat": chosen.value(lambda product: beats.index(product.nbytes)),
            "wide": chosen.value(lambda product: product.sum_words - 1),
            "pairs": chosen.value(lambda product: product.parts - 1),
        }
        kept: dict[str, Value] = {}
        for name, value in numbers.items():
            kept[name] = value
            if isinstance(value, Const) and name in ("wide", "pairs"):
                kept[name] = Const(value.value, 1)
            if not isinstance(value, Const):
                kept[name] = Signal(len(value), name=f"product_{name}")
                with m.If(start):
                    m.d.sync += kept[name].eq(value)
        elements = part(record, "mmad", "k")
        with m.If(start):
            step = chosen.value(lambda product: bits(product.element_bytes))
            m.d.sync += size.eq(elements << step)
        unit = min(product.element_bytes for product in products)
        return SimpleNamespace(**kept, beats=beats, unit=unit)

    def _build_beats(self, m: Module, s: Any) -> None:
        """Read the tiles of a beat in one cycle, and put them into registers in the next one.

        While the registers do not take them, the memories keep what they have read.
        """
        tile, walk, unit = self.config.tile, s.walk, s.unit
        skipped = bits(s.product.unit)  # low bits of numbers of bytes, which are 0
        layout = data.StructLayout(
            {
                "start": Start,
                "slot": tile.slot_bits,
                "emit": 1,
                "taken": len(walk.taken) - skipped,
                "within": len(walk.within) if len(s.product.beats) > 1 else 0,
            }
        )
        now, read = Signal(layout, name="beat_now"), Signal(layout, name="beat_read")
        reads, reads_c = Signal(name="reads"), Signal(name="reads_c")
        of_c = s.adds & walk.opens
        begins = Mux(s.adds, Start.FROM_C.value, Start.ZERO.value)
        a, b = (self._masked(m, memory, read, s.product) for memory in (self.a, self.b))
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
        constant = (i.payload.precision, i.payload.operation)  # until the instruction ends
        m.d.comb += [
            s.go.eq(s.active & ~walk.ended & free),
            walk.step.eq(s.go),
            Value.cast(now.start).eq(Mux(walk.opens, begins, Start.ACCUMULATE.value)),
            now.slot.eq(walk.slot),
            now.emit.eq(walk.closes),
            now.taken.eq(walk.taken[skipped:]),
            now.within.eq(walk.within),
            # Without a look at whether the matrix unit is ready, which is late in the cycle.
            self.c.hold.eq(reads_c | (s.active & ~walk.ended & of_c)),
            i.valid.eq(beat.valid),
            beat.ready.eq(i.ready),
            Cat(*(Value.cast(operand) for operand in operands)).eq(beat.value),
            Value.cast(constant[0]).eq(s.product.precision),
            Value.cast(constant[1]).eq(s.product.code),
            c.valid.eq(sums[-1].valid),
            *self._constants(m, s, sums[-1]),
            s.waits.eq(reads | beat.valid),
        ]
        with m.If(s.go):
            m.d.sync += [reads.eq(1), reads_c.eq(of_c), read.eq(now)]
        with m.Else():
            m.d.sync += [reads.eq(reads & ~beat.takes), reads_c.eq(reads_c & ~sums[0].takes)]
        self._build_reads(m, s, of_c)

    def _constants(self, m: Module, s: Any, sums: SimpleNamespace) -> list[Any]:
        """Return the statements that give C to the matrix unit.

        These are words, or one part after the other of complex numbers.
        """
        tile, product, c = self.config.tile, s.product, s.unit.c
        narrow = _widened(sums.value[: SUM_BITS * tile.m * tile.n], SUM_BITS, tile.word_bits)
        if not self.c.wide:
            return [sums.ready.eq(c.ready), Value.cast(c.payload).eq(narrow)]
        numbers = [sums.value.word_select(n, 2 * SUM_BITS) for n in range(tile.m * tile.n)]
        second, last = self._part(m, "c_part", product, c.valid & c.ready)
        parts = (number.word_select(second, SUM_BITS) for number in numbers)
        wide = _widened(Cat(*parts), SUM_BITS, tile.word_bits)
        if tile.word_bits > SUM_BITS:
            wide = Mux(product.pairs, wide, Cat(*numbers))
        return [
            sums.ready.eq(c.ready & last),
            Value.cast(c.payload).eq(Mux(product.wide, wide, narrow)),
        ]

    @staticmethod
    def _part(m: Module, name: str, product: Any, passes: Value) -> tuple[Value, Value]:
        """Return the number of the part of a complex result, and 1 if it is the last one."""
        if isinstance(product.pairs, Const) and not product.pairs.value:
            return Const(0, 1), Const(1)
        second = Signal(name=name)
        with m.If(passes):
            m.d.sync += second.eq(product.pairs & ~second)
        return second, second | ~product.pairs

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
            *self._written(m, s, done),
        ]
        rows = sum((done.rows[i] for i in range(1, tile.m)), Value.cast(done.rows[0]))
        columns = sum((done.bytes[4 * j] for j in range(1, tile.n)), Value.cast(done.bytes[0]))
        with m.If(self.c.write):
            m.d.comb += self.elements.eq(rows * columns)
            if self.c.wide:
                with m.If(s.product.wide & ~s.product.pairs):
                    m.d.comb += self.elements.eq(rows * columns << 1)

    def _written(self, m: Module, s: Any, done: Any) -> list[Any]:
        """Return the statements that give results, and which bytes of them, to the memory of C."""
        product, result, n = s.product, s.unit.o, self.config.tile.n
        narrow = _narrowed(result.payload)
        if not self.c.wide:
            return [
                self.c.bytes.eq(done.bytes),
                Value.cast(self.c.values).eq(narrow),
                s.targets.r_en.eq(self.c.write),
            ]
        second, last = self._part(m, "result_part", product, self.c.write)
        # A part of a complex result is written to one of the words of its element.
        on = Mux(product.pairs, Mux(second, 0xF0, 0x0F), 0xFF)
        wide_bytes = Cat(*(done.bytes[4 * j].replicate(8) & on for j in range(n)))
        words = (narrow.word_select(i, SUM_BITS) for i in range(self.config.tile.m * n))
        wide = Cat(*(word.replicate(2) for word in words))
        if self.config.tile.word_bits > SUM_BITS:
            wide = Mux(product.pairs, wide, Value.cast(result.payload))
        return [
            self.c.target_wide.eq(product.wide),
            self.c.tile_wide.eq(product.wide),
            self.c.bytes.eq(Mux(product.wide, wide_bytes, done.bytes)),
            Value.cast(self.c.values).eq(Mux(product.wide, wide, narrow)),
            s.targets.r_en.eq(self.c.write & last),
        ]

    def _build_reads(self, m: Module, s: Any, of_c: Value) -> None:
        m.d.comb += [
            self.a.read.eq(s.go),
            self.a.tile.eq(s.tiles["a"]),
            self.b.read.eq(s.go),
            self.b.tile.eq(s.tiles["b"]),
            self.c.read.eq(s.go & of_c),
            self.c.tile.eq(s.tiles["c"]),
        ]

    def _masked(self, m: Module, memory: TileMemory, read: Any, product: Any) -> Value:
        """Return the tile that was read, with what changes no result in place of terms beyond K.

        A beat that takes a part of a piece has this part in its lowest bytes.
        """
        tile, unit = self.config.tile, product.unit
        piece_bits, size = 16 * tile.k, 8 * unit
        on = Cat(*((read.taken > i).replicate(size) for i in range(piece_bits // size)))
        nan = FORMATS["fp32" if tile.one_pair else "fp16"]
        filler = Const(nan.canonical_nan, nan.storage_bits).replicate(
            piece_bits // nan.storage_bits
        )
        rows = []
        for i in range(memory.tile_rows):
            row: Value = memory.pieces[i]
            if len(product.beats) > 1:
                row = row >> Cat(Const(0, 3), read.within)
            row = row & on
            if not isinstance(product.compares, Const):
                row = row | (filler & ~on & product.compares.replicate(piece_bits))
            rows.append(Cat(row, Const(0, tile.bus_bits - piece_bits)))
        return Cat(*rows)


def _widened(value: Value, bits_of: int, width: int) -> Value:
    """Return words with zeros above each of them."""
    words = [value[low : low + bits_of] for low in range(0, len(value), bits_of)]
    return Cat(*(Cat(word, Const(0, width - bits_of)) for word in words))


def _narrowed(fractal: Any) -> Value:
    """Return the sums of a fractal of words, which are their low bits."""
    return Cat(*(Value.cast(word)[:SUM_BITS] for row in fractal for word in row))


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
