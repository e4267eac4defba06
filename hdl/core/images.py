"""Im2Col in unit MTE1, and the pixels of Col2Im in unit V: ``hdl.scu`` at the buffers of a core."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import CODE_BITS

from ..scu.address import AddressGenerator
from ..scu.config import FILL_BITS, ROWS, ConversionConfig, Mode
from ..scu.im2col import Im2Col
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, ReadPort, WritePort, bits
from .record import RECORD_BITS, dtype_code, part, signed_part

#: Blocks that are read ahead.
_AHEAD = 4
#: Bits of an address above those of the buffer, by which a pixel beyond its end is found. An image
#: of more than so many buffers is not.
_MORE_BITS = 4
#: Names of the command's fields that have another name in an instruction.
_FIELDS = {
    "height": "height",
    "width": "width",
    "kernel_height": "kernel_rows",
    "kernel_width": "kernel_columns",
    "stride_height": "stride_rows",
    "stride_width": "stride_columns",
    "bottom": "bottom",
    "left": "left",
    "right": "right",
    "dilation_height": "dilation_rows",
    "dilation_width": "dilation_columns",
    "kernel_row": "kernel_row",
    "kernel_column": "kernel_column",
    "channel": "channel",
    "repeat": "repeat",
}


def conversion(blocks: int) -> ConversionConfig:
    """Return the parameters of a unit that addresses so many blocks."""
    return ConversionConfig(rows=1, address_bits=bits(blocks) + _MORE_BITS, ahead=_AHEAD)


def _command(m: Module, command: Any, record: Value, op: str, image: str) -> Value:
    """Set the fields of a command from an instruction; return 1 if its image begins too far."""
    for field, name in _FIELDS.items():
        m.d.comb += getattr(command, field).eq(part(record, op, name))
    m.d.comb += [
        command.base.eq(part(record, op, image)[PLACE_BITS:]),
        command.row.eq(signed_part(record, op, "row")),
        command.column.eq(signed_part(record, op, "column")),
    ]
    return part(record, op, image)[PLACE_BITS + len(command.base) :].any()


class _Reads:
    """Blocks that are requested at a port and come in a queue; ``port`` is a ``ReadPort``."""

    def __init__(self, m: Module, name: str):
        m.submodules[f"{name}_blocks"] = self.blocks = SyncFIFO(width=BLOCK_BITS, depth=_AHEAD)
        self.on_way = Signal(range(_AHEAD + 1), name=f"{name}_on_way")
        self.room = self.blocks.w_level + self.on_way < _AHEAD
        self.granted, self.came = Signal(name=f"{name}_granted"), Signal(name=f"{name}_came")
        m.d.sync += self.on_way.eq(self.on_way + self.granted - self.came)
        m.d.comb += self.blocks.w_en.eq(self.came)


class ImageLoader(wiring.Component):
    """Im2Col loads from L1, one row of a fractal a cycle.

    Parameters
    ----------
    blocks : int
        Blocks of L1.

    Members
    -------
    i, idle, r, w, target
        As those of a ``Mover``.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        r: Any
        w: Any
        target: Signal

    def __init__(self, *, blocks: int):
        self.config = conversion(blocks)
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
        m.submodules.unit = unit = Im2Col(config=self.config)
        record = self.i.payload
        active = Signal()
        left = Signal(16)  # rows that are still to be written
        begin, place, step = (
            Signal(ADDRESS_BITS, name=name) for name in ("begin", "place", "fractal_step")
        )
        row = Signal(range(ROWS))
        far, some = Signal(), part(record, "im2col", "repeat") != 0
        begins_far = _command(m, unit.i.payload, record, "im2col", "src")
        value = part(record, "im2col", "pad_value")
        dtype = part(record, "im2col", "src.dtype")
        narrow = Cat(*(dtype == dtype_code(name) for name in ("int8", "uint8"))).any()
        fill = Mux(narrow, Cat(value[:8], value[:8]), value[:FILL_BITS])
        start = Signal()
        m.d.comb += [
            Value.cast(unit.i.payload.mode).eq(part(record, "im2col", "mode")),
            unit.i.payload.fill.eq(fill),
            unit.i.valid.eq(self.i.valid & ~active & some),
            # The unit is ready only for a command that it gets.
            self.i.ready.eq((unit.i.ready | ~some) & ~active),
            start.eq(self.i.valid & self.i.ready),
            self.idle.eq(~active),
        ]
        reads, pixel = _Reads(m, "image"), unit.fetch.payload[0]
        m.d.comb += [
            self.r.request.eq(unit.fetch.valid & reads.room),
            # A pixel of the border has no address.
            self.r.address.eq(Mux(pixel.inside, Cat(pixel.address, far), 0)),
            unit.fetch.ready.eq(self.r.grant),
            reads.granted.eq(self.r.grant),
            reads.came.eq(self.r.valid),
            reads.blocks.w_data.eq(self.r.data),
            unit.rows.valid.eq(reads.blocks.r_rdy),
            unit.rows.payload[0].eq(reads.blocks.r_data),
            reads.blocks.r_en.eq(unit.rows.ready),
            self.w.request.eq(unit.o.valid),
            self.w.address.eq(place[PLACE_BITS:]),
            self.w.data.eq(unit.o.payload[0]),
            self.w.enable.eq((1 << BLOCK_BYTES) - 1),
            unit.o.ready.eq(self.w.grant),
        ]
        with m.If(self.w.grant):
            m.d.sync += [left.eq(left - 1), row.eq(row + 1), place.eq(place + BLOCK_BYTES)]
            with m.If(row == ROWS - 1):
                m.d.sync += [begin.eq(begin + step), place.eq(begin + step)]
            with m.If(left == 1):
                m.d.sync += active.eq(0)
        with m.If(start):
            m.d.sync += [
                active.eq(some),
                far.eq(begins_far),
                left.eq(part(record, "im2col", "repeat") << 4),
                row.eq(0),
                begin.eq(part(record, "im2col", "dst")),
                place.eq(part(record, "im2col", "dst")),
                step.eq(signed_part(record, "im2col", "dst_stride")),
                self.target.eq(part(record, "im2col", "dst.buffer")),
            ]
        return m


