"""Clock and reset of AXI components, which have the names that Vivado expects."""

from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib.wiring import In

#: Members of a component: the clock, and the reset, which is synchronous and active low.
CLOCK_PORTS = {"aclk": In(1), "aresetn": In(1)}
#: The line about them in the header of emitted Verilog.
CLOCKING = "Clock: aclk, rising edge; aresetn is synchronous, active low."


def use_clock(m: Module, aclk: Signal, aresetn: Signal) -> None:
    """Make the domain ``sync`` of a module run on ``aclk`` and ``aresetn``."""
    m.domains.sync = ClockDomain("sync")
    m.d.comb += [ClockSignal("sync").eq(aclk), ResetSignal("sync").eq(~aresetn)]
