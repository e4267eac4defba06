"""Proofs about the control of the matrix unit, and about its issue of instructions."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Array, Mux, Signal, Value

from vitruvian.flows.formal.harness import Harness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.control import Sequencer, SlotQueue
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.unit import MatrixUnit

__all__ = ["PROOFS"]

#: One INT8 element of the matrix unit, the smallest datapath with accumulators.
_UNIT = MatrixUnitConfig(m=1, n=1, k=1, precisions=("int8",), pipeline=1, slots=2)
#: Two of them, through which the operands hop.
_SYSTOLIC = replace(_UNIT, m=2, n=1, dataflow="systolic", pipeline=0, slots=2)
#: Bits of a result that the proof follows.
_BITS = 1


def _slot_queue(h: Harness) -> None:
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


def _unit(h: Harness, config: MatrixUnitConfig) -> None:
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
    taken = transfers(unit.i)
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
    h.rule("c_with_beat", transfers(unit.c) == (taken & (beat.start == Start.FROM_C)))
    waiting = [track.level != 0]
    arrives(h, waiting=waiting, offered=unit.o.valid, cycles=config.latency_cycles, name="result")
    stuck = [unit.i.valid, track.level == 0, (beat.start != Start.FROM_C) | unit.c.valid]
    arrives(h, waiting=stuck, offered=taken, cycles=config.latency_cycles, name="beat")


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
                old="soon = config.entry_cycles + config.hops",
                new="soon = config.entry_cycles + config.hops + 1",
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
                old='self._chain(m, rows[i], i, f"a{i}_skew")',
                new="rows[i]",
            ),
        ),
    ),
)
