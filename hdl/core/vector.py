"""Unit V: it feeds the vector unit with blocks of UB or L0C, and stores its results in UB."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS, CODE_BITS

from ..vector.extension import VectorExtension
from ..vector.operations import Operation
from ..vector.unit import VectorUnit
from .config import CoreConfig
from .images import ImageWalk
from .lane_plan import LANES_LAYOUT, REPEAT_BLOCKS, LanePlan
from .lane_results import held, holds_results, reduced, shrunk
from .lane_walk import MASK_BITS, LaneWalk, PendingRows
from .ports import (
    ADDRESS_BITS,
    BLOCK_BITS,
    BLOCK_BYTES,
    PLACE_BITS,
    ROW_BITS,
    ReadPort,
    WritePort,
    bits,
)
from .record import RECORD_BITS, is_op

#: Beats whose operands wait in front of the vector unit.
_WAITING = 4


class LaneFeeder(wiring.Component):
    """Unit V of a core: operations lane by lane, comparisons, selections, and results of L0C.

    An instruction is a sequence of beats of as many blocks as the vector unit has lanes for. Three
    nested levels count them: repeats (or columns of fractals), beats of a repeat, and the halves of
    a block where dtypes of 16 and 32 bits meet and a beat has one block. Every block has an address
    and a port of its own. A beat is complete when all its blocks have been granted. A block that an
    earlier beat still has to write is read after that.

    Parameters
    ----------
    config : CoreConfig

    Members
    -------
    i : In(stream.Signature(512))
        Instructions.
    idle : Out(1)
        All instructions have ended.
    ub : array of Out(ReadPort())
        The blocks of the first operand, then those of the second.
    l0c : Out(ReadPort(config.lane_blocks))
        The memory of sums.
    w : array of Out(WritePort())
        The blocks of results.
    target : Out(4)
        The code of their memory, which is UB.
    careless : Out(2 * config.lane_blocks)
        A bit for each port of ``ub``: no lane of the block that it reads is enabled, so any block
        will do.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        l0c: Any
        w: Any
        target: Signal
        careless: Signal

    def __init__(self, *, config: CoreConfig):
        self.config, self.blocks = config, config.lane_blocks
        self.target_bits = bits(config.ub)
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "ub": Out(ReadPort()).array(2 * self.blocks),
                "l0c": Out(ReadPort(self.blocks)),
                "w": Out(WritePort()).array(self.blocks),
                "target": Out(CODE_BITS),
                "careless": Out(2 * self.blocks),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.config.vector.lanes
        start = Signal()
        # Beats between the first read of one and the write of its result.
        on_way = 16 if self.config.vector.passes == 1 else 8
        plan = LanePlan(m, self.i.payload, self.config)
        beat = data.StructLayout(
            {
                "mask": lanes,
                "place": 7,  # of its first lane in the repeat
                "half": 1,
                "combines": 1,
                # Its result in UB, or beyond it if the highest bit is set.
                "target": self.target_bits + 1,
            }
        )
        m.submodules.beats = beats = SyncFIFO(width=beat.size, depth=_WAITING)
        m.submodules.targets = targets = SyncFIFO(width=beat.size, depth=on_way)
        m.submodules.unit = unit = VectorUnit(config=self.config.vector)
        extensions = [VectorExtension(config=self.config.extension) for _ in range(self.blocks)]
        for j, extension in enumerate(extensions):
            m.submodules[f"extension{j}"] = extension
        waiting = _WAITING if "fused" in self.config.extension.groups else 0
        parts = REPEAT_BLOCKS // self.blocks
        s = SimpleNamespace(
            now=Signal(LANES_LAYOUT, name="now"),
            walk=LaneWalk(m, plan, start, self.blocks),
            pending=PendingRows(m, bits(self.config.ub // BLOCK_BYTES), self.blocks, on_way),
            images=ImageWalk(
                m,
                self.i.payload,
                self.config.ub // BLOCK_BYTES,
                wide=self.config.wide_images,
            ),
            active=Signal(name="active"),
            beats=beats,
            sources=[self._queues(m, name, _WAITING) for name in ("first", "second")],
            third=self._queues(m, "third", waiting),
            targets=targets,
            unit=unit,
            out=held(m, unit.o) if holds_results(self.config) else unit.o,
            extensions=extensions,
            extended=Signal(name="extended"),  # the extensions have taken a beat
            entering=data.View(beat, beats.w_data),
            head=data.View(beat, beats.r_data),
            done=data.View(beat, targets.r_data),
            compared=Signal(MASK_BITS, name="compared"),
            loaded=Signal(name="loaded"),  # the bits of a selection have been loaded
            ready=Signal(name="beat_ready"),
            complete=Signal(name="result_complete"),
            # What the beats of a repeat gave: elements, lanes, a bit for each beat with any.
            **{
                name: Array(Signal(width, name=f"{name}{i}") for i in range(parts))
                for name, width in (("partial", 32), ("partial_lane", 8), ("there", 1))
            },
        )
        self._build_reads(m, s, start)
        self._build_commands(m, s)
        self._build_results(m, s)
        self._build_registers(m, s)
        images = is_op(self.i.payload, "col2im")
        m.d.comb += [
            s.images.half.eq(s.walk.inner != 0),
            s.images.asks.eq(self.i.valid & images & ~s.active),
            self.i.ready.eq(~s.active & (~images | s.images.ready)),
            start.eq(self.i.valid & self.i.ready),
            self.idle.eq(~s.active),
            self.target.eq(BUFFERS.index("UB")),
        ]
        with m.If(start):
            m.d.sync += [s.active.eq(1), s.now.eq(plan.now), s.loaded.eq(0)]
        with m.Elif(s.active & s.walk.ended & ~beats.r_rdy & ~targets.r_rdy):
            m.d.sync += s.active.eq(0)
        return m

    def _queues(self, m: Module, name: str, depth: int) -> list[SyncFIFO]:
        """Return a queue for each block of an operand."""
        queues = [SyncFIFO(width=BLOCK_BITS, depth=depth) for _ in range(self.blocks)]
        for j, queue in enumerate(queues):
            m.submodules[f"{name}{j}"] = queue
        return queues

    def _needs(self, now: Any, operand: int, block: int) -> Value:
        """Return 1 if the operand of the beats has this block in memory."""
        if block:  # a pixel is one block
            now = SimpleNamespace(
                one=now.one & ~now.images, two=now.two & ~now.images, expands=now.expands
            )
        if operand:
            return now.two
        # An operand that becomes wider has half as many blocks as its results.
        if block >= self.blocks // 2 and self.blocks > 1:
            return now.one & ~now.expands
        return now.one

    def _build_reads(self, m: Module, s: Any, start: Value) -> None:
        """Request the blocks of a beat, and put the beat into its queue when all are granted."""
        now, walk, pending, images = s.now, s.walk, s.pending, s.images
        works = s.active & ~walk.ended & (~now.images | images.valid)
        target = self._target(s)
        combining = Signal(name="combining")
        room = s.beats.w_rdy & ~pending.full
        go = Signal(name="beat_complete")
        m.d.comb += [
            combining.eq(now.combines & (walk.block == REPEAT_BLOCKS // self.blocks)),
            self.l0c.request.eq(works & now.from_l0c & room),
            self.l0c.address.eq(walk.places[1] >> bits(BLOCK_BYTES * self.blocks)),
        ]
        waits: list[Value] = [now.from_l0c & ~self.l0c.grant]
        first: Value = Const(0, 1)  # the pixel of an image has been read
        for o in range(2):
            for j in range(self.blocks):
                name, queue = f"{'ab'[o]}{j}", s.sources[o][j]
                port = self.ub[o * self.blocks + j]
                got, asks = Signal(name=f"got_{name}"), Signal(name=f"asks_{name}")
                row = Signal(ROW_BITS, name=f"row_{name}")
                # The blocks of L0C come in one line.
                needs = self._needs(now, o, j) & ~combining
                place = (walk.places[1 + o] + walk.offsets[1 + o][j])[PLACE_BITS:]
                known, careless = Signal(name=f"pending_{name}"), Const(0, 1)
                if o == 0:
                    needs = needs & ~now.from_l0c
                    place = Mux(now.images, images.row, place)
                    careless = now.images & ~images.inside
                elif j == 0:
                    # The block of a fractal comes behind that of its pixel.
                    behind = now.images & ~first
                    needs = needs & ~behind
                    waits.append(behind)
                if o == j == 0:
                    first = got
                m.d.comb += [
                    row.eq(place),
                    known.eq(pending.has(row[: len(pending.entering[0])]) & ~careless),
                    asks.eq(works & needs & ~got),
                    port.request.eq(asks & room & ~known),
                    port.address.eq(row),
                    queue.w_data.eq(port.data),
                    queue.w_en.eq(port.valid),
                ]
                halves = now.expands if self.blocks > 1 else 0
                m.d.comb += self.careless[o * self.blocks + j].eq(works & ~walk.enabled(j, halves))
                waits.append(asks & ~port.grant)
                with m.If(go | start):
                    m.d.sync += got.eq(0)
                with m.Elif(port.grant):
                    m.d.sync += got.eq(1)
                if o == 0:
                    with m.If(self.l0c.valid):
                        line = self.l0c.data.word_select(j, BLOCK_BITS)
                        m.d.comb += [queue.w_data.eq(line), queue.w_en.eq(1)]
                    if s.third[j].depth:
                        may = works & room & got
                        third = self._build_third(m, s, j, may, row, known, go | start)
                        waits.append(third)
        m.d.comb += [
            go.eq(works & room & ~Cat(*waits).any()),
            walk.step.eq(go),
            s.beats.w_en.eq(go),
            s.entering.mask.eq(
                walk.mask[: self.config.vector.lanes]
                & (~now.images | images.inside).replicate(self.config.vector.lanes)
            ),
            images.step.eq(go & now.images),
            s.entering.place.eq(walk.lane),
            s.entering.combines.eq(combining),
            s.entering.target.eq(target[: self.target_bits]),
            s.entering.target[-1].eq(target[self.target_bits :].any()),
            pending.push.eq(go & ~now.to_register & (combining | ~now.combines)),
        ]
        if self.blocks == 1:
            m.d.comb += s.entering.half.eq(walk.places[1][PLACE_BITS - 1] & now.expands)
        self._build_rows(m, s)

    @staticmethod
    def _target(s: Any) -> Value:
        """Return the first byte of a beat's result."""
        row = s.images.row
        return Mux(s.now.images, Cat(Const(0, PLACE_BITS), row), s.walk.places[0])

    def _build_third(
        self, m: Module, s: Any, j: int, may: Value, row: Signal, known: Value, over: Value
    ) -> Value:
        """Read a block of the target after that of the first operand; return 1 if it waits."""
        now, walk, port, queue = s.now, s.walk, self.ub[j], s.third[j]
        got, came = Signal(name=f"got_c{j}"), Signal(name=f"came_c{j}")
        asks = Signal(name=f"asks_c{j}")
        m.d.comb += asks.eq(may & now.third & ~got)
        with m.If(asks):
            m.d.comb += [
                row.eq((walk.places[0] + walk.offsets[0][j])[PLACE_BITS:]),
                port.request.eq(~known),
            ]
        m.d.sync += came.eq(asks & port.grant)
        with m.If(over):
            m.d.sync += got.eq(0)
        with m.Elif(asks & port.grant):
            m.d.sync += got.eq(1)
        with m.If(came):
            m.d.comb += [s.sources[0][j].w_en.eq(0), queue.w_en.eq(port.valid)]
        m.d.comb += queue.w_data.eq(port.data)
        return now.third & ~got & ~(asks & port.grant)

    def _build_rows(self, m: Module, s: Any) -> None:
        """Find the rows that a beat will write, and the lanes of the last rows of L0C."""
        now, walk, pending = s.now, s.walk, s.pending
        for j in range(self.blocks):
            place = self._target(s) + walk.offsets[0][j]
            single = now.compares | now.images | (now.reduces & ~now.shrinks)
            many = ~single if j else ~now.images | s.images.inside
            fits = many & ~now.shrinks if j >= max(self.blocks // 2, 1) else many
            m.d.comb += [pending.entering[j].eq(place[PLACE_BITS:]), pending.enabled[j].eq(fits)]
        if self.blocks > 2:
            # A beat has some rows of 16 lanes of FP32, of which the last one may have fewer.
            rows = self.blocks // 2
            with m.If(now.from_l0c & walk.last_block & (now.last_rows != 0)):
                m.d.comb += s.entering.mask.eq(
                    Cat(*((now.last_rows > r).replicate(16) for r in range(rows)))
                )

    def _build_commands(self, m: Module, s: Any) -> None:
        """Give the vector unit a command for each beat; a selection first loads its bits."""
        lanes, now, head, unit = self.config.vector.lanes, s.now, s.head, s.unit
        loads, taken, used = (Signal(name=name) for name in ("loads_bits", "taken", "used"))
        together = Mux(now.wide, Cat(*s.partial), Cat(*(partial[:16] for partial in s.partial)))
        block = Cat(*(queue.r_data for queue in s.sources[0]))
        operand = Mux(head.combines, together, Mux(head.half, block[BLOCK_BITS // 2 :], block))
        selected = Signal(lanes, name="selected_bits")
        mask = Mux(head.combines, Cat(*s.there), head.mask)
        command = unit.command.payload
        there: list[Value] = []
        for o, queues in enumerate(s.sources):
            for j, queue in enumerate(queues):
                # The combination of partial results has no operand in memory.
                needs = self._needs(now, o, j) & ~head.combines
                there.append(queue.r_rdy | ~needs)
                m.d.comb += queue.r_en.eq(used & needs)
        for queue in s.third:
            there.append(queue.r_rdy | ~now.third)
            m.d.comb += queue.r_en.eq(used & now.third)
        m.d.comb += [
            s.ready.eq(
                s.beats.r_rdy
                & s.targets.w_rdy
                & (~head.combines | ~s.targets.r_rdy)
                & Cat(*there).all()
            ),
            loads.eq(now.selects & ~s.loaded),
            selected.eq(s.compared >> self._place(head)),
            unit.command.valid.eq(s.ready & ~now.passes & ~now.extra),
            Value.cast(command.operation).eq(Mux(loads, Operation.LOAD_BITS.value, now.operation)),
            Value.cast(command.format).eq(now.wide),
            Value.cast(command.condition).eq(now.condition),
            Value.cast(command.rounding).eq(now.rounding),
            command.from_scalar.eq(now.from_scalar),
            command.scalar.eq(now.scalar),
            command.repeat.eq(1),
            command.mask.eq(Mux(loads | now.compares, (1 << lanes) - 1, mask)),
            unit.a.payload.eq(Mux(loads, selected, operand)),
            unit.a.valid.eq(s.ready & ~now.passes),
            unit.b.payload.eq(Cat(*(queue.r_data for queue in s.sources[1]))),
            unit.b.valid.eq(s.ready & ~now.passes),
            taken.eq((unit.command.valid & unit.command.ready) | s.extended),
            used.eq((taken & ~loads) | (s.ready & now.passes & s.complete)),
            s.beats.r_en.eq(used),
            s.targets.w_en.eq(taken & ~loads),
            s.targets.w_data.eq(s.beats.r_data),
        ]
        self._build_extra(m, s)
        with m.If(taken):
            m.d.sync += s.loaded.eq(loads)

    def _build_extra(self, m: Module, s: Any) -> None:
        """Give the blocks of a beat to the extensions, which all take theirs at once.

        All have equal states, as no operand changes the cycles of an operation. So none waits for
        the others, which some are ready for only while they have a block in front of them.
        """
        now = s.now
        ready = Cat(*(extension.i.ready for extension in s.extensions))
        m.d.comb += s.extended.eq(s.ready & now.extra & ready.all())
        names = ("wide", "relu", "arithmetic", "nearest", "amount", "from_scalar", "scalar")
        for j, extension in enumerate(s.extensions):
            i = extension.i
            m.d.comb += [
                i.valid.eq(s.ready & now.extra),
                i.payload.a.eq(self._operand(s, j)),
                i.payload.b.eq(s.sources[1][j].r_data),
                i.payload.c.eq(s.third[j].r_data),
                Value.cast(i.payload.operation).eq(now.extra_operation),
            ]
            m.d.comb += [getattr(i.payload, name).eq(getattr(now, name)) for name in names]

    def _operand(self, s: Any, j: int) -> Value:
        """Return the first operand of block j; half a block if the results are longer."""
        block = s.sources[0][j].r_data
        if self.blocks == 1:
            return Mux(s.now.expands & s.head.half, block[BLOCK_BITS // 2 :], block)
        shared = s.sources[0][j // 2].r_data
        half = shared[BLOCK_BITS // 2 :] if j % 2 else shared[: BLOCK_BITS // 2]
        return Mux(s.now.expands, half, block)

    def _build_results(self, m: Module, s: Any) -> None:
        """Write the blocks of a result; those without an enabled byte are left out."""
        now, head, done = s.now, s.head, s.done
        results = self._results(m, s)
        keeps = now.to_register | (now.combines & ~done.combines)  # in a register of this unit
        extended = Cat(*(extension.o.valid for extension in s.extensions)).all()
        there = Mux(now.extra, extended, s.out.valid) & s.targets.r_rdy
        writes = Signal(name="result_there")
        m.d.comb += writes.eq(Mux(now.passes, s.ready, there & ~keeps))
        first = Mux(now.passes, head.target, done.target)
        waits: list[Value] = []
        for j, (result, enable) in enumerate(results):
            port = self.w[j]
            wrote, asks = Signal(name=f"wrote{j}"), Signal(name=f"writes{j}")
            place = (first + s.walk.offsets[0][j])[:ADDRESS_BITS]
            m.d.comb += [
                asks.eq(writes & ~wrote & enable.any()),
                port.request.eq(asks),
                port.address.eq(place[PLACE_BITS:]),
                port.data.eq(result),
                port.enable.eq(enable),
            ]
            waits.append(asks & ~port.grant)
            with m.If(s.complete):
                m.d.sync += wrote.eq(0)
            with m.Elif(port.grant):
                m.d.sync += wrote.eq(1)
        leaves = s.targets.r_rdy & (s.complete | keeps) & ~now.passes
        for extension in s.extensions:
            m.d.comb += extension.o.ready.eq(leaves & now.extra & extended)
        m.d.comb += [
            s.complete.eq(writes & ~Cat(*waits).any()),
            s.out.ready.eq(leaves & ~now.extra),
            s.targets.r_en.eq(there & leaves),
            s.pending.pop.eq(s.complete),
        ]

    def _results(self, m: Module, s: Any) -> list[tuple[Signal, Signal]]:
        """Return the blocks of a result and their enabled bytes.

        Results of fewer bytes are repeated, so that their place moves the enables only.
        """
        per, now, head, done = self.blocks, s.now, s.head, s.done
        o = s.out.payload
        results = []
        for j in range(per):
            result = Signal(BLOCK_BITS, name=f"result{j}")
            enable = Signal(BLOCK_BYTES, name=f"result_enable{j}")
            own = o.enable[BLOCK_BYTES * j : BLOCK_BYTES * (j + 1)]
            m.d.comb += [result.eq(o.data[BLOCK_BITS * j : BLOCK_BITS * (j + 1)]), enable.eq(own)]
            with m.If(now.passes):
                on = head.mask[8 * j : 8 * (j + 1)]
                m.d.comb += [
                    result.eq(s.sources[0][j].r_data),
                    enable.eq(Cat(*(bit.replicate(4) for bit in on))),
                ]
            with m.Elif(now.extra):
                lanes = (done.mask[8 * size * j :][: 8 * size] for size in (2, 1))
                narrow, wide = (
                    Cat(*(bit.replicate(count) for bit in mask))
                    for mask, count in zip(lanes, (2, 4), strict=True)
                )
                m.d.comb += [
                    result.eq(s.extensions[j].o.payload),
                    enable.eq(Mux(now.wide, wide, narrow)),
                ]
            with m.Elif(now.shrinks):
                shrunk(m, s, self.blocks, j, result, enable)
            if j:
                with m.Elif(now.compares | now.reduces):
                    m.d.comb += enable.eq(0)
            else:
                moved = (o.enable[: 2 * per] << done.target[:PLACE_BITS])[:BLOCK_BYTES]
                with m.Elif(now.compares):
                    size = 16 * per
                    repeated = o.data[:size].replicate(BLOCK_BITS // size)
                    short = o.data[: size // 2].replicate(2 * BLOCK_BITS // size)
                    m.d.comb += [result.eq(Mux(now.wide, short, repeated)), enable.eq(moved)]
                with m.Elif(now.reduces):
                    reduced(m, s, self.blocks, result, enable)
            results.append((result, enable))
        return results

    def _place(self, beat: Any) -> Value:
        """Return the number of a beat's first lane, whose low bits are zeros."""
        low = bits(8 * self.blocks)
        return Cat(Const(0, low), beat.place[low:])

    def _build_registers(self, m: Module, s: Any) -> None:
        """Keep the bits of comparisons, and the results of the beats of a reduction."""
        lanes, now, done, o = self.config.vector.lanes, s.now, s.done, s.out.payload
        with m.If(now.to_register & s.targets.r_en):
            half = lanes // 2
            first = done.place[bits(half) :]
            for n in range(MASK_BITS // half):
                # Beats of 16 bits begin at even halves.
                here = (first == n) | (~now.wide & (first == n - 1)) if n % 2 else first == n
                on, fresh = Signal(half, name=f"on{n}"), Signal(half, name=f"fresh{n}")
                upper = ~now.wide if n % 2 else Const(0, 1)
                m.d.comb += [
                    on.eq(Mux(upper, done.mask[half:], done.mask[:half]) & here.replicate(half)),
                    fresh.eq(Mux(upper, o.data[half:lanes], o.data[:half])),
                ]
                own = s.compared.word_select(n, half)
                m.d.sync += own.eq((own & ~on) | (fresh & on))
        if len(s.partial) == 1:
            return
        with m.If(now.combines & s.targets.r_en & ~done.combines):
            low = bits(8 * self.blocks)  # of the number of the beat, for FP32
            number = Mux(now.wide, done.place[low:6], done.place[low + 1 : 7])
            m.d.sync += [
                s.partial[number].eq(o.data[:32]),
                s.partial_lane[number].eq(Mux(now.wide, o.data[32:40], o.data[16:24])),
                s.there[number].eq(o.enable[0]),
            ]
