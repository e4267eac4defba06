"""The read side that Im2Col and Col2Im share: requests to a memory, and its rows."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from .address import GENERATOR_CYCLES, AddressGenerator
from .config import FILL_BITS, ConversionConfig

#: Cycles from a command to the head of the queue, where it waits for the rows of its first beat.
READER_CYCLES = GENERATOR_CYCLES + 1


class Reader(wiring.Component):
    """Reader of the pixels of commands: an ``AddressGenerator`` and a queue of requested beats.

    ``fetch`` requests rows ahead of time, and ``rows`` delivers them in the order of the requests,
    with any delay. A beat of ``o`` joins an item of the queue and an item of ``rows``.

    Parameters
    ----------
    addresses : bool
        If True, beats of ``o`` keep the addresses of their pixels, otherwise the padding value.

    Members
    -------
    i : In(stream.Signature(config.command))
        Commands.
    hold : In(1)
        While this is 1, no command is taken.
    fetch : Out(stream.Signature(config.pixels))
        Requests for the rows of one beat; the memory ignores pixels outside of the image.
    rows : In(stream.Signature(config.row_data))
        Rows of one beat for each request. Rows of pixels outside of the image may hold anything.
    o : Out(stream.Signature({rows: config.row_data, pixels, fill}))
        Rows of pixels, with what is known of their beat.

    Latency
    -------
    ``READER_CYCLES``, and one beat per cycle, if the memory answers in the next cycle. Each further
    cycle of the memory adds one, and ``config.ahead`` must cover it for a beat per cycle.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        hold: Signal
        fetch: stream.Interface
        rows: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: ConversionConfig, addresses: bool):
        self.config, self.addresses, self.latency = config, addresses, READER_CYCLES
        rest: dict[str, object] = {"inside": config.rows, "fill": FILL_BITS}
        if addresses:
            rest = {"pixels": config.pixels}
        self.known = data.StructLayout(rest)  # pyright: ignore[reportArgumentType]
        beat = data.StructLayout({"rows": config.row_data, "known": self.known})
        super().__init__(
            {
                "i": In(stream.Signature(config.command)),
                "hold": In(1),
                "fetch": Out(stream.Signature(config.pixels)),
                "rows": In(stream.Signature(config.row_data)),
                "o": Out(stream.Signature(beat)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.generator = generator = AddressGenerator(config=self.config)
        width = self.known.size
        m.submodules.queue = queue = SyncFIFO(width=width, depth=self.config.ahead)
        beat = generator.o.payload
        if self.addresses:
            known = Value.cast(beat.pixels)
        else:
            inside = [beat.pixels[n].inside for n in range(self.config.rows)]
            known = Cat(*inside, beat.fill)
        wiring.connect(m, wiring.flipped(self.i), generator.i)
        m.d.comb += [
            generator.hold.eq(self.hold),
            Value.cast(self.fetch.payload).eq(Value.cast(beat.pixels)),
            queue.w_data.eq(known),
            # A beat goes to the memory and to the queue in the same cycle.
            self.fetch.valid.eq(generator.o.valid & queue.w_rdy),
            queue.w_en.eq(generator.o.valid & self.fetch.ready),
            generator.o.ready.eq(queue.w_rdy & self.fetch.ready),
            Value.cast(self.o.payload.rows).eq(Value.cast(self.rows.payload)),
            Value.cast(self.o.payload.known).eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy & self.rows.valid),
            queue.r_en.eq(self.o.ready & self.rows.valid),
            self.rows.ready.eq(self.o.ready & queue.r_rdy),
        ]
        return m
