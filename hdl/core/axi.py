"""A core between an AXI4 master and an AXI4-Lite target."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Module,
    Mux,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ..bus.clock import CLOCKING
from ..bus.lite import LitePort
from ..bus.registers import Register
from .axi_master import AxiMaster, connect_master, master_members
from .config import CoreConfig
from .core import Core
from .registers import CORE_REGISTERS, CoreRegisters


class CoreAxi(LitePort):
    """Core with its memory at an AXI4 master and its registers at an AXI4-Lite target.

    Parameters
    ----------
    config : CoreConfig
    width : int
        Bits of the data of the master, 64, 128 or 256.
    burst_blocks : int
        Most blocks of 32 bytes in a burst (``AxiMaster``).

    Members
    -------
    aclk, aresetn : In(1)
        Clock, and synchronous reset, active low.
    interrupt : Out(1)
        A program has ended and ``enable`` allows the interrupt.
    s_axi_…
        AXI4-Lite target, as that of ``LiteUnit``: the registers ``CORE_REGISTERS``.
    m_axi_…
        AXI4 master: addresses of 32 bits, bursts with rising addresses, an ID of one bit (with FIX
        two).

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed.
    """

    shared = Core.shared
    #: Lines of the header of emitted Verilog.
    clocking = CLOCKING

    if TYPE_CHECKING:
        interrupt: Signal

    def __init__(self, *, config: CoreConfig, width: int = 64, burst_blocks: int = 8):
        self.config = config
        self.core, self.master = (
            Core(config=config),
            AxiMaster(width=width, burst_blocks=burst_blocks, sources=2 + config.fix),
        )
        super().__init__(interrupt=Out(1), **master_members(width, self.master.id_bits))

    def registers(self) -> tuple[Register, ...]:
        return CORE_REGISTERS

    def build_registers(self, m: Module) -> Any:
        m.submodules.registers = registers = CoreRegisters()
        m.submodules.master = master = self.master
        core = self.core
        m.domains.core = ClockDomain("core", local=True)
        m.d.comb += [
            ClockSignal("core").eq(ClockSignal("sync")),
            ResetSignal("core").eq(ResetSignal("sync") | registers.clear),
        ]
        m.submodules.core = DomainRenamer({"sync": "core"})(core)
        wiring.connect(m, core.fetch, master.fetch)
        wiring.connect(m, core.r, master.read)
        wiring.connect(m, core.w, master.write)
        m.d.comb += [
            core.fetch_error.eq(master.fetch_error),
            core.r_error.eq(master.read_error),
            master.source.eq(core.w_source),
            core.w_open.eq(master.write_open),
            core.w_error.eq(master.write_error),
            core.start.eq(registers.start),
            core.address.eq(registers.address),
            registers.running.eq(core.running),
            registers.fault.eq(core.fault),
            registers.origin.eq(core.origin),
            master.hold.eq(registers.hold),
            registers.resting.eq(master.idle),
            self.interrupt.eq(registers.interrupt),
        ]
        for n in range(len(self.config.units)):  # the others, a FIX that is not there, are 0
            for name in ("waits", "busy"):
                target, source = getattr(registers, name)[n], getattr(core, name)[n]
                m.d.comb += Value.cast(target).eq(Value.cast(source))
            total, written = registers.bytes[n], core.written[n]
            count = Signal(32, name=f"bytes{n}")
            m.d.sync += count.eq(Mux(core.start, 0, count + written))
            m.d.comb += total.eq(count)
        connect_master(m, self, master)
        return registers.bus
