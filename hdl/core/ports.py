"""The ports between units and memories, in blocks of 32 bytes."""

from types import MappingProxyType, SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

#: Bytes of a block, and bits of a byte's place in it.
BLOCK_BYTES, PLACE_BITS = 32, 5
BLOCK_BITS = 8 * BLOCK_BYTES
#: Bits of an address in bytes, and in blocks.
ADDRESS_BITS = 32
ROW_BITS = ADDRESS_BITS - PLACE_BITS
#: Attributes of a memory whose reads may find anything in the cycle in which their word is written:
#: all bytes of a word of 2 or 4, as a block RAM has them. Flags and the stalls of V prevent it for
#: bytes that are written, but not for their neighbours in a word (docs/decisions/0042-board.md).
#: Without them, Yosys gives every memory a bypass that keeps the old word for such a read.
UNCHECKED: Any = MappingProxyType({"no_rw_check": 1})


class ReadPort(wiring.Signature):
    """Port of a unit that reads.

    Parameters
    ----------
    blocks : int
        Blocks of a line, which is read at once: a power of two.

    Members
    -------
    request, address : Out(1), Out(27 - log2(blocks))
        A line is asked for.
    grant : In(1)
        The request is taken in this cycle.
    valid, data : In(1), In(256 × blocks)
        A line, in the order of the grants, at least one cycle after its grant. The unit must take
        it at once.
    """

    def __init__(self, blocks: int = 1) -> None:
        self.blocks = blocks
        super().__init__(
            {
                "request": Out(1),
                "address": Out(ROW_BITS - bits(blocks)),
                "grant": In(1),
                "valid": In(1),
                "data": In(blocks * BLOCK_BITS),
            }
        )


class WritePort(wiring.Signature):
    """Port of a unit that writes.

    Parameters
    ----------
    blocks : int
        Blocks of a line, which is written at once: a power of two.
    turns : bool
        The port can ask for a transposed fractal.

    Members
    -------
    request, address : Out(1), Out(27 - log2(blocks))
    data, enable : Out(256 × blocks), Out(32 × blocks)
        A line, and a bit for each of its bytes that is written.
    turned : Out(1), only with ``turns``
        The blocks of the line are columns of the fractal instead of its rows.
    grant : In(1)
        The request is taken in this cycle; reads that are granted later see the line.
    """

    def __init__(self, blocks: int = 1, *, turns: bool = False) -> None:
        self.blocks = blocks
        super().__init__(
            {
                "request": Out(1),
                "address": Out(ROW_BITS - bits(blocks)),
                "data": Out(blocks * BLOCK_BITS),
                "enable": Out(blocks * BLOCK_BYTES),
                "grant": In(1),
            }
            | ({"turned": Out(1)} if turns else {})
        )


def bits(count: int) -> int:
    """Return the bits of a number below ``count``."""
    return (count - 1).bit_length()


