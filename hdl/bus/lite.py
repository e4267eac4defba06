"""A matrix unit behind an AXI4-Lite port."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from .clock import CLOCK_PORTS, CLOCKING, use_clock
from .core import SHARED, BusCore
from .mailbox import Mailbox
from .registers import ADDRESS_BITS, WORD_BITS, Register, registers_of

#: Bits of a byte address.
BYTE_ADDRESS_BITS = ADDRESS_BITS + 2


class Reply(enum.Enum, shape=2):
    """The response to an access: ``OKAY``, or ``SLVERR`` if it is not allowed."""

    OKAY = 0
    SLVERR = 2


class LitePort(wiring.Component):
    """AXI4-Lite target with the port names of Vivado, in front of a register bus.

    Parameters
    ----------
    **members
        Further members of the component.
    """

    if TYPE_CHECKING:
        aclk: Signal
        aresetn: Signal
        s_axi_awaddr: Signal
        s_axi_awvalid: Signal
        s_axi_awready: Signal
        s_axi_wdata: Signal
        s_axi_wstrb: Signal
        s_axi_wvalid: Signal
        s_axi_wready: Signal
        s_axi_bresp: Signal
        s_axi_bvalid: Signal
        s_axi_bready: Signal
        s_axi_araddr: Signal
        s_axi_arvalid: Signal
        s_axi_arready: Signal
        s_axi_rdata: Signal
        s_axi_rresp: Signal
        s_axi_rvalid: Signal
        s_axi_rready: Signal

    def __init__(self, **members: Any):
        super().__init__(
            {
                **CLOCK_PORTS,
                "s_axi_awaddr": In(BYTE_ADDRESS_BITS),
                "s_axi_awvalid": In(1),
                "s_axi_awready": Out(1),
                "s_axi_wdata": In(WORD_BITS),
                "s_axi_wstrb": In(WORD_BITS // 8),
                "s_axi_wvalid": In(1),
                "s_axi_wready": Out(1),
                "s_axi_bresp": Out(Reply),
                "s_axi_bvalid": Out(1),
                "s_axi_bready": In(1),
                "s_axi_araddr": In(BYTE_ADDRESS_BITS),
                "s_axi_arvalid": In(1),
                "s_axi_arready": Out(1),
                "s_axi_rdata": Out(WORD_BITS),
                "s_axi_rresp": Out(Reply),
                "s_axi_rvalid": Out(1),
                "s_axi_rready": In(1),
                **members,
            }
        )

    def registers(self) -> tuple[Register, ...]:
        """Return the registers behind the port."""
        raise NotImplementedError

    def build_registers(self, m: Module) -> Any:
        """Make the registers, and return their ``RegisterBus``."""
        raise NotImplementedError

    def elaborate(self, platform: object) -> Module:
        m = Module()
        use_clock(m, self.aclk, self.aresetn)
        bus = self.build_registers(m)
        request, response = bus.request, bus.response

        # Each channel holds one item, until the access that it belongs to is done.
        wrote, read = Signal(), Signal()
        aw_full, w_full, ar_full = Signal(), Signal(), Signal()
        address, data, strobes = (
            self._held(m, aw_full, wrote, "aw", self.s_axi_awaddr[2:]),
            self._held(m, w_full, wrote, "w", self.s_axi_wdata),
            self._held(m, w_full, wrote, "w", self.s_axi_wstrb),
        )
        read_address = self._held(m, ar_full, read, "ar", self.s_axi_araddr[2:])

        may_write, may_read, writes = Signal(), Signal(), Signal()
        waits, stalls, last_wrote, chosen = Signal(), Signal(), Signal(), Signal()
        whole, allowed = Signal(), Signal()
        m.d.comb += [
            may_write.eq(aw_full & w_full & ~self.s_axi_bvalid),
            may_read.eq(ar_full & ~self.s_axi_rvalid),
            # The choice stays until the access is done.
            writes.eq(Mux(waits | stalls, chosen, may_write & ~(may_read & last_wrote))),
            whole.eq(strobes.all()),
            request.payload.write.eq(writes),
            request.payload.address.eq(Mux(writes, address, read_address)),
            request.payload.data.eq(data),
            request.valid.eq(~waits & Mux(writes, whole, may_read)),
            response.ready.eq(waits),
        ]
        registers = self.registers()
        writable, readable = (
            Cat(*(request.payload.address == r.address for r in registers if allows(r))).any()
            for allows in (lambda r: r.writable, lambda r: r.readable)
        )
        m.d.comb += allowed.eq(Mux(writes, whole & writable, readable))
        done = Signal()
        m.d.comb += [
            # An access without all strobes never reaches the registers.
            done.eq((waits & response.valid) | (writes & ~whole)),
            wrote.eq(done & writes),
            read.eq(done & ~writes),
        ]
        m.d.sync += [chosen.eq(writes), stalls.eq(request.valid & ~request.ready)]
        with m.If(request.valid & request.ready):
            m.d.sync += waits.eq(1)
        with m.If(done):
            m.d.sync += [waits.eq(0), last_wrote.eq(writes)]
        reply = Mux(allowed, Reply.OKAY.value, Reply.SLVERR.value)
        self._answer(m, wrote, self.s_axi_bvalid, self.s_axi_bready)
        self._answer(m, read, self.s_axi_rvalid, self.s_axi_rready)
        with m.If(wrote):
            m.d.sync += Value.cast(self.s_axi_bresp).eq(reply)
        with m.If(read):
            m.d.sync += [
                Value.cast(self.s_axi_rresp).eq(reply),
                self.s_axi_rdata.eq(response.payload),
            ]
        return m

    def _held(self, m: Module, full: Signal, done: Signal, channel: str, value: Value) -> Signal:
        """Return the value of a channel's item; ``full`` becomes 1 while it is held."""
        valid, ready = (getattr(self, f"s_axi_{channel}{word}") for word in ("valid", "ready"))
        held = Signal(len(value), reset_less=True)
        m.d.comb += ready.eq(~full)
        with m.If(valid & ready):
            m.d.sync += [full.eq(1), held.eq(value)]
        with m.Elif(done):
            m.d.sync += full.eq(0)
        return held

    def _answer(self, m: Module, done: Signal, valid: Signal, ready: Value) -> None:
        """Set ``valid`` when an access is done, until the initiator takes the response."""
        with m.If(done):
            m.d.sync += valid.eq(1)
        with m.Elif(ready):
            m.d.sync += valid.eq(0)


