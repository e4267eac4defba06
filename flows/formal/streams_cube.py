"""Proofs about the control of the matrix unit, and about its issue of instructions."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Array, Mux, Signal, Value

from vitruvian.flows.formal.harness import Harness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.cube.ahead import LookaheadSequencer
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.control import Sequencer, SlotQueue
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.unit import MatrixUnit

__all__ = ["PROOFS"]

#: One INT8 element of the matrix unit, the smallest datapath with accumulators.
_UNIT = MatrixUnitConfig(m=1, n=1, k=1, precisions=("int8",), pipeline=1, slots=2)
#: The same with its slots in a memory, and with registers around it.
_BUFFERED = replace(_UNIT, pipeline=2, slot_memory=True, buffered=True, multiplier="dsp")
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

    taken = transfers(unit.i)
    if config.buffered:
        beat, issued = _buffered(h, unit, taken)
    else:
        issued = taken
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
    with h.m.If(issued):
        h.m.d.sync += sums[slot].eq(total)
    track = Tracker(
        h,
        entered=issued & beat.emit,
        left=transfers(unit.o),
        offered=unit.o.valid,
        expected=total,
        actual=element(unit.o.payload),
        # A buffered unit has two beats in front of its slots and a result behind them.
        most=config.slot_count + 3 * config.buffered,
    )
    waiting = [track.level != 0]
    arrives(h, waiting=waiting, offered=unit.o.valid, cycles=config.latency_cycles, name="result")
    stuck = [unit.i.valid, track.level == 0, (beat.start != Start.FROM_C) | unit.c.valid]
    arrives(h, waiting=stuck, offered=taken, cycles=config.latency_cycles, name="beat")


def _buffered(h: Harness, unit: MatrixUnit, taken: Value) -> tuple[Any, Value]:
    """Return the beat that is next to count, and 1 in the cycle in which it counts.

    Two beats can wait in registers. A beat counts when it is the next one, and if it starts from C,
    in the cycle in which C is taken.
    """
    beats = [Signal(unit.i.payload.shape(), name=f"waiting_beat{n}") for n in range(2)]
    waits = Signal(range(4), name="waiting")
    from_c = (waits != 0) & (beats[0].start == Start.FROM_C)
    issued = Mux(from_c, transfers(unit.c), waits != 0)
    h.m.d.sync += waits.eq(waits + taken - issued)
    with h.m.If(issued):
        h.m.d.sync += Value.cast(beats[0]).eq(Value.cast(beats[1]))
    for n, beat in enumerate(beats):
        with h.m.If(taken & (waits - issued == n)):
            h.m.d.sync += Value.cast(beat).eq(Value.cast(unit.i.payload))
    h.rule("c_with_beat", ~transfers(unit.c) | from_c)
    h.rule("beats_wait_for_c", waits <= len(beats))
    return beats[0], issued


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
        name="cube.buffered",
        component="MatrixUnit, 1 × 1 × 1, INT8, 2 slots, pipeline 2, slots in a memory, buffered",
        claim="The same holds if the state of a slot is read one cycle before the decision.",
        build=partial(_unit, config=_BUFFERED),
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
                name="a beat that accumulates reads its slot too early",
                owner=LookaheadSequencer,
                function="_build_state",
                old="limits = (1, config.read_cycles)",
                new="limits = (1, config.read_cycles + 1)",
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
