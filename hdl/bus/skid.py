"""A buffer of two items that cuts all combinational paths of a stream."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class Skid(wiring.Component):
    """Buffer whose outputs all come from registers and which passes one item per cycle.

    Parameters
    ----------
    shape : ShapeLike
        Shape of the payload.

    Members
    -------
    i, o : In, Out(stream.Signature(shape))
        The stream before and after the buffer.

    Latency
    -------
    One cycle. The second place takes the item that arrives in the cycle in which ``o`` stops.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        o: stream.Interface

    def __init__(self, shape: ShapeLike):
        self.width = Shape.cast(shape).width
        signature = stream.Signature(shape)
        super().__init__({"i": In(signature), "o": Out(signature)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        full, spare_full = Signal(), Signal()
        item = Signal(self.width, reset_less=True)
        spare = Signal(self.width, reset_less=True)
        arrived = Value.cast(self.i.payload)
        m.d.comb += [
            self.i.ready.eq(~spare_full),
            self.o.valid.eq(full),
            Value.cast(self.o.payload).eq(item),
        ]
        with m.If(self.o.ready | ~full):
            m.d.sync += [full.eq(self.i.valid | spare_full), spare_full.eq(0)]
            with m.If(spare_full):
                m.d.sync += item.eq(spare)
            with m.Else():
                m.d.sync += item.eq(arrived)
        with m.Elif(self.i.valid & ~spare_full):
            m.d.sync += [spare_full.eq(1), spare.eq(arrived)]
        return m
