"""The frames of the serial line: their fields, and the CRC that protects them.

A request has the bytes ``REQUEST``, sequence number, command and count, address,
payload, CRC (high byte first). A response has the bytes ``RESPONSE``, sequence number, status and
count, payload, CRC. ``docs/units/serial.md`` describes the protocol.
"""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

#: First byte of a request, and of a response.
REQUEST, RESPONSE = 0xA5, 0x5A
#: Most words in a frame. With the CRC, their bytes fit into a buffer of 256 bytes.
MOST_WORDS = 63
_POLYNOMIAL, _INIT = 0x1021, 0xFFFF


class Status(enum.Enum, shape=1):
    """Status of a response: the request was executed, or it was damaged and had no effect."""

    DONE = 0
    REFUSED = 1


def command_layout() -> data.StructLayout:
    """Return the layout of a request's command and count.

    With ``increment``, the address grows by 1 after each word; without, all words have the same
    address.
    """
    return data.StructLayout({"count": 6, "increment": 1, "write": 1})


class Crc16(wiring.Component):
    """The CRC of a frame: polynomial 0x1021, initial value 0xFFFF, high bit of a byte first.

    This is CRC-16/IBM-3740. A frame that ends with its own CRC leaves the value 0.

    Members
    -------
    clear : In(1)
        Set the initial value.
    put : In(1)
        Take the byte ``data``, unless ``busy`` is 1.
    data : In(8)
        The byte.
    busy : Out(1)
        1 in the 8 cycles after ``put``.
    value : Out(16)
        The CRC of all bytes, while ``busy`` is 0.
    """

    if TYPE_CHECKING:
        clear: Signal
        put: Signal
        data: Signal
        busy: Signal
        value: Signal

    def __init__(self):
        super().__init__(
            {"clear": In(1), "put": In(1), "data": In(8), "busy": Out(1), "value": Out(16)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A one behind the bits marks the end: the byte is done when only it is left.
        bits = Signal(9, init=1 << 8)
        feedback = bits[8] ^ self.value[15]
        m.d.comb += self.busy.eq(bits[:8].any())
        with m.If(self.put):
            m.d.sync += bits.eq(Cat(1, self.data))
        with m.Elif(self.busy):
            m.d.sync += [
                bits.eq(Cat(0, bits[:8])),
                self.value.eq(Cat(0, self.value[:15]) ^ Mux(feedback, _POLYNOMIAL, 0)),
            ]
        with m.If(self.clear):
            m.d.sync += self.value.eq(_INIT)
        return m
