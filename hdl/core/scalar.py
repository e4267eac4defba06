"""What unit S does with memory: it compares an element, or stores one."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.core.encoding import BUFFERS

from .ports import ADDRESS_BITS, BLOCK_BYTES, PLACE_BITS, ReadPort, WritePort, rotate
from .record import RECORD_BITS, dtype_code, is_op, part

_WIDTHS = {
    0: ("int8", "uint8"),
    1: ("fp16", "bf16", "int16", "uint16"),
    2: ("fp32", "int32", "uint32"),
    3: ("int64", "uint64"),
}


class ScalarUnit(wiring.Component):
    """Unit that carries out scalar loads and stores; all other scalar instructions do nothing here.

    A load compares the element with the one that the program was unrolled for, because the rest of
    the program depends on it.

    Members
    -------
    i, idle
        As those of a ``Mover``.
    ub, gm : Out(ReadPort())
        The memories that it reads.
    ub_w, gm_w : Out(WritePort())
        The memories that it writes.
    differs : Out(1)
        Set for a cycle if an element has another value than the program expects.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        gm: Any
        ub_w: Any
        gm_w: Any
        differs: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(RECORD_BITS)),
                "idle": Out(1),
                "ub": Out(ReadPort()),
                "gm": Out(ReadPort()),
                "ub_w": Out(WritePort()),
                "gm_w": Out(WritePort()),
                "differs": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        loads, stores, asked = Signal(), Signal(), Signal()
        place = Signal(ADDRESS_BITS)
        in_ub = Signal()
        value = Signal(64)
        width = Signal(2)
        record = self.i.payload
        is_load = is_op(record, "scalar_load") & part(record, "scalar_load", "expected?")
        is_store = is_op(record, "scalar_store")
        dtype = part(record, "scalar_load", "src.dtype")
        m.d.comb += [self.i.ready.eq(self.idle), self.idle.eq(~loads & ~stores)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                loads.eq(is_load),
                stores.eq(is_store),
                asked.eq(0),
                place.eq(part(record, "scalar_load", "src")),
                in_ub.eq(part(record, "scalar_load", "src.buffer") == BUFFERS.index("UB")),
                value.eq(part(record, "scalar_load", "expected")),
            ]
            for bits, names in _WIDTHS.items():
                with m.If(Cat(*(dtype == dtype_code(name) for name in names)).any()):
                    m.d.sync += width.eq(bits)
        granted = self.ub.grant | self.gm.grant
        low = place[:PLACE_BITS]
        bytes_on = Signal(8)
        with m.Switch(width):
            for bits in _WIDTHS:
                with m.Case(bits):
                    m.d.comb += bytes_on.eq((1 << (1 << bits)) - 1)
        # Byte i of a block holds, if it is enabled, byte i - low of the element, modulo 8.
        turned = rotate(m, value, low[:3], "value_turned")
        enable = (bytes_on << low)[:BLOCK_BYTES]

        def differs(block: Value) -> Value:
            return Cat(
                *(
                    on & (block.word_select(i, 8) != turned.word_select(i % 8, 8))
                    for i, on in enumerate(enable)
                )
            ).any()

        for port, here in ((self.ub, in_ub), (self.gm, ~in_ub)):
            m.d.comb += [
                port.request.eq(loads & ~asked & here),
                port.address.eq(place[PLACE_BITS:]),
            ]
        for port, here in ((self.ub_w, in_ub), (self.gm_w, ~in_ub)):
            m.d.comb += [
                port.request.eq(stores & here),
                port.address.eq(place[PLACE_BITS:]),
                port.data.eq(turned.replicate(BLOCK_BYTES // 8)),
                port.enable.eq(enable),
            ]
        with m.If(granted):
            m.d.sync += asked.eq(1)
        came = self.ub.valid | self.gm.valid
        with m.If(came & loads):
            m.d.sync += loads.eq(0)
            m.d.comb += self.differs.eq(
                Mux(self.gm.valid, differs(self.gm.data), differs(self.ub.data))
            )
        with m.If(self.ub_w.grant | self.gm_w.grant):
            m.d.sync += stores.eq(0)
        return m