class LiteUnit(LitePort):
    """``Mailbox`` behind an AXI4-Lite target with the port names of Vivado.

    Parameters
    ----------
    core : BusCore
        The unit.

    Members
    -------
    aclk, aresetn : In(1)
        Clock, and synchronous reset, active low.
    s_axi_awaddr, s_axi_awvalid, s_axi_awready : In(10), In(1), Out(1)
        Address of a write. The lowest two bits are ignored.
    s_axi_wdata, s_axi_wstrb, s_axi_wvalid, s_axi_wready : In(32), In(4), In(1), Out(1)
        Data of a write. Registers are written as a whole, so all strobes must be set.
    s_axi_bresp, s_axi_bvalid, s_axi_bready : Out(Reply), Out(1), In(1)
        Response to a write.
    s_axi_araddr, s_axi_arvalid, s_axi_arready : In(10), In(1), Out(1)
        Address of a read.
    s_axi_rdata, s_axi_rresp, s_axi_rvalid, s_axi_rready : Out(32), Out(Reply), Out(1), In(1)
        Value of a read.

    Latency
    -------
    A response is valid three cycles after the last part of its request was taken. A channel takes
    the next request when the response to the last one is valid; reads and writes take turns.

    Notes
    -----
    All outputs come from registers or depend on registers only. The response is ``SLVERR`` if the
    address is unknown, if the register cannot be read or written, or if strobes are missing; such
    an access changes no register but ``errors``. A refused write (see ``Mailbox``) is answered by
    ``OKAY``, because many processors turn ``SLVERR`` into an exception.
    """

    shared = SHARED
    #: Lines of the header of emitted Verilog.
    clocking = CLOCKING
    notes = (
        "Registers: MODULE_registers.h and MODULE_registers.py beside this file have the offsets, "
        "the fields and the codes; docs/units/bus.md describes them.",
    )

    def __init__(self, *, core: BusCore):
        self.core, self.config = core, core.config
        super().__init__()

    def registers(self) -> tuple[Register, ...]:
        return registers_of(self.core)

    def build_registers(self, m: Module) -> Any:
        m.submodules.mailbox = mailbox = Mailbox(core=self.core)
        return mailbox.bus
