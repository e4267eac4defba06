"""Proofs about the vector unit, whose slices are replaced by exclusive or."""

from amaranth.hdl import Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.vector.config import VectorConfig
from vitruvian.hdl.vector.operations import Format, Operation
from vitruvian.hdl.vector.sequencer import VectorSequencer
from vitruvian.hdl.vector.slice import Slice
from vitruvian.hdl.vector.unit import VectorUnit

_CONFIG = VectorConfig(lanes=4, groups=("add", "reduce"), pipeline=2)


def _combined(self: Slice, platform: object) -> Module:
    """Return the abstract ``Slice``: the exclusive or of the operands, in as many ranks."""
    m = Module()
    word: Value = self.a ^ self.b
    for rank in range(self.latency):
        register = Signal(32, name=f"rank{rank}", reset_less=True)
        with m.If(self.advance):
            m.d.sync += register.eq(word)
        word = register
    m.d.comb += self.d.eq(word)
    return m


def _unit(h: ProofHarness) -> None:
    """Follow an item of a through commands of ADD and of SUM, the sum of all lanes.

    The lowest bits of the lanes of the item stand for its elements.
    """
    h.abstract(Slice, _combined)
    unit = VectorUnit(config=_CONFIG)
    h.add(unit, driven=[unit.command.payload])
    command, sums = unit.command.payload, h.free("is_sum")
    h.m.d.comb += [
        Value.cast(command.operation).eq(Mux(sums, Operation.SUM.value, Operation.ADD.value)),
        Value.cast(command.format).eq(Format.FP16.value),
        command.mask.eq(~0),
        command.repeat.eq(h.free("repeat", 2)),
    ]
    h.stable_streams(unit)
    a, b = unit.a.payload, unit.b.payload
    # Lanes of FP16 have 16 bits.
    lanes = [Value.cast(a)[16 * k] for k in range(_CONFIG.lanes)]
    total = lanes[0] ^ lanes[1] ^ lanes[2] ^ lanes[3]
    taken = transfers(unit.a)
    track = Tracker(
        h,
        entered=taken,
        left=transfers(unit.o),
        offered=unit.o.valid,
        expected=Mux(sums, total, lanes[0] ^ Value.cast(b)[0]),
        actual=unit.o.payload.data[0],
        most=_CONFIG.stages,
    )
    count = Signal(3)
    done = transfers(unit.command)
    h.m.d.sync += count.eq(Mux(done, 0, count + taken))
    # A reduction takes its item before its last level.
    h.rule("repeats", ~done | (count + taken == command.repeat))
    h.rule("b_with_a", transfers(unit.b) == (taken & ~sums))
    h.rule("enable", ~unit.o.valid | unit.o.payload.enable[:2].all())
    waiting = [track.level != 0, unit.o.ready, unit.command.valid]
    arrives(h, waiting=waiting, offered=unit.o.valid, cycles=3 * _CONFIG.stages, name="result")


PROOFS = (
    Proof(
        name="vector.unit",
        component="VectorUnit, 4 lanes, ADD and SUM; slices replaced by exclusive or",
        claim="A command takes its number of blocks; each gives one result, in order, with every "
        "lane of a sum once; results wait a bounded time.",
        build=_unit,
        mutations=(
            Mutation(
                name="another repeat enters during a reduction",
                owner=VectorSequencer,
                function="elaborate",
                old="Mux(reducing, self.back, self.available)",
                new="self.available",
            ),
            Mutation(
                name="the registers advance although the output waits",
                owner=VectorUnit,
                function="elaborate",
                old="advance.eq(~(there & last.emits) | self.o.ready)",
                new="advance.eq(1)",
            ),
        ),
    ),
)
