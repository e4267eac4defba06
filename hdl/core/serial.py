"""A core with its global memory at the end of a serial line: the top module of a board."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int

from ..bus.bridge import QUIET_BITS, UartBridge
from ..bus.uart import divisor_of, line_note
from .access import CoreAccess
from .buffer import BlockMemory
from .config import CORES, CoreConfig
from .core import Core
from .faults import Fault
from .ports import BLOCK_BYTES


class SerialCore(wiring.Component):
    """Core whose global memory, program and counters a host reaches over a serial line.

    Parameters
    ----------
    config : CoreConfig
    memory_bytes : int
        Bytes of global memory, which the FPGA holds; a multiple of 32.
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
        1 while a request is received, executed or answered, and while a program runs.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type, or is out of range.
    """

    shared = Core.shared
    #: The flow takes its options for designs that nearly fill a chip.
    dense = True

    if TYPE_CHECKING:
        rx: Signal
        tx: Signal
        led: Signal

    def __init__(
        self,
        *,
        config: CoreConfig,
        memory_bytes: int,
        clock_hz: int,
        baud: int,
        quiet_bits: int = QUIET_BITS,
    ):
        if not isinstance(config, CoreConfig):
            raise TypeError(f"config must be a CoreConfig, not {config!r}")
        check_int("memory_bytes", memory_bytes, 2 * BLOCK_BYTES)
        if memory_bytes % BLOCK_BYTES:
            raise ValueError(f"memory_bytes must be a multiple of 32, not {memory_bytes}")
        self.config, self.memory_bytes = config, memory_bytes
        self.divisor = divisor_of(clock_hz, baud)
        self.clock_hz, self.baud, self.quiet_bits = clock_hz, baud, quiet_bits
        super().__init__({"rx": In(1), "tx": Out(1), "led": Out(1)})

    @property
    def notes(self) -> list[str]:
        """Lines of the header of emitted Verilog: the line and the registers."""
        return [
            line_note(self.divisor, self.clock_hz, self.baud),
            "Registers: docs/units/core.md describes them.",
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = UartBridge(divisor=self.divisor, quiet_bits=self.quiet_bits)
        names = {config: name for name, config in CORES.items()}
        name = names.get(self.config, "")
        m.submodules.access = access = CoreAccess(name=name, memory_bytes=self.memory_bytes)
        wiring.connect(m, bridge.bus, access.bus)
        # Core and memory have a domain of their own, which a write to control resets.
        m.domains.core = ClockDomain("core", local=True)
        m.d.comb += [
            ClockSignal("core").eq(ClockSignal()),
            ResetSignal("core").eq(ResetSignal() | access.clear),
        ]
        core: Any = Core(config=self.config)
        m.submodules.core = DomainRenamer("core")(core)
        memory = BlockMemory(blocks=self.memory_bytes // BLOCK_BYTES, readers=3, writers=2)
        m.submodules.memory = DomainRenamer("core")(memory)
        for port, target in zip((core.r, core.fetch, access.r), memory.r, strict=True):
            wiring.connect(m, port, target)
        for port, target in zip((core.w, access.w), memory.w, strict=True):
            wiring.connect(m, port, target)
        cycles = Signal(32)
        with m.If(core.start):
            m.d.sync += cycles.eq(0)
        with m.Elif(core.running):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            self.led.eq(bridge.busy | (core.running & (core.fault == Fault.NONE))),
            core.start.eq(access.start),
            core.address.eq(access.address),
            access.running.eq(core.running),
            access.fault.eq(core.fault),
            access.origin.eq(core.origin),
            Cat(*(Value.cast(wait) for wait in access.waits)).eq(
                Cat(*(Value.cast(wait) for wait in core.waits))
            ),
            Cat(*access.counters).eq(Cat(cycles, *core.busy)),
        ]
        return m
