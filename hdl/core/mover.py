"""A unit that moves: bursts, matrices to fractals, fractals, fills."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import CODE_BITS, ENCODINGS

from .ports import (
    ADDRESS_BITS,
    BLOCK_BITS,
    BLOCK_BYTES,
    PLACE_BITS,
    ROW_BITS,
    ReadPort,
    WritePort,
    rotate,
)
from .record import RECORD_BITS, dtype_code, is_op, length, part, signed_part, tail

#: Nested levels of a transfer around its runs of bytes.
LEVELS = 3
COUNT_BITS = 32


@dataclass(frozen=True)
class Level:
    """A level of a transfer: its number of steps, and the distance of a step in bytes."""

    count: Value
    source: Value
    target: Value


class Mover(wiring.Component):
    """Unit that moves bytes from one memory to others.

    A transfer is a run of bytes that is repeated in three nested levels. In each cycle the unit
    moves a piece of a run that lies in one block of the source and one of the target: 32 bytes if
    both are aligned alike.

    Parameters
    ----------
    ops : tuple of str
        The operations of the unit.
    ahead : int
        Blocks that may be requested before the first of them is written.

    Members
    -------
    i : In(stream.Signature(512))
        Instructions.
    idle : Out(1)
        All instructions have ended.
    r : Out(ReadPort())
        The memory of the source.
    w : Out(WritePort())
        The memories of the target.
    target : Out(4)
        The code of the buffer that ``w`` writes to.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        r: Any
        w: Any
        target: Signal

    def __init__(self, *, ops: tuple[str, ...], ahead: int = 4):
        self.ops, self.ahead = ops, ahead
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "r": Out(ReadPort()),
                "w": Out(WritePort()),
                "target": Out(CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = Signal()
        m.d.comb += self.i.ready.eq(~active)
        plan = _Plan(m, self.i.payload, self.ops)
        start = Signal()
        m.d.comb += start.eq(self.i.valid & self.i.ready)

        # The state of the transfer: a place in the run, and the beginnings of the levels.
        count = [Signal(COUNT_BITS, name=f"count{n}") for n in range(LEVELS)]
        index = [Signal(COUNT_BITS, name=f"index{n}") for n in range(LEVELS)]
        steps = [
            [Signal(ADDRESS_BITS, name=f"{side}_step{n}") for n in range(LEVELS)]
            for side in ("source", "target")
        ]
        begin = [
            [Signal(ADDRESS_BITS, name=f"{side}_begin{n}") for n in range(LEVELS)]
            for side in ("source", "target")
        ]
        place = [Signal(ADDRESS_BITS, name=f"{side}_place") for side in ("source", "target")]
        run, left, short = (Signal(ADDRESS_BITS, name=name) for name in ("run", "left", "short"))
        fills, pads = Signal(), Signal()
        pattern = Signal(BLOCK_BITS)

        # The piece of this cycle.
        size = Signal(PLACE_BITS + 1)
        ends = Signal()
        room = [BLOCK_BYTES - p[:PLACE_BITS] for p in place]
        within = Mux(left < BLOCK_BYTES, left[: PLACE_BITS + 1], BLOCK_BYTES)
        nearer = Mux(fills | (room[1] < room[0]), room[1], room[0])
        m.d.comb += [size.eq(Mux(within < nearer, within, nearer)), ends.eq(size == left)]

        layout = data.StructLayout(
            {
                "row": ROW_BITS,
                "low": PLACE_BITS,
                "size": PLACE_BITS + 1,
                "turn": PLACE_BITS,
                "pads": 1,
            }
        )
        m.submodules.pieces = pieces = SyncFIFO(width=layout.size, depth=self.ahead)
        m.submodules.blocks = blocks = SyncFIFO(width=BLOCK_BITS, depth=self.ahead)
        entering = data.View(layout, pieces.w_data)
        go = Signal()
        m.d.comb += [
            self.r.request.eq(active & pieces.w_rdy & ~fills),
            self.r.address.eq(place[0][PLACE_BITS:]),
            go.eq(active & pieces.w_rdy & (fills | self.r.grant)),
            pieces.w_en.eq(go),
            entering.row.eq(place[1][PLACE_BITS:]),
            entering.low.eq(place[1][:PLACE_BITS]),
            entering.size.eq(size),
            entering.turn.eq(place[1][:PLACE_BITS] - place[0][:PLACE_BITS]),
            entering.pads.eq(pads & ends),
            blocks.w_data.eq(self.r.data),
            blocks.w_en.eq(self.r.valid),
        ]
        self._build_steps(m, go, ends, size, count, index, steps, begin, place, run, left, active)
        with m.If(pads & go & ends):
            # The last block of a row is shorter.
            with m.If((count[2] == 1) | (index[2] + 2 == count[2])):
                m.d.sync += left.eq(short)
        with m.If(start):
            m.d.sync += [
                active.eq(1),
                fills.eq(plan.fills),
                pads.eq(plan.pads),
                pattern.eq(plan.pattern),
                run.eq(plan.run),
                left.eq(Mux(plan.pads & (plan.levels[2].count == 1), plan.short, plan.run)),
                short.eq(plan.short),
                self.target.eq(plan.buffer),
            ]
            for side, first in enumerate((plan.source, plan.to)):
                m.d.sync += place[side].eq(first)
                m.d.sync += [begin[side][n].eq(first) for n in range(LEVELS)]
            for n, level in enumerate(plan.levels):
                m.d.sync += [
                    count[n].eq(level.count),
                    index[n].eq(0),
                    steps[0][n].eq(level.source),
                    steps[1][n].eq(level.target),
                ]

        leaving = data.View(layout, pieces.r_data)
        turned = rotate(m, blocks.r_data, leaving.turn, "turned")
        taken = Signal(BLOCK_BYTES)  # bytes of the piece, from byte 0
        m.d.comb += taken.eq((1 << leaving.size) - 1)
        zeros = Cat(*(taken[i].replicate(8) for i in range(BLOCK_BYTES)))
        moved = Signal(BLOCK_BITS)
        # With padding, the target is aligned, and the piece is at the front or ends the block.
        keep = (zeros << (leaving.low << 3))[:BLOCK_BITS]
        m.d.comb += [
            moved.eq(Mux(fills, pattern, Mux(leaving.pads, turned & keep, turned))),
            self.w.address.eq(leaving.row),
            self.w.data.eq(moved),
            self.w.enable.eq(
                Mux(leaving.pads, ~Const(0, BLOCK_BYTES), taken) << leaving.low
            ),
            self.w.request.eq(pieces.r_rdy & (fills | blocks.r_rdy)),
            pieces.r_en.eq(self.w.grant),
            blocks.r_en.eq(self.w.grant & ~fills),
            self.idle.eq(~active & ~pieces.r_rdy),
        ]
        return m

    def _build_steps(
        self,
        m: Module,
        go: Value,
        ends: Value,
        size: Value,
        count: list,
        index: list,
        steps: list,
        begin: list,
        place: list,
        run: Value,
        left: Value,
        active: Value,
    ) -> None:
        """Advance in the run, and at its end in the innermost level that has not ended."""
        with m.If(go & ~ends):
            m.d.sync += [p.eq(p + size) for p in place]
            m.d.sync += left.eq(left - size)
        with m.If(go & ends):
            m.d.sync += left.eq(run)
            last = [index[n] + 1 == count[n] for n in range(LEVELS)]
            with m.If(~last[2]):
                self._advance(m, 2, index, steps, begin, place)
            with m.Elif(~last[1]):
                self._advance(m, 1, index, steps, begin, place)
            with m.Elif(~last[0]):
                self._advance(m, 0, index, steps, begin, place)
            with m.Else():
                m.d.sync += active.eq(0)

    @staticmethod
    def _advance(m: Module, n: int, index: list, steps: list, begin: list, place: list) -> None:
        m.d.sync += index[n].eq(index[n] + 1)
        m.d.sync += [index[inner].eq(0) for inner in range(n + 1, LEVELS)]
        for side in range(2):
            following = begin[side][n] + steps[side][n]
            m.d.sync += place[side].eq(following)
            m.d.sync += [begin[side][inner].eq(following) for inner in range(n, LEVELS)]


class _Plan:
    """The transfer of an instruction."""

    def __init__(self, m: Module, record: Value, ops: tuple[str, ...]):
        self.source, self.to, self.run, self.short = (
            Signal(ADDRESS_BITS, name=f"plan_{name}") for name in ("source", "to", "run", "short")
        )
        self.fills, self.pads = Signal(name="plan_fills"), Signal(name="plan_pads")
        self.pattern = Signal(BLOCK_BITS, name="plan_pattern")
        self.buffer = Signal(CODE_BITS, name="plan_buffer")
        self.levels = [
            Level(
                Signal(COUNT_BITS, name=f"plan_count{n}", init=1),
                Signal(ADDRESS_BITS, name=f"plan_source{n}"),
                Signal(ADDRESS_BITS, name=f"plan_target{n}"),
            )
            for n in range(LEVELS)
        ]
        # The two operands are at the same place in all moves.
        m.d.comb += [
            self.source.eq(part(record, "copy", "src")),
            self.to.eq(part(record, "copy", "dst")),
            self.buffer.eq(part(record, "copy", "dst.buffer")),
        ]
        for op in ops:
            with m.If(is_op(record, op)):
                getattr(self, f"_{op}")(m, record)

    def _level(self, m: Module, n: int, count: Any, source: Any, target: Any) -> None:
        level = self.levels[n]
        m.d.comb += [level.count.eq(count), level.source.eq(source), level.target.eq(target)]

    def _copy(self, m: Module, record: Value) -> None:
        m.d.comb += self.run.eq(part(record, "copy", "burst_bytes"))
        strides = [signed_part(record, "copy", f"{side}_stride") for side in ("src", "dst")]
        self._level(m, 1, part(record, "copy", "bursts"), *strides)

    def _nd2nz(self, m: Module, record: Value) -> None:
        def get(name: str) -> Value:
            return part(record, "nd2nz", name)

        dtype = get("src.dtype")
        width = Signal(2, name="nd2nz_width")
        wide = [dtype_code(name) for name in ("fp32", "int32", "uint32")]
        narrow = [dtype_code(name) for name in ("int8", "uint8")]
        with m.If(Cat(*(dtype == code for code in wide)).any()):
            m.d.comb += width.eq(2)
        with m.Elif(~Cat(*(dtype == code for code in narrow)).any()):
            m.d.comb += width.eq(1)
        nbytes = Signal(ADDRESS_BITS, name="nd2nz_bytes")
        m.d.comb += nbytes.eq(get("columns") << width)
        last = (nbytes - 1)[:PLACE_BITS]
        self._level(m, 0, get("matrices"), get("src_matrix_stride"), get("dst_matrix_stride"))
        self._level(m, 1, get("rows"), get("src_row_stride"), get("dst_row_stride"))
        blocks = (nbytes + BLOCK_BYTES - 1)[PLACE_BITS:]
        self._level(m, 2, blocks, BLOCK_BYTES, get("dst_c0_stride"))
        m.d.comb += [self.run.eq(BLOCK_BYTES), self.short.eq(last + 1), self.pads.eq(1)]

    def _load(self, m: Module, record: Value) -> None:
        def get(name: str) -> Value:
            return part(record, "load", name)

        level = 1
        m.d.comb += self.run.eq(512)
        self._level(m, 0, get("repeat"), get("src_stride"), get("dst_stride"))
        with m.If(get("transpose")):
            # Elements of 16 bits, one by one.
            m.d.comb += self.run.eq(2)
            self._level(m, level, 16, BLOCK_BYTES, 2)
            self._level(m, level + 1, 16, 2, BLOCK_BYTES)

    def _fill(self, m: Module, record: Value) -> None:
        encoding = ENCODINGS["fill"]
        words = tail(record, encoding)
        m.d.comb += [
            self.fills.eq(1),
            self.run.eq(part(record, "fill", "run")),
        ]
        value = part(record, "fill", "value")
        dtype = part(record, "fill", "dst.dtype")
        narrow = [dtype_code(name) for name in ("int8", "uint8")]
        middle = [dtype_code(name) for name in ("fp16", "bf16", "int16", "uint16")]
        with m.If(Cat(*(dtype == code for code in narrow)).any()):
            m.d.comb += self.pattern.eq(value[:8].replicate(BLOCK_BYTES))
        with m.Elif(Cat(*(dtype == code for code in middle)).any()):
            m.d.comb += self.pattern.eq(value[:16].replicate(BLOCK_BYTES // 2))
        with m.Else():
            m.d.comb += self.pattern.eq(value[:32].replicate(BLOCK_BYTES // 4))
        for n in range(LEVELS):
            word = words[64 * n : 64 * n + 64]
            with m.If(length(record) > encoding.words + n):
                self._level(m, n, word[32:], 0, word[:32])
