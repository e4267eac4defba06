"""Proofs about the control of the matrix unit, and about its issue of instructions."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Array, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.control import Sequencer, SlotQueue
from vitruvian.hdl.cube.element import ProcessingElement
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.lookahead import LookaheadSequencer
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.unit import MatrixUnit

#: One INT8 element of the matrix unit, the smallest datapath with accumulators.
_UNIT = MatrixUnitConfig(m=1, n=1, k=1, precisions=("int8",), pipeline=1, slots=2)
#: The same with its slots in a memory, which are read one cycle after the operands.
_MEMORY = replace(_UNIT, pipeline=2, slot_memory=True, multiplier="dsp")
#: A buffered unit whose slots are busy for as long. Its decisions are a cycle behind the transfers.
_BUFFERED = replace(_MEMORY, pipeline=1, slots=3, buffered=True)
#: Two of them, through which the operands hop.
_SYSTOLIC = replace(_UNIT, m=2, n=1, dataflow="systolic", pipeline=0, slots=2)
#: Bits of a result that the proof follows.
_BITS = 1
#: The inputs of a sequencer that belong to a beat.
_FIELDS = ("start", "slot", "emit", "late")


def _slot_queue(h: ProofHarness) -> None:
    queue = h.add(SlotQueue(depth=4), "queue")
    track = Tracker(
        h,
        entered=queue.push,
        left=queue.pop,
        offered=queue.any,
        expected=queue.slot,
        actual=queue.head,
        most=4,
    )
    h.assume(~queue.pop | queue.any)
    h.assume(~queue.push | (track.level != 4))
    h.rule("any", queue.any == (track.level != 0))


def _unit(h: ProofHarness, config: MatrixUnitConfig) -> None:
    """Compare an element of every result with the sum that the beats make in its slot.

    All of B is 1 and A has one bit, so the parity of a sum tells which beats it has.
    """
    unit = MatrixUnit(config=config)
    h.add(unit, driven=[unit.i.payload])
    beat = unit.i.payload
    h.m.d.comb += [beat.b[column].eq(1) for column in range(config.n)]
    h.m.d.comb += [beat.a[row].eq(h.free(f"a{row}", _BITS)) for row in range(config.m)]
    for name in ("start", "slot", "emit"):
        field = Value.cast(getattr(beat, name))
        h.m.d.comb += field.eq(h.free(name, len(field)))
    h.stable_streams(unit)
    row = h.constant("row", range(config.m))
    column = h.constant("column", range(config.n))
    h.assume((row < config.m) & (column < config.n))

    def element(fractal: Any) -> Value:
        return fractal[row][column][:_BITS]

    taken = transfers(unit.i)
    h.rule("c_with_beat", transfers(unit.c) == (taken & (beat.start == Start.FROM_C)))
    slot = Mux(beat.slot >= config.slot_count, config.slot_count - 1, beat.slot)
    sums = Array(Signal(_BITS, name=f"sum{s}") for s in range(config.slot_count))
    start = Signal(_BITS)
    with h.m.Switch(beat.start):
        with h.m.Case(Start.ZERO):
            h.m.d.comb += start.eq(0)
        with h.m.Case(Start.FROM_C):
            h.m.d.comb += start.eq(element(unit.c.payload))
        with h.m.Default():
            h.m.d.comb += start.eq(sums[slot])
    total = Signal(_BITS)
    h.m.d.comb += total.eq(start + beat.a[row][:_BITS])
    with h.m.If(taken):
        h.m.d.sync += sums[slot].eq(total)
    track = Tracker(
        h,
        entered=taken & beat.emit,
        left=transfers(unit.o),
        offered=unit.o.valid,
        expected=total,
        actual=element(unit.o.payload),
        most=config.slot_count,
    )
    waiting = [track.level != 0]
    arrives(h, waiting=waiting, offered=unit.o.valid, cycles=config.latency_cycles, name="result")
    stuck = [unit.i.valid, track.level == 0, (beat.start != Start.FROM_C) | unit.c.valid]
    arrives(h, waiting=stuck, offered=taken, cycles=config.latency_cycles, name="beat")


def _ahead(h: ProofHarness) -> None:
    """Run both sequencers with the same beats, which stand in a register."""
    ahead, plain = LookaheadSequencer(config=_BUFFERED), Sequencer(config=replace(_MEMORY, slots=3))
    for name, unit, others in (
        ("ahead", ahead, ("waits", "coming")),
        ("plain", plain, ("go", "taken")),
    ):
        h.add(unit, name, driven=[getattr(unit, port) for port in (*_FIELDS, *others)])
    assert ahead.config.slot_cycles - 1 == plain.config.slot_cycles
    assert ahead.config.read_cycles - 1 == plain.config.read_cycles
    full = Signal(name="beat_full")
    fields = {
        name: Signal(len(Value.cast(getattr(ahead, name))), name=f"beat_{name}") for name in _FIELDS
    }
    # In a beat of one step, the last one is also the end.
    h.assume(ahead.last & ahead.done)
    h.m.d.comb += [ahead.waits.eq(full), plain.go.eq(ahead.go), plain.taken.eq(ahead.taken)]
    coming = {name: h.free(f"coming_{name}", len(field)) for name, field in fields.items()}
    # A unit limits the slots of its beats, which have unused codes otherwise.
    h.assume(coming["slot"] < ahead.config.slot_count)
    h.m.d.comb += ahead.coming.eq(coming["slot"])
    with h.m.If(~full | ahead.go):
        h.m.d.sync += full.eq(h.free("comes", 1))
        h.m.d.sync += [field.eq(coming[name]) for name, field in fields.items()]
    for unit in (ahead, plain):
        h.m.d.comb += [Value.cast(getattr(unit, name)).eq(field) for name, field in fields.items()]
    h.rule("may_go", ~full | (ahead.may_go == plain.may_go))
    h.rule("accumulate", ~full | (ahead.accumulate == plain.accumulate))
    h.rule("offer", ahead.offer == plain.offer)
    h.rule("head", ~ahead.offer | (ahead.head == plain.head))


PROOFS = (
    Proof(
        name="cube.queue",
        component="SlotQueue, 4 slots",
        claim="Every slot number leaves once, and in the order of arrival.",
        build=_slot_queue,
        mutations=(
            Mutation(
                name="a push goes behind the place that a pop frees",
                owner=SlotQueue,
                function="elaborate",
                old="left.eq(level - self.pop)",
                new="left.eq(level)",
            ),
        ),
    ),
    Proof(
        name="cube.unit",
        component="MatrixUnit, 1 × 1 × 1, INT8, 2 slots, pipeline 1",
        claim="Every beat that emits has one result, in order, which is the sum of its slot; "
        "results and beats wait a bounded time.",
        build=partial(_unit, config=_UNIT),
        mutations=(
            Mutation(
                name="a beat overwrites a result that nobody has taken",
                owner=Sequencer,
                function="elaborate",
                old="self.may_go.eq(ready & ~owed[self.slot])",
                new="self.may_go.eq(ready)",
            ),
            Mutation(
                name="a result is offered one cycle early",
                owner=Sequencer,
                function="elaborate",
                old="queue.any & free(self.head, 0)",
                new="queue.any & free(self.head, 1)",
            ),
            Mutation(
                name="a beat that accumulates reads its slot too early",
                owner=Sequencer,
                function="elaborate",
                old="soon = config.read_cycles",
                new="soon = config.read_cycles + 1",
            ),
        ),
    ),
    Proof(
        name="cube.ahead",
        component="LookaheadSequencer and Sequencer, 3 slots",
        claim="To read a slot one cycle before the decision changes no decision and no result.",
        build=_ahead,
        mutations=(
            Mutation(
                name="the decision does not know the beat of the cycle before",
                owner=LookaheadSequencer,
                function="_build_conflict",
                old="conflict.eq(went & same)",
                new="conflict.eq(0)",
            ),
            Mutation(
                name="a result counts as complete one cycle early",
                owner=LookaheadSequencer,
                function="_build_complete",
                old="Signal(self.config.slot_cycles - 2)",
                new="Signal(self.config.slot_cycles - 3)",
            ),
            Mutation(
                name="a slot is still owed in the cycle after its result was taken",
                owner=LookaheadSequencer,
                function="_build_state",
                old="owed[slot] & ~(self.taken & (self.head == slot))",
                new="owed[slot]",
            ),
            Mutation(
                name="a push and a pop leave a gap in the queue",
                owner=LookaheadSequencer,
                function="_build_queue",
                old="Mux(push & last, slot, behind)",
                new="behind",
            ),
        ),
    ),
    Proof(
        name="cube.memory",
        component="MatrixUnit, 1 × 1 × 1, INT8, 2 slots in a memory, pipeline 2",
        claim="The same holds if the addend comes later than the operands.",
        build=partial(_unit, config=_MEMORY),
        mutations=(
            Mutation(
                name="the slot is read with the operands",
                owner=ProcessingElement,
                function="_build_memory",
                old="_, slot, _ = self._delayed(m, config.addend_cycles)",
                new="_, slot, _ = self._delayed(m, 0)",
            ),
            Mutation(
                name="a sum from C adds to its slot",
                owner=ProcessingElement,
                function="_build_memory",
                old="Mux(from_c, start.data, Mux(accumulate, own.data, 0))",
                new="Mux(accumulate, own.data, 0)",
            ),
        ),
    ),
    Proof(
        name="cube.systolic",
        component="MatrixUnit, 2 × 1 × 1, INT8, systolic, 2 slots, pipeline 0",
        claim="The same holds for every element of a systolic array.",
        build=partial(_unit, config=_SYSTOLIC),
        mutations=(
            Mutation(
                name="beats that start from C do not wait for the last element",
                owner=Sequencer,
                function="elaborate",
                old="ready.eq(free(self.slot, 0))",
                new="ready.eq(free(self.slot, 1))",
            ),
            Mutation(
                name="row 1 enters without its skew",
                owner=Grid,
                function="_build_systolic",
                old='self._chain(m, right[i], i, f"a{i}_skew")',
                new="right[i]",
            ),
        ),
    ),
)
