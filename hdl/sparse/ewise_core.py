"""The element-wise core: lanes that run programs on elements of vectors."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_type

from ..fp.compare import Compare
from .config import Plus, Times
from .ewise_config import Command, EwiseConfig, Operation
from .operators import ProcessingElement, one, truth

#: The operators of the processing element by the operation of an instruction.
_TIMES = {
    Operation.ADD: Times.ADD,
    Operation.SUB: Times.SUB,
    Operation.MUL: Times.MUL,
    Operation.MIN: Times.MIN,
    Operation.MAX: Times.MAX,
    Operation.AND: Times.AND,
    Operation.OR: Times.OR,
}


class EwiseLane(wiring.Component):
    """A lane of ``EwiseCore``: its part of the registers, and a processing element.

    Members
    -------
    instruction : In(config.instruction)
        The instruction of this cycle.
    write : In(1)
        The result is written at the end of the cycle.
    given : In(storage_bits)
        The item of an input stream, for ``LOAD``.
    other : In(storage_bits)
        ``value`` of another lane, for ``EXCHANGE``.
    value : Out(storage_bits)
        Operand a, in the same cycle.

    Latency
    -------
    The next instruction reads what this one writes. There is no pipeline in the processing element.
    """

    #: Sub-components that tools may build once.
    shared = (ProcessingElement,)

    if TYPE_CHECKING:
        instruction: data.View[data.StructLayout]
        write: Signal
        given: Signal
        other: Signal
        value: Signal

    def __init__(self, *, config: EwiseConfig):
        check_type("config", config, EwiseConfig)
        self.config = config
        bits = config.number.storage_bits
        super().__init__(
            {
                "instruction": In(config.instruction),
                "write": In(1),
                "given": In(bits),
                "other": In(bits),
                "value": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c, f, i = self.config, self.config.number, self.instruction
        m.submodules.registers = file = memory.Memory(
            shape=f.storage_bits, depth=c.registers, init=[]
        )
        write = file.write_port()
        first, second = file.read_port(domain="comb"), file.read_port(domain="comb")
        a, b = first.data, second.data
        m.submodules.element = element = ProcessingElement(format=f, multiplier=c.multiplier)
        m.submodules.compare = compare = Compare(format=f)
        m.d.comb += [
            first.addr.eq(i.a),
            second.addr.eq(i.b),
            self.value.eq(a),
            element.a.eq(a),
            element.b.eq(b),
            # No reduction follows in a lane; ADD is the one that leaves the result unchanged.
            element.plus.eq(Plus.ADD),
            compare.a.eq(a),
            compare.b.eq(b),
        ]
        is_true = Signal()
        m.d.comb += is_true.eq(truth(m, a, f, name="condition"))
        with m.Switch(i.op):
            for op, times in _TIMES.items():
                with m.Case(op):
                    m.d.comb += element.times.eq(times)
        results: dict[Operation, Value] = {
            Operation.LOAD: self.given,
            Operation.COPY: a,
            Operation.ABS: a & ~f.sign_mask,
            Operation.NOT: one(~is_true, f),
            Operation.EXCHANGE: self.other,
            Operation.WHERE: b,
            Operation.EQUAL: one(compare.equal, f),
            Operation.LESS: one(compare.less, f),
        }
        results = self._results(results, a, b)
        with m.Switch(i.op):
            for op, result in results.items():
                with m.Case(op):
                    m.d.comb += write.data.eq(result)
            with m.Default():
                m.d.comb += write.data.eq(element.d)
        m.d.comb += [
            write.addr.eq(i.d),
            write.en.eq(self._enabled(self.write, i.op, is_true)),
        ]
        return m

    def _results(
        self, results: dict[Operation, Value], a: Value, b: Value
    ) -> dict[Operation, Value]:
        """Return the results of the operations that the processing element does not compute."""
        return results

    def _enabled(self, write: Value, op: Value, is_true: Value) -> Value:
        """Return 1 if the lane writes its result."""
        # WHERE keeps the old value of its target where the condition is false.
        return write & (op != Operation.STORE) & ((op != Operation.WHERE) | is_true)


class EwiseCore(wiring.Component):
    """Element-wise core, bit-exact with ``golden.sparse.programs.run``.

    Each lane has a number in every register. An instruction takes one cycle in all lanes. A load
    waits for the item of its stream, and a store for room in its stream; all else waits with it.

    Members
    -------
    command : In(stream.Signature(config.command))
        Steps, which run a program, and writes to the program store. Both wait while a program runs.
    x : In(stream.Signature(config.values))
        Items of the vector that the output-stationary core has computed.
    v : In(stream.Signature(config.values))
        Items of all other vectors, and of scalars.
    y : Out(stream.Signature(config.results))
        Items of the vector for the input-stationary core.
    w : Out(stream.Signature(config.results))
        Items of all other results.
    busy : Out(1)
        A program runs.

    Latency
    -------
    ``latency = 2`` cycles from a step to the item of a program that begins with a store. A program
    takes as many cycles as it has instructions, and the next step follows without a pause.

    Raises
    ------
    TypeError
        If ``config`` is no ``EwiseConfig``.

    References
    ----------
    Zhang 2024, §4.4.3.
    """

    #: Sub-components that tools may build once for all lanes.
    shared = (EwiseLane,)

    if TYPE_CHECKING:
        command: stream.Interface
        x: stream.Interface
        v: stream.Interface
        y: stream.Interface
        w: stream.Interface
        busy: Signal

    def __init__(self, *, config: EwiseConfig):
        check_type("config", config, EwiseConfig)
        self.config, self.latency = config, 2
        super().__init__(
            {
                "command": In(stream.Signature(config.command)),
                "x": In(stream.Signature(config.values)),
                "v": In(stream.Signature(config.values)),
                "y": Out(stream.Signature(config.results)),
                "w": Out(stream.Signature(config.results)),
                "busy": Out(1),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived core has in addition."""
        return {}

    def _lane(self) -> EwiseLane:
        """Return a lane."""
        return EwiseLane(config=self.config)

    def _partner(self, lanes: list[EwiseLane], k: int, n: int) -> Value:
        """Return the value that lane k gets in an exchange over the distance 2^n."""
        # The butterfly of a reduction over all lanes: the partner differs in one bit of its number.
        return lanes[k ^ 1 << n].value

    def _waits(self, load: Value, store: Value) -> Value:
        """Return 1 if an instruction waits because of a load or a store."""
        return load | store

    def _writes(self, go: Value, present: Value) -> Value:
        """Return 1 if a lane may write a register."""
        return go & present

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.config
        m.submodules.store = store = memory.Memory(
            shape=c.instruction, depth=c.instructions, init=[]
        )
        fetch, write = store.read_port(), store.write_port()
        command = self.command.payload
        m.d.comb += [
            write.addr.eq(command.address),
            write.data.eq(command.instruction),
            write.en.eq(self.command.valid & self.command.ready & (command.kind == Command.WRITE)),
        ]
        i = fetch.data
        running = Signal(name="running")
        address = Signal(c.address_bits, reset_less=True)
        present = Signal(c.lanes, reset_less=True)

        inputs, outputs = (self.x, self.v), (self.y, self.w)
        go = Signal()  # the instruction ends in this cycle
        loads = Cat(
            (i.op == Operation.LOAD) & (i.a[0] == n) & ~s.valid for n, s in enumerate(inputs)
        )
        stores = Cat(
            # The register of an output is free if it is empty or leaves in this cycle.
            (i.op == Operation.STORE) & (i.d[0] == n) & s.valid & ~s.ready
            for n, s in enumerate(outputs)
        )
        m.d.comb += go.eq(running & ~self._waits(loads.any(), stores.any()))
        for n, s in enumerate(inputs):
            # Streams are taken by the load itself; the lanes write in the same cycle.
            m.d.comb += s.ready.eq(running & (i.op == Operation.LOAD) & (i.a[0] == n))

        self._build_control(m, fetch, running, address, present, go, i)
        lanes = [self._lane() for _ in range(c.lanes)]
        for k, lane in enumerate(lanes):
            m.submodules[f"lane_{k}"] = lane
            other = Signal(c.number.storage_bits, name=f"other_{k}")
            m.d.comb += other.eq(lane.value)
            # log2(lanes) distances; the operand b of an exchange is the number of one.
            for n in range(c.lanes.bit_length() - 1):
                with m.If(i.b == n):
                    m.d.comb += other.eq(self._partner(lanes, k, n))
            m.d.comb += [
                lane.instruction.eq(i),
                lane.write.eq(self._writes(go, present[k])),
                lane.given.eq(Mux(i.a[0], self.v.payload[k], self.x.payload[k])),
                lane.other.eq(other),
            ]
        for n, s in enumerate(outputs):
            with m.If(go & (i.op == Operation.STORE) & (i.d[0] == n)):
                m.d.sync += [
                    s.valid.eq(1),
                    s.payload.present.eq(present),
                    *(s.payload.values[k].eq(lane.value) for k, lane in enumerate(lanes)),
                ]
            with m.Elif(s.ready):
                m.d.sync += s.valid.eq(0)
        m.d.comb += self.busy.eq(running)
        return m

    def _build_control(
        self,
        m: Module,
        fetch: memory.ReadPort,
        running: Signal,
        address: Signal,
        present: Signal,
        go: Value,
        i: data.View,
    ) -> None:
        """Fetch the next instruction, or the first one of the next step."""
        command = self.command.payload
        leave, take, following = Signal(), Signal(), Signal(self.config.address_bits)
        m.d.comb += [
            leave.eq(go & i.end),
            # The next step is taken in the last cycle of this one, so that no cycle is lost between
            # them.
            self.command.ready.eq(~running | leave),
            take.eq(self.command.valid & self.command.ready & (command.kind == Command.STEP)),
            following.eq(Mux(take, command.address, address + 1)),
            fetch.addr.eq(following),
            # The memory answers in the next cycle; while an instruction waits, its word must stay.
            fetch.en.eq(take | go),
        ]
        with m.If(fetch.en):
            m.d.sync += address.eq(following)
        with m.If(take):
            m.d.sync += [running.eq(1), present.eq(command.present)]
        with m.Elif(leave):
            m.d.sync += running.eq(0)
