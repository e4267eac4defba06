"""The OEI pipeline: buffer, control and three cores, which multiply a vector twice in one pass."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from vitruvian.common.validate import check_type

from .buffer import DualBuffer
from .config import Kind as Access
from .control import PipelineControl
from .ewise_config import Command
from .ewise_core import EwiseCore, EwiseLane
from .is_core import ISCore
from .oei_config import Kind, OEIConfig, Refusal
from .operators import ProcessingElement, Reduction, identity_of
from .os_core import OSCore


class OEIPipeline(wiring.Component):
    """Pipeline of the OEI dataflow, bit-exact with ``golden.sparse.pipeline.run_pass``.

    A pass computes y₁ = x ⊕⊗ A, z = f(y₁, …) and y₂ = z ⊕⊗ A, and reads the matrix A once. The
    output-stationary core completes y₁ sub-tensor by sub-tensor. The element-wise core follows a
    step behind, and the input-stationary core, which takes rows from the buffer, two steps behind.

    Members
    -------
    command : In(stream.Signature(config.command))
        The index and the vector of a pass, group by group, commands for the element-wise core, and
        then the start of the pass. All groups of the index must be written before each pass, group
        0 first. The program f of a pass loads one item of y₁ and stores one item of z.
    i : In(stream.Signature(config.csc))
        The matrix in beats of columns. Beats of the next pass may follow at once.
    v : In(stream.Signature(config.values))
        Other vectors of the element-wise core, in the order in which its programs load them.
    z : Out(stream.Signature(config.ewise.results))
        The vector between both products, in groups.
    w : Out(stream.Signature(config.ewise.results))
        Other results of the element-wise core.
    y : Out(stream.Signature(config.values))
        The second product, in groups, at the end of the pass.
    status : Out(stream.Signature(Refusal))
        The end of a pass, after its last group of ``y``. A pass that is refused has no ``y``, and
        the pipeline then stops until a reset.

    Latency
    -------
    A pass over S sub-tensors has S + 2 steps. A step takes as long as its slowest stage.

    Raises
    ------
    TypeError
        If ``config`` is no ``OEIConfig``.

    References
    ----------
    Zhang 2024, §4.3.2 and §4.4, Figs. 4.12 and 4.16.
    """

    #: Sub-components that tools may build once for all lanes.
    shared = (ProcessingElement, Reduction, EwiseLane)

    if TYPE_CHECKING:
        command: stream.Interface
        i: stream.Interface
        v: stream.Interface
        z: stream.Interface
        w: stream.Interface
        y: stream.Interface
        status: stream.Interface

    def __init__(self, *, config: OEIConfig):
        check_type("config", config, OEIConfig)
        self.config = c = config
        super().__init__(
            {
                "command": In(stream.Signature(c.command)),
                "i": In(stream.Signature(c.csc)),
                "v": In(stream.Signature(c.values)),
                "z": Out(stream.Signature(c.ewise.results)),
                "w": Out(stream.Signature(c.ewise.results)),
                "y": Out(stream.Signature(c.values)),
                "status": Out(stream.Signature(Refusal)),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived pipeline has in addition."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = self._buffer = DualBuffer(config=self.config)
        m.submodules.control = self._control = PipelineControl(config=self.config)
        m.submodules.ewise = self._ewise = EwiseCore(config=self.config.ewise)
        connect(m, flipped(self.i), self._buffer.i)
        connect(m, flipped(self.v), self._ewise.v)
        connect(m, self._ewise.w, flipped(self.w))
        connect(m, self._control.os, self._buffer.columns)
        connect(m, self._control.is_, self._buffer.rows)
        m.d.comb += [
            self._control.waiting.eq(self._buffer.waiting),
            self._control.refusal.eq(self._buffer.refusal),
            self._control.is_done.eq(self._buffer.rows_done),
        ]
        self._build_command(m)
        self._build_os(m)
        self._build_ewise(m)
        self._build_is(m)
        return m

    def _memory(self, m: Module, name: str) -> Any:
        """Return a new memory of a vector, with a group in each word."""
        store = memory.Memory(shape=self.config.values, depth=self.config.groups, init=[])
        m.submodules[name] = store
        return store

    def _element(self, group: Value, lane: Value) -> Value:
        """Return an element of a group."""
        c = self.config
        return Array(group[k] for k in range(c.lanes))[lane] if c.lanes > 1 else group[0]

    def _build_command(self, m: Module) -> None:
        """Take commands: index, vector, commands of the element-wise core, and starts."""
        c, buffer, control = self.config, self._buffer, self._control
        given = self.command.payload
        #: A pass is in execution, from its start to its status.
        self._running = Signal()
        self._run = Signal(c.command)
        #: Groups of the pass.
        self._groups = Signal(range(c.groups + 1))
        self._starts = starts = Signal()
        last = Signal(c.sub_bits)
        is_index, is_run, is_ewise = Signal(), Signal(), Signal()
        m.d.comb += [
            is_index.eq(given.kind == Kind.INDEX),
            is_run.eq(given.kind == Kind.RUN),
            is_ewise.eq(given.kind == Kind.EWISE),
            last.eq((given.size - 1) >> (c.columns.bit_length() - 1)),
            buffer.index.payload.group.eq(given.group),
            buffer.index.payload.counts.eq(given.counts),
            buffer.index.valid.eq(self.command.valid & is_index & ~self._running),
            control.command.payload.eq(last),
            control.command.valid.eq(self.command.valid & is_run & ~self._running),
            self.command.ready.eq(
                ~self._running
                & Mux(is_index, buffer.index.ready, 1)
                & Mux(is_run, control.command.ready, 1)
                & Mux(is_ewise, self._ewise.command.ready, 1)
            ),
            starts.eq(control.command.valid & control.command.ready),
        ]
        with m.If(starts):
            m.d.sync += [
                self._running.eq(1),
                self._run.eq(given),
                self._groups.eq((last + 1) * (c.columns // c.lanes)),
            ]

    def _build_os(self, m: Module) -> None:
        """Bring the elements of the vector to the columns, and store the reduced columns."""
        c, buffer = self.config, self._buffer
        lanes, low = range(c.lanes), c.lane_bits
        m.submodules.os = core = OSCore(config=c.os)
        s1_valid, s1_beat, move = Signal(), Signal(c.csc), Signal()
        m.d.comb += [
            move.eq(~s1_valid | core.i.ready),
            buffer.o.ready.eq(move),
            core.i.valid.eq(s1_valid),
            core.i.payload.plus.eq(self._run.first.plus),
            core.i.payload.times.eq(self._run.first.times),
        ]
        with m.If(move):
            m.d.sync += [s1_valid.eq(buffer.o.valid), s1_beat.eq(buffer.o.payload)]
        given = self.command.payload
        for k in lanes:
            # Each lane has its own copy of the vector, because each needs any of its elements.
            store = self._memory(m, f"vector_{k}")
            write, read = store.write_port(), store.read_port()
            lane = s1_beat.lanes[k]
            m.d.comb += [
                write.addr.eq(given.group),
                write.data.eq(given.values),
                write.en.eq(self.command.valid & ~self._running & (given.kind == Kind.VECTOR)),
                read.addr.eq(buffer.o.payload.lanes[k].row[low:]),
                read.en.eq(move),
                core.i.payload.lanes[k].a.eq(lane.value),
                core.i.payload.lanes[k].b.eq(self._element(read.data, lane.row[:low])),
                core.i.payload.lanes[k].present.eq(lane.present),
                core.i.payload.lanes[k].last.eq(lane.last),
            ]

        # The marks of a beat are consecutive columns, so each goes to another bank.
        next_column = Signal(c.row_bits + 1)
        columns: list[Signal] = []
        total = Value.cast(next_column)
        for k in lanes:
            column = Signal(c.row_bits + 1, name=f"os_column_{k}")
            m.d.comb += column.eq(total)
            columns.append(column)
            total = column + core.o.payload[k].last
        m.d.comb += core.o.ready.eq(1)
        with m.If(core.o.valid):
            m.d.sync += next_column.eq(total)
        with m.If(self._starts):
            m.d.sync += next_column.eq(0)
        self._products = []
        for bank in lanes:
            store = memory.Memory(shape=c.number.storage_bits, depth=c.groups, init=[])
            m.submodules[f"product_{bank}"] = store
            write = store.write_port()
            for k in lanes:
                hit = Signal(name=f"product_{bank}_from_{k}")
                m.d.comb += hit.eq(
                    core.o.valid & core.o.payload[k].last & (columns[k][:low] == bank)
                )
                with m.If(hit):
                    m.d.comb += [
                        write.en.eq(1),
                        write.addr.eq(columns[k][low : c.row_bits]),
                        write.data.eq(core.o.payload[k].value),
                    ]
            self._products.append(store.read_port())

        # The stage has finished when its elements are in the buffer and its columns are complete.
        end, converted, done = Signal(c.row_bits + 1), Signal(), Signal()
        with m.If(self._control.os.valid & self._control.os.ready):
            m.d.sync += end.eq((self._control.os.payload + 1) * c.columns)
        complete = self._complete(next_column, end)
        m.d.comb += [done.eq(converted & complete), self._control.os_done.eq(done)]
        with m.If(buffer.columns_done):
            m.d.sync += converted.eq(1)
        with m.If(done):
            m.d.sync += converted.eq(0)

    def _build_ewise(self, m: Module) -> None:
        """Run a program for each group of a sub-tensor, and store z for the next core."""
        c, control, core = self.config, self._control, self._ewise
        lanes, per_sub = range(c.lanes), c.columns // c.lanes
        active = Signal()
        # Groups whose step has been sent, whose product has been read, and whose result has come.
        names = ("sent", "read", "stored")
        groups = {name: Signal(range(c.groups + 1), name=f"ewise_{name}") for name in names}
        end = Signal(range(c.groups + 1))
        left = {name: Signal(name=f"ewise_{name}_left") for name in names}
        m.d.comb += [left[name].eq(active & (groups[name] != end)) for name in names]
        with m.If(control.ewise.valid & control.ewise.ready):
            m.d.sync += [
                active.eq(1),
                end.eq((control.ewise.payload + 1) * per_sub),
                *(group.eq(control.ewise.payload * per_sub) for group in groups.values()),
            ]

        def passes(name: str, go: Value) -> None:
            with m.If(go):
                m.d.sync += groups[name].eq(groups[name] + 1)

        # During a pass, the control sends the steps; otherwise the host does.
        given = self.command.payload
        command = core.command.payload
        present = [self._exists((groups["sent"] << c.lane_bits) + k) for k in lanes]
        m.d.comb += [
            control.ewise.ready.eq(~active),
            core.command.valid.eq(
                left["sent"] | (self.command.valid & ~self._running & (given.kind == Kind.EWISE))
            ),
            command.eq(given.ewise),
        ]
        with m.If(self._running):
            m.d.comb += [
                command.kind.eq(Command.STEP),
                command.address.eq(self._run.ewise.address),
                command.present.eq(Cat(present)),
            ]
        passes("sent", left["sent"] & core.command.ready)

        fetch = Signal()
        m.d.comb += fetch.eq(left["read"] & (~core.x.valid | core.x.ready))
        for k in lanes:
            product = self._products[k]
            m.d.comb += [
                product.addr.eq(groups["read"]),
                product.en.eq(fetch),
                core.x.payload[k].eq(product.data),
            ]
        x_valid = Signal(name="ewise_x_valid")
        m.d.comb += core.x.valid.eq(x_valid)
        with m.If(fetch):
            m.d.sync += x_valid.eq(1)
        with m.Elif(core.x.ready):
            m.d.sync += x_valid.eq(0)
        passes("read", fetch)

        connect(m, core.y, flipped(self.z))
        store = self._memory(m, "between")
        write, self._between = store.write_port(), store.read_port()
        m.d.comb += [
            write.addr.eq(groups["stored"]),
            write.data.eq(self.z.payload["values"]),
            write.en.eq(self.z.valid & self.z.ready),
        ]
        passes("stored", self.z.valid & self.z.ready)
        done = Signal()
        m.d.comb += [
            done.eq(active & self._finished(left["sent"] | left["stored"] | core.busy)),
            control.ewise_done.eq(done),
        ]
        with m.If(done):
            m.d.sync += active.eq(0)

    def _complete(self, next_column: Value, end: Value) -> Value:
        """Return 1 if the first product has all columns up to ``end``."""
        return next_column == end

    def _drained(self, waits: Value) -> Value:
        """Return 1 if no beat of a row waits for the input-stationary core."""
        return ~waits

    def _exists(self, column: Value) -> Value:
        """Return 1 for a column of the matrix, and 0 for one of the padding."""
        return column < self._run.size

    def _finished(self, at_work: Value) -> Value:
        """Return 1 if the element-wise core has finished its sub-tensor."""
        return ~at_work

    def _identity(self, m: Module) -> Value:
        """Return the number with which the second product starts."""
        return identity_of(m, self._run.second.plus, self.config.number)

    def _build_is(self, m: Module) -> None:
        """Clear the results, add the rows to them, and read them at the end of the pass."""
        c, buffer, control = self.config, self._buffer, self._control
        lanes, low = range(c.lanes), c.lane_bits
        m.submodules.is_ = core = ISCore(config=c.is_)
        clearing, reading = Signal(), Signal()
        group, received = Signal(range(c.groups + 1)), Signal(range(c.groups + 1))
        s1_valid, s1_beat, move = Signal(), Signal(c.csr), Signal()
        beat = core.i.payload
        identity = self._identity(m)
        x = self._element(self._between.data, s1_beat.row[:low])
        m.d.comb += [
            move.eq(~s1_valid | (core.i.ready & ~clearing & ~reading)),
            buffer.csr.ready.eq(move),
            self._between.addr.eq(buffer.csr.payload.row[low:]),
            self._between.en.eq(move),
            core.i.valid.eq(clearing | reading | s1_valid),
            beat.x.eq(x),
            beat.plus.eq(self._run.second.plus),
            beat.times.eq(self._run.second.times),
            beat.kind.eq(Mux(clearing, Access.WRITE, Mux(reading, Access.READ, Access.ADD))),
        ]
        with m.If(move):
            m.d.sync += [s1_valid.eq(buffer.csr.valid), s1_beat.eq(buffer.csr.payload)]
        of_group = clearing | reading
        for k in lanes:
            lane = s1_beat.lanes[k]
            m.d.comb += [
                beat.lanes[k].a.eq(Mux(of_group, identity, lane.value)),
                beat.lanes[k].column.eq(Mux(of_group, (group << low) + k, lane.column)),
                beat.lanes[k].present.eq(of_group | lane.present),
            ]
        with m.If(self._starts):
            m.d.sync += [clearing.eq(1), group.eq(0)]
        with m.If(of_group & core.i.ready):
            with m.If(group + 1 == self._groups):
                m.d.sync += [clearing.eq(0), reading.eq(0), group.eq(0)]
            with m.Else():
                m.d.sync += group.eq(group + 1)

        # A normal end starts the reads; its status follows the last result.
        ending, refused = Signal(), Signal()
        connect(m, core.o, flipped(self.y))
        m.d.comb += [
            refused.eq(control.status.payload != Refusal.NONE),
            self.status.valid.eq(
                control.status.valid & (refused | (ending & (received == self._groups)))
            ),
            self.status.payload.eq(control.status.payload),
            control.status.ready.eq(self.status.valid & self.status.ready),
        ]
        with m.If(control.status.valid & ~refused & ~ending & self._drained(s1_valid)):
            m.d.sync += [reading.eq(1), ending.eq(1), received.eq(0)]
        with m.If(self.y.valid & self.y.ready):
            m.d.sync += received.eq(received + 1)
        with m.If(self.status.valid & self.status.ready):
            # After a refusal the pass stays in execution, so that no further command is taken.
            m.d.sync += [ending.eq(0), self._running.eq(refused)]
