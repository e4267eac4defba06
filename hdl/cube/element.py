"""The processing element: a fused dot product and the accumulators it works on."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..fp.multidot import MultiDot
from .config import MatrixUnitConfig

__all__ = ["ProcessingElement"]


class ProcessingElement(wiring.Component):
    """One output of a tile: ``slot = (0 or slot) + A · B``, every cycle.

    Parameters
    ----------
    config : MatrixUnitConfig
        The unit it belongs to; all its elements are the same module.

    Members
    -------
    a, b : In(bus_bits)
        Operands of one tile.
    valid : In(1)
        Whether there is a tile this cycle.
    precision : In(ceil(log2(len(precisions))))
        Index into ``config.precisions``.
    accumulate : In(1)
        Add to the slot's value; else to zero.
    slot : In(ceil(log2(slots)))
        Accumulator of this tile.
    load, load_slot, load_value : In(1), In(slot), In(32)
        Writes an accumulator (C from outside).
    read_slot, value : In(slot), Out(32)
        Reads one, combinationally.

    Latency
    -------
    A result is in its slot ``pipeline + 1`` cycles after its operands came. The element never stalls; who
    drives it keeps accesses to one slot apart.
    """

    a: Signal
    b: Signal
    valid: Signal
    precision: Signal
    accumulate: Signal
    slot: Signal
    load: Signal
    load_slot: Signal
    load_value: Signal
    read_slot: Signal
    value: Signal

    def __init__(self, *, config: MatrixUnitConfig):
        self.config = config
        index = max(config.slots - 1, 0).bit_length()
        super().__init__(
            {
                "a": In(config.bus_bits),
                "b": In(config.bus_bits),
                "valid": In(1),
                "precision": In((len(config.precisions) - 1).bit_length()),
                "accumulate": In(1),
                "slot": In(index),
                "load": In(1),
                "load_slot": In(index),
                "load_value": In(32),
                "read_slot": In(index),
                "value": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.dot = dot = MultiDot(
            specs={name: config.spec(name) for name in config.floats},
            int8_k=config.int8_terms,
            saturate=config.saturate,
            pipeline=config.pipeline,
        )
        slots = Array(
            Signal(32, name=f"slot{index}", reset_less=True) for index in range(config.slots)
        )
        m.d.comb += [
            dot.a.eq(self.a),
            dot.b.eq(self.b),
            dot.c.eq(Mux(self.accumulate, slots[self.slot], 0)),
            self.value.eq(slots[self.read_slot]),
        ]
        if len(config.precisions) > 1:
            # MultiDot lists the floating precisions first and int8 last
            for index, name in enumerate(config.precisions):
                with m.If(self.precision == index):
                    m.d.comb += dot.precision.eq(dot.precisions.index(name))
        write, write_slot = self.valid, self.slot
        for rank in range(config.pipeline):
            valid = Signal(name=f"valid{rank + 1}")
            slot = Signal(len(self.slot), name=f"slot_of{rank + 1}", reset_less=True)
            m.d.sync += [valid.eq(write), slot.eq(write_slot)]
            write, write_slot = valid, slot
        for index, accumulator in enumerate(slots):
            with m.If(write & (write_slot == index)):
                m.d.sync += accumulator.eq(dot.d)
            with m.Elif(self.load & (self.load_slot == index)):
                m.d.sync += accumulator.eq(self.load_value)
        return m
