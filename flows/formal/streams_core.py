"""Proofs about the AXI4 master of a core."""

from amaranth.hdl import Value

from vitruvian.flows.formal.harness import ProofHarness
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.core.axi_master import AxiMaster, _Collector


def _master(h: ProofHarness) -> None:
    """Demand of every offer that it stays."""
    dut = h.add(AxiMaster(width=256, burst_blocks=2))
    for name in ("ar", "aw", "w"):
        channel = getattr(dut, name)
        waits = h.past(channel.valid & ~channel.ready, f"{name}_waits")
        # The data of a write come from a queue, and are long: their end stands for them.
        values = channel.payload.last if name == "w" else Value.cast(channel.payload)
        h.rule(f"{name}_stable", ~waits | (channel.valid & (values == h.past(values, name))))


def _pages(h: ProofHarness) -> None:
    """Demand of every burst that it ends in its page."""
    dut = h.add(AxiMaster(width=256, burst_blocks=2))
    for name in ("ar", "aw"):
        channel = getattr(dut, name)
        inside = channel.payload.addr[5:12] + channel.payload.len < 128
        h.rule(f"{name}_page", ~channel.valid | inside)


PROOFS = (
    Proof(
        name="core.axi",
        component="AxiMaster, 256 bits, bursts of up to 2 blocks",
        claim="What is offered on a channel stays until it is taken.",
        build=_master,
        mutations=(
            Mutation(
                name="a burst replaces the one that waits",
                owner=AxiMaster,
                function="_send",
                old="free.eq(~full | channel.ready)",
                new="free.eq(1)",
            ),
        ),
    ),
    Proof(
        name="core.pages",
        component="AxiMaster, 256 bits, bursts of up to 2 blocks; first 12 cycles",
        claim="No burst crosses a multiple of 4 KiB.",
        build=_pages,
        method="bounded 12",
        mutations=(
            Mutation(
                name="a burst goes on across 4 KiB",
                owner=_Collector,
                function="__init__",
                old="& (following[:_PAGE_BITS] != 0)",
                new="",
            ),
        ),
    ),
)
