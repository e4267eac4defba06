"""Unit V: it feeds the vector unit with blocks of UB or L0C, and stores its results in UB."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS, CODE_BITS, ORDERS
from vitruvian.golden.fp.formats import FORMATS

from ..vector.extension import VectorExtension
from ..vector.operations import Operation
from ..vector.unit import VectorUnit
from .config import CoreConfig
from .lane_plan import LANES_LAYOUT, REPEAT_BLOCKS, LanePlan
from .lane_walk import BEATS, MASK_BITS, LaneWalk, PendingRows
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, ROW_BITS, ReadPort, WritePort
from .record import RECORD_BITS

#: Beats whose operands wait in front of the vector unit.
_WAITING = 4


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
        The memory of results.
    target : Out(4)
        The code of that memory, which is UB.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        l0c: Any
        w: Any
        target: Signal

    def __init__(self, *, config: CoreConfig):
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "ub": Out(ReadPort()),
                "l0c": Out(ReadPort()),
                "w": Out(WritePort()),
                "target": Out(CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self.config.vector.lanes
        start = Signal()
        plan = LanePlan(m, self.i.payload, self.config)
        beat = data.StructLayout(
            {
                "mask": lanes,
                "place": 7,  # of its first lane in the repeat
                "half": 1,
                "combines": 1,
                "target": ADDRESS_BITS,
            }
        )
        m.submodules.beats = beats = SyncFIFO(width=beat.size, depth=_WAITING)
        m.submodules.first = first = SyncFIFO(width=BLOCK_BITS, depth=_WAITING)
        m.submodules.second = second = SyncFIFO(width=BLOCK_BITS, depth=_WAITING)
        m.submodules.targets = targets = SyncFIFO(width=beat.size, depth=BEATS)
        waiting = _WAITING if "fused" in self.config.extension.groups else 0
        m.submodules.third = third = SyncFIFO(width=BLOCK_BITS, depth=waiting)
        m.submodules.unit = unit = VectorUnit(config=self.config.vector)
        m.submodules.extension = extension = VectorExtension(config=self.config.extension)
        s = SimpleNamespace(
            now=Signal(LANES_LAYOUT, name="now"),
            walk=LaneWalk(m, plan, start),
            pending=PendingRows(m),
            active=Signal(name="active"),
            beats=beats,
            first=first,
            second=second,
            third=third,
            targets=targets,
            unit=unit,
            extension=extension,
            entering=data.View(beat, beats.w_data),
            head=data.View(beat, beats.r_data),
            done=data.View(beat, targets.r_data),
            compared=Signal(MASK_BITS, name="compared"),
            got_a=Signal(name="got_a"),  # the first operand of the beat has been requested
            got_b=Signal(name="got_b"),
            loaded=Signal(name="loaded"),  # the bits of a selection have been loaded
            ready=Signal(name="beat_ready"),
            # What the blocks of a repeat gave: elements, lanes, a bit for each block with any.
            **{
                name: Array(Signal(width, name=f"{name}{i}") for i in range(REPEAT_BLOCKS))
                for name, width in (("partial", 32), ("partial_lane", 8), ("there", 1))
            },
        )
        self._build_reads(m, s)
        self._build_commands(m, s)
        self._build_results(m, s)
        self._build_registers(m, s)
        m.d.comb += [
            self.i.ready.eq(~s.active),
            start.eq(self.i.valid & self.i.ready),
            self.idle.eq(~s.active),
            self.target.eq(BUFFERS.index("UB")),
        ]
        with m.If(start):
            m.d.sync += [s.active.eq(1), s.now.eq(plan.now), s.loaded.eq(0)]
            m.d.sync += [s.got_a.eq(0), s.got_b.eq(0)]
        with m.Elif(s.active & s.walk.ended & ~beats.r_rdy & ~targets.r_rdy):
            m.d.sync += s.active.eq(0)
        return m

    def _build_reads(self, m: Module, s: Any) -> None:
        """Request the operands of a beat, one after the other, and put the beat into its queue."""
        now, walk, pending = s.now, s.walk, s.pending
        works = s.active & ~walk.ended
        combining = now.combines & (walk.block == REPEAT_BLOCKS)
        asks_a = works & now.one & ~s.got_a & ~combining
        asks_b = works & now.two & (s.got_a | ~now.one) & ~s.got_b
        asks_c = works & now.third & ~asks_a & ~asks_b
        last = Mux(now.third, asks_c, asks_b | ~now.two)
        room = s.beats.w_rdy & ~pending.full
        place = Mux(asks_a, walk.places[1], Mux(asks_c, walk.places[0], walk.places[2]))
        row = Signal(ROW_BITS)
        from_l0c = asks_a & now.from_l0c
        granted, go = Signal(name="operand_granted"), Signal(name="beat_complete")
        m.d.comb += [
            row.eq(place[PLACE_BITS:]),
            pending.row.eq(row),
            self.ub.request.eq((asks_a | asks_b | asks_c) & ~from_l0c & room & ~pending.found),
            self.ub.address.eq(row),
            self.l0c.request.eq(from_l0c & room),
            self.l0c.address.eq(row),
            granted.eq(self.ub.grant | self.l0c.grant),
            go.eq(works & room & Mux((now.one | now.two) & ~combining, granted & last, 1)),
            walk.step.eq(go),
        ]
        with m.If(go):
            m.d.sync += [s.got_a.eq(0), s.got_b.eq(0)]
        with m.Elif(granted):
            m.d.sync += [s.got_a.eq(1), s.got_b.eq(asks_b)]
        second_read, third_read = Signal(), Signal()
        m.d.sync += [second_read.eq(asks_b & granted), third_read.eq(asks_c & granted)]
        m.d.comb += [
            s.first.w_data.eq(Mux(self.l0c.valid, self.l0c.data, self.ub.data)),
            s.first.w_en.eq(self.l0c.valid | (self.ub.valid & ~second_read & ~third_read)),
            s.second.w_data.eq(self.ub.data),
            s.second.w_en.eq(self.ub.valid & second_read),
            s.third.w_data.eq(self.ub.data),
            s.third.w_en.eq(self.ub.valid & third_read),
            s.beats.w_en.eq(go),
            s.entering.mask.eq(walk.mask[: self.config.vector.lanes]),
            s.entering.place.eq(walk.lane),
            s.entering.half.eq(walk.places[1][PLACE_BITS - 1] & now.expands),
            s.entering.combines.eq(combining),
            s.entering.target.eq(walk.places[0]),
            pending.push.eq(go & ~now.to_register & (combining | ~now.combines)),
            pending.entering.eq(walk.places[0][PLACE_BITS:]),
        ]

    def _build_commands(self, m: Module, s: Any) -> None:
        """Give the vector unit a command for each beat; a selection first loads its bits."""
        lanes, now, head, unit = self.config.vector.lanes, s.now, s.head, s.unit
        loads, taken, used = (Signal(name=name) for name in ("loads_bits", "taken", "used"))
        together = Mux(
            now.wide,
            Cat(*s.partial),
            Cat(*(s.partial[i][:16] for i in range(REPEAT_BLOCKS))),
        )
        block = s.first.r_data
        operand = Mux(head.combines, together, Mux(head.half, block[BLOCK_BITS // 2 :], block))
        bits = Signal(lanes)
        mask = Mux(head.combines, Cat(*s.there), head.mask)
        command = unit.command.payload
        m.d.comb += [
            s.ready.eq(
                s.beats.r_rdy
                & s.targets.w_rdy
                & (~head.combines | ~s.targets.r_rdy)
                & (s.first.r_rdy | ~now.one | head.combines)
                & (s.second.r_rdy | ~now.two)
                & (s.third.r_rdy | ~now.third)
            ),
            loads.eq(now.selects & ~s.loaded),
            bits.eq(s.compared >> head.place),
            unit.command.valid.eq(s.ready & ~now.passes & ~now.extra),
            Value.cast(command.operation).eq(Mux(loads, Operation.LOAD_BITS.value, now.operation)),
            Value.cast(command.format).eq(now.wide),
            Value.cast(command.condition).eq(now.condition),
            Value.cast(command.rounding).eq(now.rounding),
            command.from_scalar.eq(now.from_scalar),
            command.scalar.eq(now.scalar),
            command.repeat.eq(1),
            command.mask.eq(Mux(loads | now.compares, (1 << lanes) - 1, mask)),
            unit.a.payload.eq(Mux(loads, bits, operand)),
            unit.a.valid.eq(s.ready & ~now.passes),
            unit.b.payload.eq(s.second.r_data),
            unit.b.valid.eq(s.ready & ~now.passes),
            taken.eq((unit.command.valid & unit.command.ready) | self._build_extra(m, s)),
            used.eq((taken & ~loads) | (s.ready & now.passes & self.w.grant)),
            s.beats.r_en.eq(used),
            s.first.r_en.eq(used & now.one & ~head.combines),
            s.second.r_en.eq(used & now.two),
            s.third.r_en.eq(used & now.third),
            s.targets.w_en.eq(taken & ~loads),
            s.targets.w_data.eq(s.beats.r_data),
        ]
        with m.If(taken):
            m.d.sync += s.loaded.eq(loads)

    def _build_extra(self, m: Module, s: Any) -> Value:
        """Give the extension its blocks; return 1 if it takes them."""
        now, i = s.now, s.extension.i
        m.d.comb += [i.valid.eq(s.ready & now.extra), i.payload.a.eq(s.first.r_data)]
        m.d.comb += [i.payload.b.eq(s.second.r_data), i.payload.c.eq(s.third.r_data)]
        m.d.comb += Value.cast(i.payload.operation).eq(now.extra_operation)
        for name in ("wide", "relu", "arithmetic", "nearest", "amount", "from_scalar", "scalar"):
            m.d.comb += getattr(i.payload, name).eq(getattr(now, name))
        return i.valid & i.ready

    def _build_results(self, m: Module, s: Any) -> None:
        """Write results; one with fewer bytes is repeated, so that its place moves enables only."""
        lanes, now, head, done = self.config.vector.lanes, s.now, s.head, s.done
        result = Signal(BLOCK_BITS, name="result")
        enable = Signal(BLOCK_BYTES, name="result_enable")
        target = Signal(ADDRESS_BITS, name="result_place")
        o = s.unit.o.payload
        halves = [o.data[16 * i : 16 * i + 16] for i in range(BLOCK_BITS // 32)]
        keeps = now.to_register | (now.combines & ~done.combines)  # in a register of this unit
        with m.If(now.passes):
            m.d.comb += [
                result.eq(s.first.r_data),
                enable.eq(Cat(*(head.mask[i].replicate(2) for i in range(lanes)))),
                target.eq(head.target),
            ]
        with m.Else():
            m.d.comb += [enable.eq(o.enable << done.target[:PLACE_BITS]), target.eq(done.target)]
            with m.If(now.compares):
                m.d.comb += result.eq(o.data[:16].replicate(BLOCK_BITS // 16))
                with m.If(now.wide):
                    m.d.comb += result.eq(o.data[:8].replicate(BLOCK_BYTES))
            with m.Elif(now.extra):
                by_lane = (Cat(*(done.mask[i].replicate(n) for i in range(lanes))) for n in (2, 4))
                m.d.comb += result.eq(s.extension.o.payload)
                m.d.comb += enable.eq(Mux(now.wide, *reversed([*by_lane])))
            with m.Elif(now.shrinks):
                m.d.comb += result.eq(Cat(*(_positive(x, now.relu) for x in halves)).replicate(2))
            with m.Elif(now.reduces):
                self._build_reduced(m, now, done, o, s.partial_lane, result, enable)
            with m.Else():
                m.d.comb += result.eq(o.data)
        there = Mux(now.extra, s.extension.o.valid, s.unit.o.valid) & s.targets.r_rdy
        leaves = s.targets.r_rdy & (self.w.grant | keeps) & ~now.passes
        m.d.comb += [
            self.w.address.eq(target[PLACE_BITS:]),
            self.w.data.eq(result),
            self.w.enable.eq(enable),
            self.w.request.eq(Mux(now.passes, s.ready, there & ~keeps)),
            s.unit.o.ready.eq(leaves & ~now.extra),
            s.extension.o.ready.eq(leaves & now.extra),
            s.targets.r_en.eq(there & leaves),
            s.pending.pop.eq(self.w.grant),
        ]

    def _build_registers(self, m: Module, s: Any) -> None:
        """Keep the bits of comparisons, and the results of the blocks of a reduction."""
        lanes, now, done, o = self.config.vector.lanes, s.now, s.done, s.unit.o.payload
        with m.If(now.to_register & s.targets.r_en):
            on, fresh = Signal(MASK_BITS), Signal(MASK_BITS)
            valid = Mux(now.wide, (1 << lanes // 2) - 1, (1 << lanes) - 1)
            m.d.comb += [
                on.eq((done.mask & valid) << done.place),
                fresh.eq(o.data[:lanes] << done.place),
            ]
            m.d.sync += s.compared.eq((s.compared & ~on) | (fresh & on))
        with m.If(now.combines & s.targets.r_en & ~done.combines):
            block = Mux(now.wide, done.place[3:6], done.place[4:7])
            m.d.sync += [
                s.partial[block].eq(o.data[:32]),
                s.partial_lane[block].eq(Mux(now.wide, o.data[32:40], o.data[16:24])),
                s.there[block].eq(o.enable[0]),
            ]

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
        with m.If(now.indexed), m.Switch(now.order):
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


def _positive(element: Value, relu: Value) -> Value:
    """Return an FP16 element, or +0 with ``relu`` if it is negative, -0 or a NaN."""
    lost = element[15] | (element == FORMATS["fp16"].canonical_nan)
    return Mux(relu & lost, 0, element)[:16]