class ImageWalk:
    """The pixels to which Col2Im adds the rows of its fractals, in unit V.

    Parameters
    ----------
    record : Value
        The instruction.
    blocks : int
        Blocks of UB.
    wide : bool
        There are images of FP32.

    Attributes
    ----------
    asks, ready : Signal
        The record holds a Col2Im that can start; it is taken now.
    half : Signal
        The second block of a pixel of FP32, which has two.
    valid, step : Signal
        There is a pixel; the beat of the block has been made.
    row, inside : Value
        The block of the pixel, or 0 if it is outside of the image. A block beyond the end of UB
        has higher bits.
    """

    def __init__(self, m: Module, record: Value, blocks: int, *, wide: bool):
        m.submodules.pixels = generator = AddressGenerator(config=conversion(blocks))
        self.asks, self.ready = Signal(name="image_asks"), Signal(name="image_ready")
        self.valid, self.step = Signal(name="pixel_there"), Signal(name="pixel_step")
        self.half = Signal(name="pixel_half")
        far, nothing = Signal(name="image_far"), part(record, "col2im", "repeat") == 0
        begins_far = _command(m, generator.i.payload, record, "col2im", "dst")
        pixel = generator.o.payload.pixels[0]
        self.inside = pixel.inside
        row: Value = Cat(pixel.address, far)
        last = Const(1, 1)
        if wide:
            # The generator counts pixels, so an image of FP32 begins at a pixel or in its middle.
            wide_now, odd = Signal(name="pixels_wide"), Signal(name="image_odd")
            is_wide = part(record, "col2im", "src.dtype") == dtype_code("fp32")
            begin = part(record, "col2im", "dst")[PLACE_BITS:]
            row = Mux(wide_now, Cat(self.half, row) + odd, row)
            last = self.half | ~wide_now
            with m.If(self.asks & self.ready):
                m.d.sync += [wide_now.eq(is_wide), odd.eq(begin[0])]
            with m.If(is_wide):
                m.d.comb += generator.i.payload.base.eq(begin >> 1)
        self.row = row & pixel.inside.replicate(len(row))
        with m.If(self.asks & self.ready):
            m.d.sync += far.eq(begins_far)
        m.d.comb += [
            generator.i.payload.mode.eq(Mode.PATCHES),
            generator.i.valid.eq(self.asks & ~nothing),
            self.ready.eq(generator.i.ready | nothing),
            self.valid.eq(generator.o.valid),
            generator.o.ready.eq(self.step & last),
        ]
