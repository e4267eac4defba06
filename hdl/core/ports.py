"""The ports between units and memories, in blocks of 32 bytes."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Bytes of a block, and bits of a byte's place in it.
BLOCK_BYTES, PLACE_BITS = 32, 5
BLOCK_BITS = 8 * BLOCK_BYTES
#: Bits of an address in bytes, and in blocks.
ADDRESS_BITS = 32
ROW_BITS = ADDRESS_BITS - PLACE_BITS


class ReadPort(wiring.Signature):
    """Port of a unit that reads.

    Members
    -------
    request, address : Out(1), Out(27)
        A block is asked for.
    grant : In(1)
        The request is taken in this cycle.
    valid, data : In(1), In(256)
        A block, in the order of the grants, at least one cycle after its grant. The unit must take
        it at once.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": Out(1),
                "address": Out(ROW_BITS),
                "grant": In(1),
                "valid": In(1),
                "data": In(BLOCK_BITS),
            }
        )


class WritePort(wiring.Signature):
    """Port of a unit that writes.

    Members
    -------
    request, address, data, enable : Out(1), Out(27), Out(256), Out(32)
        A block, and a bit for each of its bytes that is written.
    grant : In(1)
        The request is taken in this cycle; reads that are granted later see the block.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": Out(1),
                "address": Out(ROW_BITS),
                "data": Out(BLOCK_BITS),
                "enable": Out(BLOCK_BYTES),
                "grant": In(1),
            }
        )


def choose(m: Module, ports: list[Any], free: Value | int = 1) -> tuple[Signal, SimpleNamespace]:
    """Grant a port that requests, if ``free`` is set.

    Of several requests, that of the port is granted which comes first behind the one that was
    granted last, so that each port gets an equal part of the cycles.

    Returns
    -------
    granted : Signal
        A request is granted.
    chosen : SimpleNamespace
        Address and, of ports that write, data and enable of that port.
    """
    count = len(ports)
    last = Signal(max((count - 1).bit_length(), 1), name="granted_last")
    with m.Switch(last):
        for before in range(count):
            with m.Case(before):
                taken: Value = Value.cast(free)
                for step in range(count):
                    port = ports[(before + 1 + step) % count]
                    m.d.comb += port.grant.eq(port.request & taken)
                    taken = taken & ~port.request
    writes = "enable" in ports[0].signature.members
    chosen = SimpleNamespace()
    for name in ("address", "data", "enable") if writes else ("address",):
        signal = Signal(len(getattr(ports[0], name)), name=f"chosen_{name}")
        m.d.comb += signal.eq(getattr(ports[-1], name))
        for port in ports[:-1]:
            with m.If(port.grant):
                m.d.comb += signal.eq(getattr(port, name))
        setattr(chosen, name, signal)
    granted = Signal()
    m.d.comb += granted.eq(Cat(*(port.grant for port in ports)).any())
    for number, port in enumerate(ports):
        with m.If(port.grant):
            m.d.sync += last.eq(number)
    return granted, chosen


def rotate(m: Module, block: Value, places: Value, name: str) -> Value:
    """Return a block whose byte i comes from byte i - places, modulo the block."""
    value = block
    for level in range(len(places)):
        shift = 8 << level
        turned = Signal(len(block), name=f"{name}{level}")
        m.d.comb += turned.eq(Mux(places[level], Cat(value[-shift:], value[:-shift]), value))
        value = turned
    return value