def connect_read(m: Module, unit: Any, memory: Any, may: Value | int = 1) -> None:
    """Connect a unit that reads, while ``may`` is set, to a memory with lines as long or longer.

    The memory must give a line in the cycle after its grant.
    """
    low = bits(len(memory.data) // len(unit.data))
    m.d.comb += [
        memory.request.eq(unit.request & may),
        memory.address.eq(unit.address >> low),
        unit.grant.eq(memory.grant),
        unit.valid.eq(memory.valid),
    ]
    if not low:
        m.d.comb += unit.data.eq(memory.data)
        return
    place = Signal(low)
    m.d.sync += place.eq(unit.address[:low])
    m.d.comb += unit.data.eq(memory.data.word_select(place, len(unit.data)))


def connect_write(m: Module, unit: Any, memory: Any, here: Value | int = 1) -> None:
    """Connect a unit that writes, if ``here`` is set, to a memory with lines as long or longer."""
    low = bits(len(memory.data) // len(unit.data))
    place = unit.address[:low] if low else Const(0, 1)
    m.d.comb += [
        memory.request.eq(unit.request & here),
        memory.address.eq(unit.address >> low),
        memory.data.eq(unit.data.replicate(1 << low)),
        memory.enable.eq(
            Cat(*(unit.enable & (place == n).replicate(len(unit.enable)) for n in range(1 << low)))
        ),
    ]
    if hasattr(memory, "turned"):
        m.d.comb += memory.turned.eq(unit.turned if hasattr(unit, "turned") else 0)
    with m.If(here):
        m.d.comb += unit.grant.eq(memory.grant)


def connect_split(m: Module, unit: Any, memory: Any, here: Value) -> None:
    """Connect a unit that writes lines to a memory of blocks: a block with bytes takes a cycle."""
    count = len(unit.data) // len(memory.data)
    if count == 1:
        connect_write(m, unit, memory, here)
        return
    number, step = Signal(range(count)), Signal()
    enable = unit.enable.word_select(number, BLOCK_BYTES)
    m.d.comb += [
        memory.request.eq(unit.request & here & enable.any()),
        memory.address.eq(Cat(number, unit.address)),
        memory.data.eq(unit.data.word_select(number, BLOCK_BITS)),
        memory.enable.eq(enable),
        step.eq(unit.request & here & (memory.grant | ~enable.any())),
    ]
    with m.If(step):
        m.d.sync += number.eq(number + 1)
    with m.If(here):
        m.d.comb += unit.grant.eq(step & number.all())


def take_turns(m: Module, asks: list[Value], free: Value | int, done: Value | int) -> Signal:
    """Pick one of those that ask, if ``free`` is set.

    Of several, it is the one that comes first behind the one that was picked last with ``done``, so
    that each gets an equal part of the cycles.

    Returns
    -------
    picks : Signal
        A bit for each of them.
    """
    count = len(asks)
    picks = Signal(count, name="picks")
    last = Signal(max(bits(count), 1), name="picked_last")
    with m.Switch(last):
        for before in range(count):
            with m.Case(before):
                left: Value = Value.cast(free)
                for step in range(count):
                    number = (before + 1 + step) % count
                    m.d.comb += picks[number].eq(asks[number] & left)
                    left = left & ~asks[number]
    for number in range(count):
        with m.If(picks[number] & done):
            m.d.sync += last.eq(number)
    return picks


def choose(
    m: Module, ports: list[Any], free: Value | int = 1, done: Value | int = 1
) -> tuple[Signal, SimpleNamespace]:
    """Take a port that requests, if ``free`` is set; grant its request with ``done``.

    The ports take turns.

    Returns
    -------
    taken : Signal
        A request is taken, and granted with ``done``.
    chosen : SimpleNamespace
        Address and, of ports that write, data and enable of that port. ``picks`` has a bit for each
        port.
    """
    picks = take_turns(m, [port.request for port in ports], free, done)
    chosen = SimpleNamespace(picks=picks)
    m.d.comb += [port.grant.eq(pick & done) for port, pick in zip(ports, picks, strict=True)]
    members = ports[0].signature.members
    for name in (n for n in ("address", "data", "enable", "turned") if n in members):
        signal = Signal(len(getattr(ports[0], name)), name=f"chosen_{name}")
        m.d.comb += signal.eq(getattr(ports[-1], name))
        for port, pick in zip(ports[:-1], picks, strict=False):
            with m.If(pick):
                m.d.comb += signal.eq(getattr(port, name))
        setattr(chosen, name, signal)
    taken = Signal()
    m.d.comb += taken.eq(picks.any())
    return taken, chosen


def rotate(
    m: Module, block: Value, places: Value, name: str, *, step: int = 1, unit: int = 8
) -> Value:
    """Return a block whose part i comes from part i - step·places, modulo the block.

    Parameters
    ----------
    unit : int
        Bits of a part.
    """
    value = block
    for level in range(len(places)):
        shift = unit * step << level
        turned = Signal(len(block), name=f"{name}{level}")
        m.d.comb += turned.eq(Mux(places[level], Cat(value[-shift:], value[:-shift]), value))
        value = turned
    return value
