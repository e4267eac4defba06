"""Unit V: it feeds the vector unit with blocks of UB or L0C, and stores its results in UB."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, ORDERS, WORD_BITS

from ..vector.operations import OPERATIONS, Condition, Operation, Rounding
from ..vector.unit import VectorUnit
from .config import CoreConfig
from .lanes import COMBINED, CONVERSIONS, INDEXED, LANE_OPS, REDUCTIONS
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, ROW_BITS, ReadPort, WritePort
from .record import RECORD_BITS, dtype_code, is_op, length, part, signed_part

#: Bits of a mask, and blocks of a repeat.
MASK_BITS, REPEAT_BLOCKS = 128, 8
#: Beats between the first read of one and the write of its result.
_BEATS = 16
_LEVELS = 3


class LaneFeeder(wiring.Component):
    """Unit V of a core: operations lane by lane, comparisons, selections, and results of L0C.

    An instruction is a sequence of beats of one block. Three nested levels count them: repeats (or
    columns of fractals), blocks, and the halves of a block where dtypes of 16 and 32 bits meet. A
    beat reads its operands one after the other, because UB has one port to read. A block that an
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
    ub, l0c : Out(ReadPort())
        The memories of operands.
    w : Out(WritePort())
        UB.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        l0c: Any
        w: Any

    def __init__(self, *, config: CoreConfig):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "ub": Out(ReadPort()),
                "l0c": Out(ReadPort()),
                "w": Out(WritePort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.config.vector.lanes
        m.submodules.unit = unit = VectorUnit(config=self.config.vector)
        active, start = Signal(), Signal()
        m.d.comb += [self.i.ready.eq(~active), start.eq(self.i.valid & self.i.ready)]
        plan = _Plan(m, self.i.payload, self.config)
        now = Signal(plan.layout, name="now")
        walk = _Walk(m, plan, now, start)
        compared = Signal(MASK_BITS)

        # The reads of a beat, and the queue of its other properties.
        beat = data.StructLayout(
            {
                "mask": lanes,
                "place": 7,  # of its first lane in the repeat
                "half": 1,
                "combines": 1,
                "target": ADDRESS_BITS,
            }
        )
        m.submodules.beats = beats = SyncFIFO(width=beat.size, depth=4)
        m.submodules.first = first = SyncFIFO(width=BLOCK_BITS, depth=4)
        m.submodules.second = second = SyncFIFO(width=BLOCK_BITS, depth=4)
        m.submodules.targets = targets = SyncFIFO(width=beat.size, depth=_BEATS)
        pending = _Pending(m)
        got_a = Signal()  # the first operand of the beat has been requested
        combining = now.combines & (walk.block == REPEAT_BLOCKS)
        asks_a = active & ~walk.ended & now.one & ~got_a & ~combining
        asks_b = active & ~walk.ended & now.two & (got_a | ~now.one)
        room = beats.w_rdy & ~pending.full
        place = Mux(asks_a, walk.places[1], walk.places[2])
        row = Signal(ROW_BITS)
        m.d.comb += [row.eq(place[PLACE_BITS:]), pending.row.eq(row)]
        clear = room & ~pending.found
        from_l0c = asks_a & now.from_l0c
        granted = Signal()
        # Two blocks may be on their way while the queue of blocks has room for all its beats.
        m.d.comb += [
            self.ub.request.eq((asks_a | asks_b) & ~from_l0c & clear),
            self.ub.address.eq(row),
            self.l0c.request.eq(from_l0c & room),
            self.l0c.address.eq(row),
            granted.eq(self.ub.grant | self.l0c.grant),
        ]
        go = Signal()  # the beat is complete
        m.d.comb += go.eq(
            active
            & ~walk.ended
            & room
            & Mux((now.one | now.two) & ~combining, granted & (asks_b | ~now.two), 1)
        )
        with m.If(go):
            m.d.sync += got_a.eq(0)
        with m.Elif(granted):
            m.d.sync += got_a.eq(1)
        second_read = Signal()
        m.d.sync += second_read.eq(asks_b & granted)
        m.d.comb += [
            first.w_data.eq(Mux(self.l0c.valid, self.l0c.data, self.ub.data)),
            first.w_en.eq(self.l0c.valid | (self.ub.valid & ~second_read)),
            second.w_data.eq(self.ub.data),
            second.w_en.eq(self.ub.valid & second_read),
            walk.step.eq(go),
        ]
        entering = data.View(beat, beats.w_data)
        m.d.comb += [
            beats.w_en.eq(go),
            entering.mask.eq(walk.mask[:lanes]),
            entering.place.eq(walk.lane),
            entering.half.eq(walk.places[1][PLACE_BITS - 1] & now.expands),
            entering.combines.eq(combining),
            entering.target.eq(walk.places[0]),
            pending.push.eq(go & ~now.to_register & (combining | ~now.combines)),
            pending.entering.eq(walk.places[0][PLACE_BITS:]),
        ]

        # The vector unit. A selection first loads the bits of its lanes.
        head = data.View(beat, beats.r_data)
        ready, loads, loaded = Signal(), Signal(), Signal()
        m.d.comb += [
            ready.eq(
                beats.r_rdy
                & targets.w_rdy
                & (~head.combines | ~targets.r_rdy)
                & (first.r_rdy | ~now.one | head.combines)
                & (second.r_rdy | ~now.two)
            ),
            loads.eq(now.selects & ~loaded),
        ]
        # What the blocks of a repeat gave: elements, lanes, and a bit for each block with any.
        partial, lanes_of, there = (
            Array(Signal(width, name=f"{name}{i}") for i in range(REPEAT_BLOCKS))
            for name, width in (("partial", 32), ("partial_lane", 8), ("partial_there", 1))
        )
        together = Mux(
            now.wide, Cat(*partial), Cat(*(partial[i][:16] for i in range(REPEAT_BLOCKS)))
        )
        operand = Mux(head.half, first.r_data[BLOCK_BITS // 2 :], first.r_data)
        bits = Signal(lanes)
        m.d.comb += bits.eq(compared >> head.place)
        command = unit.command.payload
        used = Signal()
        m.d.comb += [
            unit.command.valid.eq(ready & ~now.passes),
            Value.cast(command.operation).eq(
                Mux(loads, Operation.LOAD_BITS.value, now.operation)
            ),
            Value.cast(command.format).eq(now.wide),
            Value.cast(command.condition).eq(now.condition),
            Value.cast(command.rounding).eq(now.rounding),
            command.from_scalar.eq(now.from_scalar),
            command.scalar.eq(now.scalar),
            command.repeat.eq(1),
            command.mask.eq(
                Mux(
                    loads | now.compares,
                    (1 << lanes) - 1,
                    Mux(head.combines, Cat(*there), head.mask),
                )
            ),
            unit.a.payload.eq(Mux(loads, bits, Mux(head.combines, together, operand))),
            unit.a.valid.eq(ready & ~now.passes),
            unit.b.payload.eq(second.r_data),
            unit.b.valid.eq(ready & ~now.passes),
        ]
        taken = Signal()
        m.d.comb += [
            taken.eq(unit.command.valid & unit.command.ready),
            used.eq((taken & ~loads) | (ready & now.passes & self.w.grant)),
            beats.r_en.eq(used),
            first.r_en.eq(used & now.one & ~head.combines),
            second.r_en.eq(used & now.two),
            targets.w_en.eq(taken & ~loads),
            targets.w_data.eq(beats.r_data),
        ]
        with m.If(taken):
            m.d.sync += loaded.eq(loads)

        # Results. A block with fewer bytes is repeated, so that its place only moves the enables.
        done = data.View(beat, targets.r_data)
        result, enable, target = (
            Signal(BLOCK_BITS, name="result"),
            Signal(BLOCK_BYTES, name="result_enable"),
            Signal(ADDRESS_BITS, name="result_place"),
        )
        o = unit.o.payload
        keeps = now.to_register | (now.combines & ~done.combines)  # in a register of this unit
        with m.If(now.passes):
            m.d.comb += [
                result.eq(first.r_data),
                enable.eq(Cat(*(head.mask[i].replicate(2) for i in range(lanes)))),
                target.eq(head.target),
            ]
        with m.Else():
            m.d.comb += [enable.eq(o.enable << done.target[:PLACE_BITS]), target.eq(done.target)]
            with m.If(now.compares):
                size = Mux(now.wide, o.data[:8].replicate(2), o.data[:16])
                m.d.comb += result.eq(size.replicate(BLOCK_BITS // 16))
                with m.If(now.wide):
                    m.d.comb += result.eq(o.data[:8].replicate(BLOCK_BYTES))
            with m.Elif(now.shrinks):
                m.d.comb += result.eq(o.data[: BLOCK_BITS // 2].replicate(2))
            with m.Elif(now.reduces):
                self._build_reduced(m, now, done, o, lanes_of, result, enable)
            with m.Else():
                m.d.comb += result.eq(o.data)
        m.d.comb += [
            self.w.address.eq(target[PLACE_BITS:]),
            self.w.data.eq(result),
            self.w.enable.eq(enable),
            self.w.request.eq(
                Mux(now.passes, ready, unit.o.valid & targets.r_rdy & ~keeps)
            ),
            unit.o.ready.eq(targets.r_rdy & (self.w.grant | keeps) & ~now.passes),
            targets.r_en.eq(unit.o.valid & unit.o.ready),
            pending.pop.eq(self.w.grant),
            self.idle.eq(~active),
        ]
        with m.If(now.to_register & targets.r_en):
            wide_mask = (1 << lanes // 2) - 1
            on = Signal(MASK_BITS)
            fresh = Signal(MASK_BITS)
            m.d.comb += [
                on.eq((done.mask & Mux(now.wide, wide_mask, (1 << lanes) - 1)) << done.place),
                fresh.eq(o.data[:lanes] << done.place),
            ]
            m.d.sync += compared.eq((compared & ~on) | (fresh & on))
        with m.If(now.combines & targets.r_en & ~done.combines):
            block = Mux(now.wide, done.place[3:6], done.place[4:7])
            m.d.sync += [
                partial[block].eq(o.data[:32]),
                lanes_of[block].eq(Mux(now.wide, o.data[32:40], o.data[16:24])),
                there[block].eq(o.enable[0]),
            ]
        with m.If(start):
            m.d.sync += [active.eq(1), now.eq(plan.now), got_a.eq(0), loaded.eq(0)]
        with m.Elif(active & walk.ended & ~beats.r_rdy & ~targets.r_rdy):
            m.d.sync += active.eq(0)
        return m


    @staticmethod
    def _build_reduced(
        m: Module, now: Any, done: Any, o: Any, lanes_of: Array, result: Signal, enable: Signal
    ) -> None:
        """Repeat one or two elements in the block, and enable them at their place."""
        some = o.enable[0]
        low = done.target[:PLACE_BITS]
        winner = Mux(now.wide, o.data[32:35], o.data[16:19])
        index = Signal(32, name="winning_lane")
        value = Mux(now.wide, o.data[:32], o.data[:16])
        m.d.comb += index.eq(lanes_of[winner] + Mux(now.wide, winner << 3, winner << 4))
        pair = Signal(64, name="pair")
        count = Signal(4, name="pair_bytes")
        single = Mux(now.wide, value, Cat(value[:16], value[:16]))
        size = Mux(now.wide, 4, 2)
        m.d.comb += [pair.eq(Cat(single, single)), count.eq(size)]
        with m.If(now.indexed):
            with m.Switch(now.order):
                with m.Case(ORDERS.index("value_index"), ORDERS.index("index_value")):
                    swaps = now.order == ORDERS.index("index_value")
                    a, b = Mux(swaps, index, value), Mux(swaps, value, index)
                    halves = Cat(a[:16], b[:16])
                    m.d.comb += [
                        pair.eq(Mux(now.wide, Cat(a[:32], b[:32]), Cat(halves, halves))),
                        count.eq(size << 1),
                    ]
                with m.Case(ORDERS.index("index")):
                    m.d.comb += [pair.eq(Cat(index, index)), count.eq(4)]
        on = Mux(some, (1 << count) - 1, 0)
        m.d.comb += [
            result.eq(pair.replicate(BLOCK_BITS // 64)),
            enable.eq((on << low)[:BLOCK_BYTES]),
        ]


class _Pending:
    """The rows of UB that beats on their way will write, in their order."""

    def __init__(self, m: Module):
        self.row = Signal(ROW_BITS, name="pending_row")
        self.entering = Signal(ROW_BITS, name="pending_entering")
        self.push, self.pop = Signal(name="pending_push"), Signal(name="pending_pop")
        self.found, self.full = Signal(name="pending_found"), Signal(name="pending_full")
        rows = Array(Signal(ROW_BITS, name=f"pending{i}") for i in range(_BEATS))
        valid = Signal(_BEATS, name="pending_valid")
        head, end = (Signal(range(_BEATS), name=f"pending_{name}") for name in ("head", "end"))
        m.d.comb += [
            self.found.eq(Cat(*(valid[i] & (rows[i] == self.row) for i in range(_BEATS))).any()),
            self.full.eq(valid.all()),
        ]
        with m.If(self.pop):
            m.d.sync += [valid.bit_select(head, 1).eq(0), head.eq(head + 1)]
        with m.If(self.push):
            m.d.sync += [
                valid.bit_select(end, 1).eq(1),
                rows[end].eq(self.entering),
                end.eq(end + 1),
            ]


class _Plan:
    """What an instruction asks for, as the beats need it."""

    def __init__(self, m: Module, record: Value, config: CoreConfig):
        self.layout = data.StructLayout(
            {
                "operation": 5,
                "wide": 1,
                "condition": 3,
                "rounding": 3,
                "from_scalar": 1,
                "scalar": 32,
                "one": 1,
                "two": 1,
                "from_l0c": 1,
                "expands": 1,
                "shrinks": 1,
                "selects": 1,
                "compares": 1,
                "to_register": 1,
                "passes": 1,
                "reduces": 1,  # a block gives few results
                "combines": 1,  # the results of the blocks of a repeat are combined
                "indexed": 1,
                "order": 2,
            }
        )
        self.now = Signal(self.layout, name="plan")
        self.counts = [Signal(SIZE_BITS, name=f"plan_count{n}", init=1) for n in range(_LEVELS)]
        # Of target, first and second operand: the first byte, and the step of each level.
        self.places = [Signal(ADDRESS_BITS, name=f"plan_place{o}") for o in range(3)]
        self.steps = [
            [Signal(ADDRESS_BITS, name=f"plan_step{o}_{n}") for n in range(_LEVELS)]
            for o in range(3)
        ]
        self.mask = Signal(MASK_BITS, name="plan_mask")
        self.lane_step = Signal(5, name="plan_lane_step")
        self._build_lanewise(m, record, config)
        self._build_reduction(m, record, config)
        with m.If(is_op(record, "matrix_out")):
            self._build_matrix_out(m, record)

    def _build_lanewise(self, m: Module, record: Value, config: CoreConfig) -> None:
        now = self.now
        # All vector instructions have their parts at equal places.
        names = ("dst", "src0", "src1")
        blocks = [part(record, "vadd", f"{name}_block_stride") for name in names]
        repeats = [part(record, "vadd", f"{name}_repeat_stride") for name in names]
        m.d.comb += [self.places[o].eq(part(record, "vadd", names[o])) for o in range(3)]
        dtypes = [part(record, "vadd", f"{name}.dtype") for name in names]
        fp32, int32 = dtype_code("fp32"), dtype_code("int32")
        # A comparison has no target with lanes, and vdup no source.
        source = Mux(is_op(record, "vdup"), dtypes[0], dtypes[1])
        wide = Signal(name="source_wide")
        long_target = Signal(name="target_wide")
        small_target = Signal(name="target_small")
        m.d.comb += [
            wide.eq(_is(source, fp32, int32, dtype_code("uint32"))),
            long_target.eq(_is(dtypes[0], fp32, int32, dtype_code("uint32"))),
            small_target.eq(_is(dtypes[0], dtype_code("int8"), dtype_code("uint8"))),
        ]
        converts = is_op(record, "vconv")
        compares = is_op(record, "vcmp", "vcmpv", "vcmpvs")
        expands, shrinks = Signal(name="expands"), Signal(name="shrinks")
        m.d.comb += [
            expands.eq(converts & ~wide & long_target),
            shrinks.eq(converts & ((wide & ~long_target) | (~wide & small_target))),
            now.expands.eq(expands),
            now.shrinks.eq(shrinks),
            now.wide.eq(wide),
            now.scalar.eq(part(record, "vadds", "scalar")),
            now.selects.eq(is_op(record, "vsel")),
            now.compares.eq(compares),
            now.to_register.eq(is_op(record, "vcmp")),
            now.condition.eq(_renamed(m, record, _CONDITIONS, "vcmp", "condition")),
            now.rounding.eq(_renamed(m, record, _ROUNDINGS, "vconv", "rounding")),
        ]
        for op, lane in LANE_OPS.items():
            if lane.operation not in config.vector.operations:
                continue
            with m.If(is_op(record, op)):
                m.d.comb += [
                    now.operation.eq(lane.operation.value),
                    now.one.eq(lane.one),
                    now.two.eq(lane.two),
                    now.from_scalar.eq(lane.scalar and OPERATIONS[lane.operation].reads_b),
                ]
        with m.If(converts):
            m.d.comb += now.one.eq(1)
            for (origin, goal), operation in CONVERSIONS.items():
                if operation not in config.vector.operations:
                    continue
                hit = (dtypes[1] == DTYPES.index(origin)) & (dtypes[0] == DTYPES.index(goal))
                with m.If(hit):
                    m.d.comb += now.operation.eq(operation.value)
        # Levels: repeats, blocks, halves.
        halves = expands | shrinks
        m.d.comb += [
            self.counts[0].eq(part(record, "vadd", "repeat")),
            self.counts[1].eq(Mux(halves, REPEAT_BLOCKS // 2, REPEAT_BLOCKS)),
            self.counts[2].eq(Mux(halves, 2, 1)),
            self.lane_step.eq(Mux(wide | long_target & ~compares, 8, 16)),
        ]
        for o in range(3):
            block = Signal(ADDRESS_BITS, name=f"block_bytes{o}")
            m.d.comb += block.eq(blocks[o] << PLACE_BITS)
            half = shrinks if o == 0 else expands  # this operand has two beats in a block
            m.d.comb += [
                self.steps[o][0].eq(repeats[o] << PLACE_BITS),
                self.steps[o][1].eq(Mux(halves & ~half, block << 1, block)),
                self.steps[o][2].eq(Mux(half, BLOCK_BYTES // 2, block)),
            ]
        with m.If(compares):
            # Bits of a repeat follow those of the last one.
            size = Mux(wide, 1, 2)
            m.d.comb += [
                self.steps[0][0].eq(size << 3),
                self.steps[0][1].eq(size),
            ]
        masked = ENCODINGS["vadd"].words
        words = length(record)
        low = WORD_BITS * masked
        with m.If(words == masked):
            m.d.comb += self.mask.eq(~Const(0, MASK_BITS))
        with m.Elif(words == masked + 1):
            m.d.comb += self.mask.eq(record[low : low + WORD_BITS])
        with m.Else():
            m.d.comb += self.mask.eq(record[low : low + MASK_BITS])
        if "vsel" in ENCODINGS:  # its mask comes one word later
            later = low + WORD_BITS
            with m.If(is_op(record, "vsel")):
                m.d.comb += self.mask.eq(
                    Mux(
                        words == masked + 1,
                        ~Const(0, MASK_BITS),
                        Mux(
                            words == masked + 2,
                            record[later : later + WORD_BITS],
                            record[later : later + MASK_BITS],
                        ),
                    )
                )
        # vdup has one word less.
        earlier = WORD_BITS * ENCODINGS["vdup"].words
        with m.If(is_op(record, "vdup")):
            m.d.comb += self.mask.eq(
                Mux(
                    words == masked - 1,
                    ~Const(0, MASK_BITS),
                    Mux(
                        words == masked,
                        record[earlier : earlier + WORD_BITS],
                        record[earlier : earlier + MASK_BITS],
                    ),
                )
            )

    def _build_reduction(self, m: Module, record: Value, config: CoreConfig) -> None:
        """Blocks give one result each, or half as many as lanes; most are combined afterwards."""
        now = self.now
        if "reduce" not in config.vector.groups:
            return
        fp32 = dtype_code("fp32")
        wide = part(record, "vcadd", "src.dtype") == fp32
        size = Signal(3, name="element_bytes")
        m.d.comb += size.eq(Mux(wide, 4, 2))
        for op, operation in REDUCTIONS.items():
            if operation not in config.vector.operations:
                continue
            with m.If(is_op(record, op)):
                m.d.comb += [
                    now.operation.eq(operation.value),
                    now.one.eq(1),
                    now.reduces.eq(1),
                    now.combines.eq(op in COMBINED),
                    now.indexed.eq(op in INDEXED),
                    now.wide.eq(wide),
                    now.shrinks.eq(op == "vcpadd"),
                    now.order.eq(part(record, "vcadd", "order")),
                    self.counts[1].eq(REPEAT_BLOCKS + (1 if op in COMBINED else 0)),
                    self.steps[0][0].eq(signed_part(record, "vcadd", "dst_repeat_bytes")),
                    self.steps[0][1].eq(
                        0 if op in COMBINED else BLOCK_BYTES // 2 if op == "vcpadd" else size
                    ),
                    self.lane_step.eq(Mux(wide, 8, 16)),
                ]

    def _build_matrix_out(self, m: Module, record: Value) -> None:
        """Columns of m × 16 elements; a row is two blocks of FP32 or one of FP16."""
        now = self.now

        def get(name: str) -> Value:
            return part(record, "matrix_out", name)

        narrow = Signal(name="out_narrow")
        m.d.comb += [
            narrow.eq(get("dst.dtype") == dtype_code("fp16")),
            now.operation.eq(Operation.TO_FP16.value),
            now.wide.eq(1),
            now.one.eq(1),
            now.two.eq(0),
            now.from_scalar.eq(0),
            now.from_l0c.eq(get("src.buffer") == BUFFERS.index("L0C")),
            now.shrinks.eq(narrow),
            now.expands.eq(0),
            now.passes.eq(~narrow),
            now.selects.eq(0),
            now.compares.eq(0),
            now.to_register.eq(0),
            now.rounding.eq(0),
            now.reduces.eq(0),
            now.combines.eq(0),
            self.places[0].eq(get("dst")),
            self.places[1].eq(get("src")),
            self.counts[0].eq((get("n") + 15) >> 4),
            self.counts[1].eq(get("m")),
            self.counts[2].eq(2),
            self.mask.eq(~Const(0, MASK_BITS)),
            self.lane_step.eq(0),
            self.steps[0][0].eq(signed_part(record, "matrix_out", "dst_stride")),
            self.steps[1][0].eq(signed_part(record, "matrix_out", "src_stride")),
            self.steps[0][1].eq(Mux(narrow, BLOCK_BYTES, 2 * BLOCK_BYTES)),
            self.steps[1][1].eq(2 * BLOCK_BYTES),
            self.steps[0][2].eq(Mux(narrow, BLOCK_BYTES // 2, BLOCK_BYTES)),
            self.steps[1][2].eq(BLOCK_BYTES),
        ]


#: Bits of a count of a level.
SIZE_BITS = 16


class _Walk:
    """The beats of an instruction; ``step`` goes on to the next one."""

    def __init__(self, m: Module, plan: _Plan, now: Any, start: Value):
        self.step, self.ended = Signal(name="lane_step"), Signal(name="lanes_ended")
        count = [Signal(SIZE_BITS, name=f"lane_count{n}") for n in range(_LEVELS)]
        index = [Signal(SIZE_BITS, name=f"lane_index{n}") for n in range(_LEVELS)]
        steps = [
            [Signal(ADDRESS_BITS, name=f"lane_step{o}_{n}") for n in range(_LEVELS)]
            for o in range(3)
        ]
        begin = [
            [Signal(ADDRESS_BITS, name=f"lane_begin{o}_{n}") for n in range(_LEVELS)]
            for o in range(3)
        ]
        self.places = [begin[o][_LEVELS - 1] for o in range(3)]
        self.block = index[1]
        self.mask = Signal(MASK_BITS, name="lane_mask")
        self.lane = Signal(7, name="lane_first")
        whole = Signal(MASK_BITS, name="whole_mask")
        lane_step = Signal(5, name="lanes_of_beat")
        last = [index[n] + 1 == count[n] for n in range(_LEVELS)]

        def advance(n: int) -> None:
            m.d.sync += index[n].eq(index[n] + 1)
            m.d.sync += [index[inner].eq(0) for inner in range(n + 1, _LEVELS)]
            for o in range(3):
                following = begin[o][n] + steps[o][n]
                m.d.sync += [begin[o][inner].eq(following) for inner in range(n, _LEVELS)]

        with m.If(self.step):
            m.d.sync += [
                self.mask.eq(self.mask >> lane_step),
                self.lane.eq(self.lane + lane_step),
            ]
            with m.If(~last[2]):
                advance(2)
            with m.Elif(~last[1]):
                advance(1)
            with m.Else():
                m.d.sync += [self.mask.eq(whole), self.lane.eq(0)]
                with m.If(~last[0]):
                    advance(0)
                with m.Else():
                    m.d.sync += self.ended.eq(1)
        with m.If(start):
            m.d.sync += [
                self.ended.eq(0),
                self.mask.eq(plan.mask),
                whole.eq(plan.mask),
                self.lane.eq(0),
                lane_step.eq(plan.lane_step),
            ]
            for n in range(_LEVELS):
                m.d.sync += [count[n].eq(plan.counts[n]), index[n].eq(0)]
                for o in range(3):
                    m.d.sync += [
                        begin[o][n].eq(plan.places[o]),
                        steps[o][n].eq(plan.steps[o][n]),
                    ]
        del now


_CONDITIONS = {name: Condition[name.upper()].value for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_ROUNDINGS = {
    "none": Rounding.NEAREST_EVEN.value,
    "rint": Rounding.NEAREST_EVEN.value,
    "round": Rounding.NEAREST_AWAY.value,
    "floor": Rounding.DOWN.value,
    "ceil": Rounding.UP.value,
    "trunc": Rounding.ZERO.value,
}


def _renamed(m: Module, record: Value, codes: dict[str, int], op: str, name: str) -> Value:
    """Return the vector unit's code of a name that is a field of an instruction."""
    member = next(x for x in ENCODINGS[op].members if x.name == name)
    field = part(record, op, name)
    result = Signal(3, name=f"code_of_{name}")
    with m.Switch(field):
        for code, word in enumerate(member.names):
            if word in codes:
                with m.Case(code):
                    m.d.comb += result.eq(codes[word])
    return result


def _is(value: Value, *codes: int) -> Value:
    return Cat(*(value == code for code in codes)).any()
