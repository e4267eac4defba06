"""Proofs about a core: the queue in front of a unit, and the AXI4 master."""

from amaranth.hdl import Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.golden.core.encoding import ENCODINGS
from vitruvian.hdl.core.axi_master import AxiMaster, _Collector
from vitruvian.hdl.core.queue import UnitQueue
from vitruvian.hdl.core.record import is_op, length

_CHECKED_BITS = 20


def _queue(h: ProofHarness) -> None:
    """Follow an instruction of one word to the unit or to the flags."""
    dut = h.add(UnitQueue(depth=2, code=1))
    word = dut.i.payload
    h.assume(~dut.bad)
    h.assume(~dut.i.valid | ((length(word) == 1) & ~is_op(word, "pipe_barrier")))
    cleared = dut.wait & dut.granted
    Tracker(
        h,
        entered=transfers(dut.i),
        left=transfers(dut.o) | dut.set | cleared,
        offered=dut.o.valid | dut.set | dut.wait,
        expected=word[:_CHECKED_BITS],
        actual=dut.o.payload[:_CHECKED_BITS],
        most=3,
    )
    record = dut.o.payload
    code = record[: len(word[:8])]
    h.rule("set_is_set", ~dut.set | (code == ENCODINGS["set_flag"].code))
    h.rule("wait_is_wait", ~dut.wait | (code == ENCODINGS["wait_flag"].code))
    h.rule("idle_first", ~(dut.set | dut.o.valid) | dut.idle)
    h.rule("halted", ~dut.halt | ~(dut.set | dut.o.valid | dut.wait))


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
        name="core.queue",
        component="UnitQueue, 2 words, instructions of one word",
        claim="Every instruction goes to the unit or to the flags once and in order, the unit "
        "being idle; no flag is set twice or lost; nothing is carried out after a fault.",
        build=_queue,
        mutations=(
            Mutation(
                name="a word is taken although an instruction waits",
                owner=UnitQueue,
                function="elaborate",
                old="words.r_en.eq(~whole & words.r_rdy)",
                new="words.r_en.eq(words.r_rdy)",
            ),
            Mutation(
                name="an instruction is not removed when its flag was set",
                owner=UnitQueue,
                function="elaborate",
                old="self.set\n            | (self.wait",
                new="(self.set & self.granted)\n            | (self.wait",
            ),
        ),
    ),
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
