"""The bridge from a serial line to registers, small enough for the smallest FPGAs."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int
from vitruvian.hdl.elaborate import name_states

from .frames import REQUEST, RESPONSE, Crc16, Status, command_layout
from .registers import ADDRESS_BITS, WORD_BITS, RegisterBus
from .uart import Receiver, Transmitter

#: Bits after which a silent line ends a frame, by default. At 1 Mbaud this is 4 ms, more than the
#: pauses that an operating system and a USB adapter make inside of a frame.
QUIET_BITS = 4096

#: Bytes of the buffer for the payload of a request, and of that for a response.
_HALF = 256


class UartBridge(wiring.Component):
    """Bridge that executes the requests of a serial line on registers.

    A request is executed when all of it has arrived and its CRC is right. Its payload waits in a
    buffer until then, so a damaged request has no effect. The answers of the registers are buffered
    as well: a request with the same sequence number as the request before, which must be a
    repetition, is not executed again, but gets the same response. The number 0 is exempt. It
    begins a session, since the bridge cannot know the last number of another host.

    After a damaged request, the bridge ignores the line until it has been silent for
    ``quiet_bits``, and then responds with ``Status.REFUSED``. The same happens when bytes arrive
    before the last response has been sent.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit; see ``hdl.bus.uart.divisor_of``.
    quiet_bits : int
        Length of the silence in bits, which is rounded up to a power of two clock cycles. It must
        be at least 16, so that it does not end within a byte.

    Members
    -------
    rx : In(1)
        The line from the host, which need not be synchronous to the clock.
    tx : Out(1)
        The line to the host.
    busy : Out(1)
        1 from the first byte of a request to the last byte of its response.
    bus : Out(RegisterBus())
        The registers.

    Latency
    -------
    The first request on ``bus`` comes at most 24 cycles after the last byte of a frame. A written
    word takes 9 cycles and those of the registers, and a read word 5 and those of the registers.

    Raises
    ------
    TypeError, UserError
        If a parameter is not an int, or is too small.
    """

    if TYPE_CHECKING:
        rx: Signal
        tx: Signal
        busy: Signal
        bus: Any

    def __init__(self, *, divisor: int, quiet_bits: int = QUIET_BITS):
        check_int("quiet_bits", quiet_bits, 16)
        self.divisor, self.quiet_bits = divisor, quiet_bits
        self.quiet_cycles = 1 << (quiet_bits * divisor - 1).bit_length()
        super().__init__({"rx": In(1), "tx": Out(1), "busy": Out(1), "bus": Out(RegisterBus())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver = receiver = Receiver(divisor=self.divisor)
        m.submodules.transmitter = transmitter = Transmitter(divisor=self.divisor)
        m.submodules.crc = crc = Crc16()
        m.submodules.buffer = buffer = Memory(shape=8, depth=2 * _HALF, init=[])
        parts = _Parts(receiver, transmitter, crc, buffer)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            crc.data.eq(transmitter.i.payload),
            parts.written.addr.eq(Cat(parts.at, 0)),
            parts.written.data.eq(receiver.data),
            parts.read.addr.eq(Cat(parts.at, 0)),
            parts.end.eq(parts.at[2:] == parts.limit),
            parts.limit.eq(Mux(parts.command.write, parts.command.count, 0)),
            self.bus.request.payload.write.eq(parts.command.write),
            self.bus.request.payload.address.eq(parts.address),
            self.bus.request.payload.data.eq(parts.word),
        ]

        # The line is silent for long, or bytes came that no state has taken.
        arrived = Signal()
        silence, lost = Signal(range(self.quiet_cycles + 1)), Signal()
        quiet = silence[-1]
        m.d.comb += arrived.eq(receiver.valid | receiver.error)
        with m.If(arrived | ~self.busy):
            m.d.sync += silence.eq(0)
        with m.Elif(~quiet):
            m.d.sync += silence.eq(silence + 1)
        m.d.comb += self.busy.eq(1)
        with m.If(arrived & ~parts.taken):
            m.d.sync += lost.eq(1)

        with m.FSM() as machine:
            with m.State("IDLE"):
                m.d.comb += [self.busy.eq(0), crc.clear.eq(1)]
                m.d.sync += lost.eq(0)
                with m.If(arrived):
                    m.next = "LOST"
                with m.If(receiver.valid & (receiver.data == REQUEST)):
                    m.next = "SEQUENCE"
            self._build_receiving(m, parts, quiet)
            self._build_execution(m, parts)
            with m.State("LOST"):
                m.d.sync += [lost.eq(0), parts.at.eq(0), parts.command.eq(0)]
                m.d.sync += parts.status.eq(Status.REFUSED)
                with m.If(quiet):
                    m.next = "SEND_FIRST"
            self._build_sending(m, parts, lost)
        name_states(machine)
        return m

    def _build_receiving(self, m: Module, parts: "_Parts", quiet: Value) -> None:
        """Add the states that receive a request behind its first byte, and check it."""
        data = parts.receiver.data

        @contextmanager
        def byte(name: str) -> Generator[None]:
            """Add a state that takes a byte and executes the block with it."""
            with m.State(name):
                m.d.comb += [parts.taken.eq(1), parts.crc.data.eq(data)]
                with m.If(parts.receiver.valid):
                    m.d.comb += parts.crc.put.eq(1)
                    yield
                with m.Elif(parts.receiver.error | quiet):
                    m.next = "LOST"

        with byte("SEQUENCE"):
            m.d.sync += parts.sequence.eq(data)
            m.next = "COMMAND"
        with byte("COMMAND"):
            m.d.sync += [parts.command.as_value().eq(data), parts.status.eq(Status.DONE)]
            m.next = "ADDRESS"
        with byte("ADDRESS"):
            m.d.sync += [parts.address.eq(data), parts.at.eq(0)]
            m.next = "PAYLOAD"
        with byte("PAYLOAD"):
            # The CRC of two bytes is stored behind the payload.
            m.d.comb += parts.written.en.eq(1)
            m.d.sync += parts.at.eq(parts.at + 1)
            with m.If(parts.end & parts.at[0]):
                m.d.sync += parts.at.eq(0)
                m.next = "CHECK"
        with m.State("CHECK"), m.If(~parts.crc.busy):
            with m.If(parts.crc.value != 0):
                m.next = "LOST"
            with m.Elif((parts.sequence == parts.last) & parts.last.any()):
                m.next = "SEND_FIRST"  # the response is still in the buffer
            with m.Else():
                m.next = "NEXT"

    def _build_execution(self, m: Module, parts: "_Parts") -> None:
        """Add the states that execute a request word by word."""
        request, response = self.bus.request, self.bus.response
        last_byte = parts.at[:2].all()
        with m.State("NEXT"):
            m.d.comb += parts.limit.eq(parts.command.count)
            m.next = "REQUEST"
            with m.If(parts.command.write):
                m.next = "FETCH"
            with m.If(parts.end):
                m.d.sync += [parts.at.eq(0), parts.last.eq(parts.sequence)]
                m.next = "SEND_FIRST"
        with m.State("FETCH"):
            m.next = "SHIFT"
        with m.State("SHIFT"):
            m.d.sync += [
                parts.word.eq(Cat(parts.word[8:], parts.read.data)),
                parts.at.eq(parts.at + 1),
            ]
            m.next = "FETCH"
            with m.If(last_byte):
                m.next = "REQUEST"
        with m.State("REQUEST"):
            m.d.comb += request.valid.eq(1)
            with m.If(request.ready):
                m.next = "ANSWER"
        with m.State("ANSWER"):
            m.d.comb += [
                parts.written.addr.eq(Cat(parts.at, 1)),
                parts.written.data.eq(response.payload.word_select(parts.at[:2], 8)),
                response.ready.eq(parts.command.write | last_byte),
            ]
            with m.If(response.valid):
                with m.If(~parts.command.write):
                    m.d.comb += parts.written.en.eq(1)
                    m.d.sync += parts.at.eq(parts.at + 1)
                with m.If(response.ready):
                    m.d.sync += parts.address.eq(parts.address + parts.command.increment)
                    m.next = "NEXT"

    def _build_sending(self, m: Module, parts: "_Parts", lost: Value) -> None:
        """Add the states that send a response."""
        out, crc, sent = parts.transmitter.i, parts.crc, Signal()
        m.d.comb += sent.eq(out.valid & out.ready)

        @contextmanager
        def byte(name: str, value: ValueLike, *, covered: bool = True) -> Generator[None]:
            """Add a state that sends a byte and executes the block when that has begun."""
            with m.State(name):
                m.d.comb += [out.valid.eq(1), out.payload.eq(value)]
                m.d.comb += crc.put.eq(sent & covered)
                with m.If(sent):
                    yield

        with byte("SEND_FIRST", RESPONSE, covered=False):
            m.d.comb += crc.clear.eq(1)
            m.next = "SEND_SEQUENCE"
        with byte("SEND_SEQUENCE", parts.sequence):
            m.next = "SEND_STATUS"
        count = Mux(parts.command.write, 0, parts.command.count)
        with byte("SEND_STATUS", Cat(count, Const(0, 1), parts.status)):
            m.next = "SEND_PAYLOAD"
        with m.State("SEND_PAYLOAD"):
            m.d.comb += [
                parts.limit.eq(count),
                parts.read.addr.eq(Cat(parts.at, 1)),
                out.valid.eq(~parts.end),
                out.payload.eq(parts.read.data),
                crc.put.eq(sent),
            ]
            with m.If(parts.end):
                m.next = "SEND_HIGH"
            with m.Elif(sent):
                m.d.sync += parts.at.eq(parts.at + 1)
        with byte("SEND_HIGH", crc.value[8:], covered=False):
            m.next = "SEND_LOW"
        with byte("SEND_LOW", crc.value[:8], covered=False):
            m.next = "IDLE"
            with m.If(lost):
                m.next = "LOST"


class _Parts:
    """The submodules and the registers of a bridge, which its states share."""

    def __init__(self, receiver: Receiver, transmitter: Transmitter, crc: Crc16, buffer: Memory):
        self.receiver, self.transmitter, self.crc = receiver, transmitter, crc
        #: The low half of the buffer has the payload of a request, the high half of a response.
        self.written, self.read = buffer.write_port(), buffer.read_port()
        self.sequence, self.last = Signal(8), Signal(8)
        self.command = Signal(command_layout())
        self.address = Signal(ADDRESS_BITS)
        self.status = Signal(Status)
        self.word = Signal(WORD_BITS)
        #: Byte of the payload, number of words after which it ends, and whether it has ended.
        self.at, self.limit, self.end = Signal(range(_HALF)), Signal(6), Signal()
        #: The present state takes a byte of the line.
        self.taken = Signal()
