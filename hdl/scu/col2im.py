"""Col2Im: the rows of fractals added to the pixels of an image."""

from typing import TYPE_CHECKING

from amaranth.hdl import EnableInserter, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.formats import FloatFormat, as_format

from ..fp.add import FEW_STAGES, Adder
from ..fp.parts.pipeline import check_pipeline
from .config import ConversionConfig, Mode, check_config
from .reader import READER_CYCLES, Reader


class RowAdder(wiring.Component):
    """Sum of two C0 rows, element by element.

    Parameters
    ----------
    c0_bytes : int
        Bytes of a row, a multiple of the bytes of an element.
    format : FloatFormat
        Format of the elements.
    pipeline : int
        Register ranks of each adder.

    Members
    -------
    move : In(1)
        Enable of all registers.
    a, b : In(8 * c0_bytes)
        The rows.
    d : Out(8 * c0_bytes)
        Their sum, each element rounded to nearest, ties to even.

    Latency
    -------
    ``pipeline`` cycles with ``move``.
    """

    if TYPE_CHECKING:
        move: Signal
        a: Signal
        b: Signal
        d: Signal

    def __init__(self, *, c0_bytes: int, format: FloatFormat, pipeline: int):
        self.c0_bytes, self.format, self.latency = c0_bytes, format, pipeline
        bits = 8 * c0_bytes
        super().__init__({"move": In(1), "a": In(bits), "b": In(bits), "d": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.format.storage_bits
        for k in range(8 * self.c0_bytes // bits):
            adder = Adder(format=self.format, pipeline=self.latency)
            m.submodules[f"adder_{k}"] = EnableInserter(self.move)(adder)
            m.d.comb += [
                adder.a.eq(self.a.word_select(k, bits)),
                adder.b.eq(self.b.word_select(k, bits)),
                self.d.word_select(k, bits).eq(adder.d),
            ]
        return m


class Col2Im(wiring.Component):
    """Col2Im unit, bit-exact with ``golden.scu.col2im_add``.

    It reads pixels, adds rows of fractals to them, and writes the sums back. A command goes on to
    the next patches in every repetition, whatever its ``mode`` is, so it touches no pixel twice.
    Two commands may touch the same pixel. The unit therefore takes a command only after the last
    write of the command before it.

    Parameters
    ----------
    format : FloatFormat or str
        Format of the elements.
    pipeline : int
        Number of register ranks in the adders, 0 to 3.

    Members
    -------
    i : In(stream.Signature(config.command))
        Commands; ``mode`` and ``fill`` are ignored.
    fetch : Out(stream.Signature(config.pixels))
        Requests for the C0 rows of ``config.rows`` pixels. The memory ignores those with
        ``inside = 0``.
    rows : In(stream.Signature(config.row_data))
        The pixels, one item for each request and in the order of the requests.
    fractals : In(stream.Signature(config.row_data))
        Rows of fractals, one item for each request.
    o : Out(stream.Signature({pixels: config.pixels, rows: config.row_data}))
        Writes, one item for each request. Pixels with ``inside = 0`` must not be written. A row
        that ``o`` has transferred must be visible to requests of later cycles.

    Latency
    -------
    ``latency = READER_CYCLES + pipeline`` from a command to its first write if the memory answers
    in the next cycle. Then there is one beat per cycle until the end of the command. The next
    command is taken in the cycle after the last write.

    Raises
    ------
    ValueError
        If a C0 row is not a whole number of elements, or for parameters that ``Adder`` refuses.

    References
    ----------
    Rohwedder 2021, §3.4.
    """

    #: Sub-components that tools may build once for all rows.
    shared = (RowAdder,)

    if TYPE_CHECKING:
        i: stream.Interface
        fetch: stream.Interface
        rows: stream.Interface
        fractals: stream.Interface
        o: stream.Interface

    def __init__(
        self, *, config: ConversionConfig, format: FloatFormat | str = "fp16", pipeline: int = 2
    ):
        check_config(config)
        check_pipeline(pipeline, FEW_STAGES)
        self.config, self.format, self.pipeline = config, as_format(format), pipeline
        self.latency = READER_CYCLES + pipeline
        bits = self.format.storage_bits
        if 8 * config.c0_bytes % bits:
            raise ValueError(
                f"c0_bytes must be whole {self.format.name} elements of {bits} bits, "
                f"not {config.c0_bytes!r}"
            )
        writes = data.StructLayout({"pixels": config.pixels, "rows": config.row_data})
        super().__init__(
            {
                "i": In(stream.Signature(config.command)),
                "fetch": Out(stream.Signature(config.pixels)),
                "rows": In(stream.Signature(config.row_data)),
                "fractals": In(stream.Signature(config.row_data)),
                "o": Out(stream.Signature(writes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = self.reader = reader = Reader(config=self.config, addresses=True)
        wiring.connect(m, reader.fetch, wiring.flipped(self.fetch))
        wiring.connect(m, wiring.flipped(self.rows), reader.rows)
        self._build_commands(m)

        # A beat enters the adders together with its row of fractals. All ranks move at once.
        move = Signal()
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            reader.o.ready.eq(move & self.fractals.valid),
            self.fractals.ready.eq(move & reader.o.valid),
        ]
        valid: Value = reader.o.valid & self.fractals.valid
        pixels: Value = Value.cast(reader.o.payload.known.pixels)
        for rank in range(self.pipeline):
            s_valid = Signal(name=f"s{rank + 1}_valid")
            s_pixels = Signal(len(pixels), name=f"s{rank + 1}_pixels", reset_less=True)
            with m.If(move):
                m.d.sync += [s_valid.eq(valid), s_pixels.eq(pixels)]
            valid, pixels = s_valid, s_pixels
        m.d.comb += [self.o.valid.eq(valid), Value.cast(self.o.payload.pixels).eq(pixels)]
        self._build_sums(m, move)
        return m

    def _build_sums(self, m: Module, move: Signal) -> None:
        """Add the rows of the pixels and of the fractals."""
        for n in range(self.config.rows):
            adder = RowAdder(
                c0_bytes=self.config.c0_bytes, format=self.format, pipeline=self.pipeline
            )
            m.submodules[f"adder_{n}"] = adder
            m.d.comb += [
                adder.move.eq(move),
                adder.a.eq(self.reader.o.payload.rows[n]),
                adder.b.eq(self.fractals.payload[n]),
                self.o.payload.rows[n].eq(adder.d),
            ]

    def _build_commands(self, m: Module) -> None:
        """Pass a command to the reader when all writes of the one before it are done."""
        inner, beats = self.reader.i, self.config.beats
        left = Signal(range((1 << self.config.repeat_bits) * beats))
        m.d.comb += [
            Value.cast(inner.payload).eq(Value.cast(self.i.payload)),
            # Within one position of the kernel no two patches share a pixel, so that reads need not
            # wait for writes.
            inner.payload.mode.eq(Mode.PATCHES),
            inner.valid.eq(self.i.valid),
            self.i.ready.eq(inner.ready),
            self.reader.hold.eq(left != 0),
        ]
        with m.If(inner.valid & inner.ready):
            # Beats that are still to be written; the reader holds the next command until there are
            # none.
            m.d.sync += left.eq(self.i.payload.repeat * beats)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += left.eq(left - 1)
