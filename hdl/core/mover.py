"""A unit that moves: bursts, matrices to fractals, fractals, fills."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import CODE_BITS

from .ports import (
    ADDRESS_BITS,
    BLOCK_BYTES,
    ReadPort,
    WritePort,
    bits,
    rotate,
)
from .record import RECORD_BITS
from .transfer import COUNT_BITS, LEVELS_OF, PATTERN_BITS, Transfer


class Mover(wiring.Component):
    """Unit that moves bytes from one memory to others.

    A transfer is a run of bytes that is repeated in three nested levels. In each cycle the unit
    moves a piece of a run that lies in one line of the source and one of the target: a whole line
    if both are aligned alike.

    Parameters
    ----------
    ops : tuple of str
        The operations of the unit.
    ahead : int
        Lines that may be requested before the first of them is written.
    blocks : int
        Blocks of 32 bytes of a line. A unit with ``nd2nz`` has lines of one block.
    spans : tuple of int
        Bits of an address in bytes in the largest memories of the source and of the target. An
        address has one more bit, unless it has all 32, and that bit is set beyond such a memory: a
        step from a place in memory leads to a place in memory or has it set.
    grain : int
        Bytes of which all places of a transfer but those of a fill are multiples, a power of two.

    Members
    -------
    i : In(stream.Signature(512))
        Instructions.
    idle : Out(1)
        All instructions have ended.
    r : Out(ReadPort(blocks))
        The memory of the source.
    w : Out(WritePort(blocks, turns=True))
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

    def __init__(
        self,
        *,
        ops: tuple[str, ...],
        ahead: int = 4,
        blocks: int = 1,
        spans: tuple[int, int] = (ADDRESS_BITS, ADDRESS_BITS),
        grain: int = 1,
    ):
        if blocks > 1 and "nd2nz" in ops:
            raise ValueError(f"blocks must be 1 with nd2nz, not {blocks}")
        self.ops, self.ahead, self.spans = ops, ahead, spans
        self.grain_bits = bits(grain)
        # The levels of the operations, from the outermost.
        self.levels = tuple(sorted({level for op in ops for level in LEVELS_OF[op]}))
        self.line_bytes = blocks * BLOCK_BYTES
        self.place_bits = bits(self.line_bytes)
        # A piece of a run on its way: its line and byte in the target, its bytes, by how many bytes
        # the source's line is turned, and if zeros follow.
        place = self.place_bits
        # Bits of an address on both sides.
        self.widths = tuple(min(span + 1, ADDRESS_BITS) for span in spans)
        row, turn = self.widths[1] - place, place - self.grain_bits
        self.piece = data.StructLayout(
            {"row": row, "low": place, "size": place + 1, "turn": turn, "pads": 1}
        )
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "r": Out(ReadPort(blocks)),
                "w": Out(WritePort(blocks, turns=True)),
                "target": Out(CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pieces = pieces = SyncFIFO(width=self.piece.size, depth=self.ahead)
        m.submodules.blocks = blocks = SyncFIFO(width=8 * self.line_bytes, depth=self.ahead)
        sides = dict(zip(("source", "target"), self.widths, strict=True))
        # A run lies in both memories, or ends beyond one of them.
        run_bits = min(*self.spans, ADDRESS_BITS - 1) + 1

        def levels(name: str, width: int) -> dict[int, Signal]:
            return {n: Signal(width, name=f"{name}{n}") for n in self.levels}

        # The state of the transfer: a place in the run, and the beginnings of the levels.
        s = SimpleNamespace(
            active=Signal(name="active"),
            count=levels("count", COUNT_BITS),
            rest=levels("rest", COUNT_BITS),
            steps=[levels(f"{side}_step", width) for side, width in sides.items()],
            far=[levels(f"{side}_far", 1) for side in sides],
            begin=[levels(f"{side}_begin", width) for side, width in sides.items()],
            place=[Signal(width, name=f"{side}_place") for side, width in sides.items()],
            run=Signal(run_bits, name="run"),
            left=Signal(run_bits, name="left"),
            short=Signal(self.place_bits + 1, name="short"),
            fills=Signal(name="fills"),
            pads=Signal(name="pads"),
            turned=Signal(name="transposes"),
            pattern=Signal(PATTERN_BITS, name="pattern"),
            size=Signal(self.place_bits + 1, name="piece_size"),
            ends=Signal(name="run_ends"),
            go=Signal(name="go"),
            starts=Signal(name="starts"),
            writes=Signal(name="writes"),
            pieces=pieces,
            blocks=blocks,
        )
        self._build_piece(m, s)
        m.d.comb += [
            self.i.ready.eq(~s.active),
            s.starts.eq(self.i.valid & self.i.ready),
            self.idle.eq(~s.active & ~pieces.r_rdy & ~s.writes),
        ]
        transfer = Transfer(m, self.i.payload, self.ops)
        self._build_steps(m, s, transfer)
        with m.If(s.starts):
            self._build_start(m, s, transfer)
        self._build_writes(m, s)
        return m

    def _beyond(self, side: int, far: Value) -> Value:
        """Return an address that is beyond the memory if ``far`` is 1, and else 0."""
        return Cat(Const(0, self.widths[side] - 1), far)

    def _build_piece(self, m: Module, s: Any) -> None:
        """Request the line of the next piece: the bytes that lie in one line on both sides."""
        source, target = s.place
        low, line, grain = self.place_bits, self.line_bytes, self.grain_bits
        room = [line - place for place in (Cat(Const(0, grain), source[grain:low]), target[:low])]
        within = Mux(s.left < line, s.left[: low + 1], line)
        nearer = Mux(s.fills | (room[1] < room[0]), room[1], room[0])
        entering = data.View(self.piece, s.pieces.w_data)
        m.d.comb += [
            s.size.eq(Mux(within < nearer, within, nearer)),
            s.ends.eq(s.size == s.left),
            self.r.request.eq(s.active & s.pieces.w_rdy & ~s.fills),
            self.r.address.eq(source[low:]),
            s.go.eq(s.active & s.pieces.w_rdy & (s.fills | self.r.grant)),
            s.pieces.w_en.eq(s.go),
            entering.row.eq(target[low:]),
            entering.low.eq(target[:low]),
            entering.size.eq(s.size),
            entering.turn.eq(target[grain:low] - source[grain:low]),
            entering.pads.eq(s.pads & s.ends),
            s.blocks.w_data.eq(self.r.data),
            s.blocks.w_en.eq(self.r.valid),
        ]

    def _build_start(self, m: Module, s: Any, transfer: Transfer) -> None:
        counts = Cat(*(level.count != 0 for level in transfer.levels))
        size = len(s.run)
        run = transfer.run[:size] | transfer.run[size:].any().replicate(size)
        m.d.sync += [
            s.active.eq((transfer.run != 0) & counts.all()),
            s.fills.eq(transfer.fills),
            s.pads.eq(transfer.pads),
            s.turned.eq(transfer.turned),
            s.pattern.eq(transfer.pattern),
            s.run.eq(run),
            s.left.eq(run),
            s.short.eq(transfer.short),
            self.target.eq(transfer.buffer),
        ]
        for n in self.levels:
            level = transfer.levels[n]
            m.d.sync += [
                s.count[n].eq(level.count),
                s.rest[n].eq(level.count),
            ]
            for side, step in enumerate((level.source, level.target)):
                width = self.widths[side]
                high = step[width - 1 :]  # equal bits, if the step has no more than the width
                m.d.sync += [s.steps[side][n].eq(step), s.far[side][n].eq(high.any() & ~high.all())]
        if "nd2nz" in self.ops:
            with m.If(transfer.pads & (transfer.levels[2].count == 1)):
                m.d.sync += s.left.eq(transfer.short)

    def _build_writes(self, m: Module, s: Any) -> None:
        """Turn the line of the source to its place in the target, and write it a cycle later.

        A LUT of four inputs has one to spare in each level of the rotation. It clears the line in
        the first level, if the pattern is written, adds the pattern in a level whose turns leave it
        as it is, and clears what is padded in the last level. With a grain of the pattern or more,
        no turn changes it.
        """
        line = self.line_bytes
        leaving = data.View(self.piece, s.pieces.r_data)
        value: Value = s.blocks.r_data
        if "fill" in self.ops:
            value = value & ~s.fills.replicate(8 * line)
        pattern = (s.pattern & s.fills.replicate(PATTERN_BITS)).replicate(8 * line // PATTERN_BITS)
        levels = range(self.grain_bits, self.place_bits)
        after = levels[-2] if self.grain_bits < bits(PATTERN_BITS // 8) else None
        if "fill" in self.ops and after is None:
            value = value | pattern
        for level in levels:
            turns = leaving.turn[level - self.grain_bits]
            value = rotate(m, value, turns, f"turned{level}_", step=1 << level)
            if "fill" in self.ops and level == after:
                value = value | pattern
        # The piece ends before this byte.
        end = Signal(self.place_bits + 1, name="piece_end")
        m.d.comb += end.eq(leaving.low + leaving.size)
        every = ~Const(0, line)
        before = ~(every << end)[:line]
        written = before
        if "nd2nz" in self.ops:
            # With padding, the target is aligned, and zeros follow to the end of the block.
            written = before | leaving.pads.replicate(line)
            kept = before | ~leaving.pads.replicate(line)
            value = value & Cat(*(kept[i].replicate(8) for i in range(line)))
        free, there = Signal(name="write_free"), Signal(name="piece_there")
        m.d.comb += [
            there.eq(s.pieces.r_rdy & (s.fills | s.blocks.r_rdy)),
            free.eq(~s.writes | self.w.grant),
            s.pieces.r_en.eq(there & free),
            s.blocks.r_en.eq(there & free & ~s.fills),
            self.w.request.eq(s.writes),
            self.w.turned.eq(s.turned),
        ]
        with m.If(free):
            m.d.sync += [
                s.writes.eq(there),
                self.w.address.eq(leaving.row),
                self.w.data.eq(value),
                self.w.enable.eq(written & (every << leaving.low)[:line]),
            ]

    def _build_steps(self, m: Module, s: Any, transfer: Transfer) -> None:
        """Advance in the run, and at its end in the innermost level that has not ended."""
        next_run = s.go & s.ends
        with m.If(s.go & ~s.ends):
            m.d.sync += s.left.eq(s.left - s.size)
        with m.If(next_run):
            m.d.sync += s.left.eq(s.run)
            if "nd2nz" in self.ops:
                # The last block of a row is shorter.
                last = (s.count[2] == 1) | (s.rest[2] == 2)
                with m.If(s.pads & last):
                    m.d.sync += s.left.eq(s.short)
        # From the innermost level: the first that has not ended advances.
        ended: Value = Const(1, 1)
        advances = {}
        for n in reversed(self.levels):
            more = Signal(name=f"more{n}")
            m.d.comb += more.eq(s.rest[n] != 1)
            advances[n] = Signal(name=f"advances{n}")
            m.d.comb += advances[n].eq(ended & more)
            with m.If(next_run & ended):
                again = s.count[n] if n != self.levels[0] else 0
                m.d.sync += s.rest[n].eq(Mux(more, s.rest[n] - 1, again))
            ended = ended & ~more
        with m.If(next_run & ended):
            m.d.sync += s.active.eq(0)
        for side, first in enumerate((transfer.source, transfer.to)):
            place, begin = s.place[side], s.begin[side]
            steps = [
                (begin[n] + s.steps[side][n])[: len(place)] | self._beyond(side, s.far[side][n])
                for n in self.levels
            ]
            following = Signal.like(place, name=f"following{side}")
            m.d.comb += following.eq(steps[0])
            for n, stepped in zip(self.levels[1:], steps[1:], strict=True):
                with m.If(advances[n]):
                    m.d.comb += following.eq(stepped)
            with m.If(s.starts):
                far = first[len(place) :].any()
                m.d.comb += following.eq(first[: len(place)] | self._beyond(side, far))
            with m.If(s.starts | next_run):
                m.d.sync += place.eq(following)
            with m.Elif(s.go):
                m.d.sync += place.eq(place + s.size)
            for n in self.levels:
                # A step of a level begins its inner levels again.
                outer = Cat(*(advances[k] for k in self.levels if k <= n)).any()
                with m.If(s.starts | (next_run & outer)):
                    m.d.sync += begin[n].eq(following)
