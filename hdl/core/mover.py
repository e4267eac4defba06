"""A unit that moves: bursts, matrices to fractals, fractals, fills."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import CODE_BITS

from .ports import (
    ADDRESS_BITS,
    BLOCK_BITS,
    BLOCK_BYTES,
    ReadPort,
    WritePort,
    bits,
    rotate,
)
from .record import RECORD_BITS
from .transfer import COUNT_BITS, LEVELS, Transfer


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

    def __init__(self, *, ops: tuple[str, ...], ahead: int = 4, blocks: int = 1):
        if blocks > 1 and "nd2nz" in ops:
            raise ValueError(f"blocks must be 1 with nd2nz, not {blocks}")
        self.ops, self.ahead = ops, ahead
        self.line_bytes = blocks * BLOCK_BYTES
        self.place_bits = bits(self.line_bytes)
        # A piece of a run on its way: its line and byte in the target, its bytes, by how many bytes
        # the source's line is turned, and if zeros follow.
        place = self.place_bits
        self.piece = data.StructLayout(
            {"row": ADDRESS_BITS - place, "low": place, "size": place + 1, "turn": place, "pads": 1}
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
        sides = ("source", "target")

        def levels(name: str, bits: int = ADDRESS_BITS) -> list[Signal]:
            return [Signal(bits, name=f"{name}{n}") for n in range(LEVELS)]

        # The state of the transfer: a place in the run, and the beginnings of the levels.
        s = SimpleNamespace(
            active=Signal(name="active"),
            count=levels("count", COUNT_BITS),
            index=levels("index", COUNT_BITS),
            steps=[levels(f"{side}_step") for side in sides],
            begin=[levels(f"{side}_begin") for side in sides],
            place=[Signal(ADDRESS_BITS, name=f"{side}_place") for side in sides],
            run=Signal(ADDRESS_BITS, name="run"),
            left=Signal(ADDRESS_BITS, name="left"),
            short=Signal(ADDRESS_BITS, name="short"),
            fills=Signal(name="fills"),
            pads=Signal(name="pads"),
            turned=Signal(name="transposes"),
            pattern=Signal(BLOCK_BITS, name="pattern"),
            size=Signal(self.place_bits + 1, name="piece_size"),
            ends=Signal(name="run_ends"),
            go=Signal(name="go"),
            pieces=pieces,
            blocks=blocks,
        )
        self._build_piece(m, s)
        self._build_steps(m, s)
        # The last block of a row is shorter.
        last = (s.count[2] == 1) | (s.index[2] + 2 == s.count[2])
        with m.If(s.pads & s.go & s.ends & last):
            m.d.sync += s.left.eq(s.short)
        m.d.comb += [
            self.i.ready.eq(~s.active),
            self.idle.eq(~s.active & ~pieces.r_rdy),
        ]
        transfer = Transfer(m, self.i.payload, self.ops)
        with m.If(self.i.valid & self.i.ready):
            self._build_start(m, s, transfer)
        self._build_writes(m, s)
        return m

    def _build_piece(self, m: Module, s: Any) -> None:
        """Request the line of the next piece: the bytes that lie in one line on both sides."""
        source, target = s.place
        low, line = self.place_bits, self.line_bytes
        room = [line - place[:low] for place in s.place]
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
            entering.turn.eq(target[:low] - source[:low]),
            entering.pads.eq(s.pads & s.ends),
            s.blocks.w_data.eq(self.r.data),
            s.blocks.w_en.eq(self.r.valid),
        ]

    def _build_start(self, m: Module, s: Any, transfer: Transfer) -> None:
        alone = transfer.pads & (transfer.levels[2].count == 1)
        counts = Cat(*(level.count != 0 for level in transfer.levels))
        m.d.sync += [
            s.active.eq((transfer.run != 0) & counts.all()),
            s.fills.eq(transfer.fills),
            s.pads.eq(transfer.pads),
            s.turned.eq(transfer.turned),
            s.pattern.eq(transfer.pattern),
            s.run.eq(transfer.run),
            s.left.eq(Mux(alone, transfer.short, transfer.run)),
            s.short.eq(transfer.short),
            self.target.eq(transfer.buffer),
        ]
        for side, first in enumerate((transfer.source, transfer.to)):
            m.d.sync += s.place[side].eq(first)
            m.d.sync += [s.begin[side][n].eq(first) for n in range(LEVELS)]
        for n, level in enumerate(transfer.levels):
            m.d.sync += [
                s.count[n].eq(level.count),
                s.index[n].eq(0),
                s.steps[0][n].eq(level.source),
                s.steps[1][n].eq(level.target),
            ]

    def _build_writes(self, m: Module, s: Any) -> None:
        """Turn the line of the source to its place in the target, and write its bytes."""
        line = self.line_bytes
        leaving = data.View(self.piece, s.pieces.r_data)
        turned = rotate(m, s.blocks.r_data, leaving.turn, "turned")
        taken = Signal(line)  # bytes of the piece, from byte 0
        ones = Cat(*(taken[i].replicate(8) for i in range(line)))
        # With padding, the target is aligned, and the piece ends the block.
        kept = (ones << (leaving.low << 3))[: 8 * line]
        every = ~Const(0, line)
        pattern = s.pattern.replicate(line // BLOCK_BYTES)
        padded = Mux(leaving.pads, turned & kept, turned) if "nd2nz" in self.ops else turned
        m.d.comb += [
            taken.eq((1 << leaving.size) - 1),
            self.w.address.eq(leaving.row),
            self.w.data.eq(Mux(s.fills, pattern, padded)),
            self.w.enable.eq(Mux(leaving.pads, every, taken) << leaving.low),
            self.w.turned.eq(s.turned),
            self.w.request.eq(s.pieces.r_rdy & (s.fills | s.blocks.r_rdy)),
            s.pieces.r_en.eq(self.w.grant),
            s.blocks.r_en.eq(self.w.grant & ~s.fills),
        ]

    def _build_steps(self, m: Module, s: Any) -> None:
        """Advance in the run, and at its end in the innermost level that has not ended."""
        with m.If(s.go & ~s.ends):
            m.d.sync += [place.eq(place + s.size) for place in s.place]
            m.d.sync += s.left.eq(s.left - s.size)
        with m.If(s.go & s.ends):
            m.d.sync += s.left.eq(s.run)
            last = [s.index[n] + 1 == s.count[n] for n in range(LEVELS)]
            with m.If(~last[2]):
                self._advance(m, s, 2)
            with m.Elif(~last[1]):
                self._advance(m, s, 1)
            with m.Elif(~last[0]):
                self._advance(m, s, 0)
            with m.Else():
                m.d.sync += s.active.eq(0)

    @staticmethod
    def _advance(m: Module, s: Any, n: int) -> None:
        m.d.sync += s.index[n].eq(s.index[n] + 1)
        m.d.sync += [s.index[inner].eq(0) for inner in range(n + 1, LEVELS)]
        for side in range(2):
            following = s.begin[side][n] + s.steps[side][n]
            m.d.sync += s.place[side].eq(following)
            m.d.sync += [s.begin[side][inner].eq(following) for inner in range(n, LEVELS)]
