"""The integer SIMD² tile between streams, with the same streams as the matrix unit."""

from typing import TYPE_CHECKING

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ..cube.ports import Start, operation_enum
from ..simd2.intconfig import IntConfig
from ..simd2.integer import IntElement, IntTile


def int_beat_layout(config: IntConfig) -> data.StructLayout:
    """Return the layout of a beat: rows of A, columns of B, and the control of both."""
    names = tuple(op.mnemonic for op in config.operations)
    word = data.ArrayLayout(config.bits, config.k)
    return data.StructLayout(
        {
            "a": data.ArrayLayout(word, config.m),
            "b": data.ArrayLayout(word, config.n),
            "operation": operation_enum(names) if len(names) > 1 else 0,
            "start": Start,
            "emit": 1,
        }
    )


class IntUnit(wiring.Component):
    """``IntTile`` between streams: back-pressure, a C for each sum, and a queue of results.

    Parameters
    ----------
    config : IntConfig
        The parameters of the tile.

    Members
    -------
    i : In(stream.Signature(int_beat_layout(config)))
        Beats: A, B, the operation (an index in ``config.operations``), the start and ``emit``,
        which requests the result on ``o``. There is a single slot.
    c : In(stream.Signature(m × n × bits))
        C fractals, one for each beat that starts from C.
    o : Out(stream.Signature(m × n × bits))
        D fractals, in the order of the beats that emit them.

    Latency
    -------
    ``latency = pipeline + 3`` from the transfer of a beat to the transfer of its result. The unit
    takes one beat per cycle while ``o`` takes every result. A beat that emits waits while there is
    no room for its result.

    Notes
    -----
    A beat that starts from zero starts from the identity of ⊕: 0, or the largest number for min,
    or the smallest for max. So does a beat that accumulates before any other beat since reset.
    """

    shared = (IntElement,)

    if TYPE_CHECKING:
        i: stream.Interface
        c: stream.Interface
        o: stream.Interface

    def __init__(self, *, config: IntConfig):
        self.config = config
        self.latency = config.pipeline + 3
        #: Places for results. One is free again two cycles after the tile's latency.
        self.depth = config.pipeline + 4
        row = data.ArrayLayout(config.bits, config.n)
        fractals = stream.Signature(data.ArrayLayout(row, config.m))
        super().__init__(
            {
                "i": In(stream.Signature(int_beat_layout(config))),
                "c": In(fractals),
                "o": Out(fractals),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, beat = self.config, self.i.payload
        m.submodules.tile = tile = IntTile(config=config)
        width = len(Value.cast(tile.d))
        m.submodules.results = results = SyncFIFO(width=width, depth=self.depth)

        # Each result has a place in the queue from the time when its beat is taken.
        owed = Signal(range(self.depth + 1))
        room, go, taken, from_c = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            from_c.eq(beat.start == Start.FROM_C),
            room.eq(~beat.emit | (owed != self.depth)),
            self.i.ready.eq(room & (~from_c | self.c.valid)),
            self.c.ready.eq(room & from_c & self.i.valid),
            go.eq(self.i.valid & self.i.ready),
            taken.eq(self.o.valid & self.o.ready),
            tile.valid.eq(go),
            Value.cast(tile.a).eq(Value.cast(beat.a)),
            Value.cast(tile.b).eq(Value.cast(beat.b)),
        ]
        m.d.sync += owed.eq(owed + (go & beat.emit) - taken)
        holds = Signal()
        with m.If(go):
            m.d.sync += holds.eq(1)
        accumulates = (beat.start != Start.ZERO) & ~from_c & holds
        code = Value.cast(beat.operation) if len(config.operations) > 1 else Const(0, 1)
        m.d.comb += [
            tile.first.eq(~accumulates),
            tile.op.eq(Array(Const(op.code, 4) for op in config.operations)[code]),
            # The tile reads C later than A and B.
            Value.cast(tile.c).eq(self._delayed(m, self._base(from_c, code))),
        ]
        # ``done`` is the tile's own flag; this one also tells which results are requested.
        emits: Value = go & beat.emit
        for rank in range(tile.latency):
            late = Signal(name=f"emit{rank}")
            m.d.sync += late.eq(emits)
            emits = late
        m.d.comb += [
            results.w_data.eq(Value.cast(tile.d)),
            results.w_en.eq(emits),
            Value.cast(self.o.payload).eq(results.r_data),
            self.o.valid.eq(results.r_rdy),
            results.r_en.eq(self.o.ready),
        ]
        return m

    def _base(self, from_c: Value, code: Value) -> Value:
        """Return the value to which a first beat adds: C, or the identity of ⊕ in every element."""
        config = self.config
        top = 1 << config.bits - 1
        identities = {"min": top - 1, "max": top}
        values = [Const(identities.get(op.plus, 0), config.bits) for op in config.operations]
        identity = Value.cast(Array(values)[code])
        return Mux(from_c, Value.cast(self.c.payload), identity.replicate(config.m * config.n))

    def _delayed(self, m: Module, value: Value) -> Value:
        """Return a value as many cycles later as the tile reads C."""
        for rank in range(self.config.pipeline + 1):
            late = Signal(len(value), name=f"c{rank}", reset_less=True)
            m.d.sync += late.eq(value)
            value = late
        return Cat(value)
