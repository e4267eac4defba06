"""Proofs about the sparse cores, whose numbers are replaced by single bits.

One element in all time, any of them, is 1, and all others are 0. The operator ⊗ passes the matrix
element on, and ⊕ is exclusive or. So the sum of the element's column is 1, and every other sum is
0, unless the element is lost, comes twice, or gets into another column.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from vitruvian.flows.formal.harness import ProofHarness, Tracker, arrives, transfers
from vitruvian.flows.formal.proof import Mutation, Proof
from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.config import ISConfig, Kind, OSConfig
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.ewise_config import Command, EwiseConfig, Operation
from vitruvian.hdl.sparse.ewise_core import EwiseCore, EwiseLane
from vitruvian.hdl.sparse.is_core import Bank, ISCore
from vitruvian.hdl.sparse.oei_config import OEIConfig, Refusal
from vitruvian.hdl.sparse.operators import ProcessingElement, Reduction
from vitruvian.hdl.sparse.os_core import OSCore

_OS = OSConfig(lanes=2, format="fp16")
_IS = ISConfig(lanes=2, depth=2, format="fp16")


def _product(self: ProcessingElement, platform: object) -> Module:
    m = Module()
    # Wider numbers would only make the proof longer: a bit shows where an element goes.
    m.d.comb += self.d.eq(self.a[0])
    return m


def _sum(self: Reduction, platform: object) -> Module:
    m = Module()
    m.d.comb += self.d.eq(self.a[0] ^ self.b[0])
    return m


def _one_element(h: ProofHarness, core: Any, present: list[Value]) -> None:
    """Replace the operators, and let one element in all time be 1."""
    h.abstract(ProcessingElement, _product)
    h.abstract(Reduction, _sum)
    lanes = core.i.payload.lanes
    bits = [lanes[k].a[0] & present[k] for k in range(len(present))]
    seen = Signal(name="element_seen")
    with h.m.If(transfers(core.i) & Cat(*bits).any()):
        h.m.d.sync += seen.eq(1)
    for k, bit in enumerate(bits):
        others = Cat(*bits[:k], seen).any()
        # No second element is 1, in the same beat or later.
        h.assume(~(core.i.valid & bit & others))
        h.assume(present[k] | ~lanes[k].a[0])


def _os(h: ProofHarness) -> None:
    core = h.add(OSCore(config=_OS))
    h.stable_streams(core)
    beat = core.i.payload
    _one_element(h, core, [beat.lanes[k].present for k in range(_OS.lanes)])
    # One reduction is enough, as the operator is abstract.
    h.assume(beat.plus.as_value() == 0)
    chosen = h.constant("lane", range(_OS.lanes))
    # The columns of the beat, lane by lane; ``carry`` is the column that is open at its end.
    open_sum, open_some = Signal(), Signal()
    carry: Value = open_sum
    some: Value = open_some
    values: list[Value] = []
    for k in range(_OS.lanes):
        lane = beat.lanes[k]
        # A lane without an element has no part in the sum.
        total, any_element = Signal(name=f"sum{k}"), Signal(name=f"some{k}")
        h.m.d.comb += [
            total.eq(Mux(lane.present, carry ^ lane.a[0], carry)),
            any_element.eq(some | lane.present),
        ]
        # For each lane: a column ends here, it has elements, and their sum.
        values.append(Mux(lane.last, Cat(1, any_element, total & any_element), Const(0, 3)))
        carry, some = total & ~lane.last, any_element & ~lane.last
    taken = transfers(core.i)
    with h.m.If(taken):
        h.m.d.sync += [open_sum.eq(carry), open_some.eq(some)]
    ends = Cat(beat.lanes[k].last for k in range(_OS.lanes)).any()
    track = Tracker(
        h,
        entered=taken & ends,
        left=transfers(core.o),
        offered=core.o.valid,
        expected=Array(values)[chosen],
        most=core.latency,
    )
    lane, expected = core.o.payload[chosen], track.value
    # An empty column has the identity of its reduction, which the abstract operators do not know.
    same = (lane.last == expected[0]) & (~expected[1] | (lane.value[0] == expected[2]))
    h.rule("column", ~track.head | same)
    waiting = [track.level != 0, core.o.ready]
    arrives(h, waiting=waiting, offered=core.o.valid, cycles=core.latency, name="item")


def _is(h: ProofHarness) -> None:
    core = h.add(ISCore(config=_IS))
    h.stable_streams(core)
    beat, taken = core.i.payload, transfers(core.i)
    kind = beat.kind.as_value()
    _one_element(
        h,
        core,
        [beat.lanes[k].present & (kind != Kind.READ.value) for k in range(_IS.lanes)],
    )
    h.assume(kind <= Kind.READ.value)
    column = h.constant("column", _IS.column_bits)
    # The result of one column, any of them: its sum, and whether it was ever written.
    known, total = Signal(), Signal()
    new_known, new_total = known, total
    for k in range(_IS.lanes):
        lane = beat.lanes[k]
        mine = taken & lane.present & (lane.column == column)
        writes, adds = mine & (kind == Kind.WRITE.value), mine & (kind == Kind.ADD.value)
        after = Signal(name=f"total{k}"), Signal(name=f"known{k}")
        h.m.d.comb += [
            after[0].eq(Mux(writes, lane.a[0], new_total ^ (adds & lane.a[0]))),
            after[1].eq(new_known | writes),
        ]
        new_total, new_known = after
    h.m.d.sync += [known.eq(new_known), total.eq(new_total)]
    # A read returns the columns of all banks at one address.
    group = column[_IS.bank_bits :]
    mine = beat.lanes[0].column[_IS.bank_bits :] == group
    track = Tracker(
        h,
        entered=taken & (kind == Kind.READ.value),
        left=transfers(core.o),
        offered=core.o.valid,
        expected=Cat(mine & known, total),
        most=2,
    )
    results = Array(core.o.payload[k][0] for k in range(_IS.lanes))
    read = results[column[: _IS.bank_bits]]
    # A column that was never written has any content.
    h.rule("sum", ~(track.head & track.value[0]) | (read == track.value[1]))
    waiting = [track.level != 0, core.o.ready]
    arrives(h, waiting=waiting, offered=core.o.valid, cycles=core.latency, name="item")
    stuck = [core.i.valid, core.o.ready]
    arrives(h, waiting=stuck, offered=taken, cycles=_IS.lanes, name="beat")


_EWISE = EwiseConfig(lanes=1, registers=4, instructions=8, format="fp16")


def _copied(self: EwiseLane, platform: object) -> Module:
    """Return the abstract lane: one bit of its operand is that of the last item it loaded."""
    m, kept = Module(), Signal()
    with m.If(self.write & (self.instruction.op == Operation.LOAD)):
        m.d.sync += kept.eq(self.given[0])
    m.d.comb += self.value.eq(kept)
    return m


def _ewise(h: ProofHarness) -> None:
    """Count the instructions of programs that load an item of x and store it in y."""
    h.abstract(EwiseLane, _copied)
    core = h.add(EwiseCore(config=_EWISE))
    h.stable_streams(core)
    command = core.command.payload
    # A program of two instructions at address 0, and no other: load from x, store to y.
    is_step = command.kind.as_value() == Command.STEP.value
    h.assume(~is_step | ((command.address == 0) & command.present.all()))
    odd, instruction = command.address[0], command.instruction
    operation = instruction.op.as_value()
    load = (operation == Operation.LOAD.value) & (instruction.a == 0) & ~instruction.end
    store = (operation == Operation.STORE.value) & (instruction.d == 0) & instruction.end
    h.assume(is_step | (command.address > 1) | Mux(odd, store, load))
    taken = transfers(core.command)
    # Both instructions must be in the memory before a step runs them.
    written = Signal(2)
    with h.m.If(taken & ~is_step & (command.address <= 1)):
        h.m.d.sync += written.eq(written | Mux(odd, 2, 1))
    h.assume(~(core.command.valid & is_step) | (written == 3))
    track = Tracker(
        h,
        entered=transfers(core.x),
        left=transfers(core.y),
        offered=core.y.valid,
        expected=core.x.payload[0][0],
        actual=core.y.payload["values"][0][0],
        most=2,
    )
    steps = Signal(3)
    h.m.d.sync += steps.eq(steps + (taken & is_step) - transfers(core.x))
    h.rule("step_for_item", ~core.x.ready | (steps != 0))
    h.rule("steps", steps <= 1)
    h.rule("v_unused", ~core.v.ready & ~core.w.valid)
    waiting = [core.x.valid, core.y.ready, steps != 0]
    arrives(h, waiting=waiting, offered=transfers(core.x), cycles=2, name="load")
    arrives(
        h, waiting=[track.level != 0, core.y.ready], offered=core.y.valid, cycles=2, name="store"
    )


#: The sizes of the buffer and of its control.
_OEI = OEIConfig(
    lanes=1, rows=4, columns=1, capacity=4, beats=2, registers=4, instructions=8, format="fp16"
)


def _buffer(h: ProofHarness) -> None:
    """Demand stable outputs, until a wrong beat stops the buffer."""
    buffer = h.add(DualBuffer(config=_OEI))
    h.assume(Value.cast(buffer.refusal) == Refusal.NONE.value)
    h.stable_streams(buffer)


def _control(h: ProofHarness) -> None:
    """Follow one sub-tensor, any of them, through the three stages of a pass."""
    control = h.add(PipelineControl(config=_OEI))
    h.stable_streams(control)
    h.assume(Value.cast(control.refusal) == Refusal.NONE.value)
    h.assume(~control.waiting)
    begins = transfers(control.command)
    # The environment finishes a sub-tensor after it has taken it, and not otherwise.
    sub, last = h.constant("sub", _OEI.sub_bits), Signal(_OEI.sub_bits)
    h.assume(~control.command.valid | (control.command.payload < _OEI.subs))
    with h.m.If(begins):
        h.m.d.sync += last.eq(control.command.payload)
    running = Signal()
    with h.m.If(begins):
        h.m.d.sync += running.eq(1)
    with h.m.Elif(transfers(control.status)):
        h.m.d.sync += running.eq(0)
    ends = (control.os_done, control.ewise_done, control.is_done)
    # The stage before has finished the sub-tensor; the first one has none before it.
    before: Value = Const(1, 1)
    seen_all: Value = Const(1, 1)
    for name, out, done in zip(
        ("os", "ewise", "is"), (control.os, control.ewise, control.is_), ends, strict=True
    ):
        at_work = Signal(name=f"{name}_at_work")
        took, mine = Signal(name=f"{name}_took"), Signal(name=f"{name}_mine")
        finished = Signal(name=f"{name}_finished")
        h.assume(~done | at_work)
        with h.m.If(transfers(out)):
            h.m.d.sync += [at_work.eq(1), mine.eq(out.payload == sub)]
        with h.m.If(done):
            h.m.d.sync += [at_work.eq(0), finished.eq(finished | mine)]
        with h.m.If(begins):
            h.m.d.sync += [took.eq(0), finished.eq(0)]
        with h.m.Elif(transfers(out) & (out.payload == sub)):
            h.m.d.sync += took.eq(1)
        h.rule(f"{name}_once", ~(out.valid & (out.payload == sub)) | ~took)
        h.rule(f"{name}_in_range", ~out.valid | (running & (out.payload <= last)))
        h.rule(f"{name}_after", ~(out.valid & (out.payload == sub)) | before)
        before, seen_all = finished, seen_all & finished
    h.rule("all_before_status", ~control.status.valid | (sub > last) | seen_all)
    h.rule("one_pass", ~begins | ~running)


def _refused(h: ProofHarness) -> None:
    """Refuse a pass at any time while the first stage works, as the buffer does."""
    control = h.add(PipelineControl(config=_OEI))
    h.stable_streams(control)
    m, status = h.m, control.status
    h.assume(~control.command.valid | (control.command.payload < _OEI.subs))
    stages = {"os": control.os, "ewise": control.ewise, "is": control.is_}
    works = {name: Signal(name=f"{name}_at_work") for name in stages}
    for (name, out), done in zip(
        stages.items(), (control.os_done, control.ewise_done, control.is_done), strict=True
    ):
        h.assume(~done | works[name])
        with m.If(done):
            m.d.sync += works[name].eq(0)
        with m.Elif(transfers(out)):
            m.d.sync += works[name].eq(1)
    reason = Value.cast(control.refusal)
    none, space = Refusal.NONE.value, Refusal.SPACE.value
    # The buffer waits, or has found a wrong beat, only while it delivers columns. A wrong beat
    # stops it until a reset, so that the first stage never finishes.
    h.assume(~control.waiting | works["os"])
    h.assume((reason == none) | works["os"])
    before = h.past(reason, "reason")
    h.assume((before == none) | (reason == before))
    h.assume((reason == none) | ~(control.os_done | control.waiting))
    refused, taken, given = Signal(), Signal(), Signal(len(reason))
    # The buffer waits for space that only the last stage could free, and that stage has nothing to
    # do.
    stuck = control.waiting & ~works["is"] & ~control.is_.valid
    running = Signal()
    with m.If(transfers(control.command)):
        m.d.sync += running.eq(1)
    with m.Elif(transfers(status)):
        m.d.sync += running.eq(0)
    refuses = running & ~status.valid & ~refused & ((reason != none) | stuck)
    with m.If(refuses):
        m.d.sync += [refused.eq(1), given.eq(Mux(reason != none, reason, space))]
    with m.If(refused & transfers(status)):
        m.d.sync += taken.eq(1)
    offered = status.valid & (Value.cast(status.payload) == given)
    h.rule("status_at_once", ~refused | taken | offered)
    h.rule("status_once", ~taken | ~status.valid)
    h.rule("no_command", ~refused | ~control.command.ready)
    for name, out in stages.items():
        h.rule(f"no_new_{name}", ~refused | ~out.valid | h.past(out.valid, f"{name}_offered"))
    refusal = status.valid & (Value.cast(status.payload) != none)
    h.rule("reason", ~refusal | refused)


PROOFS = (
    Proof(
        name="sparse.os",
        component="OSCore, 2 lanes; one element followed",
        claim="Every column leaves once, in order and in its lane, with each of its elements once.",
        build=_os,
        mutations=(
            Mutation(
                name="the ranks move although the output waits",
                owner=OSCore,
                function="elaborate",
                old="move.eq(~self.o.valid | self.o.ready)",
                new="move.eq(1)",
            ),
            Mutation(
                name="a column forgets the beats before",
                owner=OSCore,
                function="_build_columns",
                old="carry_some.eq(some[n - 1] & ~rank.last[n - 1])",
                new="carry_some.eq(0)",
            ),
            Mutation(
                name="a node joins a column that has ended",
                owner=OSCore,
                function="_build_level",
                old="is_open = ~rank.last[middle - 1]",
                new="is_open = rank.valid",
            ),
        ),
    ),
    Proof(
        name="sparse.is",
        component="ISCore, 2 lanes, 2 results in a bank; one element followed",
        claim="Every product is added once to its column; reads return in order the sums of all "
        "beats before them.",
        build=_is,
        mutations=(
            Mutation(
                name="a bank grants two lanes at once",
                owner=ISCore,
                function="_granted",
                old="return wants & (~wants + 1)[: len(wants)]",
                new="return wants",
            ),
            Mutation(
                name="a read does not see the write of the cycle before",
                owner=Bank,
                function="elaborate",
                old="store.read_port(transparent_for=(write,))",
                new="store.read_port()",
            ),
        ),
    ),
    Proof(
        name="sparse.ewise",
        component="EwiseCore, 1 lane, with a program that loads and stores; lanes cut off",
        claim="A step loads one item and stores its result, in order; nothing is lost while an "
        "output waits.",
        build=_ewise,
        mutations=(
            Mutation(
                name="a store does not wait for its output",
                owner=EwiseCore,
                function="_waits",
                old="return load | store",
                new="return load",
            ),
        ),
    ),
    Proof(
        name="sparse.control",
        component="PipelineControl, up to 4 sub-tensors",
        claim="Every stage gets every sub-tensor of a pass once, after the stage before has "
        "finished it; the status comes last.",
        build=_control,
        mutations=(
            Mutation(
                name="a step ends while a stage works",
                owner=PipelineControl,
                function="_finished",
                old="return ~at_work",
                new="return ~at_work | (stage == 1)",
            ),
            Mutation(
                name="the last step is left out",
                owner=PipelineControl,
                function="elaborate",
                old="with m.If(step == last + 2):",
                new="with m.If(step == last + 1):",
            ),
        ),
    ),
    Proof(
        name="sparse.refusal",
        component="PipelineControl, up to 4 sub-tensors",
        claim="After a refusal the reason is offered at once, once and stable; no stage is offered "
        "a new sub-tensor, and no command is taken until a reset.",
        build=_refused,
        mutations=(
            Mutation(
                name="the control takes a command after a refusal",
                owner=PipelineControl,
                function="elaborate",
                old="halted.eq(1)",
                new="halted.eq(0)",
            ),
            Mutation(
                name="the control goes on with the pass",
                owner=PipelineControl,
                function="elaborate",
                old="running.eq(0),\n            halted.eq(1),",
                new="running.eq(1),\n            halted.eq(1),",
            ),
            Mutation(
                name="a wait is refused while the last stage works",
                owner=PipelineControl,
                function="elaborate",
                old="self.waiting & ~busy[2] & ~starts",
                new="self.waiting & ~starts",
            ),
        ),
    ),
    Proof(
        name="sparse.buffer",
        component="DualBuffer, 1 lane, 4 rows",
        claim="A beat of columns or of a row that waits is stable, unless the buffer has stopped.",
        build=_buffer,
        method="induction 8",
        mutations=(
            Mutation(
                name="a beat of columns leaves the queue before it is taken",
                owner=DualBuffer,
                function="_build_columns",
                old="taken.eq(self.o.valid & self.o.ready)",
                new="taken.eq(self.o.valid)",
            ),
        ),
    ),
)
