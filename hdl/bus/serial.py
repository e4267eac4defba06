"""A matrix unit at the end of a serial line: the top module of a small board."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .bridge import QUIET_BITS, UartBridge
from .core import SHARED, BusCore
from .mailbox import Mailbox
from .uart import divisor_of, line_note


class SerialUnit(wiring.Component):
    """Matrix unit with registers that a host reaches over a serial line.

    Parameters
    ----------
    core : BusCore
        The matrix unit.
    clock_hz : int
        Frequency of the clock.
    baud : int
        Bits per second of the line; see ``hdl.bus.uart.divisor_of``.
    quiet_bits : int
        Bits of silence that end a damaged frame; see ``UartBridge``.

    Members
    -------
    rx : In(1)
        The line from the host, which need not be synchronous to the clock.
    tx : Out(1)
        The line to the host.
    led : Out(1)
        1 while a request is received, executed or answered.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type, or is out of range.
    """

    shared = SHARED

    if TYPE_CHECKING:
        rx: Signal
        tx: Signal
        led: Signal

    def __init__(
        self,
        *,
        core: BusCore,
        clock_hz: int,
        baud: int,
        quiet_bits: int = QUIET_BITS,
    ):
        if not isinstance(core, BusCore):
            raise TypeError(f"core must be a Core, not {core!r}")
        self.core, self.config = core, core.config
        self.divisor = divisor_of(clock_hz, baud)
        self.clock_hz, self.baud, self.quiet_bits = clock_hz, baud, quiet_bits
        super().__init__({"rx": In(1), "tx": Out(1), "led": Out(1)})

    @property
    def notes(self) -> list[str]:
        """Lines of the header of emitted Verilog: the line and the registers."""
        return [
            line_note(self.divisor, self.clock_hz, self.baud),
            "Registers: MODULE_registers.h and MODULE_registers.py beside this file have the "
            "offsets, the fields and the codes; docs/units/bus.md describes them.",
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = UartBridge(divisor=self.divisor, quiet_bits=self.quiet_bits)
        m.submodules.mailbox = mailbox = Mailbox(core=self.core)
        wiring.connect(m, bridge.bus, mailbox.bus)
        m.d.comb += [bridge.rx.eq(self.rx), self.tx.eq(bridge.tx), self.led.eq(bridge.busy)]
        return m
