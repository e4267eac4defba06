"""Receiver and transmitter of a serial line: 8 data bits, no parity, 1 stop bit (8N1)."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.hdl.elaborate import name_states

#: Fewest clock cycles of a bit. The receiver needs them to sample a bit near its middle.
LEAST_DIVISOR = 4
#: Largest difference between the wanted and the possible baud rate, in thousandths.
_MOST_THOUSANDTHS = 10


def line_note(divisor: int, clock_hz: int, baud: int) -> str:
    """Return the line about a serial line in the header of emitted Verilog."""
    return (
        f"Line: {divisor} clock cycles for a bit ({baud} baud at {clock_hz} Hz), 8 data bits, no "
        "parity, 1 stop bit; docs/units/serial.md describes the frames."
    )


def divisor_of(clock_hz: int, baud: int) -> int:
    """Return the clock cycles of a bit, rounded to the nearest whole number.

    Parameters
    ----------
    clock_hz : int
        Frequency of the clock.
    baud : int
        Bits per second.

    Raises
    ------
    UserError
        If a bit takes fewer than ``LEAST_DIVISOR`` cycles, or if the rate that the divisor gives
        differs from ``baud`` by more than 1 %.
    """
    check_int("clock_hz", clock_hz, 1)
    check_int("baud", baud, 1)
    divisor = (2 * clock_hz + baud) // (2 * baud)
    if divisor < LEAST_DIVISOR:
        raise UserError(
            f"baud must be at most clock_hz / {LEAST_DIVISOR} = {clock_hz // LEAST_DIVISOR}, "
            f"not {baud}"
        )
    if abs(clock_hz - divisor * baud) * 1000 > _MOST_THOUSANDTHS * divisor * baud:
        raise UserError(
            f"baud must be within 1 % of clock_hz / n for a whole n (here {clock_hz} / {divisor} = "
            f"{round(clock_hz / divisor)}), not {baud}"
        )
    return divisor


class Receiver(wiring.Component):
    """Receiver of bytes.

    The line passes two flip-flops and then the majority of three successive samples, so that a
    disturbance of one clock cycle has no effect. A start bit that is no longer low in its middle is
    ignored. After a wrong stop bit, the receiver waits for a falling edge as after a right one.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit, at least ``LEAST_DIVISOR``.

    Members
    -------
    rx : In(1)
        The line, which need not be synchronous to the clock. It is 1 between bytes.
    data : Out(8)
        The byte, while ``valid`` is 1.
    valid : Out(1)
        1 for one cycle when a byte has arrived. There is no back-pressure.
    error : Out(1)
        1 for one cycle when a byte with a wrong stop bit has arrived. ``valid`` is 0 then.

    Latency
    -------
    The byte is valid 4 cycles after the middle of its stop bit.

    Raises
    ------
    TypeError, UserError
        If the divisor is not an int, or is too small.
    """

    if TYPE_CHECKING:
        rx: Signal
        data: Signal
        valid: Signal
        error: Signal

    def __init__(self, *, divisor: int):
        self.divisor = check_int("divisor", divisor, LEAST_DIVISOR)
        super().__init__({"rx": In(1), "data": Out(8), "valid": Out(1), "error": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, level, init=1)
        samples = Signal(2, init=0b11)
        line, before = Signal(init=1), Signal(init=1)
        votes = level & samples[0] | level & samples[1] | samples[0] & samples[1]
        m.d.sync += [samples.eq(Cat(level, samples[0])), line.eq(votes), before.eq(line)]

        count = Signal(range(self.divisor))
        sample = Signal()
        m.d.comb += sample.eq(count == 0)
        m.d.sync += count.eq(Mux(sample, self.divisor - 1, count - 1))
        # A one moves down from the top as a marker, ahead of the bits.
        bits = Signal(9)
        m.d.comb += self.data.eq(bits[1:])
        with m.FSM() as machine:
            with m.State("IDLE"):
                # The edge is seen one cycle late.
                m.d.sync += [count.eq(self.divisor // 2 - 1), bits.eq(1 << 8)]
                with m.If(before & ~line):
                    m.next = "START"
            with m.State("START"), m.If(sample):
                m.next = "DATA"
                with m.If(line):
                    m.next = "IDLE"
            with m.State("DATA"), m.If(sample):
                with m.If(bits[0]):
                    m.d.comb += [self.valid.eq(line), self.error.eq(~line)]
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += bits.eq(Cat(bits[1:], line))
        name_states(machine)
        return m


class Transmitter(wiring.Component):
    """Transmitter of bytes.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit, at least ``LEAST_DIVISOR``.

    Members
    -------
    i : In(stream.Signature(8))
        The bytes.
    tx : Out(1)
        The line, which comes from a flip-flop and is 1 between bytes.

    Latency
    -------
    The start bit begins in the cycle after the transfer of a byte. A byte takes 10 · ``divisor``
    cycles, and successive bytes follow without a gap.

    Raises
    ------
    TypeError, UserError
        If the divisor is not an int, or is too small.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        tx: Signal

    def __init__(self, *, divisor: int):
        self.divisor = check_int("divisor", divisor, LEAST_DIVISOR)
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(range(self.divisor))
        # The stop bit is a one with zeros behind it, which mark the end of the byte.
        bits = Signal(10, init=1)
        done = Signal()
        m.d.comb += [
            self.tx.eq(bits[0]),
            done.eq(count == 0),
            self.i.ready.eq(done & ~bits[1:].any()),
        ]
        with m.If(~done):
            m.d.sync += count.eq(count - 1)
        with m.Elif(bits[1:].any()):
            m.d.sync += [count.eq(self.divisor - 1), bits.eq(bits[1:])]
        with m.Elif(self.i.valid):
            m.d.sync += [
                count.eq(self.divisor - 1),
                bits.eq(Cat(Const(0, 1), self.i.payload, Const(1, 1))),
            ]
        return m
