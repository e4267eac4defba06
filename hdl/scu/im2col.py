"""Im2Col: the patches of an image as a stream of fractal rows."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .config import FILL_BITS, ConversionConfig, check_config
from .reader import READER_CYCLES, Reader


class Im2Col(wiring.Component):
    """Im2Col load unit, bit-exact with ``golden.scu.im2col_load``.

    Members
    -------
    i : In(stream.Signature(config.command))
        Commands.
    fetch : Out(stream.Signature(config.pixels))
        Requests for the C0 rows of ``config.rows`` pixels. The memory ignores those with
        ``inside = 0``.
    rows : In(stream.Signature(config.row_data))
        The rows, one item for each request and in the order of the requests.
    o : Out(stream.Signature(config.row_data))
        Rows of fractals in rising order, ``config.beats`` items for each fractal. Rows in the
        padding and after the last patch hold ``fill`` in every 16 bits.

    Latency
    -------
    ``latency`` cycles from a command to its first rows if the memory answers in the next cycle.
    Then there are ``config.rows`` rows per cycle, also from one command to the next. No row is
    lost under back-pressure: a request needs room in the queue of ``config.ahead`` beats.

    References
    ----------
    Rohwedder 2021, §3.3.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        fetch: stream.Interface
        rows: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: ConversionConfig):
        check_config(config)
        self.config, self.latency = config, READER_CYCLES
        super().__init__(
            {
                "i": In(stream.Signature(config.command)),
                "fetch": Out(stream.Signature(config.pixels)),
                "rows": In(stream.Signature(config.row_data)),
                "o": Out(stream.Signature(config.row_data)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = Reader(config=self.config, addresses=False)
        wiring.connect(m, wiring.flipped(self.i), reader.i)
        wiring.connect(m, reader.fetch, wiring.flipped(self.fetch))
        wiring.connect(m, wiring.flipped(self.rows), reader.rows)
        beat = reader.o.payload
        # The memory delivers a row for every pixel of a beat; outside of the image its content
        # means nothing.
        padding = beat.known.fill.replicate(8 * self.config.c0_bytes // FILL_BITS)
        m.d.comb += [self.o.valid.eq(reader.o.valid), reader.o.ready.eq(self.o.ready)]
        m.d.comb += [
            self.o.payload[n].eq(Mux(beat.known.inside[n], beat.rows[n], padding))
            for n in range(self.config.rows)
        ]
        return m
