"""Unit FIX: results of L0C to global memory or L1."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import CODE_BITS, ENCODINGS
from vitruvian.golden.fp.formats import FORMATS

from ..fp.convert import Converter
from ..vector.elements import is_nan
from .ports import ADDRESS_BITS, BLOCK_BITS, BLOCK_BYTES, PLACE_BITS, ROW_BITS, ReadPort, WritePort
from .record import RECORD_BITS, dtype_code, part, signed_part

#: Elements of a row of a fractal, and of a block of FP32.
_COLUMNS, _BLOCK = 16, 8
#: What is known of a block of L0C when it is asked for.
_BEAT = data.StructLayout(
    {
        "row": ROW_BITS,  # of the target
        "columns": 5,  # of the fractal that are written
        "second": 1,  # half of the row
    }
)


class FixPipe(wiring.Component):
    """Results of L0C to global memory or L1: FP32, or rounded to FP16, in fractals or rows.

    A row of a fractal is two blocks of L0C. It reads one in each cycle.

    Parameters
    ----------
    ahead : int
        Blocks that are read ahead of the writes.
    wide : bool
        There are results of 64 bits too, in fractals. A row of them is two rows of 32 bits.

    Members
    -------
    i, idle, w, target
        As those of a ``Mover``.
    l0c : Out(ReadPort())
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        l0c: Any
        w: Any
        target: Signal

    def __init__(self, *, ahead: int, wide: bool = False):
        self.ahead, self.wide = ahead, wide
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "l0c": Out(ReadPort()),
                "w": Out(WritePort()),
                "target": Out(CODE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.beats = beats = SyncFIFO(width=_BEAT.size, depth=self.ahead)
        m.submodules.blocks = blocks = SyncFIFO(width=BLOCK_BITS, depth=self.ahead)
        s = SimpleNamespace(
            active=Signal(name="active"),
            reads=Signal(name="reads"),
            beats=beats,
            blocks=blocks,
            narrow=Signal(name="narrow"),
            relu=Signal(name="relu"),
            taken=Signal(name="block_taken"),
        )
        start = Signal()
        m.d.comb += [
            self.i.ready.eq(~s.active),
            start.eq(self.i.valid & self.i.ready),
            self.idle.eq(~s.active),
        ]
        self._build_walk(m, s, start)
        self._build_writes(m, s)
        with m.If(start):
            record = self.i.payload
            layouts = next(x.names for x in ENCODINGS["matrix_out"].members if x.name == "layout")
            m.d.sync += [
                s.active.eq(1),
                s.narrow.eq(part(record, "matrix_out", "dst.dtype") == dtype_code("fp16")),
                s.relu.eq(part(record, "matrix_out", "relu")),
                s.rows.eq(part(record, "matrix_out", "layout") == layouts.index("nd")),
                self.target.eq(part(record, "matrix_out", "dst.buffer")),
            ]
        with m.Elif(s.active & ~s.reads & ~beats.r_rdy & ~self.w.request):
            m.d.sync += s.active.eq(0)
        return m

    def _build_walk(self, m: Module, s: Any, start: Value) -> None:
        """Ask for the blocks of L0C: columns of fractals, their rows, and the halves of a row."""
        record = self.i.payload

        def get(name: str) -> Value:
            return part(record, "matrix_out", name)

        s.rows = Signal(name="in_rows")  # the target has rows of n elements
        rows = get("m")
        if self.wide:
            rows = Mux(get("src.dtype") == dtype_code("uint64"), rows << 1, rows)
        count, row = Signal(16, name="row_count"), Signal(16, name="row")
        left = Signal(16, name="columns_left")
        second = Signal(name="second_half")
        source, target, source_column, target_column = (
            Signal(ADDRESS_BITS, name=name)
            for name in ("source", "target_place", "source_column", "target_column")
        )
        steps = {name: Signal(ADDRESS_BITS, name=f"{name}_step") for name in ("source", "target")}
        size = Mux(s.narrow, BLOCK_BYTES, 2 * BLOCK_BYTES)  # of a row of a fractal
        entering = data.View(_BEAT, s.beats.w_data)
        go = Signal(name="block_asked")
        m.d.comb += [
            self.l0c.request.eq(s.reads & s.beats.w_rdy),
            self.l0c.address.eq((source >> PLACE_BITS) + second),
            go.eq(self.l0c.request & self.l0c.grant),
            s.beats.w_en.eq(go),
            entering.row.eq((target >> PLACE_BITS) + (second & ~s.narrow)),
            entering.columns.eq(Mux(s.rows & (left < _COLUMNS), left[:4], _COLUMNS)),
            entering.second.eq(second),
            s.blocks.w_data.eq(self.l0c.data),
            s.blocks.w_en.eq(self.l0c.valid & s.active),
        ]
        ends = row == count - 1
        with m.If(go):
            m.d.sync += second.eq(~second)
            with m.If(second & ~ends):
                m.d.sync += [
                    row.eq(row + 1),
                    source.eq(source + 2 * BLOCK_BYTES),
                    target.eq(target + Mux(s.rows, steps["target"], size)),
                ]
            with m.Elif(second):
                column = target_column + Mux(s.rows, size, steps["target"])
                m.d.sync += [
                    row.eq(0),
                    source.eq(source_column + steps["source"]),
                    source_column.eq(source_column + steps["source"]),
                    target.eq(column),
                    target_column.eq(column),
                    left.eq(left - _COLUMNS),
                    s.reads.eq(left > _COLUMNS),
                ]
        with m.If(start):
            m.d.sync += [
                s.reads.eq((get("m") != 0) & (get("n") != 0)),
                count.eq(rows),
                left.eq(get("n")),
                row.eq(0),
                second.eq(0),
                *(place.eq(get("src")) for place in (source, source_column)),
                *(place.eq(get("dst")) for place in (target, target_column)),
                steps["source"].eq(signed_part(record, "matrix_out", "src_stride")),
                steps["target"].eq(signed_part(record, "matrix_out", "dst_stride")),
            ]

    def _build_writes(self, m: Module, s: Any) -> None:
        """Convert the blocks, and write them from a register."""
        head = data.View(_BEAT, s.beats.r_data)
        singles = [s.blocks.r_data.word_select(n, 32) for n in range(_BLOCK)]
        halves = []
        for n, single in enumerate(singles):
            m.submodules[f"narrow{n}"] = unit = Converter(
                source=FORMATS["fp32"], target=FORMATS["fp16"]
            )
            m.d.comb += unit.a.eq(single)
            halves.append(unit.d)
        wide = Cat(*(_relu(single, "fp32", s.relu) for single in singles))
        half = Cat(*(_relu(each, "fp16", s.relu) for each in halves))
        first = Signal(BLOCK_BITS // 2, name="first_half")
        free = ~self.w.request | self.w.grant
        taken = s.taken
        writes = ~s.narrow | head.second
        # Columns of the fractal before those of this block.
        before = Mux(head.second & ~s.narrow, _BLOCK, 0)
        enables = [
            Mux(s.narrow, head.columns > n // 2, head.columns > before + n // 4)
            for n in range(BLOCK_BYTES)
        ]
        enable = Cat(*enables)
        m.d.comb += [
            taken.eq(s.beats.r_rdy & s.blocks.r_rdy & free),
            s.beats.r_en.eq(taken),
            s.blocks.r_en.eq(taken),
        ]
        with m.If(free):
            m.d.sync += self.w.request.eq(taken & writes & enable.any())
        with m.If(taken):
            m.d.sync += [
                first.eq(half),
                self.w.address.eq(head.row),
                self.w.data.eq(Mux(s.narrow, Cat(first, half), wide)),
                self.w.enable.eq(enable),
            ]


def _relu(number: Value, name: str, relu: Value) -> Value:
    """Return a number, or +0 with ``relu`` for those that are negative, -0 or a NaN."""
    return Mux(relu & (number[-1] | is_nan(number, name)), Const(0, len(number)), number)
