"""A core with its global memory at the end of a serial line: the top module of a board."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    DomainRenamer,
    Module,
    Mux,
    ResetSignal,
    Signal,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_int
from vitruvian.golden.core.encoding import VERSION as ENCODING

from ..bus.bridge import QUIET_BITS, UartBridge
from ..bus.registers import WORD_BITS
from ..bus.uart import divisor_of
from .buffer import BlockMemory
from .config import CORES, CoreConfig
from .core import Core
from .fetch import Fault
from .ports import ADDRESS_BITS, BLOCK_BYTES, PLACE_BITS
from .serial_map import COUNTERS, IDENTITY, MAP, NAME_BYTES, VERSION

_WORD_BYTES = WORD_BITS // 8
_WORDS = BLOCK_BYTES // _WORD_BYTES


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
            f"Line: {self.divisor} clock cycles for a bit ({self.baud} baud at {self.clock_hz} Hz)"
            ", 8 data bits, no parity, 1 stop bit; docs/units/serial.md describes the frames.",
            "Registers: docs/units/core.md describes them.",
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = UartBridge(divisor=self.divisor, quiet_bits=self.quiet_bits)
        # The core has a domain of its own, which a write to control resets. Memories keep theirs.
        m.domains.core = ClockDomain("core", local=True)
        clear = Signal()
        m.d.comb += [
            ClockSignal("core").eq(ClockSignal()),
            ResetSignal("core").eq(ResetSignal() | clear),
        ]
        core: Any = Core(config=self.config)
        m.submodules.core = DomainRenamer("core")(core)
        blocks = self.memory_bytes // BLOCK_BYTES
        memory = BlockMemory(blocks=blocks, readers=3, writers=2)
        m.submodules.memory = DomainRenamer("core")(memory)
        wiring.connect(m, core.r, memory.r[0])
        wiring.connect(m, core.fetch, memory.r[1])
        wiring.connect(m, core.w, memory.w[0])
        cycles = Signal(32)
        with m.If(core.start):
            m.d.sync += cycles.eq(0)
        with m.Elif(core.running):
            m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += [
            bridge.rx.eq(self.rx),
            self.tx.eq(bridge.tx),
            self.led.eq(bridge.busy | (core.running & (core.fault == Fault.NONE))),
        ]
        values = {
            "status": Cat(core.running & (core.fault == Fault.NONE), Const(0, 3), core.fault),
            **dict(zip(COUNTERS, (cycles, *core.busy), strict=True)),
        }
        self._build_access(m, bridge.bus, core, memory, values, clear)
        return m

    def _constants(self) -> dict[str, int]:
        """Return the values of the registers that describe the core."""
        known = {config: name for name, config in CORES.items()}
        name = known.get(self.config, "").encode().ljust(NAME_BYTES, b"\0")
        return {
            "identity": IDENTITY,
            "version": VERSION,
            "encoding": ENCODING,
            "name_low": int.from_bytes(name[:4], "little"),
            "name_high": int.from_bytes(name[4:], "little"),
            "memory_bytes": self.memory_bytes,
        }

    def _build_access(
        self, m: Module, bus: Any, core: Any, memory: Any, values: dict[str, Any], clear: Signal
    ) -> None:
        """Carry out one access after the other."""
        request, response = bus.request, bus.response
        own, host = memory.r[2], memory.w[1]
        address = Signal(ADDRESS_BITS)
        word = address[2:PLACE_BITS]
        write, full, waits = request.payload.write, Signal(), Signal()
        answer = Signal(WORD_BITS)
        chosen = {
            name: request.payload.address == register.address for name, register in MAP.items()
        }
        asks = request.valid & ~full & ~waits & ~clear
        control = asks & write & chosen["control"]
        reads, writes = asks & chosen["data"] & ~write, asks & chosen["data"] & write
        m.d.comb += [
            core.start.eq(control & request.payload.data[0]),
            core.address.eq(address),
            own.request.eq(reads),
            own.address.eq(address[PLACE_BITS:]),
            host.request.eq(writes),
            host.address.eq(address[PLACE_BITS:]),
            host.data.eq(request.payload.data.replicate(_WORDS)),
            host.enable.eq(((1 << _WORD_BYTES) - 1) << (word << 2)),
            request.ready.eq(asks & Mux(chosen["data"], Mux(write, host.grant, own.grant), 1)),
            response.valid.eq(full),
            response.payload.eq(answer),
        ]
        # The bit of control comes one cycle after the write, and no access is taken then.
        m.d.sync += clear.eq(control & request.payload.data[1])
        taken = request.valid & request.ready
        with m.If(taken & chosen["address"] & write):
            m.d.sync += address.eq(request.payload.data)
        with m.Elif(taken & chosen["data"]):
            m.d.sync += [address.eq(address + _WORD_BYTES), waits.eq(~write)]
        place = Signal(len(word))
        with m.If(taken):
            m.d.sync += [full.eq(write | ~chosen["data"]), answer.eq(0), place.eq(word)]
            with m.If(~write):
                for name, value in {**self._constants(), **values}.items():
                    with m.If(chosen[name]):
                        m.d.sync += answer.eq(value)
        with m.Elif(own.valid):
            m.d.sync += [
                answer.eq(own.data.word_select(place, WORD_BITS)),
                full.eq(1),
                waits.eq(0),
            ]
        with m.Elif(response.ready):
            m.d.sync += full.eq(0)
