"""Transposition of 16 × 16 elements in unit V."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS, CODE_BITS

from .ports import BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, ROW_BITS, ReadPort, WritePort
from .record import RECORD_BITS, part

#: Rows of a fractal, and bits of an element.
_ROWS, _ELEMENT = 16, 16


class Transposer(wiring.Component):
    """Transposition of a fractal of elements of 16 bits in UB.

    It reads the 16 rows one by one, and then writes the columns.

    Members
    -------
    i, idle, ub, w, target
        As those of a ``LaneFeeder``.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        w: Any
        target: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "ub": Out(ReadPort()),
                "w": Out(WritePort()),
                "target": Out(CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        record = self.i.payload
        reads, writes = Signal(), Signal()
        asked, came, written = (Signal(4, name=name) for name in ("asked", "came", "written"))
        source, target = Signal(ROW_BITS), Signal(ROW_BITS)
        # A row goes in at the end of the list of rows. A column leaves at their lowest elements.
        rows = [Signal(BLOCK_BITS, name=f"row{n}") for n in range(_ROWS)]
        active = Signal()
        m.d.comb += [
            self.target.eq(BUFFERS.index("UB")),
            self.idle.eq(~active),
            self.i.ready.eq(~active),
            self.ub.request.eq(reads),
            self.ub.address.eq(source + asked),
            self.w.request.eq(writes),
            self.w.address.eq(target + written),
            self.w.data.eq(Cat(*(row[:_ELEMENT] for row in rows))),
            self.w.enable.eq((1 << BLOCK_BYTES) - 1),
        ]
        with m.If(self.i.valid & ~active):
            m.d.sync += [
                active.eq(1),
                reads.eq(1),
                source.eq(part(record, "vtranspose", "src")[PLACE_BITS:]),
                target.eq(part(record, "vtranspose", "dst")[PLACE_BITS:]),
            ]
        with m.If(reads & self.ub.grant):
            m.d.sync += [asked.eq(asked + 1), reads.eq(asked != _ROWS - 1)]
        with m.If(self.ub.valid & active):
            m.d.sync += [came.eq(came + 1), writes.eq(came == _ROWS - 1)]
        with m.If(writes & self.w.grant):
            ends = written == _ROWS - 1
            m.d.sync += [written.eq(written + 1), writes.eq(~ends), active.eq(~ends)]
        for n, row in enumerate(rows):
            following = rows[n + 1] if n + 1 < _ROWS else self.ub.data
            shifted = row >> _ELEMENT
            with m.If((self.ub.valid & active) | (writes & self.w.grant)):
                m.d.sync += row.eq(Mux(writes, shifted, following))
        return m
