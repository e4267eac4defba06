"""A matrix unit between AXI4-Stream ports."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitruvian.golden.m3xu.isa import WORD_BITS

from ..mma.issue import BeatPlan, fetch_layout, opcodes_of
from .clock import CLOCK_PORTS, CLOCKING, use_clock
from .core import SHARED, BusCore
from .products import COUNT_BITS, ProductSequencer, command_layout
from .skid import Skid

#: Outputs that are set for one cycle when a driver made a mistake.
EVENTS = ("event_tlast_missing", "event_tlast_unexpected", "event_command_invalid")


@dataclass(frozen=True)
class Channel:
    """An AXI4-Stream port.

    Attributes
    ----------
    name : str
        Word behind ``s_axis_`` or ``m_axis_`` in the names of the signals.
    width : int
        Number of bits in use; ``tdata`` has as many bytes as they need.
    inward : bool
        True if the unit receives.
    last : bool
        True if the port has ``tlast``.
    """

    name: str
    width: int
    inward: bool = True
    last: bool = False

    @property
    def prefix(self) -> str:
        """The beginning of the names of the signals."""
        return f"{'s' if self.inward else 'm'}_axis_{self.name}"

    @property
    def data_bits(self) -> int:
        """Bits of ``tdata``."""
        return -(-self.width // 8) * 8

    @property
    def members(self) -> dict[str, Any]:
        """The signals, as members of a component."""
        there, back = (In, Out) if self.inward else (Out, In)
        return {
            f"{self.prefix}_tdata": there(self.data_bits),
            f"{self.prefix}_tvalid": there(1),
            f"{self.prefix}_tready": back(1),
        } | ({f"{self.prefix}_tlast": there(1)} if self.last else {})

    @property
    def layout(self) -> data.StructLayout:
        """Layout of an item inside of the unit; ``last`` may have no bits."""
        return data.StructLayout({"data": self.width, "last": int(self.last)})


def channels_of(core: BusCore) -> tuple[Channel, ...]:
    """Return the ports of a unit."""
    # Instructions say nothing about packets of operands.
    last = core.kind != "mma"
    operands = [Channel("a", core.a_bits, last=last), Channel("b", core.b_bits, last=last)]
    if core.index_bits:
        operands.append(Channel("index", core.index_bits, last=last))
    results = [Channel("c", core.d_bits), Channel("d", core.d_bits, inward=False, last=True)]
    if core.kind != "mma":
        command = Channel("command", Shape.cast(command_layout()).width)
        return (command, *operands, *results)
    requests = Shape.cast(fetch_layout(core.matrix_unit)).width
    instructions = Channel("instruction", WORD_BITS)
    return (instructions, Channel("fetch", requests, inward=False), *operands, *results)


class StreamUnit(wiring.Component):
    """Matrix unit between AXI4-Stream ports with the names of Vivado.

    The bits of a fractal are in the order of the unit's own ports: element 0 of row 0 in the lowest
    bits. ``tdata`` is padded with zeros at its end to whole bytes.

    Parameters
    ----------
    core : BusCore
        The unit.
    direct : bool
        If False, every port has a buffer of two items (``Skid``), so that all outputs come from
        registers. If True, there are no buffers: the unit is smaller and its latency two cycles
        shorter, but ``tready`` and ``tvalid`` of different ports depend on each other.

    Members
    -------
    aclk, aresetn : In(1)
        Clock, and synchronous reset, active low.
    s_axis_command_tdata, s_axis_command_tvalid, s_axis_command_tready : In(32), In(1), Out(1)
        Commands (``hdl.bus.products.command_layout``), one for each group of matrix products.
    s_axis_instruction_tdata, s_axis_instruction_tvalid, s_axis_instruction_tready : In(32), In(1), Out(1)
        Instead of commands in an ``mma``: its instructions.
    m_axis_fetch_tdata, m_axis_fetch_tvalid, m_axis_fetch_tready : Out(fetch), Out(1), In(1)
        Only in an ``mma``: requests for the operands of a beat (``hdl.mma.issue.fetch_layout``).
    s_axis_a_tdata, s_axis_a_tvalid, s_axis_a_tready, s_axis_a_tlast : In(A), In(1), Out(1), In(1)
        Fractals of A, one for each beat. ``tlast`` marks the last beat of a command; an ``mma`` has
        no ``tlast`` here.
    s_axis_b_tdata, s_axis_b_tvalid, s_axis_b_tready, s_axis_b_tlast : In(B), In(1), Out(1), In(1)
        Fractals of B, one for each beat, with ``tlast`` as for A.
    s_axis_index_tdata, s_axis_index_tvalid, s_axis_index_tready, s_axis_index_tlast : In(index), In(1), Out(1), In(1)
        Only with sparsity: indices of A, one item for each beat, with ``tlast`` as for A.
    s_axis_c_tdata, s_axis_c_tvalid, s_axis_c_tready : In(M × N × word_bits), In(1), Out(1)
        C fractals: one for each tile of a command that starts from C (two if it is complex).
    m_axis_d_tdata, m_axis_d_tvalid, m_axis_d_tready, m_axis_d_tlast : Out(M × N × word_bits), Out(1), In(1), Out(1)
        D fractals: one for each tile of a command (two if it is complex). ``tlast`` marks the last
        one of a command or an instruction.
    event_tlast_missing, event_tlast_unexpected : Out(1)
        Set for a cycle if the last beat of a command came without ``tlast``, or another beat came
        with it. The command decides which beat is the last one. An ``mma`` has none of them.
    event_command_invalid : Out(1)
        Set for a cycle if a command was dropped because the unit does not have its codes or its
        number of tiles; in an ``mma``, set from an illegal instruction until a reset.

    Latency
    -------
    ``latency`` is that of the unit, and two cycles more with buffers. Every port passes one item
    per cycle, so the unit's throughput is kept.

    Raises
    ------
    TypeError
        If ``core`` is not a ``BusCore``.
    """  # noqa: E501

    shared = SHARED
    #: The line about the clock in the header of emitted Verilog.
    clocking = CLOCKING
    #: Ports that only some units have.
    optional = frozenset(
        f"{way}_axis_{name}_t{word}"
        for way, name in (("s", "instruction"), ("m", "fetch"), ("s", "index"))
        for word in ("data", "valid", "ready", "last")
    )

    if TYPE_CHECKING:
        aclk: Signal
        aresetn: Signal

    def __init__(self, *, core: BusCore, direct: bool = False):
        if not isinstance(core, BusCore):
            raise TypeError(f"core must be a Core, not {core!r}")
        self.core, self.config, self.direct = core, core.config, direct
        self.latency = core.latency + (0 if direct else 2)
        self.channels = channels_of(core)
        self.events = EVENTS if core.kind != "mma" else EVENTS[2:]
        members = dict(CLOCK_PORTS)
        for channel in self.channels:
            members |= channel.members
        super().__init__(members | {name: Out(1) for name in self.events})

    @property
    def notes(self) -> list[str]:
        """Lines of the header of emitted Verilog: the command word, and the order of items."""
        if self.core.kind == "mma":
            return ["Instructions: docs/units/m3xu.md. Operands follow the order of m_axis_fetch."]
        layout = command_layout()
        codes = {
            "precision": enumerate(self.core.precisions),
            "operation": enumerate(op.mnemonic for op in self.core.operations),
            "start": ((0, "zero"), (1, "from_c")),
        }
        lines = ["Command word (s_axis_command_tdata):"]
        for name, field in layout:
            words = ", ".join(f"{code} {text}" for code, text in codes.get(name, ()))
            less = "number less 1" if name in ("tiles", "beats") else words or "0"
            lines.append(f"  {name} at [{field.offset} +: {field.width}]: {less}")
        return [
            *lines,
            "Order: for each beat, for each tile: one item of A and one of B. Each tile of a",
            "  command takes one item of C if it starts from C, and gives one item of D (complex:",
            "  two of each, real parts first). tlast marks the last item of a command.",
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        use_clock(m, self.aclk, self.aresetn)
        m.submodules.unit = unit = self.core.build()
        ports = {channel.name: self._port(m, channel) for channel in self.channels}
        # Results carry tlast, so the number of results of each command is queued until then.
        # An entry is free again two cycles after the last result has passed.
        depth = self.core.results_held + 2
        m.submodules.counts = counts = SyncFIFO(width=COUNT_BITS, depth=depth)
        build = self._build_instructions if self.core.kind == "mma" else self._build_products
        events = build(m, unit, ports, counts)
        for name, value in zip(self.events, events, strict=True):
            event = getattr(self, name)
            m.d.sync += event.eq(value)

        c, d = ports["c"], ports["d"]
        number = Signal(COUNT_BITS)
        passed = Signal()
        m.d.comb += [
            Value.cast(unit.c.payload).eq(c.payload.data),
            unit.c.valid.eq(c.valid),
            c.ready.eq(unit.c.ready),
            d.payload.data.eq(Value.cast(unit.o.payload)),
            d.payload.last.eq(number == counts.r_data),
            d.valid.eq(unit.o.valid & counts.r_rdy),
            unit.o.ready.eq(d.ready & counts.r_rdy),
            passed.eq(d.valid & d.ready),
            counts.r_en.eq(passed & d.payload.last),
        ]
        with m.If(passed):
            m.d.sync += number.eq(Mux(d.payload.last, 0, number + 1))
        return m

    def _port(self, m: Module, channel: Channel) -> Any:
        """Connect a port to a stream inside, with a buffer between them, and return the stream."""
        signals = {
            word: getattr(self, f"{channel.prefix}_t{word}")
            for word in ("data", "valid", "ready", *(["last"] if channel.last else []))
        }
        outer = stream.Signature(channel.layout).create(path=(channel.name,))
        payload = [(outer.payload.data, signals["data"])]
        if channel.last:
            payload.append((outer.payload.last, signals["last"]))
        for inside, outside in payload:
            m.d.comb += inside.eq(outside) if channel.inward else outside.eq(inside)
        forward, back = (outer.valid, signals["valid"]), (signals["ready"], outer.ready)
        for inside, outside in (forward, back):
            m.d.comb += inside.eq(outside) if channel.inward else outside.eq(inside)
        if self.direct:
            return outer
        m.submodules[f"{channel.name}_skid"] = skid = Skid(channel.layout)
        near, far = (skid.i, skid.o) if channel.inward else (skid.o, skid.i)
        source, target = (outer, near) if channel.inward else (near, outer)
        m.d.comb += [
            Value.cast(target.payload).eq(Value.cast(source.payload)),
            target.valid.eq(source.valid),
            source.ready.eq(target.ready),
        ]
        return far

    def _build_products(
        self, m: Module, unit: Any, ports: dict[str, Any], counts: SyncFIFO
    ) -> list[Value]:
        """Feed a unit of beats from commands; return the values of the events."""
        m.submodules.products = products = ProductSequencer(core=self.core)
        for name in ("command", *products.operands):
            target, source = getattr(products, name), ports[name]
            bits = source.payload.data if name == "command" else Value.cast(source.payload)
            m.d.comb += [
                Value.cast(target.payload).eq(bits),
                target.valid.eq(source.valid),
                source.ready.eq(target.ready),
            ]
        m.d.comb += [
            Value.cast(unit.i.payload).eq(Value.cast(products.o.payload)),
            unit.i.valid.eq(products.o.valid),
            products.o.ready.eq(unit.i.ready),
            counts.w_data.eq(products.results.payload),
            counts.w_en.eq(products.results.valid),
            products.results.ready.eq(counts.w_rdy),
        ]
        return [products.missing, products.unexpected, products.invalid]

    def _build_instructions(
        self, m: Module, unit: Any, ports: dict[str, Any], counts: SyncFIFO
    ) -> list[Value]:
        """Feed a unit that runs instructions; return the value of the event."""
        source, fetch, a, b = (ports[name] for name in ("instruction", "fetch", "a", "b"))
        opcode = unit.i.payload.opcode
        known, announced, both = Signal(), Signal(), Signal()
        with m.Switch(opcode):
            for code in opcodes_of(self.core.matrix_unit):
                plan = BeatPlan.of(code, self.core.matrix_unit)
                with m.Case(code.code):
                    results = plan.tiles * (2 if plan.is_complex else 1)
                    m.d.comb += [known.eq(1), counts.w_data.eq(results - 1)]
        m.d.comb += [
            Value.cast(unit.i.payload).eq(source.payload.data),
            counts.w_en.eq(source.valid & known & ~announced),
            unit.i.valid.eq(source.valid & (announced | counts.w_rdy | ~known)),
            source.ready.eq(unit.i.ready & unit.i.valid),
            fetch.payload.data.eq(Value.cast(unit.fetch.payload)),
            fetch.valid.eq(unit.fetch.valid),
            unit.fetch.ready.eq(fetch.ready),
            both.eq(a.valid & b.valid),
            Value.cast(unit.ab.payload).eq(Cat(a.payload.data, b.payload.data)),
            unit.ab.valid.eq(both),
            a.ready.eq(both & unit.ab.ready),
            b.ready.eq(both & unit.ab.ready),
        ]
        with m.If(source.valid & source.ready):
            m.d.sync += announced.eq(0)
        with m.Elif(counts.w_en & counts.w_rdy):
            m.d.sync += announced.eq(1)
        return [unit.illegal]
